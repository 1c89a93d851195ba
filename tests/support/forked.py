"""Processes of semmem that need not import it: each is a fork of one that has, and waits for this test process.

Importing semmem takes two seconds of processor time, and a run of the tests starts it some hundred times. A fork is
a process of its own like any other (a session, files, signals, an exit status), and only its beginning is spared. What
is about that beginning starts ``python -m`` itself, as the programs do that search for long.

``python -m tests.support.forked [FIRST]`` is the process that waits, with FIRST and semmem imported. Its forks run a
program that they are told, a module that has a ``main``. Its standard input is the socket it is told by; it ends when
that closes. It has one thread, as whoever forks should.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

from demo.processes import Child
from demo.stack import HOME

ASKED_BYTES_MAX = 1 << 20
FILES_MAX = 4
STATUS_BYTES = 4
IMPORTED = ("semmem.cli", "semmem.wiring.app", "tests.support.serve")
"""What all programs of semmem need, and the two that are asked for most."""
STARTS_FORKS = "tests.support.starts_forks"
"""The program that runs another, whose children are forks as well."""
MILVUS_LITE = "tests.support.lite_server"
"""The one program that is not semmem, and imports what it needs itself."""
APART = ("tests.faults.broken_semmem", MILVUS_LITE)
"""Programs with a process that waits of their own: what semmem finds when it is imported is changed, or not needed."""
FILE_SIZE = resource.RLIMIT_FSIZE
IMPORTED_S = 60.0
"""How long that may take, on a busy machine."""

_in_use = False


def use_forks() -> None:
    """From here on this process starts semmem so."""
    global _in_use
    _in_use = True


def child(program: str, arguments: Sequence[object], *, log: Path) -> Child:
    """A running ``python -m program`` that prints into ``log``."""
    words, environ = [str(word) for word in arguments], os.environ | {"HF_HUB_OFFLINE": "1"}
    if _in_use:
        return ForkedChild(program, words, log=log, environ=environ)
    return Child("semmem", [sys.executable, "-m", program, *words], log=log, cwd=HOME, environ=environ)


def finished(program: str, arguments: Sequence[object], *, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """``python -m program``, waited for. Raises subprocess.TimeoutExpired, and leaves nothing running then."""
    words, environ = [str(word) for word in arguments], os.environ | {"HF_HUB_OFFLINE": "1"}
    if not _in_use:
        argv = [sys.executable, "-m", program, *words]
        return subprocess.run(
            argv, cwd=HOME, env=environ, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = Forked(program, words, environ=environ, stdout=out, stderr=err)
        try:
            code = process.wait(timeout_s)
        finally:
            process.kill()
        return subprocess.CompletedProcess([program, *words], code, _text(out), _text(err))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


class Forked:
    """What of ``subprocess.Popen`` the tests ask for."""

    def __init__(
        self,
        program: str,
        words: Sequence[str],
        *,
        environ: Mapping[str, str],
        stdout: IO[bytes],
        stderr: IO[bytes],
        stdin: int | None = None,
    ) -> None:
        """Without an open file ``stdin`` it reads nothing."""
        self.returncode: int | None = None
        self._ended, told = os.pipe()
        try:
            asked = {
                "program": program,
                "words": list(words),
                "environ": dict(environ),
                "file_size": resource.getrlimit(FILE_SIZE),
            }
            files = [stdout.fileno(), stderr.fileno(), told]
            waiting = _waiting(program if program in APART else "")
            self.pid = waiting.fork(asked, files if stdin is None else [*files, stdin])
        finally:
            os.close(told)

    def poll(self) -> int | None:
        return self._told_within(0)

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        if (status := self._told_within(timeout)) is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        return status

    def send_signal(self, signum: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, signum)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def fileno(self) -> int:
        """What can be read from when the process has ended; closed by whoever asks for its status then."""
        return self._ended

    def _told_within(self, timeout_s: float | None) -> int | None:
        if self.returncode is None and select.select([self._ended], [], [], timeout_s)[0]:
            status = os.read(self._ended, STATUS_BYTES)
            assert status, "who forks has died"
            self.returncode = int.from_bytes(status, signed=True)
            os.close(self._ended)
        return self.returncode


class ForkedChild(Child):
    """A Child that is a fork."""

    def __init__(self, program: str, words: Sequence[str], *, log: Path, environ: Mapping[str, str]) -> None:
        self.name = "semmem"
        self.log = log
        with log.open("wb") as output:
            forked = Forked(program, words, environ=environ, stdout=output, stderr=output)
        self.process = forked  # type: ignore[assignment]  # what a Child asks of it, it has


class _Waiting:
    """The process that waits, with ``first`` imported before semmem, or in its place."""

    def __init__(self, first: str) -> None:
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(IMPORTED_S)
        self._one_at_a_time = threading.Lock()
        with other:
            argv = [sys.executable, "-m", "tests.support.forked", *filter(None, [first])]
            self._process = subprocess.Popen(argv, cwd=HOME, stdin=other.fileno(), start_new_session=True)
        atexit.register(self._end)

    def fork(self, asked: Mapping[str, object], files: Sequence[int]) -> int:
        """The id of a new process. Its outputs are the first two of the open files; its end is told to the third; a
        fourth is its input."""
        with self._one_at_a_time:
            socket.send_fds(self._socket, [json.dumps(dict(asked)).encode()], list(files))
            return int.from_bytes(self._socket.recv(STATUS_BYTES))

    def _end(self) -> None:
        self._socket.close()
        self._process.wait()


@cache
def _waiting(first: str) -> _Waiting:
    return _Waiting(first)


# --- in the process that waits, and in its forks ---------------------------------------------------------------------


def _serve() -> dict[str, Any] | None:
    """Forks whenever it is asked to, until nobody can ask any more. In a fork: what is to be run there."""
    asking = socket.socket(fileno=os.dup(0))
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(wake)
    events = select.poll()
    events.register(asking, select.POLLIN)
    events.register(woken, select.POLLIN)
    running: dict[int, int] = {}
    ended: dict[int, int] = {}
    while True:
        for ready, _ in events.poll():
            if ready == woken:
                os.read(woken, 1024)
                _tell_ends(running, ended, events)
            elif ready != asking.fileno():
                _bury(ended.pop(ready), ready, events)
            else:
                data, files, _, _ = socket.recv_fds(asking, ASKED_BYTES_MAX, FILES_MAX)
                if not data:
                    return None
                if (pid := os.fork()) == 0:
                    return _begun(data, files, max(asking.detach(), woken, wake, *running.values(), *ended, *files))
                running[pid] = files[2]
                for file in (*files[:2], *files[3:]):
                    os.close(file)
                asking.send(pid.to_bytes(STATUS_BYTES))


def _begun(data: bytes, files: Sequence[int], last: int) -> dict[str, Any]:
    """In a fork: nothing of the process that waits is left open."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    asked: dict[str, Any] = json.loads(data)
    _take_place(asked, files[:2], *files[3:])
    os.closerange(3, last + 1)
    return asked


