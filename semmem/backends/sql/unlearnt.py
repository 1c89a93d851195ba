"""Turns from which no batch has learnt yet: which memories they were made into at once, taking words out of them, and
what another journal takes over when this one's process will not come back (a scaled-down replica's)."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, func, or_, select, tuple_

from semmem.backends.sql import locks, tables
from semmem.backends.sql.database import JournalPart, one_read, one_write
from semmem.backends.sql.memory_records import is_live
from semmem.backends.sql.rows import Transaction, json_memory, row_turn
from semmem.backends.sql.tables import (
    ERASED,
    FORGOTTEN,
    IN_BATCH,
    NOTED,
    OPEN,
    REFUSED,
    WAITING,
    WHOLLY,
    WITHDRAWN,
    batches,
    provisional,
    turns,
    versions,
)
from semmem.memory import Memory, Turn, TurnEnding
from semmem.ports.learning import Noted, TurnState
from semmem.ports.recording import TurnClosed

READ = ""
"""In place of a memory's id: the turn was learnt from at once."""
_ENDINGS = {number: TurnEnding(word) for word, number in tables.CLOSING.items()}


class SqlUnlearnt(JournalPart):
    """ProvisionalRecords, UnlearntTurns and AdoptedJournal."""

    @one_read
    def turn_state(self, conn: Transaction, turn_id: str) -> tuple[TurnState, Turn | None]:
        was_read = select(provisional.c.turn_id).where(_this(turn_id, READ)).exists().label("was_read")
        row = conn.execute(select(turns, was_read).where(turns.c.id == turn_id)).one_or_none()
        if row is None or (row.opened_at is None and row.closing != ERASED):
            return TurnState.MISSING, None
        if row.closing == ERASED:
            return TurnState.DONE, None
        if row.closing == REFUSED:
            state = TurnState.REFUSED
        elif row.done_at is not None:
            state = TurnState.DONE
        elif row.was_read:
            state = TurnState.READ
        else:
            state = TurnState.OPEN if row.closing == OPEN else TurnState.CLOSED
        return state, row_turn(row)

    @one_read
    def left(
        self, conn: Transaction, *, since: float, before: float, unanswered: bool, limit: int
    ) -> list[tuple[str, float]]:
        ended = turns.c.opened_at if unanswered else turns.c.closed_at
        closings = (OPEN, tables.ANSWER_LOST, tables.ANSWERED) if unanswered else (tables.ANSWER_LOST, tables.ANSWERED)
        read = select(provisional.c.turn_id).where(provisional.c.turn_id == turns.c.id, provisional.c.memory_id == READ)
        these = and_(WAITING, turns.c.opened_at >= since, ended < before, turns.c.closing.in_(closings))
        found = select(turns.c.id, ended).where(these, ~read.exists()).order_by(turns.c.opened_at).limit(limit)
        return [(turn_id, at) for turn_id, at in conn.execute(found)]

    @one_write
    def note_provisional(self, conn: Transaction, turn_id: str, memory_ids: Sequence[str]) -> bool:
        locks.user_of(conn, turns, turn_id)
        row = conn.row_of(turns, turns.c.id == turn_id)
        if row is None or row.opened_at is None:
            return False
        waits = row.done_at is None
        if waits or row.closing == REFUSED:
            _note(conn, row, memory_ids)
        return waits

    @one_write
    def note_read(self, conn: Transaction, turn: Turn, *, wholly: bool, hold: str = "") -> None:
        same = turns.c.user_text == turn.user_text
        wholly = wholly and (not hold or is_live(conn, hold))
        _note_if_it_waits(conn, turn.id, READ, same, state=WHOLLY if wholly else NOTED)

    @one_read
    def read_wholly(self, conn: Transaction, turn_ids: Sequence[str]) -> frozenset[str]:
        these = and_(
            provisional.c.turn_id.in_(turn_ids), provisional.c.memory_id == READ, provisional.c.state == WHOLLY
        )
        return frozenset(conn.execute(select(provisional.c.turn_id).where(these)).scalars())

    @one_read
    def provisional(self, conn: Transaction, turn_ids: Sequence[str]) -> list[Noted]:
        rows = conn.rows_of(provisional, provisional.c.turn_id.in_(turn_ids), provisional.c.memory_id != READ)
        return [Noted(row.turn_id, row.memory_id, row.state == FORGOTTEN) for row in rows]

    @one_read
    def overdue(self, conn: Transaction, user: str, *, limit: int) -> list[str]:
        mine = and_(provisional.c.user_id == user, provisional.c.memory_id != READ, provisional.c.state != WITHDRAWN)
        over = or_(turns.c.done_at.is_not(None), turns.c.closing == REFUSED)
        ids = select(provisional.c.turn_id).join(turns, turns.c.id == provisional.c.turn_id).where(mine, over)
        return list(conn.execute(ids.distinct().limit(limit)).scalars())

    @one_write
    def settle_provisional(self, conn: Transaction, turn_ids: Sequence[str]) -> None:
        """A turn that waits again, since its batch was ended, keeps its notes for the next one."""
        over = and_(provisional.c.turn_id.in_(turn_ids), provisional.c.memory_id != READ)
        waits = select(turns.c.id).where(turns.c.id == provisional.c.turn_id, WAITING).exists()
        conn.remove(provisional, over, provisional.c.state != WITHDRAWN, ~waits)

    @one_write
    def note_withdrawn(self, conn: Transaction, turn_id: str, memory_id: str) -> None:
        """What somebody had erased meanwhile stays known as that."""
        conn.change(provisional, _this(turn_id, memory_id), provisional.c.state == NOTED, state=WITHDRAWN)

    @one_write
    def shut(self, conn: Transaction, turn_id: str, memory_id: str) -> None:
        """A turn that waits may be of a batch that is tried again, and noted nothing at once."""
        _note_if_it_waits(conn, turn_id, memory_id)
        conn.change(provisional, _this(turn_id, memory_id), state=FORGOTTEN)

    @one_read
    def unlearnt(self, conn: Transaction, user: str, *, until: float, limit: int) -> list[Turn]:
        mine = and_(turns.c.user_id == user, turns.c.opened_at <= until, or_(WAITING, IN_BATCH))
        newest_first = select(turns).where(mine).order_by(turns.c.opened_at.desc()).limit(limit)
        return [row_turn(row) for row in conn.execute(newest_first)]

    @one_write
    def reword(
        self, conn: Transaction, user: str, edits: Mapping[str, tuple[str, str]], memory_ids: Sequence[str]
    ) -> int:
        """With a batch goes what an earlier try of it has extracted. What is left of the words is read by a batch."""
        locks.user(conn, user)
        torn: set[str] = set()
        for turn_id, (old, new) in edits.items():
            this = and_(turns.c.id == turn_id, turns.c.user_id == user)
            same = and_(this, turns.c.user_text == old, turns.c.done_at.is_(None))
            torn |= set(conn.execute(select(turns.c.batch_id).where(same, IN_BATCH)).scalars())
            conn.change(turns, same, user_text=new)
            conn.change(provisional, _this(turn_id, READ), state=NOTED)
        for batch_id in torn:  # as for a batch that goes on
            rows = [{"batch_id": batch_id, "memory_id": memory_id, "user_id": user} for memory_id in memory_ids]
            conn.insert_new(tables.erasures, rows)
        return end_batches(conn, sorted(torn))

    @one_read
    def leased_until(self, conn: Transaction) -> float:
        rests = select(tables.resting.c.batch_id).where(tables.resting.c.batch_id == batches.c.id).exists()
        return conn.execute(select(func.max(batches.c.claimable_at)).where(tables.LIVE, ~rests)).scalar() or 0.0

    @one_read
    def unlearnt_halves(
        self, conn: Transaction, *, after: str, limit: int
    ) -> tuple[list[Turn], list[TurnClosed], str | None]:
        waits = and_(turns.c.done_at.is_(None), turns.c.closing != ERASED, turns.c.id > after)
        rows = conn.execute(select(turns).where(waits).order_by(turns.c.id).limit(limit)).all()
        named = select(tables.answers.c.turn_id, tables.answers.c.id).where(
            tables.answers.c.turn_id.in_([row.id for row in rows])
        )
        names = {row.turn_id: row.id for row in conn.execute(named)}
        opened = [row_turn(row) for row in rows if row.opened_at is not None]
        closed = [
            TurnClosed(r.id, _ENDINGS[r.closing], r.closed_at, r.answer, r.finish_reason, names.get(r.id))
            for r in rows
            if r.closing != OPEN
        ]
        return opened, closed, rows[-1].id if rows else None

    @one_write
    def mark_adopted(self, conn: Transaction, turn_ids: Sequence[str], *, now: float) -> None:
        these = and_(turns.c.id.in_(turn_ids), turns.c.done_at.is_(None))
        in_batches = conn.execute(select(turns.c.batch_id).where(these, turns.c.batch_id.is_not(None)).distinct())
        end_batches(conn, list(in_batches.scalars()))
        conn.change(turns, these, done_at=now)

    @one_read
    def kept_versions(self, conn: Transaction, *, offset: int, limit: int) -> list[Memory]:
        key = (versions.c.user_id, versions.c.memory_id, versions.c.version)
        page = select(versions.c.body).order_by(*key).offset(offset).limit(limit)
        return [json_memory(body) for body in conn.execute(page).scalars()]

    @one_read
    def named_users(self, conn: Transaction) -> list[str]:
        return list(conn.execute(select(tables.users.c.user_id).order_by(tables.users.c.user_id)).scalars())


