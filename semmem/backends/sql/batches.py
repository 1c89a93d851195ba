"""Making batches of waiting turns and leasing them.

A batch that lost its holder goes before new ones, under its own id, so that a retry stores the same facts again instead
of new ones."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, case, func, insert, literal, or_, select, tuple_

from semmem.backends.sql import locks, tables
from semmem.backends.sql.database import JournalPart, one_read, one_write, quiet_write
from semmem.backends.sql.rows import Transaction, facts_json, json_facts, know_users, row_scope, row_turn, scope_row
from semmem.backends.sql.tables import IN_BATCH, LIVE, REFUSED, WAITING, batches, resting, session_drifts, turns
from semmem.memory import Fact, Turn
from semmem.ports.learning import Batch, BatchRules

EMPTY = "empty"
"""Status of a batch whose turns were all refused before anything could be learnt from them."""

_FIRST = 20
"""How many batches without a holder are looked at in one claim: others are at work on the first of them, perhaps."""

_ORDER = (turns.c.opened_at, turns.c.ordinal, turns.c.id)


class SqlBatches(JournalPart):
    """BatchQueue and BatchRecords. A lease is held by whoever claimed the batch last, and the calls that follow name
    only the batch. So ``lease_s`` must be longer than the work. A worker that overstays cannot break what the next one
    does, except by giving back a lease that is not its own: the first facts that are saved stay, progress only rises,
    the first terminal status stays, and a finished or erased batch takes no more."""

    @quiet_write
    def claim(self, conn: Transaction, rules: BatchRules, *, now: float) -> Batch | None:
        """Trigger words: ``end``, ``drift``, ``size``, ``idle``; the first that holds. A turn that was refused
        meanwhile is left out when a batch is claimed again, with the facts it grounds; a batch of which nothing is left
        is finished as ``empty``. A batch's turns are all of one scope."""
        while (free := _claimable(conn, now)) is not None:
            until = now + rules.lease_s
            conn.change(batches, batches.c.id == free, claimable_at=until, attempt=batches.c.attempt + 1)
            conn.remove(resting, resting.c.batch_id == free)
            batch = _load(conn, free, rules.context_turns)
            if batch.turns:
                return batch
            _finish(conn, free, EMPTY, now)
        turns_max = self._limits.batch_sizes_max * rules.size
        due = _due_alone(conn, rules, now, turns_max)
        if due is None:
            return None
        return _load(conn, _make(conn, due, rules.lease_s, now, turns_max), rules.context_turns)

    @one_write
    def save_facts(self, conn: Transaction, batch_id: str, facts: Sequence[Fact]) -> None:
        locks.user_of(conn, batches, batch_id)
        conn.change(batches, batches.c.id == batch_id, LIVE, batches.c.facts.is_(None), facts=facts_json(facts))

    @one_write
    def mark_applied(self, conn: Transaction, batch_id: str, count: int) -> None:
        conn.change(batches, batches.c.id == batch_id, LIVE, batches.c.applied < count, applied=count)

    @one_write
    def finish(self, conn: Transaction, batch_id: str, status: str, *, now: float) -> None:
        locks.user_of(conn, batches, batch_id)
        _finish(conn, batch_id, status, now)

    @one_write
    def postpone(self, conn: Transaction, batch_id: str, *, until: float) -> None:
        """Its user's other turns wait with it; holds do not. One that was had while the batch was aside, and that it
        did not wait for, goes on."""
        locks.user_of(conn, batches, batch_id)
        held_until = conn.execute(select(resting.c.held_until).where(resting.c.batch_id == batch_id)).scalar()
        claimable_at = until if held_until is None else held_until
        if conn.change(batches, batches.c.id == batch_id, LIVE, claimable_at=claimable_at):
            conn.put(resting, batch_id=batch_id, until=until)

    @one_write
    def set_aside(self, conn: Transaction, batch_id: str) -> None:
        """As a batch that rests, but for its lease."""
        locks.user_of(conn, batches, batch_id)
        until = conn.execute(select(batches.c.claimable_at).where(batches.c.id == batch_id, LIVE)).scalar()
        if until is not None:
            conn.put(resting, batch_id=batch_id, until=until)

    @one_write
    def take_up(self, conn: Transaction, batch_id: str, *, now: float) -> bool:
        """After a hold whose holder died the batch has its own lease again."""
        locks.user_of(conn, batches, batch_id)
        row = conn.row_of(resting, resting.c.batch_id == batch_id)
        if row is None:
            return True
        if row.held_until is not None and row.held_until > now:
            return False
        held = batches.c.claimable_at == row.held_until
        conn.change(batches, batches.c.id == batch_id, held, claimable_at=row.until)
        conn.remove(resting, resting.c.batch_id == batch_id)
        return True

    @one_read
    def session_turns(self, conn: Transaction, last: Turn, *, limit: int) -> list[Turn]:
        past = tables.session_pasts.c
        mine = and_(past.user_id == last.scope.user, past.session == (last.scope.session or ""))
        forgotten_at = conn.execute(select(past.forgotten_at).where(mine)).scalar()
        every = [*_turns_before(conn, last, limit - 1), last]
        return [turn for turn in every if forgotten_at is None or turn.opened_at > forgotten_at]


