"""How an injection gets into a request: what the requests of all dialects share, and putting a text into a content.

A content is a string, a list of parts, or nothing. Its kind stays what it was: servers whose templates want a string
get one. The bytes that stand there stay, a null apart.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import ClassVar, TypeVar

import msgspec

from semmem.dialects.json_splice import (
    Edit,
    JsonObject,
    Malformed,
    Member,
    cut_members,
    insert_element,
    insert_member,
    object_at,
    read_elements,
    splice,
)
from semmem.dialects.request import OWN_MEMBERS, STRING, SYSTEM_ROLES
from semmem.memory import Conversation, Element, Injection, Past, Replacement

T = TypeVar("T")

GAP = rb"\n\n"
"""Between what stood there and what is added, as it is spelled inside a JSON string."""


class ParsedRequest(ABC):
    """One request body, decoded once: what it says, and the bytes it came in. A subclass knows where its API takes an
    injection."""

    __slots__ = ("_source", "_spans", "conversation", "is_shortened")

    POSITIONS: ClassVar[tuple[str, ...]] = ("turn", "system", "first", "after_system", "before_last_user")
    LIST: ClassVar[str] = "messages"
    """The member that holds the elements."""
    PART: ClassVar[str] = "text"
    """The type of a text part of a content."""

    def __init__(self, source: JsonObject, conversation: Conversation) -> None:
        self._source = source
        self._spans: list[tuple[int, int]] | None = None
        self.conversation = conversation
        self.is_shortened = False
        """Whether ``conversation`` has less than the body says; what is rewritten is the whole."""

    def rewrite(self, *injections: Injection, replacement: Replacement | None = None) -> bytes | None:
        """The body with semmem's own members removed and the injections added, and with the replacement made; None when
        there is nothing to change. No two injections go to the same place, and none to what is replaced.

        Every other member keeps its place and its bytes, and so does every element that is not replaced. A session may
        have begun in an API whose ``input_item`` this one has not: it is the ``system`` that it was made of. Raises
        ValueError for any other position that does not exist."""
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
        """The injection with its position as exactly as a later request of the same tool loop needs it: as it is, where
        what a position means does not change while that goes on."""
        return injection

    def keeps(self, injection: Injection) -> bool:
        """Whether the API hands on, with the history it keeps, what was injected like this beside the user's words. A
        request that goes on from such an answer, and does not bring those words itself, has the injection already. Most
        APIs keep nothing from one request to the next."""
        return False

    @property
    def whole(self) -> bool:
        """Whether results of tools and words of the user's, as ``conversation`` has them, are all that the request adds
        to the history that it goes on from, or begins; whoever keeps that history. Never, where an API is sent the
        history with each request."""
        return False

    def with_history(self, history: Sequence[Past]) -> bytes | None:
        """The body with this history, which may be empty, before what it brings, and no longer going on from an answer
        or a conversation that the API keeps. Every other member keeps its place and its bytes. None where the two do
        not fit together: a call would stand without its result, or the request goes on from something else as well.
        Raises Malformed."""
        return None

    @abstractmethod
    def elements(self) -> Sequence[Element]:
        """What the request's list of messages consists of, each element in its place; empty where there is no list.
        Raises Malformed."""

    @abstractmethod
    def _edits(self, injection: Injection) -> list[Edit]:
        """What adds the injection, whose position is one of POSITIONS."""

    def _element(self, index: int) -> JsonObject:
        """The object at ``index`` of LIST. The list is walked once, however many are asked for. Raises Malformed."""
        if self._spans is None:
            self._spans = read_elements(self._source.members[self.LIST])
        return object_at(self._source, self._spans[index])

    def _merged_into(self, index: int, text: str, *, behind: bool, at: int = 0) -> list[Edit]:
        """Edits that put the text at the end (``behind``) or the beginning of the content of the message at ``index``:
        of a list, before the part at ``at``. Nothing when the message names a member twice: no reader would read it
        alike, so it is left alone."""
        try:
            message = self._element(index)
        except Malformed:
            return []
        content = message.members.get("content")
        if content is None:
            return [insert_member(message, "content", string_token(text))]
        return self._merged(content, text, behind=behind, at=at)

    def _merged(self, content: Member, text: str, *, behind: bool, at: int = 0) -> list[Edit]:
        """Edits that put the text at the end (``behind``) or the beginning of a content: of a list, before the part at
        ``at``."""
        if content.value.startswith(b"["):
            return [_insert_part(content, len(read_elements(content)) if behind else at, text, self.PART)]
        if not content.value.startswith(b'"'):
            return [Edit(content.value_start, content.end, string_token(text))]
        gap, added = b"" if content.value == b'""' else GAP, string_token(text)[1:-1]
        end = content.end - 1 if behind else content.value_start + 1
        return [Edit(end, end, gap + added if behind else added + gap)]


def nth(found: Iterable[T], number: int) -> T | None:
    """The one with this number, from 0; None where there are fewer."""
    return next(islice(found, number, None), None)


def last_user(roles: Sequence[str]) -> int | None:
    """Where the user speaks last."""
    return next((index for index in range(len(roles) - 1, -1, -1) if roles[index] == "user"), None)


def first_system(roles: Sequence[str]) -> int | None:
    """Where the first instructions stand."""
    return next((index for index, role in enumerate(roles) if role in SYSTEM_ROLES), None)


def after_system(roles: Sequence[str]) -> int:
    """Behind the instructions that the list begins with."""
    return next((index for index, role in enumerate(roles) if role not in SYSTEM_ROLES), len(roles))


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


def add_part(content: Member, text: str, *, index: int) -> list[Edit]:
    """Edits that make the text the part at ``index`` of a list, or of a string, which is one part. The string's token
    keeps its bytes and becomes the text of a part. A blank one takes the text in, because APIs refuse blank parts, and
    a null (of an older client) is replaced: the only bytes that are ever lost."""
    added, start, end = _part(text), content.value_start, content.end
    if content.value.startswith(b"["):
        return [insert_element(content, index, added)]
    if content.value == b"null":
        return [Edit(start, end, string_token(text))]
    if not STRING.decode(content.value).strip():
        return [Edit(start + 1, start + 1, string_token(text)[1:-1])]
    opening, closing = _part("").split(b'""')
    before, after = (added + b",", b"") if index == 0 else (b"", b"," + added)
    return [Edit(start, start, b"[" + before + opening), Edit(end, end, closing + after + b"]")]


def _part(text: str, part: str = "text") -> bytes:
    return b'{"type":' + string_token(part) + b',"text":' + string_token(text) + b"}"


def _insert_part(content: Member, index: int, text: str, part: str) -> Edit:
    parts = read_elements(content)
    if parts and content.value[parts[0][0] - content.value_start :][:1] == b'"':
        return insert_element(content, index, string_token(text))  # a list of plain strings
    return insert_element(content, index, _part(text, part))
