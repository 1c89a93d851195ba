"""A semmem that can be killed, stopped and started again at the same addresses, and the store beside it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from demo.processes import Child, Failed
from tests.support import forked
from tests.support.harness import START_S, SemmemProcess, eventually, merged, semmem_config
from tests.support.ports import free_port

READY = r"^semmem ready grpc=\S+:(\d+) api=(\S+) health=(\S+)$"


class Sidecar:
    """semmem on fixed ports, with its data in ``folder``. ``extra`` are arguments of broken_semmem."""

    def __init__(self, folder: Path, override: Mapping[str, Any], extra: Sequence[str] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.data_dir = folder / "data"
        self.switch = folder / "switch"
        self.grpc_port, self._api_port, self._health_port = free_port(), free_port(), free_port()
        self._override = override
        self._extra = list(extra)
        self._running: SemmemProcess | None = None
        self.starts = 0

    @property
    def semmem(self) -> SemmemProcess:
        assert self._running is not None, "semmem is not running"
        return self._running

    @property
    def is_running(self) -> bool:
        return self._running is not None

    @property
    def pid(self) -> int:
        return self.semmem.child.pid

    def launch(self, override: Mapping[str, Any] | None = None, *extra: str) -> Child:
        """The process, not waited for. ``extra`` are further arguments of broken_semmem."""
        self.starts += 1
        config = self.folder / f"config-{self.starts}.yaml"
        addresses = {
            "listeners": {
                "grpc": {"address": f"127.0.0.1:{self.grpc_port}"},
                "api": {"address": f"127.0.0.1:{self._api_port}"},
                "health": {"address": f"127.0.0.1:{self._health_port}"},
            }
        }
        whole = merged(merged(self._override, addresses), override or {})
        config.write_text(yaml.safe_dump(semmem_config(self.data_dir, whole, as_shipped=True)))
        words = ["--config", config, "--switch", self.switch, *self._extra, *extra]
        log = self.folder / f"semmem-{self.starts}.log"
        return forked.child("tests.faults.broken_semmem", words, log=log)

    def start(self, override: Mapping[str, Any] | None = None, *extra: str) -> None:
        """Start and wait until it is ready."""
        child = self.launch(override, *extra)
        try:
            ready = child.wait_for(READY, timeout_s=START_S)
        except Failed as failure:
            child.wait(0)
            raise AssertionError(f"{failure}\n{child.printed()[-4000:]}") from failure
        except BaseException:
            child.wait(0)
            raise
        self._running = SemmemProcess(child, self.data_dir, int(ready[1]), f"http://{ready[2]}", f"http://{ready[3]}")

    def end(self, signum: signal.Signals = signal.SIGTERM, grace_s: float = 30.0) -> int | None:
        """End it by a signal; its exit status. Nothing of it is left, its store's process included."""
        running, self._running = self._running, None
        if running is None:
            return None
        running.http.close()
        store = child_that_serves_milvus(running.child.pid)
        os.kill(running.child.pid, signal.SIGCONT)
        os.kill(running.child.pid, signum)
        code = running.child.wait(grace_s)
        if store is not None:
            eventually(lambda: not _lives(store), within_s=60, what="the store's process ends with semmem")
        return code

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def store_pid(self) -> int:
        """The process of the embedded store."""
        found: int = eventually(lambda: child_that_serves_milvus(self.pid), within_s=30, what="semmem has a store")
        return found


def child_that_serves_milvus(parent: int) -> int | None:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            ppid = int(stat.read_text().rpartition(")")[2].split()[1])
            command = stat.with_name("cmdline").read_bytes()
        except OSError:  # it ended meanwhile
            continue
        if ppid == parent and b"milvus" in command:
            return int(stat.parent.name)
    return None


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """The process does not run within the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def switched(sidecar: Sidecar, word: str) -> Iterator[None]:
    """The embedder misbehaves within the block."""
    sidecar.switch.write_text(word)
    try:
        yield
    finally:
        sidecar.switch.unlink()
