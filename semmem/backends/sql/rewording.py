"""Taking words out of turns from which no batch has learnt yet, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, and_, delete, or_, select, update

from semmem.backends.sql import locks
from semmem.backends.sql.part import JournalPart, one_read, one_write
from semmem.backends.sql.rows import row_turn, upsert_into
from semmem.backends.sql.tables import IN_BATCH, LIVE, WAITING, batches, erasures, turns
from semmem.memory import Turn


class SqlRewording(JournalPart):
    """UnlearntTurns."""

    @one_read
    def unlearnt(self, conn: Connection, user: str, *, until: float, limit: int) -> list[Turn]:
        mine = and_(turns.c.user_id == user, turns.c.opened_at <= until, or_(WAITING, IN_BATCH))
        newest_first = select(turns).where(mine).order_by(turns.c.opened_at.desc()).limit(limit)
        return [row_turn(row) for row in conn.execute(newest_first)]

    @one_write
    def reword(
        self, conn: Connection, user: str, edits: Mapping[str, tuple[str, str]], memory_ids: Sequence[str]
    ) -> int:
        """As in the port. With a batch goes what an earlier try of it has extracted."""
        locks.user(conn, user)
        torn: set[str] = set()
        for turn_id, (old, new) in edits.items():
            this = and_(turns.c.id == turn_id, turns.c.user_id == user)
            same = and_(this, turns.c.user_text == old, turns.c.done_at.is_(None))
            torn |= set(conn.execute(select(turns.c.batch_id).where(same, IN_BATCH)).scalars())
            conn.execute(update(turns).where(same).values(user_text=new))
        for batch_id in torn:  # as for a batch that goes on
            rows = [{"batch_id": batch_id, "memory_id": memory_id, "user_id": user} for memory_id in memory_ids]
            conn.execute(upsert_into(conn.dialect.name, erasures).on_conflict_do_nothing(), rows)
        return end_batches(conn, sorted(torn))


def end_batches(conn: Connection, batch_ids: Sequence[str]) -> int:
    """Whoever learns from them may write no more; what they hold waits for another batch. How many were live."""
    live = list(conn.execute(select(batches.c.id).where(LIVE, batches.c.id.in_(batch_ids))).scalars())
    conn.execute(update(turns).where(turns.c.batch_id.in_(live), IN_BATCH).values(batch_id=None))
    conn.execute(delete(batches).where(batches.c.id.in_(live)))
    return len(live)
