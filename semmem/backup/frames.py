"""A backup on its way from the process that takes it to the one that keeps it: lines of JSON, and bytes of files.

Each frame is one line; ``{"file": name, "bytes": n}`` is followed by that many bytes, to be added to the file. The last
line is ``{"manifest": ...}`` or ``{"failed": reason}``; a stream without either was cut off.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from semmem.backup import BackupError

LINE_BYTES_MAX = 256 * 1024 * 1024
"""The manifest is the longest: some 20 bytes for each 64 KiB of a file."""

Frame = tuple[Mapping[str, Any], bytes]


def frame(told: Mapping[str, Any]) -> bytes:
    return json.dumps(told).encode("ascii") + b"\n"


def file_frame(name: str, content: bytes) -> bytes:
    return frame({"file": name, "bytes": len(content)}) + content


def frames(chunks: Iterable[bytes]) -> Iterator[Frame]:
    """The frames of a stream. Raises BackupError for what is none, and at an end in the middle of one."""
    waiting, source = bytearray(), iter(chunks)
    while _fill(waiting, source, until=1):
        told = _told(_line(waiting, source))
        size = told.get("bytes", 0)
        if not _fill(waiting, source, until=size):
            raise BackupError("the stream ended in the middle of a file")
        content = bytes(waiting[:size])
        del waiting[:size]
        yield told, content


def _line(waiting: bytearray, source: Iterator[bytes]) -> bytes:
    seen = 0
    while (end := waiting.find(b"\n", seen)) < 0:
        seen = len(waiting)
        if seen > LINE_BYTES_MAX or not _fill(waiting, source, until=seen + 1):
            raise BackupError("the stream ended in the middle of a line")
    line = bytes(waiting[:end])
    del waiting[: end + 1]
    return line


def _fill(waiting: bytearray, source: Iterator[bytes], *, until: int) -> bool:
    while len(waiting) < until:
        chunk = next(source, None)
        if chunk is None:
            return False
        waiting += chunk
    return True


def _told(line: bytes) -> Mapping[str, Any]:
    try:
        told = json.loads(line)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise BackupError("the answer is no backup")
    return told
