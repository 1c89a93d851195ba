"""What is kept beside memories: earlier versions, what was not stored, uses, and votes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, and_, case, delete, func, select

from semmem.backends.sql import holds, locks, marks
from semmem.backends.sql.part import JournalPart, one_read, one_write, quiet_write
from semmem.backends.sql.rows import (
    insert_new,
    json_memory,
    know_users,
    memory_json,
    put,
    scope_row,
    slices,
    upsert_into,
    within,
)
from semmem.backends.sql.tables import LIVE, accesses, batches, dropped, erasures, versions, votes
from semmem.backends.sql.unlearnt import mark_forgotten
from semmem.memory import REPEATED, Memory, Scope
from semmem.ports.memory_records import Dropped, Uses, VoteRow

VOTES_MAX = 20
"""Beyond so many votes on a memory both counts are halved, so that opinions may change."""
THOUSANDTHS = 1000


class SqlHistory(JournalPart):
    """UseRecords, FeedbackRecords, and what else is kept of single memories."""

    @one_write
    def keep_version(self, conn: Connection, memory: Memory) -> None:
        """Beyond ``versions_max`` the oldest go. What is erased is not kept."""
        locks.users_shared(conn, [memory.user])
        scope = Scope(memory.user, memory.project, memory.agent, memory.session)
        if marks.is_forgotten(conn, scope, memory.said_at) or holds.is_forgotten(conn, scope, memory.id):
            return
        row = {**scope_row(scope), "memory_id": memory.id, "version": memory.version, "body": memory_json(memory)}
        insert_new(conn, versions, [row])
        this = and_(versions.c.user_id == memory.user, versions.c.memory_id == memory.id)
        newest_first = select(versions.c.version).where(this).order_by(versions.c.version.desc())
        too_old = newest_first.limit(1).offset(self._limits.versions_max).scalar_subquery()
        conn.execute(delete(versions).where(this, versions.c.version <= too_old))

    @one_read
    def versions(self, conn: Connection, scope: Scope, memory_id: str) -> list[Memory]:
        """Those of another user, project, agent or session than the scope names are not seen."""
        this = and_(within(versions, scope), versions.c.memory_id == memory_id)
        bodies = select(versions.c.body).where(this).order_by(versions.c.version)
        return [json_memory(body) for body in conn.execute(bodies).scalars()]

    @one_write
    def note_dropped(
        self, conn: Connection, scope: Scope, memory_id: str, reason: str, *, now: float, batch: str | None = None
    ) -> None:
        locks.users_shared(conn, [scope.user])
        if batch is not None and not holds.may_write(conn, batch, memory_id):
            return
        row = {"user_id": scope.user, "memory_id": memory_id, "reason": reason, "times": 1, "last_at": now}
        statement = upsert_into(conn.dialect.name, dropped).values(row)
        more = {"times": dropped.c.times + 1, "last_at": statement.excluded.last_at}
        conn.execute(statement.on_conflict_do_update(index_elements=["user_id", "memory_id", "reason"], set_=more))

    @one_read
    def dropped(self, conn: Connection, scope: Scope, memory_id: str) -> list[Dropped]:
        mine = and_(dropped.c.user_id == scope.user, dropped.c.memory_id == memory_id)
        rows = conn.execute(select(dropped).where(mine).order_by(dropped.c.reason))
        return [Dropped(row.reason, row.times, row.last_at) for row in rows]

    @one_read
    def said_again(self, conn: Connection, user: str) -> dict[str, float]:
        mine = and_(dropped.c.user_id == user, dropped.c.reason == REPEATED)
        return {row.memory_id: row.last_at for row in conn.execute(select(dropped).where(mine))}

    @one_write
    def forget_memories(
        self, conn: Connection, scope: Scope, memory_ids: Sequence[str], *, shuts_turns: bool = True
    ) -> int:
        """Bound to the scope like versions."""
        locks.user(conn, scope.user)
        for ids in slices(memory_ids if shuts_turns else []):
            mark_forgotten(conn, scope.user, ids)
        return _forget_memories(conn, scope, memory_ids)

    @one_write
    def record_uses(self, conn: Connection, uses: Sequence[tuple[str, str, Uses]]) -> None:
        """The uses of what is erased are not kept."""
        named = {user for user, _, _ in uses}
        locks.users_shared(conn, named)
        erased = marks.users_forgotten_at(conn, named)
        _add_uses(conn, [use for use in sorted(uses, key=_names) if use[2].last_at > erased.get(use[0], -math.inf)])

    @one_read
    def uses(self, conn: Connection, user: str) -> dict[str, Uses]:
        rows = conn.execute(select(accesses).where(accesses.c.user_id == user))
        return {row.memory_id: Uses(row.used, row.last_at) for row in rows}

    @quiet_write
    def add_votes(
        self,
        conn: Connection,
        user: str,
        memories: Mapping[str, float],
        *,
        helpful: bool,
        now: float,
        entries_max: int,
    ) -> None:
        """What is erased gets no vote."""
        locks.alone_with(conn, locks.VOTES)
        locks.users_shared(conn, [user])
        erased_at = marks.users_forgotten_at(conn, [user]).get(user)
        if erased_at is not None and now <= erased_at:
            return
        know_users(conn, [user])
        number = _next_number(conn, now)
        for each, (memory_id, said_at) in enumerate(sorted(memories.items())):
            up, down = _counts(conn, user, memory_id, said_at)
            up, down = up + helpful, down + (not helpful)
            if up + down > VOTES_MAX:
                up, down = up // 2, down // 2
            row = {"user_id": user, "memory_id": memory_id, "up": up, "down": down}
            row |= {"last_at": now, "number": number + each}
            put(conn, votes, row)
        surplus = conn.execute(select(func.count()).select_from(votes)).scalar_one() - entries_max
        if surplus > 0:
            oldest = select(votes.c.number).order_by(votes.c.number).limit(surplus)
            conn.execute(delete(votes).where(votes.c.number.in_(oldest)))

    @one_read
    def votes_since(self, conn: Connection, number: int) -> list[VoteRow]:
        found = conn.execute(select(votes).where(votes.c.number > number).order_by(votes.c.number))
        return [VoteRow(row.user_id, row.memory_id, row.up, row.down, row.last_at, row.number) for row in found]


def _names(use: tuple[str, str, Uses]) -> tuple[str, str]:
    """One order for everybody, so that two who count the same at the same time do not wait in a circle."""
    return use[0], use[1]


def _forget_memories(conn: Connection, scope: Scope, memory_ids: Sequence[str]) -> int:
    """Earlier versions and statistics; how many versions. What a batch holds in its hands it may not write again."""
    number = 0
    for ids in slices(memory_ids):
        live = select(batches.c.id).where(LIVE, batches.c.user_id == scope.user)
        for batch_id in conn.execute(live).scalars():
            rows = [{"batch_id": batch_id, "memory_id": memory_id, "user_id": scope.user} for memory_id in ids]
            insert_new(conn, erasures, rows)
        number += conn.execute(delete(versions).where(within(versions, scope), versions.c.memory_id.in_(ids))).rowcount
        for table in (accesses, dropped, votes):
            conn.execute(delete(table).where(table.c.user_id == scope.user, table.c.memory_id.in_(ids)))
    return number


def _add_uses(conn: Connection, uses: Sequence[tuple[str, str, Uses]]) -> None:
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


def _next_number(conn: Connection, now: float) -> int:
    """Also above those that have gone with their memories, which other processes may have read."""
    newest = conn.execute(select(func.max(votes.c.number))).scalar() or 0
    return max(newest + 1, int(now * THOUSANDTHS))


def _counts(conn: Connection, user: str, memory_id: str, said_at: float) -> tuple[int, int]:
    this = select(votes).where(votes.c.user_id == user, votes.c.memory_id == memory_id)
    row = conn.execute(this).one_or_none()
    return (0, 0) if row is None or row.last_at < said_at else (row.up, row.down)
