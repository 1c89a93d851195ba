"""What is kept beside memories: earlier versions, what was not stored, and uses."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sqlalchemy import Connection, and_, case, delete, select

from semmem.backends.sql import holds, locks, marks
from semmem.backends.sql.part import JournalPart, one_read, one_write
from semmem.backends.sql.provisional import mark_forgotten
from semmem.backends.sql.rows import json_memory, memory_json, scope_row, upsert_into, within
from semmem.backends.sql.tables import LIVE, accesses, batches, dropped, erasures, versions, votes
from semmem.backends.sql.users import know_users
from semmem.memory import REPEATED, Memory, Scope
from semmem.ports.history import Dropped, Uses

IDS_MAX = 500
"""Ids in one statement: SQLite takes some thousands of parameters."""


class SqlHistory(JournalPart):
    """VersionHistory, UseRecords, UseStatistics, and what else is kept of single memories."""

    @one_write
    def keep_version(self, conn: Connection, memory: Memory) -> None:
        """As in the port. Beyond ``versions_max`` the oldest go. What is erased is not kept."""
        locks.users_shared(conn, [memory.user])
        scope = Scope(memory.user, memory.project, memory.agent, memory.session)
        if marks.is_forgotten(conn, scope, memory.said_at) or holds.is_forgotten(conn, scope, memory.id):
            return
        row = {**scope_row(scope), "memory_id": memory.id, "version": memory.version, "body": memory_json(memory)}
        conn.execute(upsert_into(conn.dialect.name, versions).values(row).on_conflict_do_nothing())
        this = and_(versions.c.user_id == memory.user, versions.c.memory_id == memory.id)
        newest_first = select(versions.c.version).where(this).order_by(versions.c.version.desc())
        too_old = newest_first.limit(1).offset(self._limits.versions_max).scalar_subquery()
        conn.execute(delete(versions).where(this, versions.c.version <= too_old))

    @one_read
    def versions(self, conn: Connection, scope: Scope, memory_id: str) -> list[Memory]:
        """As in the port. Those of another user, project, agent or session than the scope names are not seen."""
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
    def forget_versions(self, conn: Connection, scope: Scope, memory_id: str) -> int:
        """As in the port. Bound to the scope like versions."""
        locks.user(conn, scope.user)
        return _forget_memories(conn, scope, [memory_id])

    @one_write
    def forget_memories(
        self, conn: Connection, scope: Scope, memory_ids: Sequence[str], *, shuts_turns: bool = True
    ) -> int:
        """``forget_versions`` for many, in one transaction."""
        locks.user(conn, scope.user)
        for start in range(0, len(memory_ids) if shuts_turns else 0, IDS_MAX):
            mark_forgotten(conn, scope.user, memory_ids[start : start + IDS_MAX])
        return _forget_memories(conn, scope, memory_ids)

    @one_write
    def record_uses(self, conn: Connection, uses: Sequence[tuple[str, str, Uses]]) -> None:
        """As in the port. The uses of what is erased are not kept."""
        named = {user for user, _, _ in uses}
        locks.users_shared(conn, named)
        erased = marks.users_forgotten_at(conn, named)
        _add_uses(conn, [use for use in sorted(uses, key=_names) if use[2].last_at > erased.get(use[0], -math.inf)])

    @one_read
    def uses(self, conn: Connection, user: str) -> dict[str, Uses]:
        rows = conn.execute(select(accesses).where(accesses.c.user_id == user))
        return {row.memory_id: Uses(row.used, row.last_at) for row in rows}


def _names(use: tuple[str, str, Uses]) -> tuple[str, str]:
    """One order for everybody, so that two who count the same at the same time do not wait in a circle."""
    return use[0], use[1]


def _forget_memories(conn: Connection, scope: Scope, memory_ids: Sequence[str]) -> int:
    """Earlier versions and statistics; how many versions. What a batch holds in its hands it may not write again."""
    number = 0
    for start in range(0, len(memory_ids), IDS_MAX):
        ids = memory_ids[start : start + IDS_MAX]
        live = select(batches.c.id).where(LIVE, batches.c.user_id == scope.user)
        for batch_id in conn.execute(live).scalars():
            rows = [{"batch_id": batch_id, "memory_id": memory_id, "user_id": scope.user} for memory_id in ids]
            conn.execute(upsert_into(conn.dialect.name, erasures).on_conflict_do_nothing(), rows)
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
