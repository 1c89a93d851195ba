"""Edit a JSON text by cutting and inserting whole members and elements; every other byte stays as it came.

msgspec finds the values (as ``Raw``: checked, but not built), and a walk over the text finds where they stand. No part
of JSON is scanned here but the names and the punctuation between values, and each value must stand exactly where the
walk arrives. That makes the walk its own proof: when a member is named twice the decoder keeps one value and the walk
does not come out at the closing bracket, so a text that another reader could understand differently is refused.

Everything is linear in the length of the text. Offsets are bytes from the start of the body, ends are exclusive.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeVar

import msgspec

T = TypeVar("T")


class Malformed(ValueError):
    """The body is not a request of this dialect. The message names the place and the reason, never the content."""


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises on hostile JSON: bad syntax or type, bytes that are not UTF-8, nesting beyond the stack."""

# Possessive quantifiers (*+): a name is matched or refused in one pass, whatever it contains.
_BEFORE_VALUE = re.compile(
    rb'[ \t\n\r]*+[{,][ \t\n\r]*+("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\n\r]*+:[ \t\n\r]*+', re.DOTALL
)
_BEFORE_ELEMENT = re.compile(rb"[ \t\n\r]*+[\[,][ \t\n\r]*+")
_OBJECT_END = re.compile(rb"[ \t\n\r]*+\{?[ \t\n\r]*+\}[ \t\n\r]*+\Z")
_EMPTY_ARRAY = re.compile(rb"\[[ \t\n\r]*+\]")
_SURROGATE = re.compile(rb"\\u[dD]([89abAB]|[c-fC-F])[0-9a-fA-F]{2}")  # group 1 tells the halves of a pair apart

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_elements = msgspec.json.Decoder(list[msgspec.Raw])


class Member(msgspec.Struct, frozen=True, gc=False):
    """One member of an object: from its name's opening quote to its value's last byte."""

    start: int
    value_start: int
    end: int
    value: bytes
    """The value's own bytes, with unpaired surrogate escapes replaced: what to decode, not what to copy."""


class Edit(NamedTuple):
    """Put ``new`` where ``start`` to ``end`` was."""

    start: int
    end: int
    new: bytes


class JsonObject(msgspec.Struct, frozen=True):
    """An object in a body, from ``start`` on, and where its members stand, in order, by their decoded names."""

    body: bytes
    members: Mapping[str, Member]
    start: int = 0

    def values(self) -> dict[str, bytes]:
        """The bytes of each member's value."""
        return {name: member.value for name, member in self.members.items()}


def decode_repaired(decoder: msgspec.json.Decoder[T], text: bytes) -> tuple[T, bytes]:
    r"""The value of a JSON text, and the text as it was understood, which is as long. Raises UNREADABLE.

    Clients and servers that cut a string in the middle of an emoji send half of a surrogate pair (``\ud83d`` alone).
    msgspec refuses that; it is read as U+FFFD.
    """
    try:
        return decoder.decode(text), text
    except msgspec.DecodeError:
        repaired = _without_halves(text)
        if repaired == text:
            raise
        return decoder.decode(repaired), repaired


def _without_halves(text: bytes) -> bytes:
    """Only what looks like one is looked at: a text may be full of other escapes."""
    pieces, copied, paired = [], 0, -1
    for unit in _SURROGATE.finditer(text):
        at = unit.start()
        if at == paired or _is_escaped(text, at):
            continue
        after = _SURROGATE.match(text, unit.end()) if unit[1] in b"89abAB" else None
        if after is not None and after[1] not in b"89abAB":
            paired = after.start()
            continue
        pieces += [text[copied:at], b"\\ufffd"]
        copied = unit.end()
    return b"".join([*pieces, text[copied:]])


def _is_escaped(text: bytes, at: int) -> bool:
    """Whether a backslash belongs to the one before it."""
    start = at
    while start and text[start - 1] == 0x5C:
        start -= 1
    return (at - start) % 2 == 1


def read_object(body: bytes) -> JsonObject:
    """A body that is one object. Raises Malformed (not UTF-8, not JSON, not an object, a name twice, too deep)."""
    try:  # msgspec checks only the strings that it builds; what a Raw holds would pass unchecked
        if not body.isascii():
            body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"body: not UTF-8 (byte {error.start})") from None
    return _object(body, 0, len(body))


