"""Halves of turns as they come in, what is known of messages when their turns are gone, and the sessions they make:
when these began, what waits in them, and where they end."""

from collections.abc import Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Any

from sqlalchemy import Row, and_, bindparam, case, func, or_, select, tuple_

from semmem.backends.sql import locks, marks, tables
from semmem.backends.sql.database import JournalPart, one_read, one_write, quiet_write
from semmem.backends.sql.rows import (
    Prepared,
    PreparedForMany,
    Transaction,
    answer_row,
    closed_row,
    opened_row,
    row_turn,
    upsert_into,
)
from semmem.backends.sql.tables import CLOSING, ERASED, REFUSED, WAITING, answers, said_messages, session_drifts, turns
from semmem.memory import Scope, Turn, TurnEnding
from semmem.ports.learning import WaitingSession
from semmem.ports.recording import SaidBefore, TurnClosed

ROWS_MAX = 4000
"""Rows of one answer: 500 messages are asked for at most, most of which have one place or none."""
LATEST_TURNS = 20
"""Of so many a session's newest answer is looked for: more are seldom answered at the same time."""


class SqlRecording(JournalPart):
    """TurnRecords, MessageRecords, SessionRecords, TopicRecords, and the ends of sessions. ``turned_away`` counts the
    turns that were not recorded since they had been said before their scope was erased."""

    turned_away = 0

    async def record(self, opened: Sequence[Turn], closed: Sequence[TurnClosed]) -> None:
        """First means earliest by ``opened_at`` and ``closed_at``, whatever arrives first. ``Turn.answer`` is not read:
        answers come with their closed half."""
        if opened or closed:
            await self.notice_clock()
            self.turned_away += await self._record(opened, closed)

    @one_write
    def _record(self, conn: Transaction, opened: Sequence[Turn], closed: Sequence[TurnClosed]) -> int:
        """How many were turned away."""
        if locks.needed(conn):
            # in one order, so that two commits of the same turns do not wait in a circle
            opened, closed = sorted(opened, key=attrgetter("id")), sorted(closed, key=attrgetter("turn_id"))
            locks.users_shared(conn, {turn.scope.user for turn in opened})
        admitted = marks.admitted(conn, opened) if opened else []
        if admitted:
            _OPENED.run(conn, [opened_row(turn) for turn in admitted])
        if ended := [closed_row(half) for half in closed if half.status in CLOSING]:
            _CLOSED.run(conn, ended)
        if named := [answer_row(half) for half in closed if half.answer_id]:
            _ANSWERS.run(conn, named)
        record_said(conn, opened, closed)
        self._database.tell(conn, at_once=False)
        return len(opened) - len(admitted)

    @one_read
    def said_before(self, conn: Transaction, message_ids: Sequence[str]) -> list[SaidBefore]:
        return said_before(conn, message_ids)

    @one_read
    def forgotten_at(self, conn: Transaction, user: str) -> float | None:
        return marks.forgotten_at(conn, user)

    @one_read
    def session_start(self, conn: Transaction, user: str, session_key: str, *, seen_since: float) -> float | None:
        """Of several sessions with this key, the one with the newest turn. A retry of an old turn keeps its session
        alive as well, so it counts when the turn was last opened."""
        asked = {"user": user, "key": session_key, "since": seen_since}
        session: str | None = _NEWEST_SESSION.run(conn, [asked]).scalar()
        return None if session is None else float(session.rpartition(".")[2])

    @one_read
    def turn_of_answer(self, conn: Transaction, user: str, answer_id: str) -> tuple[str, str] | None:
        row = conn.execute(_ANSWERED_TURN, {"answer": answer_id, "user": user}).first()
        return None if row is None else (row.id, row.session)

    @one_read
    def latest_answer(self, conn: Transaction, user: str, session: str) -> tuple[str, str, float] | None:
        """Among the newest LATEST_TURNS turns."""
        row = conn.execute(_LATEST_ANSWER, {"user": user, "session": session}).first()
        return None if row is None else (row.turn_id, row.id, row.answered_at)

    @one_write
    def end_session(self, conn: Transaction, user: str, session: str, *, now: float) -> int:
        """Turns opened after ``now`` are not affected, those that arrive late are: the mark outlives this call."""
        conn.raise_times(tables.session_ends.c.ended_at, [{"user_id": user, "session": session, "ended_at": now}])
        self._database.tell(conn)
        mine = and_(turns.c.user_id == user, turns.c.session == session)
        return conn.count(turns, WAITING, mine, turns.c.opened_at <= now)

    @one_write
    def cut_session(self, conn: Transaction, user: str, session: str, *, before: float) -> None:
        """A cut that lies before an earlier one changes nothing, and neither does one among turns that are erased."""
        locks.users_shared(conn, [user])
        if not marks.is_forgotten(conn, Scope(user, session=session), before):
            mark = {"user_id": user, "session": session, "drifted_at": before}
            conn.raise_times(session_drifts.c.drifted_at, [mark])
            self._database.tell(conn)

    @quiet_write
    def forget_past(self, conn: Transaction, user: str, sessions: Iterable[str], *, now: float) -> None:
        """Without a session nothing is written."""
        marked = sorted({*sessions} - {""})
        rows = [{"user_id": user, "session": session, "forgotten_at": now} for session in marked]
        conn.raise_times(tables.session_pasts.c.forgotten_at, rows)

    @one_read
    def waiting_sessions(self, conn: Transaction, *, turns_min: int, opened_after: float) -> list[WaitingSession]:
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
    def waiting_turns(self, conn: Transaction, user: str, session: str) -> list[Turn]:
        """As in the port; at most ``waiting_turns_max``."""
        mine = and_(_UNCUT, turns.c.user_id == user, turns.c.session == session)
        newest_first = (turns.c.opened_at.desc(), turns.c.ordinal.desc(), turns.c.id.desc())
        uncut = select(turns).select_from(_SINCE_CUT).where(mine).order_by(*newest_first)
        rows = conn.execute(uncut.limit(self._limits.waiting_turns_max))
        return [row_turn(row) for row in reversed(rows.all())]


