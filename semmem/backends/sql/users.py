"""Who may have memories."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, delete, select, update

from semmem.backends.sql import locks
from semmem.backends.sql.part import JournalPart, one_read, one_write
from semmem.backends.sql.provisional import WITHDRAWN
from semmem.backends.sql.rows import upsert_into
from semmem.backends.sql.tables import (
    WAITING,
    accesses,
    conversations,
    dropped,
    provisional,
    session_states,
    shown_blocks,
    turns,
    users,
    versions,
    votes,
)

TURNS_PER_USER = 20
"""So many turns are read for each user who is looked for, since active users say many things."""
TURNS_MAX = 200_000


class SqlUsers(JournalPart):
    """Users, and when their memories were last gone through."""

    @one_write
    def register_user(self, conn: Connection, user: str) -> None:
        know_users(conn, [user])

    @one_read
    def users_due(self, conn: Connection, *, maintained_before: float, limit: int) -> list[str]:
        due = select(users.c.user_id).where(users.c.kept_at < maintained_before).order_by(users.c.kept_at).limit(limit)
        return list(conn.execute(due).scalars())

    @one_read
    def users_after(self, conn: Connection, user: str, *, limit: int) -> list[str]:
        """As in the port. Of an erased turn nobody knows whose it was: its user is empty."""
        known = (
            select(table.c.user_id).where(table.c.user_id > user).distinct().order_by(table.c.user_id).limit(limit)
            for table in (users, turns, conversations, session_states, shown_blocks)
        )
        return sorted({name for each in known for name in conn.execute(each).scalars()})[:limit]

    @one_read
    def users_active(self, conn: Connection, *, limit: int) -> list[str]:
        """As in the port. Read along the indexes, so that it takes as long in a large journal as in a small one."""
        lately = (
            select(turns.c.user_id).where(WAITING).order_by(turns.c.opened_at.desc()),
            select(turns.c.user_id).where(turns.c.done_at.is_not(None)).order_by(turns.c.done_at.desc()),
        )
        found: dict[str, None] = {}
        for query in lately:
            for user in conn.execute(query.limit(min(limit * TURNS_PER_USER, TURNS_MAX))).scalars():
                if len(found) >= limit:
                    return list(found)
                if user:  # of an erased turn nobody knows whose it was
                    found[user] = None
        return list(found)

    @one_write
    def mark_maintained(self, conn: Connection, user: str, *, now: float) -> None:
        conn.execute(update(users).where(users.c.user_id == user).values(kept_at=now))

    @one_read
    def recorded_ids(self, conn: Connection, user: str) -> set[str]:
        """As in the port. What its batch removed is kept as a version on purpose, until its turn is pruned."""
        withdrawn = select(provisional.c.memory_id).where(
            provisional.c.user_id == user, provisional.c.state == WITHDRAWN
        )
        found = (
            select(table.c.memory_id).where(table.c.user_id == user, table.c.memory_id.not_in(withdrawn))
            for table in (versions, accesses, dropped, votes)
        )
        return {memory_id for each in found for memory_id in conn.execute(each).scalars()}

    @one_write
    def forget_user(self, conn: Connection, user: str) -> None:
        locks.user(conn, user)
        for table in (users, accesses, dropped, votes, versions):
            conn.execute(delete(table).where(table.c.user_id == user))


def know_users(conn: Connection, names: Iterable[str]) -> None:
    if rows := [{"user_id": name} for name in dict.fromkeys(names)]:
        conn.execute(upsert_into(conn.dialect.name, users).on_conflict_do_nothing(), rows)
