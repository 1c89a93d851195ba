"""Parse a request of any size: how much it may hold, and how much of a long text is looked at."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from semmem.dialects import Dialect, ParsedRequest
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


# --- how many values a JSON text holds, without building any of them --------------------------------------------------

# What a decoder costs is decided by how many values there are, much more than by how many bytes: fifteen megabytes of
# one string are read in some milliseconds, of tiny messages in a second, and the decoder cannot be stopped. Arrays are
# counted instead of characters, a piece at a time, so other threads are held up by a fraction of a millisecond only.
PIECE_BYTES = 128 * 1024
_QUOTE, _BACKSLASH, _COMMA, _BRACKET, _BRACE = b'"\\,[{'

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


def holds_more_than(limit: int, body: bytes) -> bool:
    """Whether a JSON text has more than ``limit`` members and elements. Counted are commas and opening brackets outside
    strings: for each value but the outermost there is a comma, or the bracket that it is the first one behind. Of a
    text that is not JSON only what stands before its first mistake is counted rightly, and no decoder gets further."""
    if len(body) <= limit or sum(map(body.count, (b",", b"[", b"{"))) <= limit:  # even if none is in a string
        return False
    counted, inside, escaped = 0, False, False
    data = np.frombuffer(body, np.uint8)
    for start in range(0, len(data), PIECE_BYTES):
        piece = data[start : start + PIECE_BYTES]
        quotes, escaped = _quotes(piece, escaped=escaped)
        in_string = np.logical_xor.accumulate(quotes) ^ inside
        opens_a_value = (piece == _COMMA) | (piece == _BRACKET) | (piece == _BRACE)
        counted += int(np.count_nonzero(opens_a_value & ~in_string))
        if counted > limit:
            return True
        inside = bool(in_string[-1])
    return False


def _quotes(piece: Bytes, *, escaped: bool) -> tuple[Mask, bool]:
    """Where strings begin and end; ``escaped``: whether the first byte is, and, in the answer, the one behind."""
    quotes: Mask = piece == _QUOTE
    backslashes = np.flatnonzero(piece == _BACKSLASH)
    if escaped:
        quotes[0] = False
        backslashes = backslashes[1:] if piece[0] == _BACKSLASH else backslashes
    if not backslashes.size:
        return quotes, False
    first_of_run = np.diff(backslashes, prepend=-2) != 1
    run_starts = np.maximum.accumulate(np.where(first_of_run, backslashes, 0))
    behind = backslashes[(backslashes - run_starts) % 2 == 0] + 1
    quotes[behind[behind < piece.size]] = False
    return quotes, bool(behind[-1] == piece.size)
