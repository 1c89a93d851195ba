"""Bytes read as decisions, so that every input means something, and a small change of it a little else."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Decisions from the front of the bytes; when these run out every decision is the first option.

    A byte decides by its remainder, so that in seeds the digits 0, 1, 2 ... choose the first, second, third ... of
    2, 3, 4, 6 or 8 options.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> bool:
        return self._at < len(self._data)

    def below(self, count: int) -> int:
        """A number from 0 to ``count`` - 1, at most 255."""
        return next(iter(self.take(1)), 0) % count

    def one_of(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def take(self, count: int) -> bytes:
        """As many of the next bytes as there are."""
        taken = self._data[self._at : self._at + count]
        self._at += len(taken)
        return taken

    def rest(self) -> bytes:
        return self.take(len(self._data))

    def text(self) -> str:
        """Up to 15 bytes as text: UTF-8 or else Latin-1, as Envoy's door reads headers."""
        raw = self.take(self.below(16))
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return raw.decode("latin-1")

    def joined(self, fragments: Sequence[bytes]) -> bytes:
        """All that is left, as fragments one after the other; now and then raw bytes between them."""
        pieces = []
        while self.left:
            number = self.below(256)
            pieces.append(fragments[number] if number < len(fragments) else self.take(number % 8))
        return b"".join(pieces)

    def cuts(self) -> list[int]:
        """Up to seven numbers from 0 to 65535: where to cut what follows."""
        return [int.from_bytes(self.take(2), "big") for _ in range(self.below(8))]


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    """The data in pieces, some of them perhaps empty."""
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(bounds)]
