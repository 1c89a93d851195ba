"""What is to be learnt from, what is being learnt from and how that ended: in figures, each out of an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, and_, func, select

from semmem.backends.sql.holds import HOLD
from semmem.backends.sql.part import JournalPart, one_read
from semmem.backends.sql.tables import LIVE, WAITING, batches, resting, turns
from semmem.ports.work import EndedBatch, LiveBatch, Work

_BATCH = batches.c.trigger_word != HOLD
_LIVE, _ENDED = and_(LIVE, _BATCH), and_(batches.c.status.is_not(None), _BATCH)


class SqlWork(JournalPart):
    """The part of WorkRecords that is about batches."""

    @one_read
    def work(self, conn: Connection, *, ended_after: float, limit: int) -> Work:
        waiting, oldest_at = conn.execute(select(func.count(), func.min(turns.c.opened_at)).where(WAITING)).one()
        by_word = select(batches.c.status, func.count().label("number")).where(
            _ENDED, batches.c.finished_at > ended_after
        )
        return Work(
            waiting,
            oldest_at,
            _live(conn, limit),
            conn.execute(select(func.count()).select_from(batches).where(_LIVE)).scalar_one(),
            _ended(conn, limit),
            {row.status: row.number for row in conn.execute(by_word.group_by(batches.c.status))},
        )


def _live(conn: Connection, limit: int) -> list[LiveBatch]:
    rests = resting.c.batch_id.is_not(None)
    found = select(
        batches.c.id, batches.c.trigger_word, batches.c.attempt, batches.c.claimable_at, rests.label("rests")
    )
    joined = found.outerjoin(resting, resting.c.batch_id == batches.c.id).where(_LIVE)
    rows = conn.execute(joined.order_by(batches.c.claimable_at).limit(limit)).all()
    return [LiveBatch(row.id, row.trigger_word, row.attempt, row.claimable_at, bool(row.rests)) for row in rows]


def _ended(conn: Connection, limit: int) -> list[EndedBatch]:
    newest = select(batches).where(_ENDED).order_by(batches.c.finished_at.desc(), batches.c.id).limit(limit)
    rows = conn.execute(newest).all()
    learnt = _learnt_from(conn, rows)
    return [
        EndedBatch(row.id, row.trigger_word, row.attempt, row.status, row.finished_at, *learnt.get(row.id, (0, None)))
        for row in rows
    ]


def _learnt_from(conn: Connection, ended: Sequence[Row[Any]]) -> dict[str, tuple[int, float | None]]:
    """By batch how many turns, and when the first was said. They were done when it ended, and there is an index of
    that."""
    at, ids = {row.finished_at for row in ended}, [row.id for row in ended]
    mine = select(turns.c.batch_id, func.count(), func.min(turns.c.opened_at)).where(
        turns.c.done_at.in_(at), turns.c.batch_id.in_(ids)
    )
    return {batch_id: (number, said_at) for batch_id, number, said_at in conn.execute(mine.group_by(turns.c.batch_id))}
