"""Parse a request of any size: how much it may hold, and how much of a long text is looked at."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from semmem.dialects import Dialect, ParsedRequest
from semmem.dialects.json_size import holds_more_than
from semmem.memory import Message

TEXT_CHARS_MAX = 256 * 1024
"""Of a longer text its two halves are looked at, the beginning and the end. What is journalled of a turn, searched for
and compared is a small part of that; semmem's own block, at most 64,000 characters, stands at a text's beginning or
end."""
_GAP = "\n[…]\n"


class TooMany(ValueError):
    """The request holds more messages, or more values, than semmem parses."""


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """``messages_max``: messages (items) of one request; ``values_max``: members and elements in its JSON, at any
    depth, wherever they stand."""

    messages_max: int = 5000
    values_max: int = 100_000


def parse(dialect: Dialect, body: bytes, limits: ParseLimits) -> ParsedRequest:
    """The request, its texts shortened to TEXT_CHARS_MAX. Raises Malformed and, before it costs much, TooMany."""
    if holds_more_than(limits.values_max, body):
        raise TooMany("values")
    parsed = dialect.parse(body)
    messages = parsed.conversation.messages
    if len(messages) > limits.messages_max:
        raise TooMany("messages")
    if any(len(message.text) > TEXT_CHARS_MAX for message in messages):
        parsed.conversation = replace(parsed.conversation, messages=tuple(map(_shortened, messages)))
        parsed.is_shortened = True
    return parsed


def _shortened(message: Message) -> Message:
    text, half = message.text, (TEXT_CHARS_MAX - len(_GAP)) // 2
    return message if len(text) <= TEXT_CHARS_MAX else replace(message, text=f"{text[:half]}{_GAP}{text[-half:]}")