def object_at(source: JsonObject, span: tuple[int, int]) -> JsonObject:
    """The object that stands there in the source, as ``read_elements`` says. Raises Malformed (not an object, a name
    twice)."""
    return _object(source.body, *span)


def read_elements(array: Member) -> list[tuple[int, int]]:
    """Start and end in the body of each element of a member's array. Raises Malformed when it is not an array."""
    try:
        values = _elements.decode(array.value)
    except UNREADABLE as error:
        raise Malformed(f"array: {reason(error)}") from None
    spans, position = [], 0
    for raw in values:
        gap = _BEFORE_ELEMENT.match(array.value, position)
        value = bytes(raw)
        if gap is None or not array.value.startswith(value, gap.end()):
            raise Malformed("array: an element is not where it should be")
        position = gap.end() + len(value)
        spans.append((array.value_start + gap.end(), array.value_start + position))
    return spans


def cut_members(source: JsonObject, names: Collection[str]) -> list[Edit]:
    """Edits that remove the members of these names, each with one of the commas beside it."""
    if source.members.keys().isdisjoint(names):
        return []
    edits, kept_end, pending = [], None, None
    for name, member in source.members.items():
        if pending is not None:  # nothing is kept so far, so the comma to lose is the one behind
            edits.append(Edit(pending.start, member.start, b""))
            pending = None
        if name not in names:
            kept_end = member.end
        elif kept_end is None:
            pending = member
        else:
            edits.append(Edit(kept_end, member.end, b""))
            kept_end = member.end
    if pending is not None:
        edits.append(Edit(pending.start, pending.end, b""))
    return edits


def insert_member(source: JsonObject, name: str, value: bytes, *, cutting: Collection[str] = ()) -> Edit:
    """An edit that adds a member at the end of the object; ``cutting`` are the names that are cut at the same time.
    Raises ValueError when the object keeps a member of that name."""
    kept = [known for known in source.members if known not in cutting]
    if name in kept:
        raise ValueError(f"the object has a member {name!r}")
    ends = [member.end for member in source.members.values()]
    at = ends[-1] if ends else source.body.index(b"{", source.start) + 1
    return Edit(at, at, (b"," if kept else b"") + msgspec.json.encode(name) + b":" + value)


def insert_element(array: Member, index: int, value: bytes) -> Edit:
    """An edit that makes ``value`` the element at ``index`` (0 to the length, else IndexError) of a member's array."""
    if index == 0:  # by far the usual place, and it needs no spans
        at = array.value_start + 1
        return Edit(at, at, value if _EMPTY_ARRAY.match(array.value) else value + b",")
    if index < 0:
        raise IndexError(index)
    at = read_elements(array)[index - 1][1]
    return Edit(at, at, b"," + value)


def splice(body: bytes, edits: Iterable[Edit]) -> bytes:
    """The body with all edits made. They refer to the body as it is and must not overlap."""
    pieces, position = [], 0
    for edit in sorted(edits):
        if edit.start < position:
            raise ValueError("edits overlap")
        pieces += [body[position : edit.start], edit.new]
        position = edit.end
    pieces.append(body[position:])
    return b"".join(pieces)


def reason(error: Exception) -> str:
    """Why msgspec refused a text. Its messages name types, offsets and paths, never values."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error) if isinstance(error, msgspec.DecodeError) else "not UTF-8"


def _object(body: bytes, start: int, end: int) -> JsonObject:
    try:
        values, text = decode_repaired(_members, body[start:end])
    except UNREADABLE as error:
        raise Malformed(f"body: {reason(error)}") from None
    return JsonObject(body, _walk(text, values, start), start)


def _walk(text: bytes, values: Mapping[str, msgspec.Raw], start: int) -> dict[str, Member]:
    """``start``: where the text stands in the body."""
    members, position = {}, 0
    for name, raw in values.items():
        gap = _BEFORE_VALUE.match(text, position)
        value = bytes(raw)
        if gap is None or not text.startswith(value, gap.end()):
            raise Malformed("body: a member is named twice")
        position = gap.end() + len(value)
        members[name] = Member(start + gap.start(1), start + gap.end(), start + position, value)
    if _OBJECT_END.match(text, position) is None:
        raise Malformed("body: a member is named twice")
    return members
