"""How an injection gets into a request: what the requests of all dialects share, and putting a text into a content.

A content is a string, a list of parts, or nothing. Its kind stays what it was: servers whose templates want a string
get one. The bytes that stand there stay, a null apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import ClassVar, TypeVar

import msgspec

from semmem.dialects import Malformed
from semmem.dialects.json_splice import (
    Edit,
    JsonObject,
    Member,
    cut_members,
    insert_element,
    insert_member,
    object_at,
    read_elements,
    splice,
)
from semmem.dialects.request import OWN_MEMBERS, STRING
from semmem.memory import Conversation, Element, Injection, Past, Replacement

T = TypeVar("T")

GAP = rb"\n\n"
"""Between what stood there and what is added, as it is spelled inside a JSON string."""


class SplicedRequest(ABC):
    """One request: what it says, and the bytes it came in. A subclass knows where its API takes an injection."""

    __slots__ = ("_source", "_spans", "conversation")

    POSITIONS: ClassVar[tuple[str, ...]] = ("turn", "system", "first", "after_system", "before_last_user")
    LIST: ClassVar[str] = "messages"
    """The member that holds the elements."""

    def __init__(self, source: JsonObject, conversation: Conversation) -> None:
        self._source = source
        self._spans: list[tuple[int, int]] | None = None
        self.conversation = conversation

    def rewrite(self, *injections: Injection, replacement: Replacement | None = None) -> bytes | None:
        """The body without OWN_MEMBERS, with the injections, and with the replacement in place of its elements.

        None when that changes nothing. A session may have begun in an API whose ``input_item`` this one has not: it is
        the ``system`` that it was made of. Raises ValueError for any other position that does not exist.
        """
        edits = cut_members(self._source, OWN_MEMBERS)
        if replacement is not None:
            edits += replace_elements(self._source.members[self.LIST], replacement)
        for injection in injections:
            if injection.position == "input_item" and "input_item" not in self.POSITIONS:
                injection = replace(injection, position="system")
            if injection.position not in self.POSITIONS:
                raise ValueError(f"no such position: {injection.position!r}")
            edits += self._edits(injection)
        return splice(self._source.body, edits) if edits else None

    def placed(self, injection: Injection) -> Injection:
        """As it is: what a position means does not change while a tool loop goes on."""
        return injection

    def keeps(self, injection: Injection) -> bool:
        """Never: most APIs keep nothing from one request to the next."""
        return False

    @property
    def whole(self) -> bool:
        """Never: most APIs are sent the history with each request."""
        return False

    def with_history(self, history: Sequence[Past]) -> bytes | None:
        """None, for the same reason."""
        return None

    @abstractmethod
    def elements(self) -> Sequence[Element]:
        """As ParsedRequest says."""

    @abstractmethod
    def _edits(self, injection: Injection) -> list[Edit]:
        """What adds the injection, whose position is one of POSITIONS."""

    def _element(self, index: int) -> JsonObject:
        """The object at ``index`` of LIST. The list is walked once, however many are asked for. Raises Malformed."""
        if self._spans is None:
            self._spans = read_elements(self._source.members[self.LIST])
        return object_at(self._source, self._spans[index])

    def _merged_into(self, index: int, text: str, *, part: str, behind: bool, at: int = 0) -> list[Edit]:
        """Edits that put the text at the end (``behind``) or the beginning of the content of the message at ``index``:
        of a list, before the part at ``at``.

        Nothing when the message names a member twice: no reader would read it alike, so it is left alone.
        """
        try:
            message = self._element(index)
        except Malformed:
            return []
        content = message.members.get("content")
        if content is None:
            return [insert_member(message, "content", string_token(text))]
        return merge_behind(content, text, part=part) if behind else merge_before(content, text, part=part, index=at)


def nth(found: Iterable[T], number: int) -> T | None:
    """The one with this number, from 0; None where there are fewer."""
    return next(islice(found, number, None), None)


def string_token(text: str) -> bytes:
    """The text as a JSON string. Half an emoji becomes a question mark: it must not cost the rest."""
    return msgspec.json.encode(text.encode("utf-8", "replace").decode())


def message_json(injection: Injection) -> bytes:
    """The injection as a message of its own."""
    return b'{"role":' + string_token(injection.role) + b',"content":' + string_token(injection.text) + b"}"


def replace_elements(array: Member, replacement: Replacement) -> list[Edit]:
    """Edits that put a message in the place of the first of these elements of an array, and cut the others."""
    spans = read_elements(array)
    first, *others = sorted(replacement.elements)
    message = message_json(Injection(replacement.text, "user"))
    return [Edit(*spans[first], message), *(Edit(spans[at - 1][1], spans[at][1], b"") for at in others)]


def merge_behind(content: Member, text: str, *, part: str) -> list[Edit]:
    """Edits that put the text at the end of a content; ``part`` is the type of a text part in this API."""
    if content.value.startswith(b"["):
        return [_insert_part(content, len(read_elements(content)), text, part)]
    if not content.value.startswith(b'"'):
        return [Edit(content.value_start, content.end, string_token(text))]
    gap, at = b"" if content.value == b'""' else GAP, content.end - 1
    return [Edit(at, at, gap + string_token(text)[1:-1])]


def merge_before(content: Member, text: str, *, part: str, index: int = 0) -> list[Edit]:
    """Edits that put the text at the beginning of a content: of a list, before the part at ``index``."""
    if content.value.startswith(b"["):
        return [_insert_part(content, index, text, part)]
    if not content.value.startswith(b'"'):
        return [Edit(content.value_start, content.end, string_token(text))]
    gap, at = b"" if content.value == b'""' else GAP, content.value_start + 1
    return [Edit(at, at, string_token(text)[1:-1] + gap)]


def add_part(content: Member, text: str, *, part: str, index: int) -> list[Edit]:
    """Edits that make the text the part at ``index`` of a list, or of a string, which is one part.

    The string's token keeps its bytes and becomes the text of a part. A blank one takes the text in, because APIs
    refuse blank parts, and a null (of an older client) is replaced: the only bytes that are ever lost.
    """
    added, start, end = _part(text, part), content.value_start, content.end
    if content.value.startswith(b"["):
        return [insert_element(content, index, added)]
    if content.value == b"null":
        return [Edit(start, end, string_token(text))]
    if not STRING.decode(content.value).strip():
        return [Edit(start + 1, start + 1, string_token(text)[1:-1])]
    opening, closing = _part("", part).split(b'""')
    before, after = (added + b",", b"") if index == 0 else (b"", b"," + added)
    return [Edit(start, start, b"[" + before + opening), Edit(end, end, closing + after + b"]")]


def _part(text: str, part: str) -> bytes:
    return b'{"type":' + string_token(part) + b',"text":' + string_token(text) + b"}"


def _insert_part(content: Member, index: int, text: str, part: str) -> Edit:
    parts = read_elements(content)
    if parts and content.value[parts[0][0] - content.value_start :][:1] == b'"':
        return insert_element(content, index, string_token(text))  # a list of plain strings
    return insert_element(content, index, _part(text, part))
