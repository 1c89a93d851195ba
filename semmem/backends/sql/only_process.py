"""One process on one SQLite journal. The file itself could be shared; what a process keeps in memory of it is not."""

from __future__ import annotations

import os
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

from semmem.ports.errors import JournalError


class OnlyProcess:
    """Holds a lock beside the journal's file until ``close``, or until the process ends, however it does."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._lock = -1

    def open(self) -> None:
        """Blocking. Raises JournalError when another process has the journal, or no lock can be made."""
        try:
            self._journal.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(f"{self._journal}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise JournalError(f"{self._journal}.lock: {error.strerror}") from None
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except OSError:
            os.close(lock)
            raise JournalError(
                f"another semmem process has {self._journal}: give each a data_dir of its own, or all of them one"
                " PostgreSQL journal (journal.url)"
            ) from None
        self._lock = lock

    def close(self) -> None:
        """Idempotent. The file stays: somebody may be waiting to open it."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)
