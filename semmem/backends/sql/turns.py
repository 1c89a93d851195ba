"""Turns as they come in, are looked up, and are erased, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Insert,
    Table,
    and_,
    bindparam,
    case,
    delete,
    func,
    or_,
    select,
    tuple_,
)
from sqlalchemy.dialects import postgresql, sqlite

from semmem.backends.sql.tables import (
    CLOSING,
    CLOSING_ORDER,
    ERASED,
    IN_BATCH,
    LIVE,
    LONELY,
    REFUSED,
    WAITING,
    answer_row,
    answers,
    batches,
    closed_row,
    opened_row,
    resting,
    row_turn,
    session_drifts,
    session_ends,
    session_pasts,
    turns,
)
from semmem.memory import Scope, Turn
from semmem.ports.learning import WaitingSession
from semmem.ports.recording import TurnClosed

_UPSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


def upsert_into(dialect: str, table: Table) -> Any:
    """An insert that knows ON CONFLICT, in the words of this dialect."""
    return _UPSERTS[dialect](table)


# --- halves ----------------------------------------------------------------------------------------------------------


def record_opened(conn: Connection, opened: Sequence[Turn]) -> None:
    conn.execute(_opened_upsert(conn.dialect.name), [opened_row(turn) for turn in opened])


def record_closed(conn: Connection, closed: Sequence[TurnClosed]) -> None:
    if ended := [closed_row(half) for half in closed if half.status in CLOSING]:
        conn.execute(_closed_upsert(conn.dialect.name), ended)
    if named := [answer_row(half) for half in closed if half.answer_id]:
        conn.execute(upsert_into(conn.dialect.name, answers).on_conflict_do_nothing(), named)


@cache
def _opened_upsert(dialect: str) -> Insert:
    """The earliest opening stays. Later ones only show that the session is alive.

    An id that another user or session already has is not a retry, and an erased one stays erased. What is in a batch
    keeps its project and agent, since a batch has only one.
    """
    statement = upsert_into(dialect, turns)
    old, new = turns.c, statement.excluded
    earlier = tuple_(new.opened_at, new.request_id) < tuple_(old.opened_at, old.request_id)
    first = or_(old.opened_at.is_(None), and_(old.batch_id.is_(None), earlier))
    names = [name for name in opened_row(_ANY_TURN) if name not in ("id", "seen_at")]
    kept = {name: case((first, new[name]), else_=old[name]) for name in names}
    later = or_(old.seen_at.is_(None), old.seen_at < new.seen_at)
    same = and_(old.user_id == new.user_id, old.session == new.session)
    upsert: Insert = statement.on_conflict_do_update(
        index_elements=["id"],
        set_={**kept, "seen_at": case((later, new.seen_at), else_=old.seen_at)},
        where=and_(old.closing != ERASED, or_(old.opened_at.is_(None), same)),
    )
    return upsert


@cache
def _closed_upsert(dialect: str) -> Insert:
    """Of two closes the one that says more stays, then the earlier. A refusal ends a turn that is in no batch, until
    the same turn is asked again and answered (a client that was throttled and tries again)."""
    statement = upsert_into(dialect, turns)
    old, new = turns.c, statement.excluded

    def rank(half: Any) -> Any:
        texts = func.coalesce(half.answer, ""), func.coalesce(half.finish_reason, "")
        says_more = case(*((half.closing == closing, -place) for place, closing in enumerate(CLOSING_ORDER)), else_=0)
        return tuple_(says_more, half.closed_at, *texts)

    unbatched = old.batch_id.is_(None)
    refused = and_(new.closing == REFUSED, unbatched)
    asked_again = and_(old.closing == REFUSED, unbatched)
    kept = {name: new[name] for name in ("closing", "closed_at", "answer", "finish_reason")}
    upsert: Insert = statement.on_conflict_do_update(
        index_elements=["id"],
        set_={**kept, "done_at": case((refused, new.closed_at), (asked_again, None), else_=old.done_at)},
        where=rank(new) < rank(old),
    )
    return upsert


_ANY_TURN = Turn(id="", scope=Scope("-"), ordinal=0, user_text="", opened_at=0.0)


# --- sessions --------------------------------------------------------------------------------------------------------


_NEWEST_SESSION = (
    select(turns.c.session)
    .where(turns.c.user_id == bindparam("user"), turns.c.session_key == bindparam("key"))
    .where(turns.c.seen_at >= bindparam("since"))
    .order_by(turns.c.seen_at.desc())
    .limit(1)
)


def session_start(conn: Connection, user: str, session_key: str, seen_since: float) -> float | None:
    """A retry of an old turn keeps its session alive as well, so it counts when the turn was last opened."""
    session = conn.execute(_NEWEST_SESSION, {"user": user, "key": session_key, "since": seen_since}).scalar()
    return None if session is None else float(session.rpartition(".")[2])


_ANSWERED_TURN = (
    select(turns.c.id, turns.c.session)
    .join(answers, answers.c.turn_id == turns.c.id)
    .where(answers.c.id == bindparam("answer"), turns.c.user_id == bindparam("user"))
    .order_by(answers.c.answered_at.desc())
    .limit(1)
)


def turn_of_answer(conn: Connection, user: str, answer_id: str) -> tuple[str, str] | None:
    row = conn.execute(_ANSWERED_TURN, {"answer": answer_id, "user": user}).first()
    return None if row is None else (row.id, row.session)


def end_session(conn: Connection, user: str, session: str, now: float) -> int:
    """The mark outlives this call, for turns that were opened before it and are still on their way here."""
    _mark(conn, session_ends, user, session, session_ends.c.ended_at, now)
    waiting = and_(WAITING, turns.c.user_id == user, turns.c.session == session, turns.c.opened_at <= now)
    return _count(conn, waiting)


def cut_session(conn: Connection, user: str, session: str, before: float) -> None:
    _mark(conn, session_drifts, user, session, session_drifts.c.drifted_at, before)


def forget_past(conn: Connection, user: str, sessions: Sequence[str], now: float) -> None:
    for session in sessions:
        _mark(conn, session_pasts, user, session, session_pasts.c.forgotten_at, now)


def _mark(conn: Connection, table: Table, user: str, session: str, column: Column[float], at: float) -> None:
    """A time of a session that only ever moves on."""
    statement = upsert_into(conn.dialect.name, table)
    new = statement.excluded[column.name]
    mark = statement.values({"user_id": user, "session": session, column.name: at}).on_conflict_do_update(
        index_elements=["user_id", "session"], set_={column.name: new}, where=column < new
    )
    conn.execute(mark)


_DRIFT = session_drifts.c
_SINCE_CUT = turns.outerjoin(session_drifts, and_(_DRIFT.user_id == turns.c.user_id, _DRIFT.session == turns.c.session))
_UNCUT = and_(WAITING, or_(_DRIFT.drifted_at.is_(None), turns.c.opened_at >= _DRIFT.drifted_at))


def waiting_sessions(conn: Connection, turns_min: int, opened_after: float, limit: int) -> list[WaitingSession]:
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


def waiting_turns(conn: Connection, user: str, session: str, limit: int) -> list[Turn]:
    mine = and_(_UNCUT, turns.c.user_id == user, turns.c.session == session)
    newest_first = (turns.c.opened_at.desc(), turns.c.ordinal.desc(), turns.c.id.desc())
    rows = conn.execute(select(turns).select_from(_SINCE_CUT).where(mine).order_by(*newest_first).limit(limit))
    return [row_turn(row) for row in reversed(rows.all())]


# --- erasing ---------------------------------------------------------------------------------------------------------


def prune(conn: Connection, done_before: float, rows_max: int) -> int:
    """At most ``rows_max`` turns and lonely halves; how many there were."""
    done = turns.c.done_at < done_before
    lonely = and_(LONELY, turns.c.closed_at < done_before)
    number = 0
    for old in (done, lonely):
        some = select(turns.c.id).where(old).limit(rows_max - number)
        number += conn.execute(delete(turns).where(turns.c.id.in_(some))).rowcount
    return number


def prune_marks(conn: Connection, done_before: float) -> None:
    """Finished batches, names of answers whose turn is gone, and marks of sessions of which nothing waits any more."""
    gone = ~select(turns.c.id).where(turns.c.id == answers.c.turn_id).exists()
    conn.execute(delete(answers).where(answers.c.answered_at < done_before, gone))
    conn.execute(delete(batches).where(batches.c.status.is_not(None), batches.c.finished_at < done_before))
    conn.execute(delete(resting).where(resting.c.batch_id.not_in(select(batches.c.id).where(LIVE))))
    for table, marked_at in ((session_ends, session_ends.c.ended_at), (session_drifts, session_drifts.c.drifted_at)):
        waits = and_(WAITING, turns.c.user_id == table.c.user_id, turns.c.session == table.c.session)
        conn.execute(delete(table).where(marked_at < done_before, ~select(turns.c.id).where(waits).exists()))
    past = session_pasts.c
    left = select(turns.c.id).where(turns.c.user_id == past.user_id, turns.c.session == past.session)
    conn.execute(delete(session_pasts).where(past.forgotten_at < done_before, ~left.exists()))


# --- numbers ---------------------------------------------------------------------------------------------------------


def counts(conn: Connection) -> dict[str, int]:
    """Each number comes from one partial index: done turns, which are most, are never read with their texts."""
    done = turns.c.done_at.is_not(None)
    return {
        "open": _count(conn, and_(WAITING, turns.c.closed_at.is_(None))),
        "ready": _count(conn, and_(WAITING, turns.c.closed_at.is_not(None))),
        "leased": _count(conn, IN_BATCH),
        "done": _count(conn, and_(done, turns.c.closing < REFUSED)),
        "refused": _count(conn, and_(done, turns.c.closing == REFUSED)),
        "lonely": _count(conn, LONELY),
    }


def _count(conn: Connection, rows: ColumnElement[bool]) -> int:
    return conn.execute(select(func.count()).select_from(turns).where(rows)).scalar_one()