def _this(turn_id: str, memory_id: str) -> ColumnElement[bool]:
    return and_(provisional.c.turn_id == turn_id, provisional.c.memory_id == memory_id)


def prune_notes(conn: Transaction) -> None:
    """Those whose turn is no longer here, and what the memories said that its batch removed."""
    gone = ~select(turns.c.id).where(turns.c.id == provisional.c.turn_id).exists()
    withdrawn = select(provisional.c.user_id, provisional.c.memory_id).where(gone, provisional.c.state == WITHDRAWN)
    conn.remove(versions, tuple_(versions.c.user_id, versions.c.memory_id).in_(withdrawn))
    conn.remove(provisional, gone)


def _note_if_it_waits(
    conn: Transaction, turn_id: str, memory_id: str, *also: ColumnElement[bool], state: int = NOTED
) -> None:
    """From here on the caller is alone with who said it."""
    locks.user_of(conn, turns, turn_id)
    row = conn.row_of(turns, turns.c.id == turn_id, turns.c.done_at.is_(None), *also)
    if row is not None and row.opened_at is not None:
        _note(conn, row, [memory_id], state)


def _note(conn: Transaction, turn: Row[Any], memory_ids: Sequence[str], state: int = NOTED) -> None:
    each = {"turn_id": turn.id, "user_id": turn.user_id, "state": state}
    conn.insert_new(provisional, [each | {"memory_id": memory_id} for memory_id in memory_ids])


def end_batches(conn: Transaction, batch_ids: Sequence[str]) -> int:
    """Whoever learns from them may write no more; what they hold waits for another batch. How many were live."""
    live = list(conn.execute(select(batches.c.id).where(tables.LIVE, batches.c.id.in_(batch_ids))).scalars())
    conn.change(turns, turns.c.batch_id.in_(live), IN_BATCH, batch_id=None)
    conn.remove(batches, batches.c.id.in_(live))
    return len(live)
