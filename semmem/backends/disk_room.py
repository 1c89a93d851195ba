"""Whether bytes can be written to a folder: asked by writing them, the only answer that knows of quotas and limits."""

import asyncio
from contextlib import suppress
from pathlib import Path

from semmem.ports.errors import StoreFull

ROOM_NAME = ".room"
ROOM_BYTES = 256 * 1024
"""A batch's worth of memories; more than any one of them needs."""


async def require_room(directory: Path) -> None:
    """Raises StoreFull when nothing can be written there now."""
    try:
        await asyncio.to_thread(check_room, directory, ROOM_BYTES)
    except OSError as error:
        raise StoreFull(f"nothing can be written to {directory}: {error.strerror}") from None


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
