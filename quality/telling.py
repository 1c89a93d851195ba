"""Users tell an assistant something, in sessions, and semmem learns from it as its learner would: when a session has
been silent for long enough, in batches of the configured size."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from quality.wiring import LEARNT_AT, NOW, Semmem
from semmem.memory import Scope, Turn, TurnEnding
from semmem.ports.recording import TurnClosed

AT_A_TIME = 16
"""Batches of different users that are learnt from side by side, so that their facts share a batch of the embedder."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a user's, when it was said (before NOW by longer than a session stays open), and the answer."""

    text: str
    at: float
    session: str
    answer: str = ""


async def tell(semmem: Semmem, users: Mapping[str, Sequence[Said]]) -> dict[str, list[str]]:
    """What each user says, oldest first; the ids of their turns, in that order.

    Every user's first session is learnt from before anybody's second begins. A session of the same name goes on where
    it ended.
    """
    turns = {user: [_turn(semmem, user, one) for one in said] for user, said in users.items()}
    for sessions in zip_longest(*(_by_session(theirs) for theirs in turns.values()), fillvalue=()):
        for turn in (turn for session in sessions for turn in session):
            closed = TurnClosed(turn.id, TurnEnding.ANSWERED, turn.opened_at, turn.answer or "")
            await semmem.journal.record([turn], [closed])
        await asyncio.gather(*(_learn_all(semmem) for _ in range(AT_A_TIME)))
    return {user: [turn.id for turn in theirs] for user, theirs in turns.items()}


async def _learn_all(semmem: Semmem) -> None:
    while (batch := await semmem.journal.claim(semmem.batches, now=NOW)) is not None:
        LEARNT_AT.set(batch.turns[-1].opened_at + semmem.batches.idle_s)
        semmem.note(await semmem.learning.learn(batch))


def _turn(semmem: Semmem, user: str, said: Said) -> Turn:
    number = next(semmem.turn_numbers)
    scope = Scope(user, session=f"{user}/{said.session}")
    return Turn(f"turn-{number}", scope, number, said.text, said.at, answer=said.answer)


def _by_session(turns: Iterable[Turn]) -> list[list[Turn]]:
    sessions: dict[str | None, list[Turn]] = {}
    for turn in turns:
        sessions.setdefault(turn.scope.session, []).append(turn)
    return list(sessions.values())
