"""``main`` runs a program (``WORDS`` are its name and arguments) whose ``python -m`` children are forks of it.

For programs that start others, such as the demo and the benchmark: with ``forked``, neither they nor what they start
import semmem anew. A child is as ``demo.processes.Child`` starts it: a session, a log, an environment of its own,
nothing open but what it inherits, no handler of signals.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from demo import processes
from demo.processes import Child

POLL_S = 0.02
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    program, *words = sys.argv[1:]
    processes.Child = ForkOrChild  # type: ignore[misc]  # that it is one, Children do not ask
    return _run(program, words)


class ForkOrChild(Child):
    """A fork where ``python -m`` is asked for, and else what is asked for."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log: Path,
        cwd: Path,
        environ: Mapping[str, str],
        inherited: Collection[int] = (),
    ) -> None:
        if list(argv[:2]) != [sys.executable, "-m"]:
            super().__init__(name, argv, log=log, cwd=cwd, environ=environ, inherited=inherited)
            return
        self.name = name
        self.log = log
        with log.open("wb") as output:
            fork = Fork(argv[2], argv[3:], output=output.fileno(), environ=environ, inherited=inherited)
        self.process = fork  # type: ignore[assignment]  # what a Child asks of it, it has


class Fork:
    """What of ``subprocess.Popen`` a Child asks for."""

    def __init__(
        self,
        module: str,
        words: Sequence[str],
        *,
        output: int,
        environ: Mapping[str, str],
        inherited: Collection[int],
    ) -> None:
        self.returncode: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _become(module, words, output, environ, inherited)

    def poll(self) -> int | None:
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if ended else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        until = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            time.sleep(POLL_S)
        return status


def _become(
    module: str, words: Sequence[str], output: int, environ: Mapping[str, str], inherited: Collection[int]
) -> None:
    """In the fork: the program, and its end, which is none of the one that forked."""
    status = 1
    try:
        os.setsid()
        for signum in SIGNALS:
            signal.signal(signum, signal.SIG_DFL if signum != signal.SIGINT else signal.default_int_handler)
        _take_files(output, inherited)
        os.environ.clear()
        os.environ.update(environ)
        status = _run(module, words)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _take_files(output: int, inherited: Collection[int]) -> None:
    """Pipes stay open: libuv has some of its own, and makes new ones at a fork."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for file, place in zip((nothing, output, output), range(3), strict=True):
        os.dup2(file, place)
    for file in (int(name) for name in os.listdir("/proc/self/fd")):
        if file > 2 and file not in inherited and _leads_out(file):
            os.close(file)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # as PYTHONUNBUFFERED would have it


def _leads_out(file: int) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{file}").startswith(("/", "socket:"))
    except FileNotFoundError:  # the one that the list was read with
        return False


def _run(module: str, words: Sequence[str]) -> int:
    """``python -m module``, in this process: its exit status."""
    sys.argv = [module, *words]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
            return 1
        return int(ended.code or 0)
    return 0
