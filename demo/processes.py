"""Child processes that are owned: one log file each, one process group each, and nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

POLL_S = 0.05


class Failed(Exception):
    """A step did not do what it promises. The message is for the person at the terminal; ``log`` may say more."""

    def __init__(self, message: str, log: Path | None = None) -> None:
        super().__init__(message)
        self.log = log


class TimedOut(Failed):
    """Something awaited did not happen in time."""


class Stopped(BaseException):
    """Somebody asked us to end: Ctrl-C, SIGTERM, or a closed terminal."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


class Child:
    """A running program in a process group of its own; what it prints goes to ``log``.

    ``inherited`` are open files that it keeps open.
    """

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
        self.name = name
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=dict(environ),
                start_new_session=True,
                pass_fds=inherited,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def printed(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def check_alive(self) -> None:
        """Raises Failed when it has ended."""
        if (code := self.process.poll()) is not None:
            raise Failed(f"{self.name} ended with status {code}", self.log)

    def wait_for(self, pattern: str, *, timeout_s: float) -> re.Match[str]:
        """The first match in what it printed. Raises Failed when it ends before, or does not come in time."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if match := re.search(pattern, self.printed(), re.MULTILINE):
                return match
            self.check_alive()
            time.sleep(POLL_S)
        raise Failed(f"{self.name} was not ready within {timeout_s:.0f} s", self.log)

    def terminate(self) -> None:
        """Ask the whole group to end; does not wait."""
        self._signal_group(signal.SIGTERM)

    def wait(self, grace_s: float) -> int | None:
        """Its exit status, None when it had to be killed; in either case none of its group is left."""
        try:
            code: int | None = self.process.wait(grace_s)
        except subprocess.TimeoutExpired:
            code = None
        self._signal_group(signal.SIGKILL)
        self.process.wait()
        return code

    def _signal_group(self, signum: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signum)


class Children:
    """Every child of one run, their logs in the existing folder ``log_dir``. ``started`` is told of each.

    They keep the open files ``inherited``, and end in reverse order of their start, each within ``grace_s`` seconds.
    """

    def __init__(
        self,
        log_dir: Path,
        *,
        cwd: Path,
        grace_s: float = 15.0,
        inherited: Collection[int] = (),
        started: Callable[[str, int], None] = lambda _name, _pid: None,
    ) -> None:
        self._log_dir = log_dir
        self._cwd = cwd
        self._grace_s = grace_s
        self._inherited = inherited
        self._started = started
        self._children: list[Child] = []

    def start(self, name: str, argv: Sequence[str], environ: Mapping[str, str]) -> Child:
        """Raises Failed when the program cannot be started."""
        log = self._log_dir / f"{name}.log"
        with signals_held():
            try:
                child = Child(name, argv, log=log, cwd=self._cwd, environ=environ, inherited=self._inherited)
            except OSError as error:
                raise Failed(f"cannot start {name}: {error}") from error
            self._children.append(child)
            self._started(name, child.pid)
        return child

    def check_alive(self) -> None:
        for child in self._children:
            child.check_alive()

    def end(self) -> None:
        for child in reversed(self._children):
            child.terminate()
            child.wait(self._grace_s)
        self._children.clear()


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_held = False
_waiting: list[int] = []


def _on_signal(signum: int, _frame: FrameType | None) -> None:
    if _held:
        _waiting.append(signum)
    else:
        raise Stopped(signum)


@contextmanager
def signals_held() -> Iterator[None]:
    """A stretch that Stopped does not interrupt, such as between starting a child and owning it.

    Not by a signal mask: children would inherit it and could not be ended.
    """
    global _held
    _held = True
    try:
        yield
    finally:
        _held = False
        if _waiting:
            raise Stopped(_waiting.pop())


@contextmanager
def signals_raise() -> Iterator[None]:
    """Within, a signal that asks us to end raises Stopped; a second one does not disturb the cleaning up."""
    previous = {signum: signal.signal(signum, _on_signal) for signum in _ENDING}
    try:
        yield
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)


def ignore_signals() -> None:
    """For the time of cleaning up."""
    for signum in _ENDING:
        signal.signal(signum, signal.SIG_IGN)
