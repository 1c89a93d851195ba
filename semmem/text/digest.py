"""Names made of texts, the same on every replica and for every try; and what a text says, which is not worked out
again: a client resends its whole history, and everybody says "thanks"."""

import struct
from base64 import b32encode
from collections.abc import Callable
from hashlib import sha256
from typing import Generic, TypeVar

T = TypeVar("T")
_length = struct.Struct(">Q").pack


class Remembered(Generic[T]):
    """``derive`` as a function that remembers ``entries_max`` answers at most; then it begins anew. Texts are known by
    the interpreter's own hash, keyed anew in each process: none stays here, no answer may hold one. Not for secrets."""

    __slots__ = ("_answers", "_derive", "_entries_max")

    def __init__(self, derive: Callable[..., T], entries_max: int = 4096) -> None:
        self._derive = derive
        self._entries_max = entries_max
        self._answers: dict[int, T] = {}

    def __call__(self, *texts: str) -> T:
        key = hash(texts)
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= self._entries_max:
                self._answers.clear()
            answer = self._answers[key] = self._derive(*texts)
        return answer


def digest(*parts: str) -> str:
    """SHA-256 over length-prefixed parts (so that no two lists of parts collide), 32 hex digits."""
    try:
        encoded = [part.encode() for part in parts]
    except UnicodeEncodeError:
        encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return sha256(b"".join([_length(len(data)) + data for data in encoded])).hexdigest()[:32]


known_digest = Remembered(digest, 8192)
"""``digest`` of what is likely to come again, in a seventh of the time; not for secrets."""


def stable_id(prefix: str, *lines: str) -> str:
    """The prefix and 26 base32 characters (130 of SHA-256's bits)."""
    return prefix + b32encode(sha256("\n".join(lines).encode()).digest()).decode().lower()[:26]
