"""What can still be read of an SQLite file that SQLite itself refuses, page by page.

SQLite gives up a whole query at the first page that does not fit. Here a table is walked from its root, and a page that
is gone costs only what it led to. The layout is SQLite's own (https://www.sqlite.org/fileformat2.html). All calls
block; nothing is written."""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

MAGIC = b"SQLite format 3\x00"
FILE_HEADER, LOG_HEADER, FRAME_HEADER = 100, 32, 24
INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF = 2, 5, 10, 13
DEPTH_MAX = 20
"""Of a tree: SQLite's own limit."""
TEXT_BYTES_MAX = 1 << 30
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_LOG_MAGIC = (0x377F0682, 0x377F0683)
"""The last bit says in which order of bytes its checksums are made."""

Row = list[Any]


class Unreadable(Exception):
    """A page, or a row, that is not what it ought to be."""


@dataclass(slots=True)
class Walked:
    """What one walk met: rows that were read, and pages or rows that could not be."""

    read: int = 0
    bad: int = 0


class DamagedFile:
    """The pages of a file, and what its write-ahead log has of them that is newer. ``log_is_damaged``: the log goes on
    behind a part of it that cannot be read, so that the newest commits are missing. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._bytes = os.fstat(self._file.fileno()).st_size
        log = path.with_name(f"{path.name}-wal")
        self._newer: dict[int, bytes] = {}
        self._page_bytes, self.log_is_damaged = 0, False
        if log.is_file():
            self._read_log(log)
        head = self._newer.get(1) or self._file.read(FILE_HEADER)
        self._is_sqlite = head[:16] == MAGIC
        if self._is_sqlite:
            (told,) = struct.unpack(">H", head[16:18])
            self._page_bytes = 65536 if told == 1 else told
            self._usable = self._page_bytes - head[20]
        if self._page_bytes < 512:
            self._is_sqlite = False

    def close(self) -> None:
        self._file.close()

    def rows(self, root: int, walked: Walked) -> Iterator[tuple[int, Row]]:
        """Each row's id and its columns as they are stored; ``walked`` counts along."""
        yield from self._below(root, walked, set(), 0)

    def entries(self, root: int) -> int | None:
        """How many entries an index has; None when a page of it is gone."""
        try:
            return self._entries(root, set(), 0)
        except Unreadable:
            return None

    def _below(self, number: int, walked: Walked, seen: set[int], depth: int) -> Iterator[tuple[int, Row]]:
        try:
            kind, page, cells, last = self._tree_page(number, seen, depth)
            if kind not in (TABLE_LEAF, TABLE_INTERIOR):
                raise Unreadable
        except Unreadable:
            walked.bad += 1
            return
        if kind == TABLE_INTERIOR:
            for child in [*(_be32(page, at) for at in cells), last]:
                yield from self._below(child, walked, seen, depth + 1)
            return
        before = -(1 << 63)
        for at in cells:
            try:
                rowid, row = self._row(page, at)
                if rowid <= before:
                    raise Unreadable
            except (Unreadable, IndexError, struct.error, UnicodeDecodeError):
                walked.bad += 1
                continue
            before = rowid
            walked.read += 1
            yield rowid, row

    def _entries(self, number: int, seen: set[int], depth: int) -> int:
        kind, page, cells, last = self._tree_page(number, seen, depth)
        if kind == INDEX_LEAF:
            return len(cells)
        if kind != INDEX_INTERIOR:
            raise Unreadable
        children = [*(_be32(page, at) for at in cells), last]
        return len(cells) + sum(self._entries(child, seen, depth + 1) for child in children)

    def _tree_page(self, number: int, seen: set[int], depth: int) -> tuple[int, bytes, list[int], int]:
        """Its kind, its bytes, where its cells begin, and its last child."""
        if number in seen or depth > DEPTH_MAX:
            raise Unreadable
        seen.add(number)
        page = self._page(number)
        start = FILE_HEADER if number == 1 else 0
        kind = page[start]
        leaf = kind in (TABLE_LEAF, INDEX_LEAF)
        if not leaf and kind not in (TABLE_INTERIOR, INDEX_INTERIOR):
            raise Unreadable
        (count,) = struct.unpack_from(">H", page, start + 3)
        first = start + (8 if leaf else 12)
        if first + 2 * count > self._usable:
            raise Unreadable
        cells = list(struct.unpack_from(f">{count}H", page, first))
        if any(not first + 2 * count <= at < self._usable - 3 for at in cells):
            raise Unreadable
        return kind, page, cells, 0 if leaf else _be32(page, start + 8)

    def _page(self, number: int) -> bytes:
        if (newer := self._newer.get(number)) is not None:
            return newer
        if number < 1 or not self._is_sqlite or number * self._page_bytes > self._bytes:
            raise Unreadable
        self._file.seek((number - 1) * self._page_bytes)
        page = self._file.read(self._page_bytes)
        if len(page) < self._page_bytes:
            raise Unreadable
        return page

    def _row(self, page: bytes, at: int) -> tuple[int, Row]:
        size, at = _varint(page, at)
        rowid, at = _varint(page, at)
        if rowid >> 63:
            rowid -= 1 << 64
        return rowid, _columns(self._payload(page, at, size))

    def _payload(self, page: bytes, at: int, size: int) -> bytes:
        """What does not fit on the page goes on in a chain of others."""
        if not 2 <= size <= min(TEXT_BYTES_MAX, self._bytes + len(self._newer) * self._page_bytes):
            raise Unreadable
        usable = self._usable
        least = (usable - 12) * 32 // 255 - 23
        here = size if size <= usable - 35 else least + (size - least) % (usable - 4)
        if size > usable - 35 and here > usable - 35:
            here = least
        if at + here + (4 if here < size else 0) > usable:
            raise Unreadable
        parts, left = [page[at : at + here]], size - here
        following = _be32(page, at + here) if left else 0
        while left:
            more = self._page(following)
            parts.append(more[4 : min(usable, 4 + left)])
            left -= len(parts[-1])
            following = _be32(more, 0)
        return b"".join(parts)

    def _read_log(self, path: Path) -> None:
        """Pages of the commits that are whole. Frames of an earlier use of the log have other salts."""
        with path.open("rb") as log:
            head = log.read(LOG_HEADER)
            if not head:
                return
            if len(head) < LOG_HEADER or (magic := _be32(head, 0)) not in _LOG_MAGIC:
                self.log_is_damaged = True
                return
            order, salts, self._page_bytes = "<>"[magic & 1], head[16:24], _be32(head, 8)
            sums = _sums(head[:24], order, (0, 0))
            if struct.pack(">II", *sums) != head[24:32] or not 512 <= self._page_bytes <= 65536:
                self.log_is_damaged, self._page_bytes = True, 0
                return
            waiting: dict[int, bytes] = {}
            while len(frame := log.read(FRAME_HEADER + self._page_bytes)) == FRAME_HEADER + self._page_bytes:
                if frame[8:16] != salts:
                    self.log_is_damaged = not any(frame[8:16]) or self._goes_on(log, salts)
                    return
                sums = _sums(frame[FRAME_HEADER:], order, _sums(frame[:8], order, sums))
                if struct.pack(">II", *sums) != frame[16:24]:
                    self.log_is_damaged = True
                    return
                waiting[_be32(frame, 0)] = frame[FRAME_HEADER:]
                if _be32(frame, 4):  # the last frame of a commit
                    self._newer.update(waiting)
                    waiting = {}

    def _goes_on(self, log: BinaryIO, salts: bytes) -> bool:
        while len(frame := log.read(FRAME_HEADER + self._page_bytes)) >= FRAME_HEADER:
            if frame[8:16] == salts:
                return True
        return False


