"""The folder of a run: one run at a time, and nothing of an earlier one is lost.

``python -m demo.folder FOLDER ...`` removes the folders of runs that are over. It needs nothing but Python.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

LOCK = "run.lock"
_MARKS = (LOCK, "demo.yaml")
"""A folder without any of these was not made by the demo, and is not removed."""


class InUse(Exception):
    """Another run, or what a killed one left behind, has this folder. The message says what to do."""


class Folder:
    """Where one run keeps everything: its memories, admin token and logs. Only its owner may look inside.

    The lock is the kernel's: it ends with the processes that hold it, however they end, so that none is ever stale.
    Children inherit it, because a folder is in use for as long as semmem runs on it, even when the demo was killed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._lock: IO[str] | None = None

    @property
    def memories(self) -> Path:
        """semmem's own ``data_dir``."""
        return self.path / "semmem"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else has this folder inside the block. Raises InUse, and OSError when it cannot be made."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.path / LOCK).open("a+", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InUse(_who_has(self.path)) from None
            lock.truncate(0)
            self._lock = lock
            self.note("demo", os.getpid())
            yield
        self._lock = None

    @property
    def inherited(self) -> tuple[int, ...]:
        """Open files that children keep open: the lock."""
        return () if self._lock is None else (self._lock.fileno(),)

    def note(self, name: str, pid: int) -> None:
        """Write down a process of this run, for whoever is refused."""
        if self._lock is not None:
            self._lock.write(f"{name} {pid}\n")
            self._lock.flush()

    def new_logs(self) -> Path:
        """A folder for the logs of this run; those of earlier runs stay."""
        logs = self.path / "logs" / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        logs.mkdir(parents=True)
        return logs

    def admin_token(self) -> str:
        """The same in every run, made by the first. Raises OSError."""
        path = self.path / "admin-token"
        if not path.exists():
            self.write(path.name, secrets.token_urlsafe(24))
        return path.read_text(encoding="utf-8").strip()

    def write(self, name: str, text: str) -> Path:
        """A file for the owner alone, in place of what an earlier run wrote there."""
        path = self.path / name
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
        return path


def _who_has(path: Path) -> str:
    lines = [line.split() for line in (path / LOCK).read_text(encoding="utf-8").splitlines()]
    alive = {name: pid for name, pid in lines if _is_alive(int(pid))}
    if "demo" in alive:
        return (
            f"a demo is already running in {path} (process {alive['demo']}). Ctrl-C in its terminal ends it;"
            " for a second one beside it: make run DATA_DIR=.run2 PORT=18760"
        )
    return (
        f"an earlier demo in {path} was killed and left processes behind: {', '.join(alive) or 'unknown ones'}."
        f" End them first: kill {' '.join(alive.values())}"
    )


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def remove(path: Path) -> str:
    """Remove the folder of runs that are over; what was done. Raises InUse."""
    if not path.exists():
        return f"{path}: nothing there"
    if not any((path / name).exists() for name in _MARKS):
        return f"{path}: left alone, because no demo ever ran in it"
    with Folder(path).held():
        shutil.rmtree(path)
    return f"{path}: removed, with the memories, the token and the logs in it"


def main(paths: list[str]) -> int:
    """Remove these folders; 1 when one is in use."""
    try:
        for path in paths:
            print(remove(Path(path)))
    except InUse as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
