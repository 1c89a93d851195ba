"""Turns, halves and journals for the tests of every Journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Connection, inspect

from semmem.backends.sql.journal import SqlJournal
from semmem.background.learner import BatchQueue
from semmem.extraction.drift import TopicRecords
from semmem.memory import Forgetting, Scope, Turn, TurnEnding
from semmem.ports.housekeeping import Housekeeping
from semmem.ports.learning import Batch, BatchRecords, BatchRules
from semmem.ports.recording import TurnClosed, TurnRecords
from semmem.turns.seen import MessageRecords
from semmem.turns.sessions import SessionRecords


class Journal(
    TurnRecords, SessionRecords, MessageRecords, BatchQueue, BatchRecords, TopicRecords, Housekeeping, Protocol
):
    """What these tests ask of a journal: all that is written into it, learnt from it and pruned."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def health(self) -> None: ...

    async def end_session(self, user: str, session: str, *, now: float) -> int: ...

    async def begin_erasure(
        self, what: Forgetting, *, now: float, turned_away: Sequence[str] = (), hold_s: float = 60.0
    ) -> tuple[str, Counter[str]]: ...

    async def finish_erasure(self, what: Forgetting, hold_id: str) -> None: ...


Place = Path | str
"""A SQLite file, or the URL of a server's database."""

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


async def erase(journal: Journal, scope: Scope, *, at: float = 1000.0) -> int:
    """Erase what was said in a scope until then, with what is kept beside it, as the owner of erasures does; how many
    turns that were."""
    what = Forgetting(scope, at)
    hold_id, counts = await journal.begin_erasure(what, now=at)
    await journal.finish_erasure(what, hold_id)
    return counts["turns"]


async def learn_all(journal: Journal, *, now: float = 1000.0) -> list[Batch]:
    found = []
    while (batch := await journal.claim(EAGER, now=now)) is not None:
        found.append(batch)
        await journal.finish(batch.id, "done", now=now)
    return found


async def learnt(journal: Journal) -> dict[str, str | None]:
    """The answers of all turns that can be learnt from, by turn id."""
    return {each.id: each.answer for batch in await learn_all(journal) for each in batch.turns}


async def change(journal: SqlJournal, statement: str) -> None:
    """Behind the journal's back."""
    await journal._database.write(lambda conn: conn.exec_driver_sql(statement))


async def rows_of(journal: SqlJournal) -> dict[str, list[tuple[object, ...]]]:
    """Everything that the journal's database holds, by table."""

    def read(conn: Connection) -> dict[str, list[tuple[object, ...]]]:
        names = inspect(conn).get_table_names()
        return {name: [tuple(row) for row in conn.exec_driver_sql(f"SELECT * FROM {name}")] for name in names}

    return await journal._database.read(read)