def _columns(payload: bytes) -> Row:
    """A record: the kinds of its values, then the values."""
    head, at = _varint(payload, 0)
    if not 1 <= head <= len(payload):
        raise Unreadable
    kinds: list[int] = []
    while at < head:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    row: Row = []
    for kind in kinds:
        value, at = _value(payload, at, kind)
        row.append(value)
    if at != len(payload):
        raise Unreadable
    return row


def _value(payload: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (0, 8, 9):
        return (None, 0, 1)[(0, 8, 9).index(kind)], at
    size = _INTEGER_BYTES.get(kind) or (8 if kind == 7 else (kind - 12) // 2 if kind >= 12 else -1)
    if size < 0 or at + size > len(payload):
        raise Unreadable
    found = payload[at : at + size]
    if kind == 7:
        return struct.unpack(">d", found)[0], at + size
    if kind in _INTEGER_BYTES:
        return int.from_bytes(found, "big", signed=True), at + size
    if kind % 2 == 0:
        return found, at + size
    if b"\x00" in found:  # the journal stores no text with it: zeros have taken its place
        raise Unreadable
    return found.decode("utf-8"), at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(at, at + 8):
        byte = data[place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + 1
    return value << 8 | data[at + 8], at + 9


def _be32(data: bytes, at: int) -> int:
    found: int = struct.unpack_from(">I", data, at)[0]
    return found


def _sums(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    one, two = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        one = (one + even + two) & 0xFFFFFFFF
        two = (two + odd + one) & 0xFFFFFFFF
    return one, two
