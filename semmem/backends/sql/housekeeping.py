"""What keeps the journal small, and says how full it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, delete, func, select

from semmem.backends.sql import marks, messages
from semmem.backends.sql.part import JournalPart, one_read, one_write
from semmem.backends.sql.provisional import prune_notes
from semmem.backends.sql.states import prune_states
from semmem.backends.sql.tables import (
    IN_BATCH,
    LIVE,
    LONELY,
    REFUSED,
    WAITING,
    answers,
    batches,
    journal_schema,
    resting,
    session_drifts,
    session_ends,
    session_pasts,
    turns,
)


def _counts(**rows: ColumnElement[bool]) -> Select[Any]:
    """One row: how many turns there are of each, by name."""
    return select(
        *(select(func.count()).select_from(turns).where(of).scalar_subquery().label(n) for n, of in rows.items())
    )


_DONE = turns.c.done_at.is_not(None)
_COUNTS = _counts(
    open=and_(WAITING, turns.c.closed_at.is_(None)),
    ready=and_(WAITING, turns.c.closed_at.is_not(None)),
    leased=IN_BATCH,
    done=and_(_DONE, turns.c.closing < REFUSED),
    refused=and_(_DONE, turns.c.closing == REFUSED),
    lonely=LONELY,
)


class SqlHousekeeping(JournalPart):
    """Housekeeping and Purgeable."""

    async def prune(self, *, done_before: float) -> int:
        """As in the port, in transactions of ``prune_rows_max`` rows."""
        number = await self._prune(lambda conn: _prune_turns(conn, done_before, self._limits.prune_rows_max))
        await self._prune(lambda conn: messages.prune_said(conn, done_before, self._limits.prune_rows_max))
        await self._prune_leftovers(done_before)
        return number

    async def _prune(self, rows: Callable[[Connection], int]) -> int:
        number = 0
        while True:
            pruned = await self._database.write(rows)
            number += pruned
            if pruned < self._limits.prune_rows_max:
                return number

    @one_write
    def _prune_leftovers(self, conn: Connection, done_before: float) -> None:
        """Finished batches, names of answers whose turn is gone, and marks of sessions of which nothing waits any
        more."""
        gone = ~select(turns.c.id).where(turns.c.id == answers.c.turn_id).exists()
        conn.execute(delete(answers).where(answers.c.answered_at < done_before, gone))
        conn.execute(delete(batches).where(batches.c.status.is_not(None), batches.c.finished_at < done_before))
        prune_notes(conn)
        conn.execute(delete(resting).where(resting.c.batch_id.not_in(select(batches.c.id).where(LIVE))))
        for table, marked_at in (
            (session_ends, session_ends.c.ended_at),
            (session_drifts, session_drifts.c.drifted_at),
        ):
            waits = and_(WAITING, turns.c.user_id == table.c.user_id, turns.c.session == table.c.session)
            conn.execute(delete(table).where(marked_at < done_before, ~select(turns.c.id).where(waits).exists()))
        past = session_pasts.c
        left = select(turns.c.id).where(turns.c.user_id == past.user_id, turns.c.session == past.session)
        conn.execute(delete(session_pasts).where(past.forgotten_at < done_before, ~left.exists()))

    @one_write
    def prune_states(self, conn: Connection, *, now: float) -> None:
        prune_states(conn, now)

    @one_write
    def prune_marks(self, conn: Connection, *, forgotten_before: float) -> None:
        marks.prune(conn, forgotten_before)

    async def purge(self) -> bool:
        """As Purgeable says. JournalError while another process is reading the files."""
        return await self._database.purge()

    async def check_room(self) -> None:
        """As Housekeeping says."""
        await self._database.check_room()

    @one_read
    def counts(self, conn: Connection) -> dict[str, int]:
        """``open`` and ``ready`` wait; ``leased`` are in a batch; ``done``, ``refused``; ``lonely`` closed halves.

        Each number comes from one partial index: done turns, which are most, are never read with their texts.
        """
        return dict(conn.execute(_COUNTS).mappings().one())

    @one_read
    def health(self, conn: Connection) -> None:
        """One read from the file. It does not prove that there is room to write."""
        conn.execute(select(journal_schema.c.version)).one()


def _prune_turns(conn: Connection, done_before: float, rows_max: int) -> int:
    """At most ``rows_max`` turns and lonely halves; how many there were."""
    done = turns.c.done_at < done_before
    lonely = and_(LONELY, turns.c.closed_at < done_before)
    number = 0
    for old in (done, lonely):
        some = select(turns.c.id).where(old).limit(rows_max - number)
        number += conn.execute(delete(turns).where(turns.c.id.in_(some), old)).rowcount
    return number