def _tell_ends(running: dict[int, int], ended: dict[int, int], events: select.poll) -> None:
    """The ended keep their ids until whoever asked for them has read how they ended, as children do."""
    for pid in list(running):
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            continue
        told = running.pop(pid)
        ended[told] = pid
        events.register(told, 0)  # an error, when the other end is closed
        status = _exit_status(pid)
        os.write(told, status.to_bytes(STATUS_BYTES, signed=True))


def _exit_status(pid: int) -> int:
    result = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert result is not None
    return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status


def _bury(pid: int, told: int, events: select.poll) -> None:
    events.unregister(told)
    os.close(told)
    os.waitpid(pid, 0)


def _take_place(asked: Mapping[str, Any], outputs: Sequence[int], stdin: int | None = None) -> None:
    """Be what ``subprocess.Popen`` makes of a program: files, their limit, environment, a session of its own."""
    os.setsid()
    resource.setrlimit(FILE_SIZE, tuple(asked["file_size"]))
    os.environ.clear()
    os.environ.update(asked["environ"])
    read = os.open(os.devnull, os.O_RDONLY) if stdin is None else stdin
    for file, place in zip((read, *outputs), range(3), strict=True):
        os.dup2(file, place)
    if stdin is None:
        os.close(read)


def _wait(first: Sequence[str]) -> int:
    """Import semmem, wait, and in a fork run what is asked for: the exit status."""
    for name in (*first, *(() if MILVUS_LITE in first else IMPORTED)):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    asked = _serve()
    if asked is None:
        return 0
    program = str(asked["program"])
    main: Callable[[], int] = importlib.import_module("semmem.cli" if program == "semmem" else program).main
    sys.argv = [program, *asked["words"]]
    return main()


if __name__ == "__main__":
    sys.exit(_wait(sys.argv[1:]))
