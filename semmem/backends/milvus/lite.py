"""Milvus Lite as a child process that semmem owns: started, kept alive and stopped with it.

Embedded in this process it would share the interpreter's lock with the request path. The child listens on 127.0.0.1
without authentication: every local account can reach it, so a machine shared with others needs a Milvus server.

The child (milvus_lite_server) ends with its parent, however that dies: it holds the reading end of a pipe whose
writing end only the parent has, and leaves when the pipe closes (a child stopped by SIGSTOP once it goes on). This
works on every Unix; elsewhere Milvus Lite is not supported."""

import asyncio
import logging
import os
import random
import socket
import sys
import time
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from semmem.backends.milvus import lite_server as milvus_lite_server
from semmem.backends.milvus.background import OwnedTasks
from semmem.backends.milvus.lite_server import EXIT_DAMAGED, EXIT_LOCKED, EXIT_STORAGE, HOST
from semmem.ports.errors import StoreDamaged, StoreError, StoreTimeout, StoreUnavailable

PORTS = range(20_000, 32_768)
"""Below the range Linux takes client ports from, so that the port is still free when the child is started again."""
LOG_NAME = "milvus-lite.log"
POLL_S = 0.05
RESTART_DELAY_MAX_S = 30.0
STABLE_S = 60.0
BUFFER_BYTES_MAX = 64 * 1024 * 1024
"""A safety net per collection: a write that fills Lite's buffer flushes it, and reads during that flush may miss rows.
MilvusStore flushes long before, while it holds reads off; so this is large."""
LINES_SHOWN_MAX = 5

REMEDY = (
    "put the file back from a backup, or the whole folder; without one, move the folder away to begin empty, or take a"
    " damaged file of a folder named data away to lose only what it held. Memory is served again within seconds of"
    " either, without a restart (see the page on operations)"
)

logger = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class MilvusLiteProcess:
    """One Milvus Lite server on one data directory (made with mode 0700), at ``uri`` once started and after each
    restart. ``start_timeout_s`` bounds each start, ``stop_timeout_s`` what SIGTERM may take before SIGKILL. A child
    that dies is started again at the same port, after ``restart_delay_s``, doubled with each death up to
    ``RESTART_DELAY_MAX_S``, and back to the first after ``STABLE_S`` of running. The child's start-up lines and a
    crash's traceback go to ``milvus-lite.log`` in the data directory, rewritten at each start; what it would log about
    requests is dropped, because it quotes filters and so user ids."""

    data_dir: Path
    _: KW_ONLY
    start_timeout_s: float = 60.0
    stop_timeout_s: float = 10.0
    restart_delay_s: float = 0.2
    restarts: int = field(init=False, default=0)
    """How often the child was started again after it died."""
    _process: asyncio.subprocess.Process | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._port = _free_port()
        self.uri = f"http://{HOST}:{self._port}"
        self._tasks = OwnedTasks("milvus lite")

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    async def start(self) -> None:
        """Start the child and wait until it takes connections. Raises StoreError when another process has the
        directory, StoreDamaged when a file in it cannot be read, StoreUnavailable when the directory cannot be made or
        the child ends at once, StoreTimeout when it takes too long. After a failure it may be called again."""
        if self._process is not None:
            return
        try:
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(f"{self.data_dir} cannot be made: {error.strerror}") from None
        try:
            await self._start_child()
        except BaseException:
            self._process = None
            raise
        if missing := self._named("missing: "):
            logger.error("milvus lite: %s is missing; what it held is lost, the rest is served", missing)
        self._tasks.spawn(self._keep_alive())

    async def stop(self) -> None:
        """Stop the child: SIGTERM, then SIGKILL. Idempotent."""
        await self._tasks.close()
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(self.stop_timeout_s):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _start_child(self) -> None:
        process = self._process = await self._spawn()
        try:
            async with asyncio.timeout(self.start_timeout_s):
                while not await _answers(self._port):
                    self._check_running(process)
                    await asyncio.sleep(POLL_S)
        except BaseException as error:
            if process.returncode is None:
                process.kill()
                await process.wait()
            if isinstance(error, TimeoutError):
                raise StoreTimeout("milvus lite did not start within its deadline") from None
            raise

    async def _spawn(self) -> asyncio.subprocess.Process:
        log = os.open(self.data_dir / LOG_NAME, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", milvus_lite_server.__name__, str(self.data_dir), str(self._port)),
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, "MILVUS_LITE_MEMTABLE_MEMORY_LIMIT_BYTES": str(BUFFER_BYTES_MAX)},
                start_new_session=True,  # Ctrl-C in a terminal is for semmem, which stops the child when it has drained
            )
        finally:
            os.close(log)

    def _check_running(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode == EXIT_LOCKED:
            raise StoreError(f"{self.data_dir} is in use by another Milvus Lite process")
        if process.returncode == EXIT_DAMAGED:
            raise StoreDamaged(f"{self._named('damaged: ')} cannot be read: {REMEDY}")
        if process.returncode is not None:
            log = self.data_dir / LOG_NAME
            raise StoreUnavailable(f"milvus lite ended with code {process.returncode} while starting, see {log}")

    def _named(self, kind: str) -> str:
        """The files that the child's log names as ``kind``."""
        try:
            lines = (self.data_dir / LOG_NAME).read_text(errors="replace").splitlines()
        except OSError:
            return ""
        files = [line.removeprefix(kind) for line in lines if line.startswith(kind)]
        more = f" and {len(files) - LINES_SHOWN_MAX} more" if len(files) > LINES_SHOWN_MAX else ""
        return ", ".join(files[:LINES_SHOWN_MAX]) + more

    async def _keep_alive(self) -> None:
        delay_s = self.restart_delay_s
        while self._process is not None:
            began = time.monotonic()
            code = await self._process.wait()
            if time.monotonic() - began >= STABLE_S:
                delay_s = self.restart_delay_s
            why = ": a write to its files failed, nothing that was acknowledged is lost" if code == EXIT_STORAGE else ""
            logger.warning("milvus lite ended with code %s%s, starting it again in %.1f s", code, why, delay_s)
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, RESTART_DELAY_MAX_S)
            self.restarts += 1
            try:
                await self._start_child()
            except StoreDamaged as error:
                logger.error("milvus lite was not started again: %s", error)
            except StoreError as error:
                logger.warning("milvus lite could not be started again: %s", type(error).__name__)


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


def _free_port() -> int:
    for port in random.sample(PORTS, 100):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    raise StoreUnavailable(f"no free port between {PORTS.start} and {PORTS.stop - 1}")
