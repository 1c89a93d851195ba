"""Whether bytes can be written to a folder: asked by writing them, the only answer that knows of quotas and limits."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

ROOM_NAME = ".room"


def check_room(directory: Path | str, size: int) -> None:
    """Raises OSError when ``size`` bytes cannot be written there: disk full, quota, limit, read-only. Blocks."""
    path = Path(directory) / ROOM_NAME
    try:
        with open(path, "wb", buffering=0) as file:
            rest = memoryview(bytes(size))
            while rest:
                rest = rest[file.write(rest) :]
    finally:
        with suppress(OSError):
            path.unlink()
