"""What users are going to do: two conversations each, side by side, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tests.canary.sentences import FACTS

TALKS = 2
"""Conversations of one user: what one is told, the other one is asked for, whose history does not have it."""


class Kind(StrEnum):
    """The first three are turns of a conversation."""

    TELL = "tell"
    ASK = "ask"
    CHAT = "chat"
    FORGET_ONE = "forget one"
    FORGET_ALL = "forget all"
    FORGET_RACING = "forget racing"


TURNS = (Kind.TELL, Kind.ASK, Kind.CHAT)
WEIGHTS = (30, 45, 25)
TOLD_FIRST = 2

FORGETS: dict[int, tuple[Kind, ...]] = {
    0: (Kind.FORGET_ALL, Kind.FORGET_ALL),
    1: (Kind.FORGET_ONE, Kind.FORGET_ONE, Kind.FORGET_ONE),
    2: (Kind.FORGET_RACING, Kind.FORGET_ALL),
}
"""What users erase, by the last digit of their number in base FORGET_EVERY; the others erase nothing."""
FORGET_EVERY = 8


@dataclass(frozen=True, slots=True)
class Deed:
    """``talk``: in which of the user's conversations; ``sentence``: which of FACTS is told; ``number``: its place."""

    kind: Kind
    talk: int
    sentence: int
    number: int


@dataclass(frozen=True, slots=True)
class Size:
    """How many conversations of how many turns, by so many clients at a time. ``turns_per_s``: of all of them together,
    at most; 0: as fast as they are answered."""

    conversations: int
    turns: int
    clients: int
    turns_per_s: float = 0.0

    @property
    def users(self) -> int:
        return max(1, self.conversations // TALKS)


def deeds(seed: int, user: int, turns: int) -> list[Deed]:
    """All deeds of a user: ``turns`` in each conversation, and erasures between them."""
    dice = random.Random(f"{seed}-{user}")
    talks = [talk for talk in range(TALKS) for _ in range(turns)]
    dice.shuffle(talks)
    kinds = [*[Kind.TELL] * TOLD_FIRST, *dice.choices(TURNS, WEIGHTS, k=len(talks) - TOLD_FIRST)]
    planned = list(zip(kinds, talks, strict=True))
    for forget in FORGETS.get(user % FORGET_EVERY, ()):
        planned.insert(dice.randrange(len(planned) // 4, len(planned)), (forget, 0))
    return list(_numbered(planned, dice))


def _numbered(planned: list[tuple[Kind, int]], dice: random.Random) -> Iterator[Deed]:
    """Each sentence is told once, and again only after everything was forgotten; who has told all of them chats."""
    sentences: list[int] = []
    for number, (kind, talk) in enumerate(planned):
        if kind in (Kind.FORGET_ALL, Kind.FORGET_RACING) or number == 0:
            sentences = dice.sample(range(len(FACTS)), len(FACTS))
        if kind is Kind.TELL and not sentences:
            kind = Kind.CHAT
        tells = kind in (Kind.TELL, Kind.FORGET_RACING)
        yield Deed(kind, talk, sentences.pop() if tells else 0, number)
