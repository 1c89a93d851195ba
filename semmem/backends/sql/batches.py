"""Making batches of waiting turns and leasing them, inside the caller's write transaction.

The session that waits longest goes first, counted from its oldest waiting turn. A batch that lost its holder goes
before new ones, under its own id, so that a retry stores the same facts again instead of new ones.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Subquery,
    and_,
    case,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    tuple_,
    update,
)

from semmem.backends.sql.tables import (
    IN_BATCH,
    LIVE,
    REFUSED,
    WAITING,
    AnyText,
    batches,
    facts_json,
    json_facts,
    resting,
    row_scope,
    row_turn,
    session_drifts,
    session_ends,
    session_pasts,
    turns,
    users,
)
from semmem.backends.sql.turns import upsert_into
from semmem.memory import Fact, Turn
from semmem.ports.learning import Batch, BatchRules

EMPTY = "empty"
"""Status of a batch whose turns were all refused before anything could be learnt from them."""

_ORDER = (turns.c.opened_at, turns.c.ordinal, turns.c.id)


def claim_batch(conn: Connection, rules: BatchRules, now: float, turns_max: int) -> Batch | None:
    """The next batch, leased until ``now + rules.lease_s``; it has at most ``turns_max`` turns, all of one scope."""
    while (row := _claimable(conn, now)) is not None:
        _lease_again(conn, row.id, now + rules.lease_s)
        batch = _load(conn, row.id, rules.context_turns)
        if batch.turns:
            return batch
        finish_batch(conn, row.id, EMPTY, now)
    due = _due_session(conn, rules, now, turns_max)
    if due is None:
        return None
    return _load(conn, _make(conn, due, rules.lease_s, now, turns_max), rules.context_turns)


def finish_batch(conn: Connection, batch_id: str, status: str, now: float) -> None:
    """The first status stays. What was extracted is content that nobody needs any more.

    A refused turn leaves the batch, so that it can be in another one when it is asked again and answered.
    """
    this = and_(batches.c.id == batch_id, LIVE)
    conn.execute(update(batches).where(this).values(status=status, finished_at=now, facts=None))
    learnt = case((turns.c.closing == REFUSED, None), else_=turns.c.batch_id)
    mine = and_(turns.c.batch_id == batch_id, IN_BATCH)
    conn.execute(update(turns).where(mine).values(done_at=now, batch_id=learnt))


# --- a batch that exists ---------------------------------------------------------------------------------------------


def _claimable(conn: Connection, now: float) -> Row[Any] | None:
    free = select(batches.c.id).where(LIVE, batches.c.claimable_at <= now)
    return conn.execute(free.order_by(batches.c.claimable_at).limit(1)).first()


def _lease_again(conn: Connection, batch_id: str, until: float) -> None:
    lease = update(batches).where(batches.c.id == batch_id)
    conn.execute(lease.values(claimable_at=until, attempt=batches.c.attempt + 1))
    conn.execute(delete(resting).where(resting.c.batch_id == batch_id))


def _load(conn: Connection, batch_id: str, context_turns: int) -> Batch:
    row = conn.execute(select(batches).where(batches.c.id == batch_id)).one()
    mine = conn.execute(select(turns).where(turns.c.batch_id == batch_id, IN_BATCH).order_by(*_ORDER)).all()
    learnable = tuple(row_turn(turn) for turn in mine if turn.closing < REFUSED)
    facts, applied = None, row.applied
    if row.facts is not None:
        facts, applied = _keep_grounded(conn, row, {turn.id for turn in mine if turn.closing >= REFUSED})
    return Batch(
        id=batch_id,
        scope=row_scope(row),
        turns=learnable,
        context=turns_before(conn, learnable[0], context_turns) if learnable else (),
        trigger=row.trigger_word,
        attempt=row.attempt,
        facts=facts,
        applied=applied,
    )


def _keep_grounded(conn: Connection, row: Row[Any], refused: set[str]) -> tuple[tuple[Fact, ...], int]:
    """The saved facts without those of refused turns, and how many of the rest are applied.

    Written back at once, because ``applied`` counts along the list that the next holder sees.
    """
    saved = json_facts(row.facts)
    kept = tuple(fact for fact in saved if fact.turn_id not in refused)
    applied = sum(fact.turn_id not in refused for fact in saved[: row.applied])
    if len(kept) < len(saved):
        conn.execute(update(batches).where(batches.c.id == row.id).values(facts=facts_json(kept), applied=applied))
    return kept, applied


def turns_before(conn: Connection, first: Turn, limit: int) -> tuple[Turn, ...]:
    """The newest turns of a session that came before ``first``, oldest first, without refused ones."""
    session = and_(turns.c.user_id == first.scope.user, turns.c.session == (first.scope.session or ""))
    before = and_(
        turns.c.opened_at <= first.opened_at,
        tuple_(*_ORDER) < tuple_(first.opened_at, first.ordinal, literal(first.id, AnyText)),
        turns.c.closing < REFUSED,
    )
    newest_first = select(turns).where(session, before).order_by(*(column.desc() for column in _ORDER)).limit(limit)
    return tuple(row_turn(row) for row in reversed(conn.execute(newest_first).all()))


def session_turns(conn: Connection, last: Turn, limit: int) -> list[Turn]:
    """``last`` and the turns before it, since a memory of the session was last forgotten."""
    past = session_pasts.c
    mine = and_(past.user_id == last.scope.user, past.session == (last.scope.session or ""))
    forgotten_at = conn.execute(select(past.forgotten_at).where(mine)).scalar()
    every = [*turns_before(conn, last, limit - 1), last]
    return [turn for turn in every if forgotten_at is None or turn.opened_at > forgotten_at]


# --- a new batch -----------------------------------------------------------------------------------------------------


_FIRST = 500
"""How many of the oldest waiting turns are looked at before all of them."""

_FREE = turns.c.user_id.not_in(select(batches.c.user_id).where(LIVE))


@dataclass(frozen=True, slots=True)
class _Due:
    """A session to learn from, why, and which of its waiting turns may be taken."""

    user: str
    session: str
    trigger: str
    takes: ColumnElement[bool]


def _ready(rules: BatchRules, now: float) -> ColumnElement[bool]:
    return or_(turns.c.closed_at.is_not(None), turns.c.opened_at <= now - rules.answer_wait_s)


def _due_session(conn: Connection, rules: BatchRules, now: float, turns_max: int) -> _Due | None:
    """Among the sessions of the oldest waiting turns first: one that is due there waits longer than any elsewhere."""
    oldest = select(turns.c.user_id, turns.c.session).where(WAITING, _FREE).order_by(turns.c.opened_at).limit(_FIRST)
    for among in (tuple_(turns.c.user_id, turns.c.session).in_(oldest), true()):
        row = conn.execute(_due(rules, now, among)).first()
        if row is None:
            continue
        if row.ended:
            return _Due(row.user_id, row.session, "end", turns.c.opened_at <= row.ended_at)
        if row.drifted:
            before = and_(_ready(rules, now), turns.c.opened_at < row.drifted_at)
            return _Due(row.user_id, row.session, "drift", before)
        return _Due(row.user_id, row.session, _trigger(row, rules, now, turns_max), _ready(rules, now))
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


def _make(conn: Connection, due: _Due, lease_s: float, now: float, turns_max: int) -> str:
    """Put the session's oldest turns into a new batch. Turns of another project or agent wait for their own."""
    takes = and_(WAITING, turns.c.user_id == due.user, turns.c.session == due.session, due.takes)
    head = conn.execute(select(turns).where(takes).order_by(*_ORDER).limit(1)).one()
    alike = and_(takes, turns.c.project == head.project, turns.c.agent == head.agent)
    chosen = conn.execute(select(turns.c.id).where(alike).order_by(*_ORDER).limit(turns_max)).scalars().all()
    batch_id = f"batch_{uuid.uuid4().hex}"
    conn.execute(
        insert(batches).values(
            id=batch_id,
            user_id=head.user_id,
            project=head.project,
            agent=head.agent,
            session=head.session,
            trigger_word=due.trigger,
            attempt=1,
            claimable_at=now + lease_s,
        )
    )
    conn.execute(update(turns).where(turns.c.id.in_(chosen)).values(batch_id=batch_id))
    conn.execute(upsert_into(conn.dialect.name, users).values(user_id=head.user_id).on_conflict_do_nothing())
    return batch_id
