"""Copies of what is remembered, out of a running semmem and into one: backups, exports, and what is adopted.

The one room that writes files which somebody carries away, and reads files that may have been changed meanwhile. So
everything that leaves carries counts and digests, everything that comes in is checked before it changes anything, and
what was erased since does not come back with it. Nothing here knows HTTP, a database or a vendor."""

from typing import Any


class BackupError(Exception):
    """A copy cannot be taken, read or put back. The message is for the person at the terminal, and names the place."""


class ErasuresLost(BackupError):
    """What was erased is not known any more in part, and nobody has said yet that this is accepted. ``told``: what
    could be saved, and what not."""

    def __init__(self, message: str, told: dict[str, Any]) -> None:
        super().__init__(message)
        self.told = told