def _opened_upsert(dialect: str) -> Any:
    """The earliest opening stays. Later ones only show that the session is alive. An id that another user or session
    already has is not a retry, and an erased one stays erased. What is in a batch keeps its project and agent, since a
    batch has only one."""
    statement = upsert_into(dialect, turns)
    old, new = turns.c, statement.excluded
    earlier = tuple_(new.opened_at, new.request_id) < tuple_(old.opened_at, old.request_id)
    first = or_(old.opened_at.is_(None), and_(old.batch_id.is_(None), earlier))
    kept = {name: case((first, new[name]), else_=old[name]) for name in _OPENED_COLUMNS - {"id", "seen_at"}}
    later = or_(old.seen_at.is_(None), old.seen_at < new.seen_at)
    same = and_(old.user_id == new.user_id, old.session == new.session)
    return statement.on_conflict_do_update(
        index_elements=["id"],
        set_={**kept, "seen_at": case((later, new.seen_at), else_=old.seen_at)},
        where=and_(old.closing != ERASED, or_(old.opened_at.is_(None), same)),
    )


def _closed_upsert(dialect: str) -> Any:
    """Of two closes the one that says more stays, then the earlier. A refusal ends a turn that is in no batch, until
    the same turn is asked again and answered (a client that was throttled and tries again)."""
    statement = upsert_into(dialect, turns)
    old, new = turns.c, statement.excluded

    def rank(half: Any) -> Any:
        texts = func.coalesce(half.answer, ""), func.coalesce(half.finish_reason, "")
        says_more = case(
            *((half.closing == closing, -place) for place, closing in enumerate(tables.CLOSING_ORDER)), else_=0
        )
        return tuple_(says_more, half.closed_at, *texts)

    unbatched = old.batch_id.is_(None)
    refused = and_(new.closing == REFUSED, unbatched)
    asked_again = and_(old.closing == REFUSED, unbatched)
    kept = {name: new[name] for name in ("closing", "closed_at", "answer", "finish_reason")}
    return statement.on_conflict_do_update(
        index_elements=["id"],
        set_={**kept, "done_at": case((refused, new.closed_at), (asked_again, None), else_=old.done_at)},
        where=rank(new) < rank(old),
    )


_OPENED_COLUMNS = opened_row(Turn(id="", scope=Scope("-"), ordinal=0, user_text="", opened_at=0.0)).keys()
_ANY_CLOSE = TurnClosed("", TurnEnding.ANSWERED, 0.0)
_OPENED = Prepared(_opened_upsert, _OPENED_COLUMNS)
_CLOSED = Prepared(_closed_upsert, closed_row(_ANY_CLOSE))
_ANSWERS = Prepared(lambda dialect: upsert_into(dialect, answers).on_conflict_do_nothing(), answer_row(_ANY_CLOSE))


# --- which messages were journalled or declined, as bare ids ---------------------------------------------------------


def record_said(conn: Transaction, opened: Sequence[Turn], closed: Sequence[TurnClosed]) -> None:
    """The first time stays."""
    rows = [{"id": t.message_id, "ordinal": t.ordinal, "at": t.opened_at} for t in opened if t.message_id]
    for half in closed:
        if half.status in (TurnEnding.DECLINED, TurnEnding.ERASED):
            message_id, _, ordinal = half.turn_id.rpartition(".")
            sign = -1 if half.status == TurnEnding.DECLINED else 1
            rows.append({"id": message_id, "ordinal": sign * int(ordinal), "at": half.closed_at})
    if rows:
        _SAID.run(conn, sorted(rows, key=itemgetter("id", "ordinal")))


_SAID = Prepared(lambda dialect: upsert_into(dialect, said_messages).on_conflict_do_nothing(), ("id", "ordinal", "at"))


def said_before(conn: Transaction, message_ids: Sequence[str]) -> list[SaidBefore]:
    rows: Iterable[Row[Any]] = _SAID_BEFORE.run(conn, message_ids) if message_ids else ()
    return [SaidBefore(tables.as_told(row.id), abs(row.ordinal), row.at, declined=row.ordinal < 0) for row in rows]


_SAID_IN_ORDER = select(said_messages).order_by(said_messages.c.ordinal).limit(ROWS_MAX)
_SAID_BEFORE = PreparedForMany(lambda ids: _SAID_IN_ORDER.where(said_messages.c.id.in_(ids)))

_NEWEST_SESSION = Prepared(
    select(turns.c.session)
    .where(turns.c.user_id == bindparam("user"), turns.c.session_key == bindparam("key"))
    .where(turns.c.seen_at >= bindparam("since"))
    .order_by(turns.c.seen_at.desc())
    .limit(1)
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
    .where(turns.c.user_id == bindparam("user"), turns.c.session == bindparam("session"))
    .where(turns.c.opened_at.is_not(None))
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
