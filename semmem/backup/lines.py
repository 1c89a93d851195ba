"""Memories as JSON Lines: what backups and exports hold.

A first line says what the file is, a last one how much it holds; between them a line for each version of each memory,
earlier versions before the one that is current. Every line begins with a digest of the bytes behind it, so that one
changed byte is found with its line; a line that a person wrote may go without. Times are seconds, vectors base64 of
32-bit floats, little-endian."""

import base64
import dataclasses
import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec
import numpy as np

from semmem.backup import BackupError
from semmem.memory import PASSAGES, Memory, Source, Vector
from semmem.passages.pieces import is_passage
from semmem.ports.errors import StoreRefused
from semmem.ports.memory_records import Uses
from semmem.ports.storable import check_storable

FORMAT = 1
LINE_BYTES_MAX = 512 * 1024
"""More than any memory has that a store takes: 8 KB of text, 60 KB of metadata, a vector of 16,384 numbers."""
DIGEST_BYTES = 8
_DIGESTED = re.compile(rb'\{"digest":"([0-9a-f]{16})",')


class Unreadable(BackupError):
    """A line is not what it should be. The message says why, and shows no content."""


class _Struct(msgspec.Struct, forbid_unknown_fields=True):
    pass


def _line_of(kind: type, **otherwise: Any) -> Any:
    """A struct with the fields of a dataclass, ``otherwise``: those that are written in another type."""
    types, fields = get_type_hints(kind) | otherwise, []
    for each in dataclasses.fields(kind):
        if each.default_factory is not dataclasses.MISSING:
            default = msgspec.field(default_factory=each.default_factory)
        elif isinstance(each.default, Source):
            default = msgspec.field(default_factory=types[each.name])
        else:
            default = msgspec.NODEFAULT if each.default is dataclasses.MISSING else each.default
        fields.append((each.name, types[each.name], default))
    return msgspec.defstruct(f"_{kind.__name__}Line", fields, bases=(_Struct,))


if TYPE_CHECKING:
    _MemoryFields = Any
else:
    _SourceLine = _line_of(Source)
    _MemoryFields = _line_of(Memory, source=_SourceLine, embedding=str | None)


class Header(_Struct, tag_field="kind", tag="semmem memories"):
    """``signature`` and ``dimension`` of the vectors; ``users`` is how many are coming, as far as that is known."""

    format: int
    taken_at: float
    signature: str
    dimension: int
    users: int = 0


class MemoryLine(_Struct, tag_field="kind", tag="memory"):
    """The current version. ``uses``: how often it was put into a prompt, and when last."""

    memory: _MemoryFields
    uses: tuple[int, float] | None = None


class VersionLine(_Struct, tag_field="kind", tag="version"):
    memory: _MemoryFields


class End(_Struct, tag_field="kind", tag="end"):
    users: int
    memories: int
    versions: int


Line = Header | MemoryLine | VersionLine | End
_DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


def memory_line(memory: Memory, uses: Uses | None = None) -> bytes:
    counted = None if uses is None or not uses.count else (uses.count, uses.last_at)
    return digested(MemoryLine(_fields(memory), counted))


def version_line(memory: Memory) -> bytes:
    return digested(VersionLine(_fields(memory)))


def digested(line: Line) -> bytes:
    """One line, ended, with its digest in front."""
    rest = msgspec.json.encode(line)[1:]
    return b'{"digest":"%b",%b\n' % (_digest(rest), rest)


def _digest(rest: bytes) -> bytes:
    return blake2b(rest, digest_size=DIGEST_BYTES).hexdigest().encode()


def _fields(memory: Memory) -> _MemoryFields:
    fields = {field.name: getattr(memory, field.name) for field in dataclasses.fields(memory)}
    fields["source"] = dataclasses.asdict(memory.source)
    if memory.embedding is not None:
        fields["embedding"] = base64.b64encode(memory.embedding.astype("<f4").tobytes()).decode()
    return _MemoryFields(**fields)


def read_line(line: bytes) -> Line:
    """Raises Unreadable."""
    line = line.rstrip(b"\r\n")
    if len(line) > LINE_BYTES_MAX:
        raise Unreadable(f"the line has {len(line)} bytes, at most {LINE_BYTES_MAX} are read")
    if match := _DIGESTED.match(line):
        rest = line[match.end() :]
        if _digest(rest) != match[1]:
            raise Unreadable("the line was changed: its digest is of other bytes")
        line = b"{" + rest
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error) if isinstance(error, msgspec.MsgspecError) else type(error).__name__
        raise Unreadable(f"not a line of this format: {reason}") from None


def memory_of(line: MemoryLine | VersionLine) -> Memory:
    """The memory of a line, one that every store takes. Raises Unreadable naming the field."""
    fields = {name: getattr(line.memory, name) for name in line.memory.__struct_fields__}
    fields["source"] = Source(**msgspec.structs.asdict(line.memory.source))
    fields["embedding"] = _vector(line.memory.embedding)
    if not line.memory.user or not line.memory.id:
        raise Unreadable("user and id must not be empty")
    if line.memory.id in (".", ".."):
        raise Unreadable("id is a step: in a path, browsers would take all memories for it")
    if (line.memory.type in PASSAGES) != is_passage(line.memory.id):
        raise Unreadable("id and type disagree: ids of passages, and no others, begin with psg_")
    if line.memory.version < 1:
        raise Unreadable("version counts from 1")
    memory = Memory(**fields)
    try:
        check_storable(memory)
    except (StoreRefused, RecursionError) as error:
        raise Unreadable(str(error) or type(error).__name__) from None
    return memory


def _vector(text: str | None) -> Vector | None:
    if text is None:
        return None
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        raise Unreadable("embedding is not base64") from None
    if not raw or len(raw) % 4:
        raise Unreadable("embedding is not a row of 32-bit floats")
    vector = np.frombuffer(raw, dtype="<f4").astype(np.float32)
    if not np.isfinite(vector).all() or not vector.any():
        raise Unreadable("embedding is not a finite vector, or zero")
    return vector