def _finish(conn: Transaction, batch_id: str, status: str, now: float) -> None:
    """The first status stays. What was extracted is content that nobody needs any more. A refused turn leaves the
    batch, so that it can be in another one when it is asked again and answered."""
    conn.change(batches, batches.c.id == batch_id, LIVE, status=status, finished_at=now, facts=None)
    learnt = case((turns.c.closing == REFUSED, None), else_=turns.c.batch_id)
    conn.change(turns, turns.c.batch_id == batch_id, IN_BATCH, done_at=now, batch_id=learnt)


def _claimable(conn: Transaction, now: float) -> str | None:
    """A batch that nobody holds any more, with the lock of its user; what others are at is passed over."""
    free = and_(LIVE, batches.c.claimable_at <= now)
    oldest = select(batches.c.id, batches.c.user_id).where(free).order_by(batches.c.claimable_at).limit(_FIRST)
    for row in conn.execute(oldest).all():
        if locks.try_user(conn, row.user_id):
            still = select(batches.c.id).where(batches.c.id == row.id, free).with_for_update(skip_locked=True)
            if conn.execute(still).first() is not None:
                return str(row.id)
    return None


def _due_alone(conn: Transaction, rules: BatchRules, now: float, turns_max: int) -> Due | None:
    """The due session, with the lock of its user. What is found before the lock is had may be another's by then."""
    mine, others = set[str](), set[str]()
    while (due := due_session(conn, rules, now, turns_max, others)) is not None:
        if not locks.needed(conn) or due.user in mine:
            return due
        (mine if locks.try_user(conn, due.user) else others).add(due.user)
    return None


def _load(conn: Transaction, batch_id: str, context_turns: int) -> Batch:
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
        context=_turns_before(conn, learnable[0], context_turns) if learnable else (),
        trigger=row.trigger_word,
        attempt=row.attempt,
        facts=facts,
        applied=applied,
    )


def _keep_grounded(conn: Transaction, row: Row[Any], refused: set[str]) -> tuple[tuple[Fact, ...], int]:
    """The saved facts without those of refused turns, and how many of the rest are applied. Written back at once,
    because ``applied`` counts along the list that the next holder sees."""
    saved = json_facts(row.facts)
    kept = tuple(fact for fact in saved if fact.turn_id not in refused)
    applied = sum(fact.turn_id not in refused for fact in saved[: row.applied])
    if len(kept) < len(saved):
        conn.change(batches, batches.c.id == row.id, facts=facts_json(kept), applied=applied)
    return kept, applied


def _turns_before(conn: Transaction, first: Turn, limit: int) -> tuple[Turn, ...]:
    """The newest turns of a session that came before ``first``, oldest first, without refused ones."""
    session = and_(turns.c.user_id == first.scope.user, turns.c.session == (first.scope.session or ""))
    before = and_(
        turns.c.opened_at <= first.opened_at,
        tuple_(*_ORDER) < tuple_(first.opened_at, first.ordinal, literal(first.id, tables.AnyText)),
        turns.c.closing < REFUSED,
    )
    newest_first = select(turns).where(session, before).order_by(*(column.desc() for column in _ORDER)).limit(limit)
    return tuple(row_turn(row) for row in reversed(conn.execute(newest_first).all()))


