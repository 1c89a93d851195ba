"""Buffers that never grow beyond what they were told: the tail of a text, and a whole body."""

from __future__ import annotations


class TextTail:
    """The last ``bytes_max`` UTF-8 bytes of a text that comes in pieces; half a character at the cut is left out."""

    __slots__ = ("_bytes_max", "_kept")

    def __init__(self, *, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._kept = bytearray()

    def append(self, piece: str) -> None:
        self._kept += piece.encode("utf-8", "replace")
        if len(self._kept) > 2 * self._bytes_max:  # twice, so that the moving is paid for by as many bytes
            self._trim()

    def text(self) -> str:
        self._trim()
        return self._kept.decode("utf-8", "ignore")

    def _trim(self) -> None:
        del self._kept[: max(0, len(self._kept) - self._bytes_max)]


class BoundedBody:
    """A body that comes in pieces, whole or not at all: beyond ``bytes_max`` it is dropped."""

    __slots__ = ("_bytes_max", "_kept", "_oversize")

    def __init__(self, *, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._kept = bytearray()
        self._oversize = False

    def append(self, chunk: bytes) -> None:
        if self._oversize or len(self._kept) + len(chunk) > self._bytes_max:
            self._oversize = True
            self._kept.clear()
            return
        self._kept += chunk

    def whole(self) -> bytes:
        """Everything that was appended, or nothing when that was too much."""
        return bytes(self._kept)
