"""Votes on memories: helpful or not."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, delete, func, select

from semmem.backends.sql import locks, marks
from semmem.backends.sql.part import JournalPart, one_look, one_read
from semmem.backends.sql.rows import upsert_into
from semmem.backends.sql.tables import votes
from semmem.backends.sql.users import know_users
from semmem.ports.feedback import VoteRow

VOTES_MAX = 20
"""Beyond so many votes on a memory both counts are halved, so that opinions may change."""
THOUSANDTHS = 1000


class SqlFeedback(JournalPart):
    """FeedbackRecords."""

    @one_look
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
        """As in the port. What is erased gets no vote."""
        locks.votes(conn)
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
            statement = upsert_into(conn.dialect.name, votes).values(row)
            conn.execute(statement.on_conflict_do_update(index_elements=["user_id", "memory_id"], set_=row))
        surplus = conn.execute(select(func.count()).select_from(votes)).scalar_one() - entries_max
        if surplus > 0:
            oldest = select(votes.c.number).order_by(votes.c.number).limit(surplus)
            conn.execute(delete(votes).where(votes.c.number.in_(oldest)))

    @one_read
    def votes_since(self, conn: Connection, number: int) -> list[VoteRow]:
        found = conn.execute(select(votes).where(votes.c.number > number).order_by(votes.c.number))
        return [VoteRow(row.user_id, row.memory_id, row.up, row.down, row.last_at, row.number) for row in found]


def _next_number(conn: Connection, now: float) -> int:
    """Also above those that have gone with their memories, which other processes may have read."""
    newest = conn.execute(select(func.max(votes.c.number))).scalar() or 0
    return max(newest + 1, int(now * THOUSANDTHS))


def _counts(conn: Connection, user: str, memory_id: str, said_at: float) -> tuple[int, int]:
    this = select(votes).where(votes.c.user_id == user, votes.c.memory_id == memory_id)
    row = conn.execute(this).one_or_none()
    return (0, 0) if row is None or row.last_at < said_at else (row.up, row.down)