def _make(conn: Transaction, due: Due, lease_s: float, now: float, turns_max: int) -> str:
    """Put the session's oldest turns into a new batch. Turns of another project or agent wait for their own."""
    takes = and_(WAITING, turns.c.user_id == due.user, turns.c.session == due.session, due.takes)
    head = conn.execute(select(turns).where(takes).order_by(*_ORDER).limit(1)).one()
    alike = and_(takes, turns.c.project == head.project, turns.c.agent == head.agent)
    chosen = conn.execute(select(turns.c.id).where(alike).order_by(*_ORDER).limit(turns_max)).scalars().all()
    batch_id = f"batch_{uuid.uuid4().hex}"
    batch = {"id": batch_id, "trigger_word": due.trigger, "attempt": 1, "claimable_at": now + lease_s}
    conn.execute(insert(batches).values({**scope_row(row_scope(head)), **batch}))
    conn.change(turns, turns.c.id.in_(chosen), batch_id=batch_id)
    know_users(conn, [head.user_id])
    return batch_id


# --- which session is next: the one that waits longest, counted from its oldest waiting turn ------------------------


_OLDEST = 500
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
    conn: Transaction, rules: BatchRules, now: float, turns_max: int, others: Collection[str] = ()
) -> Due | None:
    """Among the sessions of the oldest waiting turns first: one that is due there waits longer than any elsewhere.
    None of the users ``others``."""
    free = and_(_FREE, turns.c.user_id.not_in(others)) if others else _FREE
    oldest = select(turns.c.user_id, turns.c.session).where(WAITING, free).order_by(turns.c.opened_at).limit(_OLDEST)
    for among in (tuple_(turns.c.user_id, turns.c.session).in_(oldest), free):
        row = conn.execute(_due(rules, now, among)).first()
        if row is None:
            continue
        if row.ended:
            return Due(row.user_id, row.session, "end", turns.c.opened_at <= row.ended_at)
        if row.drifted:
            before = and_(_ready(rules, now), turns.c.opened_at < row.drifted_at)
            return Due(row.user_id, row.session, "drift", before)
        # One that fell silent while its turns had to wait has ended, however many they are, if this batch is its last.
        silent = row.ready == row.waiting and row.active <= now - rules.idle_s
        trigger = "idle" if row.ready < rules.size or (silent and row.waiting <= turns_max) else "size"
        return Due(row.user_id, row.session, trigger, _ready(rules, now))
    return None


def _due(rules: BatchRules, now: float, among: ColumnElement[bool]) -> Select[Any]:
    ready = _ready(rules, now)
    # An answer that came long after the question is activity too.
    active = case((turns.c.closed_at > turns.c.seen_at, turns.c.closed_at), else_=turns.c.seen_at)
    figures = {
        "oldest": func.min(turns.c.opened_at),
        "oldest_ready": func.min(case((ready, turns.c.opened_at))),
        "waiting": func.count(),
        "ready": func.sum(case((ready, 1), else_=0)),
        "active": func.max(active),
    }
    session = (  # each session's waiting turns as one row, except those of users with a live batch
        select(turns.c.user_id, turns.c.session, *(figure.label(name) for name, figure in figures.items()))
        .where(WAITING, _FREE, among)
        .group_by(turns.c.user_id, turns.c.session)
        .subquery()
    )
    end, drift = tables.session_ends.c, session_drifts.c
    ended = session.c.oldest <= end.ended_at
    drifted = session.c.oldest_ready < drift.drifted_at
    idle = and_(session.c.ready == session.c.waiting, session.c.active <= now - rules.idle_s)
    return (
        select(session, end.ended_at, ended.label("ended"), drift.drifted_at, drifted.label("drifted"))
        .outerjoin(tables.session_ends, and_(end.user_id == session.c.user_id, end.session == session.c.session))
        .outerjoin(session_drifts, and_(drift.user_id == session.c.user_id, drift.session == session.c.session))
        .where(or_(session.c.ready >= rules.size, idle, ended, drifted))
        .order_by(session.c.oldest)
        .limit(1)
    )
