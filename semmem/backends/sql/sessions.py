"""Sessions: when they began, what waits in them, and where they end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, and_, bindparam, func, or_, select

from semmem.backends.sql import locks, marks
from semmem.backends.sql.part import JournalPart, one_read, one_write
from semmem.backends.sql.prepared import Prepared
from semmem.backends.sql.rows import raise_times, row_turn
from semmem.backends.sql.tables import WAITING, answers, session_drifts, session_ends, session_pasts, turns
from semmem.memory import Scope, Turn
from semmem.ports.learning import WaitingSession

LATEST_TURNS = 20
"""Of so many a session's newest answer is looked for: more are seldom answered at the same time."""


class SqlSessions(JournalPart):
    """SessionRecords and TopicRecords, and the ends of sessions."""

    @one_read
    def session_start(self, conn: Connection, user: str, session_key: str, *, seen_since: float) -> float | None:
        """Of several sessions with this key, the one with the newest turn.

        A retry of an old turn keeps its session alive as well, so it counts when the turn was last opened.
        """
        asked = {"user": user, "key": session_key, "since": seen_since}
        session: str | None = _NEWEST_SESSION.run(conn, [asked]).scalar()
        return None if session is None else float(session.rpartition(".")[2])

    @one_read
    def turn_of_answer(self, conn: Connection, user: str, answer_id: str) -> tuple[str, str] | None:
        row = conn.execute(_ANSWERED_TURN, {"answer": answer_id, "user": user}).first()
        return None if row is None else (row.id, row.session)

    @one_read
    def latest_answer(self, conn: Connection, user: str, session: str) -> tuple[str, str, float] | None:
        """Among the newest LATEST_TURNS turns."""
        row = conn.execute(_LATEST_ANSWER, {"user": user, "session": session}).first()
        return None if row is None else (row.turn_id, row.id, row.answered_at)

    @one_write
    def end_session(self, conn: Connection, user: str, session: str, *, now: float) -> int:
        """Turns opened after ``now`` are not affected, those that arrive late are: the mark outlives this call."""
        raise_times(conn, session_ends.c.ended_at, [{"user_id": user, "session": session, "ended_at": now}])
        self._database.tell(conn)
        waiting = and_(WAITING, turns.c.user_id == user, turns.c.session == session, turns.c.opened_at <= now)
        return conn.execute(select(func.count()).select_from(turns).where(waiting)).scalar_one()

    @one_write
    def cut_session(self, conn: Connection, user: str, session: str, *, before: float) -> None:
        """A cut that lies before an earlier one changes nothing, and neither does one among turns that are erased."""
        locks.users_shared(conn, [user])
        if not marks.is_forgotten(conn, Scope(user, session=session), before):
            mark = {"user_id": user, "session": session, "drifted_at": before}
            raise_times(conn, session_drifts.c.drifted_at, [mark])
            self._database.tell(conn)

    async def forget_past(self, user: str, sessions: Iterable[str], *, now: float) -> None:
        """Without a session nothing is written."""
        if marked := sorted({*sessions} - {""}):
            await self._mark_pasts(user, marked, now)

    @one_write
    def _mark_pasts(self, conn: Connection, user: str, sessions: Sequence[str], now: float) -> None:
        rows = [{"user_id": user, "session": session, "forgotten_at": now} for session in sessions]
        raise_times(conn, session_pasts.c.forgotten_at, rows)

    @one_read
    def waiting_sessions(self, conn: Connection, *, turns_min: int, opened_after: float) -> list[WaitingSession]:
        """As in the port; at most ``waiting_sessions_max``."""
        limit = self._limits.waiting_sessions_max
        newest = func.max(turns.c.opened_at)
        busy = (
            select(turns.c.user_id, turns.c.session, newest)
            .select_from(_SINCE_CUT)
            .where(_UNCUT)
            .group_by(turns.c.user_id, turns.c.session)
            .having(func.count() >= turns_min, newest > opened_after)
            .order_by(newest.desc())
            .limit(limit)
        )
        return [WaitingSession(*row) for row in conn.execute(busy)]

    @one_read
    def waiting_turns(self, conn: Connection, user: str, session: str) -> list[Turn]:
        """As in the port; at most ``waiting_turns_max``."""
        mine = and_(_UNCUT, turns.c.user_id == user, turns.c.session == session)
        newest_first = (turns.c.opened_at.desc(), turns.c.ordinal.desc(), turns.c.id.desc())
        uncut = select(turns).select_from(_SINCE_CUT).where(mine).order_by(*newest_first)
        rows = conn.execute(uncut.limit(self._limits.waiting_turns_max))
        return [row_turn(row) for row in reversed(rows.all())]


_NEWEST_SESSION = Prepared(
    lambda _: (
        select(turns.c.session)
        .where(turns.c.user_id == bindparam("user"), turns.c.session_key == bindparam("key"))
        .where(turns.c.seen_at >= bindparam("since"))
        .order_by(turns.c.seen_at.desc())
        .limit(1)
    ),
    ("user", "key", "since"),
)


_ANSWERED_TURN = (
    select(turns.c.id, turns.c.session)
    .join(answers, answers.c.turn_id == turns.c.id)
    .where(answers.c.id == bindparam("answer"), turns.c.user_id == bindparam("user"))
    .order_by(answers.c.answered_at.desc())
    .limit(1)
)


_NEWEST_TURNS = (
    select(turns.c.id)
    .where(
        turns.c.user_id == bindparam("user"), turns.c.session == bindparam("session"), turns.c.opened_at.is_not(None)
    )
    .order_by(turns.c.opened_at.desc())
    .limit(LATEST_TURNS)
    .subquery()
)
_LATEST_ANSWER = (
    select(answers)
    .join(_NEWEST_TURNS, answers.c.turn_id == _NEWEST_TURNS.c.id)
    .order_by(answers.c.answered_at.desc())
    .limit(1)
)


_DRIFT = session_drifts.c
_SINCE_CUT = turns.outerjoin(session_drifts, and_(_DRIFT.user_id == turns.c.user_id, _DRIFT.session == turns.c.session))
_UNCUT = and_(WAITING, or_(_DRIFT.drifted_at.is_(None), turns.c.opened_at >= _DRIFT.drifted_at))
