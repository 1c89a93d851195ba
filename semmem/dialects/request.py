"""What the requests of all dialects share: semmem's own members, the usual fields, and who speaks.

A single field of another type than expected says nothing; that is never a reason to refuse a request.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from semmem.dialects.json_splice import UNREADABLE, Malformed, reason
from semmem.memory import MEMORY_TYPES, Controls, Conversation, Message, Role
from semmem.ports.names import bounded, usable

T = TypeVar("T")
Fields = Mapping[str, msgspec.Raw] | Mapping[str, bytes]

LIMIT_MAX = 50
"""The most memories a request may ask for."""

OWN_MEMBERS = ("memory_config", "memory_context", "auto_store")
"""semmem's members of a request body: read, then removed, whatever comes of them. The last is of ``memory_config``;
clients of the vLLM Semantic Router write it beside the others."""

SYSTEM_ROLES = ("system", "developer")
ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT}
OTHER_ROLE = Role.TOOL
"""Who speaks in a role that we do not know: not the user."""

FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
ARRAY = msgspec.json.Decoder(list[Any])
STRING = msgspec.json.Decoder(str)
BOOLEAN = msgspec.json.Decoder(bool)
INTEGER = msgspec.json.Decoder(int)
NUMBER = msgspec.json.Decoder(float)

_CONTROLLING = frozenset({*OWN_MEMBERS, "metadata", "user"})
_NO_CONTROLS = Controls()

_MEMORY_TYPES = {kind.value: kind for kind in MEMORY_TYPES}
_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})


class ContentPart(msgspec.Struct, gc=False):
    """A part of a message's content in OpenAI's APIs."""

    type: str = ""
    text: Any = None  # a string in a text part; what other parts call text is theirs


Content = str | list[ContentPart | str] | None
"""Of a message in OpenAI's APIs."""


def text_of(content: Content, joiner: str = "\n") -> str:
    """The text of a content."""
    return content if isinstance(content, str) else joiner.join(texts_of(content))


def texts_of(content: Content) -> list[str]:
    """The texts of a content, part by part."""
    if isinstance(content, str):
        return [content]
    return [part if isinstance(part, str) else part.text for part in content or () if _is_text(part)]


def name_in(told: object) -> str:
    """A name that a member holds, whatever it holds: empty for what is none."""
    return (usable(told) or "") if isinstance(told, str) else ""


def _is_text(part: ContentPart | str) -> bool:
    return isinstance(part, str) or (part.type in _TEXT_PARTS and isinstance(part.text, str))


def conversation_of(
    top: Mapping[str, bytes],
    messages: Iterable[Message],
    *,
    tool_turn: bool,
    conversation_id: str | None = None,
    previous_id: str | None = None,
) -> Conversation:
    """The conversation of these messages, and what a request's other members say of it."""
    return Conversation(
        messages=tuple(messages),
        model=usable(field_of(top, "model", STRING)) or "",
        stream=field_of(top, "stream", BOOLEAN) or False,
        tool_turn=tool_turn,
        controls=controls(top),
        conversation_id=conversation_id,
        previous_id=previous_id,
    )


def controls(top: Mapping[str, bytes]) -> Controls:
    """What a request's members ask of memory: ``memory_config``, ``memory_context``, and who it says it is. Where
    ``auto_store`` is said twice, a no is a no."""
    if _CONTROLLING.isdisjoint(top):
        return _NO_CONTROLS
    config, context = object_of(top, "memory_config"), object_of(top, "memory_context")
    limit = field_of(config, "retrieval_limit", INTEGER)
    threshold = field_of(config, "similarity_threshold", NUMBER)
    types = field_of(config, "memory_types", ARRAY)
    known = [_MEMORY_TYPES[name] for name in types or () if isinstance(name, str) and name in _MEMORY_TYPES]
    store = field_of(config, "auto_store", BOOLEAN), field_of(top, "auto_store", BOOLEAN)
    return Controls(
        enabled=field_of(config, "enabled", BOOLEAN),
        auto_store=False if False in store else True if True in store else None,
        types=None if types is None else tuple(dict.fromkeys(known)),
        limit=None if limit is None else min(max(limit, 0), LIMIT_MAX),
        threshold=None if threshold is None else min(max(threshold, 0.0), 1.0),
        project=name_of(context, "project_id"),
        claimed_user=field_of(context, "user_id", STRING)
        or field_of(object_of(top, "metadata"), "user_id", STRING)
        or field_of(top, "user", STRING)
        or None,
    )


def decoded(decoder: msgspec.json.Decoder[T], raw: bytes | msgspec.Raw, place: str) -> T:
    """The value of a member. Raises Malformed, which names the place, ``messages[3].content``, and the reason."""
    try:
        return decoder.decode(raw)
    except UNREADABLE as error:
        why, _, inner = reason(error).partition(" - at `$")
        raise Malformed(f"{place}{inner.rstrip('`')}: {why}") from None


def object_of(fields: Fields, name: str) -> dict[str, msgspec.Raw]:
    """A field that is an object, by its members; empty when it is not there."""
    return field_of(fields, name, FIELDS) or {}


def name_of(fields: Fields, name: str) -> str | None:
    """A field that names something other than a user: bounded (``ports.names``), None when empty or not there."""
    return bounded(field_of(fields, name, STRING))


def field_of(fields: Fields, name: str, decoder: msgspec.json.Decoder[T]) -> T | None:
    """A field's value, or None when it is absent or of another type, which both mean that nothing was said."""
    raw = fields.get(name)
    if raw is None:
        return None
    try:
        return decoder.decode(raw)
    except UNREADABLE:
        return None
