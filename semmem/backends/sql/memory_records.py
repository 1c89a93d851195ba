"""What is kept beside memories: who has any, how often each was used, and what was forgotten under a running batch.

A hold is a batch without turns. The index that keeps one user's batches apart keeps holds and batches apart as well,
and a hold that outlives its holder is found by the next claim, which ends it as an empty batch.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, and_, case, delete, select, true, update

from semmem.backends.sql.tables import (
    LIVE,
    accesses,
    batches,
    dropped,
    erasures,
    resting,
    scope_row,
    users,
    versions,
    within,
)
from semmem.backends.sql.turns import upsert_into
from semmem.memory import Scope
from semmem.ports.history import Dropped, Uses

HOLD = "hold"
"""Trigger word of a hold."""

IDS_MAX = 500
"""Ids in one statement: SQLite takes some thousands of parameters."""


# --- users -----------------------------------------------------------------------------------------------------------


def know_users(conn: Connection, names: Iterable[str]) -> None:
    if rows := [{"user_id": name} for name in dict.fromkeys(names)]:
        conn.execute(upsert_into(conn.dialect.name, users).on_conflict_do_nothing(), rows)


def users_due(conn: Connection, maintained_before: float, limit: int) -> list[str]:
    due = select(users.c.user_id).where(users.c.kept_at < maintained_before).order_by(users.c.kept_at).limit(limit)
    return list(conn.execute(due).scalars())


def mark_maintained(conn: Connection, user: str, now: float) -> None:
    conn.execute(update(users).where(users.c.user_id == user).values(kept_at=now))


def forget_user(conn: Connection, user: str) -> None:
    """Everything about a user without memories, except turns that wait or are being learnt from."""
    for table in (users, accesses, dropped, versions):
        conn.execute(delete(table).where(table.c.user_id == user))


# --- holds and erasures ----------------------------------------------------------------------------------------------


def hold(conn: Connection, user: str, now: float, lease_s: float) -> str | None:
    row = {**scope_row(Scope(user)), "id": f"hold_{uuid.uuid4().hex}", "trigger_word": HOLD, "attempt": 1}
    statement = upsert_into(conn.dialect.name, batches).values(**row, claimable_at=now + lease_s)
    taken = conn.execute(statement.on_conflict_do_nothing()).rowcount
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


def release(conn: Connection, hold_id: str) -> None:
    conn.execute(delete(batches).where(batches.c.id == hold_id, batches.c.trigger_word == HOLD))
    mine = resting.c.batch_id == hold_id
    until = select(resting.c.until).where(mine).scalar_subquery()
    held_until = select(resting.c.held_until).where(mine).scalar_subquery()
    held = and_(batches.c.id == hold_id, batches.c.claimable_at == held_until)  # else somebody claimed it meanwhile
    conn.execute(update(batches).where(held).values(claimable_at=until))
    conn.execute(update(resting).where(mine).values(held_until=None))


def rest(conn: Connection, batch_id: str, until: float) -> None:
    """Give a batch's lease back until then."""
    statement = upsert_into(conn.dialect.name, resting).values(batch_id=batch_id, until=until)
    if conn.execute(update(batches).where(batches.c.id == batch_id, LIVE).values(claimable_at=until)).rowcount:
        conn.execute(
            statement.on_conflict_do_update(index_elements=["batch_id"], set_={"until": until, "held_until": None})
        )


def allows(conn: Connection, batch_id: str, memory_id: str, written: bool) -> bool:
    erased = select(erasures.c.batch_id).where(erasures.c.batch_id == batch_id, erasures.c.memory_id == memory_id)
    there = select(batches.c.id).where(batches.c.id == batch_id, ~erased.exists(), true() if written else LIVE)
    return conn.execute(there).first() is not None


def is_forgotten(conn: Connection, scope: Scope, memory_id: str) -> bool:
    """Whether the memory was forgotten while somebody was at work on its user's memories, who may still write it."""
    this = and_(erasures.c.user_id == scope.user, erasures.c.memory_id == memory_id)
    return conn.execute(select(erasures.c.batch_id).where(this).limit(1)).first() is not None


