"""Where lines of the audit log go: a file that is turned over when it is full, or standard output. Off the event loop,
one after another."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


class InOrder:
    """Calls ``append`` in a thread of its own, once at a time."""

    def __init__(self, append: Callable[[str], None]) -> None:
        self._append = append
        self._thread = ThreadPoolExecutor(1, "semmem-audit")

    async def __call__(self, line: str) -> None:
        """The line is out when this returns. Raises OSError."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._append, line)


class AuditFile:
    """Appends lines to ``path``, which becomes ``path.1`` before it has more than ``bytes_max``; of ``files_max`` files
    in all the oldest goes. It is opened for each line, so that others may turn it over as well. For its owner alone."""

    def __init__(self, path: Path, *, bytes_max: int, files_max: int) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._files_max = files_max

    def __call__(self, line: str) -> None:
        data = line.encode() + b"\n"
        if self._size() + len(data) > self._bytes_max:
            self._turn_over()
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def _turn_over(self) -> None:
        for number in range(self._files_max - 1, 0, -1):
            earlier = self._numbered(number - 1)
            if earlier.exists():
                os.replace(earlier, self._numbered(number))
        self._path.unlink(missing_ok=True)  # the only file

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path


def to_stdout(line: str) -> None:
    """One line on standard output, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
