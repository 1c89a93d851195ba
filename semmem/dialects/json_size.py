"""How many values a JSON text holds, without building any of them.

What a decoder costs is decided by how many values there are, much more than by how many bytes: fifteen megabytes of
one string are read in some milliseconds, of tiny messages in a second, and the decoder cannot be stopped. Arrays are
counted instead of characters, a piece at a time, so other threads are held up by a fraction of a millisecond only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

PIECE_BYTES = 128 * 1024
_QUOTE, _BACKSLASH, _COMMA, _BRACKET, _BRACE = b'"\\,[{'

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


def holds_more_than(limit: int, body: bytes) -> bool:
    """Whether a JSON text has more than ``limit`` members and elements.

    Counted are commas and opening brackets outside strings: for each value but the outermost there is a comma, or the
    bracket that it is the first one behind. Of a text that is not JSON only what stands before its first mistake is
    counted rightly, and no decoder gets further.
    """
    if len(body) <= limit or sum(map(body.count, (b",", b"[", b"{"))) <= limit:  # even if none is in a string
        return False
    counted, inside, escaped = 0, False, False
    data = np.frombuffer(body, np.uint8)
    for start in range(0, len(data), PIECE_BYTES):
        piece = data[start : start + PIECE_BYTES]
        quotes, escaped = _quotes(piece, escaped=escaped)
        in_string = np.logical_xor.accumulate(quotes) ^ inside
        counted += int(np.count_nonzero(_opens_a_value(piece) & ~in_string))
        if counted > limit:
            return True
        inside = bool(in_string[-1])
    return False


def _opens_a_value(piece: Bytes) -> Mask:
    opens: Mask = (piece == _COMMA) | (piece == _BRACKET) | (piece == _BRACE)
    return opens


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
