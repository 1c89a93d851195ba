"""Holds on users, and what was forgotten while somebody was at work on their memories.

A hold is a batch without turns. The index that keeps one user's batches apart keeps holds and batches apart as well,
and a hold that outlives its holder is found by the next claim, which ends it as an empty batch.
"""

from __future__ import annotations

import uuid

from sqlalchemy import Connection, and_, delete, select, update

from semmem.backends.sql import locks
from semmem.backends.sql.part import JournalPart, one_read, one_write
from semmem.backends.sql.rows import scope_row, upsert_into
from semmem.backends.sql.tables import LIVE, batches, erasures, resting
from semmem.memory import Scope

HOLD = "hold"
"""Trigger word of a hold."""


class SqlHolds(JournalPart):
    """HoldRecords, and who may still write what."""

    @one_write
    def hold(self, conn: Connection, user: str, *, now: float, lease_s: float) -> str | None:
        locks.user(conn, user)
        return hold_user(conn, user, now, lease_s)

    @one_write
    def release(self, conn: Connection, hold_id: str) -> None:
        locks.user_of_batch(conn, hold_id)
        end_hold(conn, hold_id)

    @one_read
    def allows(self, conn: Connection, batch_id: str, memory_id: str) -> bool:
        return may_write(conn, batch_id, memory_id)

    @one_read
    def orphans(self, conn: Connection, *, limit: int) -> list[tuple[str, str]]:
        live = select(batches.c.id).where(LIVE)
        done = select(erasures.c.user_id, erasures.c.memory_id).where(erasures.c.batch_id.not_in(live))
        return [(row.user_id, row.memory_id) for row in conn.execute(done.distinct().limit(limit))]

    @one_write
    def settle(self, conn: Connection, user: str, memory_id: str) -> None:
        live = select(batches.c.id).where(LIVE)
        this = and_(erasures.c.user_id == user, erasures.c.memory_id == memory_id)
        conn.execute(delete(erasures).where(this, erasures.c.batch_id.not_in(live)))


def hold_user(conn: Connection, user: str, now: float, lease_s: float) -> str | None:
    row = {**scope_row(Scope(user)), "id": f"hold_{uuid.uuid4().hex}", "trigger_word": HOLD, "attempt": 1}
    statement = upsert_into(conn.dialect.name, batches).values(**row, claimable_at=now + lease_s)
    taken = conn.execute(statement.on_conflict_do_nothing().returning(batches.c.id)).first()
    return str(row["id"]) if taken else _take_the_place_of_a_resting_batch(conn, user, now + lease_s)


def _take_the_place_of_a_resting_batch(conn: Connection, user: str, until: float) -> str | None:
    """A batch that waits for its next try, for an hour perhaps, is not under way: nobody claims it before ``until``."""
    free = and_(resting.c.until == batches.c.claimable_at, resting.c.held_until.is_(None))
    rests = and_(resting.c.batch_id == batches.c.id, free)
    mine = select(batches.c.id, batches.c.claimable_at).where(LIVE, batches.c.user_id == user, rests)
    row = conn.execute(mine).first()
    if row is None:
        return None
    later = max(row.claimable_at, until)
    conn.execute(update(batches).where(batches.c.id == row.id).values(claimable_at=later))
    conn.execute(update(resting).where(resting.c.batch_id == row.id).values(held_until=later))
    return str(row.id)


def end_hold(conn: Connection, hold_id: str) -> None:
    conn.execute(delete(batches).where(batches.c.id == hold_id, batches.c.trigger_word == HOLD))
    mine = resting.c.batch_id == hold_id
    until = select(resting.c.until).where(mine).scalar_subquery()
    held_until = select(resting.c.held_until).where(mine).scalar_subquery()
    held = and_(batches.c.id == hold_id, batches.c.claimable_at == held_until)  # else somebody claimed it meanwhile
    conn.execute(update(batches).where(held).values(claimable_at=until))
    conn.execute(update(resting).where(mine).values(held_until=None))


def may_write(conn: Connection, batch_id: str, memory_id: str) -> bool:
    return is_live(conn, batch_id) and not is_marked(conn, batch_id, memory_id)


def is_live(conn: Connection, batch_id: str) -> bool:
    """Whether a batch or hold has neither ended nor been cut off."""
    return conn.execute(select(batches.c.id).where(batches.c.id == batch_id, LIVE)).first() is not None


def is_marked(conn: Connection, batch_id: str, memory_id: str) -> bool:
    """Whether the memory was forgotten while the batch or hold was live."""
    this = and_(erasures.c.batch_id == batch_id, erasures.c.memory_id == memory_id)
    return conn.execute(select(erasures.c.batch_id).where(this)).first() is not None


def is_forgotten(conn: Connection, scope: Scope, memory_id: str) -> bool:
    """Whether the memory was forgotten while somebody was at work on its user's memories, who may still write it."""
    this = and_(erasures.c.user_id == scope.user, erasures.c.memory_id == memory_id)
    return conn.execute(select(erasures.c.batch_id).where(this).limit(1)).first() is not None
