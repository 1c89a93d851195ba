"""Turns that are learnt from at once: how far each has come, and which memories it was made into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, or_, select, tuple_, update

from semmem.backends.sql import locks
from semmem.backends.sql.part import JournalPart, one_read, one_write
from semmem.backends.sql.rows import row_turn, upsert_into
from semmem.backends.sql.tables import (
    ANSWER_LOST,
    ANSWERED,
    ERASED,
    OPEN,
    REFUSED,
    WAITING,
    provisional,
    turns,
    versions,
)
from semmem.memory import Turn
from semmem.ports.provisional import Noted, TurnState

NOTED, FORGOTTEN, WITHDRAWN = range(3)
"""What became of a memory: nothing yet; somebody had it erased, or took it back; its batch removed it, and what it said
is kept as a version until the turn is pruned."""
READ = ""
"""In place of a memory's id: the turn was learnt from at once."""


class SqlProvisional(JournalPart):
    """ProvisionalRecords."""

    @one_read
    def turn_state(self, conn: Connection, turn_id: str) -> tuple[TurnState, Turn | None]:
        row = conn.execute(select(turns).where(turns.c.id == turn_id)).first()
        if row is None or (row.opened_at is None and row.closing != ERASED):
            return TurnState.MISSING, None
        if row.closing == ERASED:
            return TurnState.DONE, None
        return _state(conn, row), row_turn(row)

    @one_read
    def left(
        self, conn: Connection, *, since: float, before: float, unanswered: bool, limit: int
    ) -> list[tuple[str, float]]:
        ended = turns.c.opened_at if unanswered else turns.c.closed_at
        closings = (OPEN, ANSWER_LOST, ANSWERED) if unanswered else (ANSWER_LOST, ANSWERED)
        read = select(provisional.c.turn_id).where(provisional.c.turn_id == turns.c.id, provisional.c.memory_id == READ)
        these = and_(WAITING, turns.c.opened_at >= since, ended < before, turns.c.closing.in_(closings))
        rows = conn.execute(
            select(turns.c.id, ended).where(these, ~read.exists()).order_by(turns.c.opened_at).limit(limit)
        )
        return [(turn_id, at) for turn_id, at in rows]

    @one_write
    def note_provisional(self, conn: Connection, turn_id: str, memory_ids: Sequence[str]) -> bool:
        locks.user_of_turn(conn, turn_id)
        row = conn.execute(select(turns).where(turns.c.id == turn_id)).first()
        if row is None or row.opened_at is None:
            return False
        waits = row.done_at is None
        if waits or row.closing == REFUSED:
            _note(conn, row, memory_ids)
        return waits

    @one_write
    def note_read(self, conn: Connection, turn_id: str) -> None:
        locks.user_of_turn(conn, turn_id)
        row = conn.execute(select(turns).where(turns.c.id == turn_id, turns.c.done_at.is_(None))).first()
        if row is not None and row.opened_at is not None:
            _note(conn, row, [READ])

    @one_read
    def provisional(self, conn: Connection, turn_ids: Sequence[str]) -> list[Noted]:
        mine = and_(provisional.c.turn_id.in_(turn_ids), provisional.c.memory_id != READ)
        rows = conn.execute(select(provisional).where(mine))
        return [Noted(row.turn_id, row.memory_id, row.state == FORGOTTEN) for row in rows]

    @one_read
    def overdue(self, conn: Connection, user: str, *, limit: int) -> list[str]:
        mine = and_(provisional.c.user_id == user, provisional.c.memory_id != READ, provisional.c.state != WITHDRAWN)
        over = or_(turns.c.done_at.is_not(None), turns.c.closing == REFUSED)
        ids = select(provisional.c.turn_id).join(turns, turns.c.id == provisional.c.turn_id).where(mine, over)
        return list(conn.execute(ids.distinct().limit(limit)).scalars())

    @one_write
    def settle_provisional(self, conn: Connection, turn_ids: Sequence[str]) -> None:
        """As in the port. A turn that waits again, since its batch was ended, keeps its notes for the next one."""
        over = and_(provisional.c.turn_id.in_(turn_ids), provisional.c.memory_id != READ)
        waits = select(turns.c.id).where(turns.c.id == provisional.c.turn_id, WAITING).exists()
        conn.execute(delete(provisional).where(over, provisional.c.state != WITHDRAWN, ~waits))

    @one_write
    def note_withdrawn(self, conn: Connection, turn_id: str, memory_id: str) -> None:
        """As in the port. What somebody had erased meanwhile stays known as that."""
        this = and_(provisional.c.turn_id == turn_id, provisional.c.memory_id == memory_id)
        conn.execute(update(provisional).where(this, provisional.c.state == NOTED).values(state=WITHDRAWN))

    @one_write
    def shut(self, conn: Connection, turn_id: str, memory_id: str) -> None:
        """As in the port. A turn that waits may be of a batch that is tried again, and noted nothing at once."""
        locks.user_of_turn(conn, turn_id)
        row = conn.execute(select(turns).where(turns.c.id == turn_id, turns.c.done_at.is_(None))).first()
        if row is not None and row.opened_at is not None:
            _note(conn, row, [memory_id])
        this = and_(provisional.c.turn_id == turn_id, provisional.c.memory_id == memory_id)
        conn.execute(update(provisional).where(this).values(state=FORGOTTEN))


def mark_forgotten(conn: Connection, user: str, memory_ids: Sequence[str]) -> None:
    """The turns that these memories were made of must not bring them back."""
    mine = and_(provisional.c.user_id == user, provisional.c.memory_id.in_(memory_ids))
    conn.execute(update(provisional).where(mine).values(state=FORGOTTEN))


def drop_notes(conn: Connection, these_turns: ColumnElement[bool]) -> None:
    """Of turns that are erased not even the ids of their memories stay."""
    conn.execute(delete(provisional).where(provisional.c.turn_id.in_(select(turns.c.id).where(these_turns))))


def prune_notes(conn: Connection) -> None:
    """Those whose turn is no longer here, and what the memories said that its batch removed."""
    gone = ~select(turns.c.id).where(turns.c.id == provisional.c.turn_id).exists()
    withdrawn = select(provisional.c.user_id, provisional.c.memory_id).where(gone, provisional.c.state == WITHDRAWN)
    conn.execute(delete(versions).where(tuple_(versions.c.user_id, versions.c.memory_id).in_(withdrawn)))
    conn.execute(delete(provisional).where(gone))


def _state(conn: Connection, row: Row[Any]) -> TurnState:
    if row.closing == REFUSED:
        return TurnState.REFUSED
    if row.done_at is not None:
        return TurnState.DONE
    read = and_(provisional.c.turn_id == row.id, provisional.c.memory_id == READ)
    if conn.execute(select(provisional.c.turn_id).where(read)).first() is not None:
        return TurnState.READ
    return TurnState.OPEN if row.closing == OPEN else TurnState.CLOSED


def _note(conn: Connection, turn: Row[Any], memory_ids: Sequence[str]) -> None:
    rows = [{"turn_id": turn.id, "memory_id": memory_id, "user_id": turn.user_id} for memory_id in memory_ids]
    if rows:
        conn.execute(upsert_into(conn.dialect.name, provisional).on_conflict_do_nothing(), rows)
