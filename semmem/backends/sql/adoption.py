"""What another journal takes over from this one, whose process will not come back: a scaled-down replica's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, and_, func, select, update

from semmem.backends.sql.part import JournalPart, one_read, one_write
from semmem.backends.sql.rewording import end_batches
from semmem.backends.sql.rows import json_memory, row_turn
from semmem.backends.sql.tables import (
    CLOSING,
    ERASED,
    LIVE,
    OPEN,
    answers,
    batches,
    resting,
    turns,
    users,
    versions,
)
from semmem.memory import Memory, Turn, TurnEnding
from semmem.ports.recording import TurnClosed

_ENDINGS = {number: TurnEnding(word) for word, number in CLOSING.items()}


class SqlAdoption(JournalPart):
    """AdoptedJournal."""

    @one_read
    def leased_until(self, conn: Connection) -> float:
        rests = select(resting.c.batch_id).where(resting.c.batch_id == batches.c.id).exists()
        return conn.execute(select(func.max(batches.c.claimable_at)).where(LIVE, ~rests)).scalar() or 0.0

    @one_read
    def unlearnt_halves(
        self, conn: Connection, *, after: str, limit: int
    ) -> tuple[list[Turn], list[TurnClosed], str | None]:
        waits = and_(turns.c.done_at.is_(None), turns.c.closing != ERASED, turns.c.id > after)
        rows = conn.execute(select(turns).where(waits).order_by(turns.c.id).limit(limit)).all()
        named = select(answers.c.turn_id, answers.c.id).where(answers.c.turn_id.in_([row.id for row in rows]))
        names = {row.turn_id: row.id for row in conn.execute(named)}
        opened = [row_turn(row) for row in rows if row.opened_at is not None]
        closed = [_closed(row, names.get(row.id)) for row in rows if row.closing != OPEN]
        return opened, closed, rows[-1].id if rows else None

    @one_write
    def mark_adopted(self, conn: Connection, turn_ids: Sequence[str], *, now: float) -> None:
        these = and_(turns.c.id.in_(turn_ids), turns.c.done_at.is_(None))
        in_batches = conn.execute(select(turns.c.batch_id).where(these, turns.c.batch_id.is_not(None)).distinct())
        end_batches(conn, list(in_batches.scalars()))
        conn.execute(update(turns).where(these).values(done_at=now))

    @one_read
    def kept_versions(self, conn: Connection, *, offset: int, limit: int) -> list[Memory]:
        key = (versions.c.user_id, versions.c.memory_id, versions.c.version)
        page = select(versions.c.body).order_by(*key).offset(offset).limit(limit)
        return [json_memory(body) for body in conn.execute(page).scalars()]

    @one_read
    def named_users(self, conn: Connection) -> list[str]:
        return list(conn.execute(select(users.c.user_id).order_by(users.c.user_id)).scalars())


def _closed(row: Row[Any], answer_id: str | None) -> TurnClosed:
    return TurnClosed(row.id, _ENDINGS[row.closing], row.closed_at, row.answer, row.finish_reason, answer_id)
