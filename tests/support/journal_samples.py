"""Turns, halves and journals for the tests of every Journal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Scope, Turn, TurnEnding
from semmem.ports.journal import Journal, TurnClosed
from semmem.ports.learning import Batch, BatchRules

JOURNALS: dict[str, Callable[[Path], Journal]] = {"sqlite": lambda folder: SqlJournal(folder / "journal.db")}

EAGER = BatchRules(size=1, answer_wait_s=0.0, idle_s=0.0, lease_s=10.0)
ADA = Scope("ada", session="s1")
HOSTILE = [
    "ada",
    "ADA",
    "ada' OR '1'='1",
    'ada"; DROP TABLE turns; --',
    "ada%",
    "ad_",
    "ada\n",
    "ada\x00",
    "ada\\0000",
    "ada\ud800",
    "ada\\d800",
    " ada",
    "阿達",
    "a" * 5000,
]


def turn(turn_id: str, scope: Scope = ADA, *, opened_at: float = 100.0, text: str = "I like tea", **rest: Any) -> Turn:
    return Turn(id=turn_id, scope=scope, ordinal=0, user_text=text, opened_at=opened_at, **rest)


def answered(turn_id: str, answer: str = "Noted.", *, at: float = 101.0) -> TurnClosed:
    return TurnClosed(turn_id, TurnEnding.ANSWERED, at, answer=answer, finish_reason="stop")


def lost(turn_id: str, *, at: float = 101.0) -> TurnClosed:
    return TurnClosed(turn_id, TurnEnding.ANSWER_LOST, at)


def refused(turn_id: str, *, at: float = 101.0) -> TurnClosed:
    return TurnClosed(turn_id, TurnEnding.REFUSED, at)


async def learn_all(journal: Journal, *, now: float = 1000.0) -> list[Batch]:
    found = []
    while (batch := await journal.claim(EAGER, now=now)) is not None:
        found.append(batch)
        await journal.finish(batch.id, "done", now=now)
    return found


async def learnt(journal: Journal) -> dict[str, str | None]:
    """The answers of all turns that can be learnt from, by turn id."""
    return {each.id: each.answer for batch in await learn_all(journal) for each in batch.turns}