def orphans(conn: Connection, limit: int) -> list[tuple[str, str]]:
    """(user, memory id) of what was forgotten under batches that are done."""
    live = select(batches.c.id).where(LIVE)
    done = select(erasures.c.user_id, erasures.c.memory_id).where(erasures.c.batch_id.not_in(live))
    return [(row.user_id, row.memory_id) for row in conn.execute(done.distinct().limit(limit))]


def settle(conn: Connection, user: str, memory_id: str) -> None:
    live = select(batches.c.id).where(LIVE)
    this = and_(erasures.c.user_id == user, erasures.c.memory_id == memory_id)
    conn.execute(delete(erasures).where(this, erasures.c.batch_id.not_in(live)))


# --- memories --------------------------------------------------------------------------------------------------------


def forget_memories(conn: Connection, scope: Scope, memory_ids: Sequence[str]) -> int:
    """Earlier versions and statistics; how many versions. What a batch holds in its hands it may not write again."""
    number = 0
    for start in range(0, len(memory_ids), IDS_MAX):
        ids = memory_ids[start : start + IDS_MAX]
        live = select(batches.c.id).where(LIVE, batches.c.user_id == scope.user)
        for batch_id in conn.execute(live).scalars():
            rows = [{"batch_id": batch_id, "memory_id": memory_id, "user_id": scope.user} for memory_id in ids]
            conn.execute(upsert_into(conn.dialect.name, erasures).on_conflict_do_nothing(), rows)
        number += conn.execute(delete(versions).where(within(versions, scope), versions.c.memory_id.in_(ids))).rowcount
        for table in (accesses, dropped):
            conn.execute(delete(table).where(table.c.user_id == scope.user, table.c.memory_id.in_(ids)))
    return number


def recorded_ids(conn: Connection, user: str) -> set[str]:
    """Memories of which anything is kept here."""
    found = (select(table.c.memory_id).where(table.c.user_id == user) for table in (versions, accesses, dropped))
    return {memory_id for each in found for memory_id in conn.execute(each).scalars()}


def note_dropped(conn: Connection, user: str, memory_id: str, reason: str, now: float) -> None:
    row = {"user_id": user, "memory_id": memory_id, "reason": reason, "times": 1, "last_at": now}
    statement = upsert_into(conn.dialect.name, dropped).values(row)
    more = {"times": dropped.c.times + 1, "last_at": statement.excluded.last_at}
    conn.execute(statement.on_conflict_do_update(index_elements=["user_id", "memory_id", "reason"], set_=more))


def dropped_at(conn: Connection, user: str, memory_id: str) -> list[Dropped]:
    mine = and_(dropped.c.user_id == user, dropped.c.memory_id == memory_id)
    rows = conn.execute(select(dropped).where(mine).order_by(dropped.c.reason))
    return [Dropped(row.reason, row.times, row.last_at) for row in rows]


def record_uses(conn: Connection, uses: Sequence[tuple[str, str, Uses]]) -> None:
    """Add to what is there. ``last_at`` only rises."""
    statement = upsert_into(conn.dialect.name, accesses)
    old, new = accesses.c, statement.excluded
    later = case((new.last_at > old.last_at, new.last_at), else_=old.last_at)
    upsert = statement.on_conflict_do_update(
        index_elements=["user_id", "memory_id"], set_={"used": old.used + new.used, "last_at": later}
    )
    rows = [
        {"user_id": user, "memory_id": memory_id, "used": each.count, "last_at": each.last_at}
        for user, memory_id, each in uses
    ]
    if rows:
        know_users(conn, (user for user, _, _ in uses))
        conn.execute(upsert, rows)


def uses(conn: Connection, user: str) -> dict[str, Uses]:
    rows = conn.execute(select(accesses).where(accesses.c.user_id == user))
    return {row.memory_id: Uses(row.used, row.last_at) for row in rows}
