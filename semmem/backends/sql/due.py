"""Which session is to be learnt from next: the one that waits longest, counted from its oldest waiting turn."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Subquery, and_, case, func, or_, select, tuple_

from semmem.backends.sql.tables import LIVE, WAITING, batches, session_drifts, session_ends, turns
from semmem.ports.learning import BatchRules

_FIRST = 500
"""How many of the oldest waiting turns are looked at before all of them."""

_FREE = turns.c.user_id.not_in(select(batches.c.user_id).where(LIVE))


@dataclass(frozen=True, slots=True)
class Due:
    """A session to learn from, why, and which of its waiting turns may be taken."""

    user: str
    session: str
    trigger: str
    takes: ColumnElement[bool]


def _ready(rules: BatchRules, now: float) -> ColumnElement[bool]:
    return or_(turns.c.closed_at.is_not(None), turns.c.opened_at <= now - rules.answer_wait_s)


def due_session(
    conn: Connection, rules: BatchRules, now: float, turns_max: int, others: Collection[str] = ()
) -> Due | None:
    """Among the sessions of the oldest waiting turns first: one that is due there waits longer than any elsewhere.
    None of the users ``others``."""
    free = and_(_FREE, turns.c.user_id.not_in(others)) if others else _FREE
    oldest = select(turns.c.user_id, turns.c.session).where(WAITING, free).order_by(turns.c.opened_at).limit(_FIRST)
    for among in (tuple_(turns.c.user_id, turns.c.session).in_(oldest), free):
        row = conn.execute(_due(rules, now, among)).first()
        if row is None:
            continue
        if row.ended:
            return Due(row.user_id, row.session, "end", turns.c.opened_at <= row.ended_at)
        if row.drifted:
            before = and_(_ready(rules, now), turns.c.opened_at < row.drifted_at)
            return Due(row.user_id, row.session, "drift", before)
        return Due(row.user_id, row.session, _trigger(row, rules, now, turns_max), _ready(rules, now))
    return None


def _trigger(row: Row[Any], rules: BatchRules, now: float, turns_max: int) -> str:
    """A session that fell silent while its turns had to wait has ended, however many they are, if this batch is its
    last."""
    silent = row.ready == row.waiting and row.active <= now - rules.idle_s
    return "idle" if row.ready < rules.size or (silent and row.waiting <= turns_max) else "size"


def _due(rules: BatchRules, now: float, among: ColumnElement[bool]) -> Select[Any]:
    """The due session of the oldest waiting turn."""
    session = _sessions(_ready(rules, now), among)
    end, drift = session_ends.c, session_drifts.c
    ended = session.c.oldest <= end.ended_at
    drifted = session.c.oldest_ready < drift.drifted_at
    idle = and_(session.c.ready == session.c.waiting, session.c.active <= now - rules.idle_s)
    return (
        select(session, end.ended_at, ended.label("ended"), drift.drifted_at, drifted.label("drifted"))
        .outerjoin(session_ends, and_(end.user_id == session.c.user_id, end.session == session.c.session))
        .outerjoin(session_drifts, and_(drift.user_id == session.c.user_id, drift.session == session.c.session))
        .where(or_(session.c.ready >= rules.size, idle, ended, drifted))
        .order_by(session.c.oldest)
        .limit(1)
    )


def _sessions(ready: ColumnElement[bool], among: ColumnElement[bool]) -> Subquery:
    """Each session's waiting turns as one row, except those of users with a live batch."""
    # An answer that came long after the question is activity too.
    active = case((turns.c.closed_at > turns.c.seen_at, turns.c.closed_at), else_=turns.c.seen_at)
    return (
        select(
            turns.c.user_id,
            turns.c.session,
            func.min(turns.c.opened_at).label("oldest"),
            func.min(case((ready, turns.c.opened_at))).label("oldest_ready"),
            func.count().label("waiting"),
            func.sum(case((ready, 1), else_=0)).label("ready"),
            func.max(active).label("active"),
        )
        .where(WAITING, _FREE, among)
        .group_by(turns.c.user_id, turns.c.session)
        .subquery()
    )
