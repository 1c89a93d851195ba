"""What a text says is not worked out again: a client resends its whole history, and everybody says "thanks"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


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
