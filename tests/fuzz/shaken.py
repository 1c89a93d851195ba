"""Inputs without coverage: seeds of the corpus, shaken by a seeded generator. For a short run where atheris is not."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence


def shaken(seeds: Sequence[bytes], words: Sequence[bytes], dice: random.Random, number: int) -> Iterator[bytes]:
    """So many inputs, the same for the same ``dice``: half of them made of nothing."""
    for _ in range(number):
        if dice.random() < 0.5:
            yield dice.randbytes(dice.randrange(1, 64))
        else:
            yield _changed(bytearray(dice.choice(seeds)), words, dice)


def _changed(data: bytearray, words: Sequence[bytes], dice: random.Random) -> bytes:
    for _ in range(dice.randrange(1, 6)):
        place = dice.randrange(len(data) + 1)
        match dice.randrange(4):
            case 0:
                data[place : place + 1] = dice.randbytes(1)
            case 1:
                data[place:place] = dice.choice(words) if words else dice.randbytes(4)
            case 2:
                del data[place : place + dice.randrange(8)]
            case _:
                data += data[place : place + dice.randrange(16)]
    return bytes(data)
