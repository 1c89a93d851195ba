"""Erasing what was said in a scope, and what is to be erased still, inside the caller's transaction."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, literal, or_, select, update

from semmem.backends.sql import locks, marks
from semmem.backends.sql.accounts import forget_answers
from semmem.backends.sql.conversation_erasure import forget_said
from semmem.backends.sql.database import ERASED as ERASED_NEWS
from semmem.backends.sql.holds import HOLD, end_hold, hold_user
from semmem.backends.sql.part import JournalPart, one_read, one_write
from semmem.backends.sql.rows import json_memory, raise_times, scope_row, within
from semmem.backends.sql.states import forget_states
from semmem.backends.sql.tables import (
    ERASED,
    IN_BATCH,
    LIVE,
    NARROWING,
    accesses,
    answers,
    batches,
    dropped,
    erasures,
    pending_erasures,
    session_drifts,
    session_ends,
    session_pasts,
    turns,
    users,
    versions,
    votes,
)
from semmem.backends.sql.unlearnt import drop_notes, end_batches
from semmem.backends.sql.usage import forget_usage
from semmem.backends.sql.withholding import hid, withhold
from semmem.memory import SKEW_S, Forgetting, MemoryType, Scope
from semmem.ports.errors import JournalError


class SqlErasure(JournalPart):
    """What erases, and remembers what is to be erased still. See ErasureRecords."""

    async def begin_erasure(
        self, what: Forgetting, *, now: float, turned_away: Sequence[str] = (), hold_s: float = 60.0
    ) -> tuple[str, Counter[str]]:
        await self.notice_clock()
        return await self._begin_erasure(what, now=now, turned_away=turned_away, hold_s=hold_s)

    @one_write
    def _begin_erasure(
        self, conn: Connection, what: Forgetting, *, now: float, turned_away: Sequence[str], hold_s: float
    ) -> tuple[str, Counter[str]]:
        locks.user(conn, what.scope.user)
        self._database.say(conn, ERASED_NEWS)
        forget_answers(conn, what.scope.user)
        forget_states(conn, what.scope.user)
        if not what.takes_turns:
            _remember(conn, what)
            return "", Counter()
        counts = _erase_turns(conn, what.scope, what.at, now)  # first: in a full file it makes room for what follows
        _remember(conn, what)
        marks.mark(conn, what.scope, what.at, now)
        marks.shut(conn, [(turn_id, what.at) for turn_id in turned_away])
        return hold_user(conn, what.scope.user, now, hold_s) or "", counts

    @one_write
    def withhold_answers(self, conn: Connection, user: str, memory_ids: Sequence[str], *, now: float) -> None:
        locks.user(conn, user)
        hid(conn, user, now)
        withhold(conn, user, now=now, memories=memory_ids)

    @one_write
    def finish_erasure(self, conn: Connection, what: Forgetting, hold_id: str) -> None:
        """Nobody needs to know any more whose it was."""
        locks.user(conn, what.scope.user)
        end_hold(conn, hold_id)
        live = select(batches.c.id).where(LIVE)
        conn.execute(delete(erasures).where(erasures.c.batch_id == hold_id, erasures.c.batch_id.not_in(live)))
        self._database.say(conn, ERASED_NEWS)
        this = and_(pending_erasures.c.id == erasure_id(what), pending_erasures.c.forgotten_at <= what.at)
        conn.execute(delete(pending_erasures).where(this))

    @one_read
    def pending_erasures(self, conn: Connection, *, limit: int) -> list[Forgetting]:
        rows = conn.execute(select(pending_erasures).order_by(pending_erasures.c.forgotten_at).limit(limit))
        return [forgetting(row) for row in rows]


def _remember(conn: Connection, what: Forgetting) -> None:
    row = scope_row(what.scope) | {
        "id": erasure_id(what),
        "narrowed": json.dumps([name for name in NARROWING if getattr(what.scope, name) is not None]),
        "types": json.dumps([each.value for each in what.types]),
        "memory_id": what.memory_id,
        "forgotten_at": what.at,
    }
    raise_times(conn, pending_erasures.c.forgotten_at, [row])


def forgetting(row: Row[Any]) -> Forgetting:
    narrowed = {name: getattr(row, name) for name in json.loads(row.narrowed)}
    types = tuple(MemoryType(each) for each in json.loads(row.types))
    return Forgetting(Scope(row.user_id, **narrowed), row.forgotten_at, types, row.memory_id)


def erasure_id(what: Forgetting) -> str:
    """Two erasures of the same are one."""
    scope, types = what.scope, sorted(each.value for each in what.types)
    text = json.dumps([scope.user, scope.project, scope.agent, scope.session, types, what.memory_id])
    return hashlib.sha256(text.encode("ascii")).hexdigest()


# --- turns and what hangs on them ------------------------------------------------------------------------------------


def _erase_turns(conn: Connection, scope: Scope, at: float, now: float) -> Counter[str]:
    """Everything of the scope until ``at``, and the batches and holds that have it in their hands; how many of each.

    Of a turn its bare id stays until it is pruned, so that an answer that comes later is turned away.
    """
    # What is here and dated ahead was said before, by a clock that was ahead. Not so on a later try: it may be anew.
    ahead = now + SKEW_S if now - at < SKEW_S else math.inf
    mine = and_(within(turns, scope), or_(turns.c.opened_at <= at, turns.c.opened_at > ahead))
    counts: Counter[str] = Counter(turns=conn.execute(select(func.count()).select_from(turns).where(mine)).scalar_one())
    torn = set(conn.execute(select(turns.c.batch_id).where(mine, IN_BATCH).distinct()).scalars())
    conn.execute(delete(answers).where(answers.c.turn_id.in_(select(turns.c.id).where(mine))))
    drop_notes(conn, mine)
    conn.execute(update(turns).where(mine).values(bare_id(at)))
    counts["batches"] = _cut_batches(conn, scope, at, torn)
    counts["versions"] = _erase_versions(conn, scope, at)
    counts.update(forget_said(conn, scope, at, now=now))
    if scope.project is None and scope.agent is None:
        _erase_sessions(conn, scope, at)
    if scope == Scope(scope.user):
        counts["statistics"] = _erase_user(conn, scope.user, at)
    return counts


def bare_id(at: float) -> dict[str, Any]:
    """What is left of a turn."""
    blank = dict.fromkeys(("user_id", "project", "agent", "session", "request_id", "user_text", "model", "trace"), "")
    names = ("session_key", "opened_at", "seen_at", "batch_id", "closed_at", "answer", "finish_reason")
    return {**blank, **dict.fromkeys(names), "ordinal": 0, "closing": ERASED, "done_at": at}


def _cut_batches(conn: Connection, scope: Scope, at: float, torn: set[str]) -> int:
    """Whoever learns from an erased turn, or holds the user, may write no more; turns said later wait for another
    batch. How many batches and holds were under way."""
    empty = ~select(turns.c.id).where(turns.c.batch_id == batches.c.id).exists()
    lost = and_(within(batches, scope), or_(batches.c.id.in_(torn), empty))
    held = and_(batches.c.user_id == scope.user, batches.c.trigger_word == HOLD)
    cut = end_batches(conn, conn.execute(select(batches.c.id).where(LIVE, or_(lost, held))).scalars().all())
    over = and_(within(batches, scope), batches.c.status.is_not(None))
    conn.execute(delete(batches).where(over, or_(batches.c.finished_at <= at, batches.c.finished_at.is_(None))))
    return cut


def _erase_versions(conn: Connection, scope: Scope, at: float) -> int:
    mine = within(versions, scope)
    rows = conn.execute(select(versions.c.memory_id, versions.c.version, versions.c.body).where(mine)).all()
    old = [row for row in rows if _said_at(row.body) <= at]
    for row in old:
        this = and_(versions.c.memory_id == row.memory_id, versions.c.version == row.version)
        conn.execute(delete(versions).where(versions.c.user_id == scope.user, this))
    return len(old)


def _said_at(body: str) -> float:
    """What cannot be read must not stay for that."""
    try:
        return json_memory(body).said_at
    except JournalError:
        return -math.inf


def _erase_sessions(conn: Connection, scope: Scope, at: float) -> None:
    for marked_at in (session_ends.c.ended_at, session_drifts.c.drifted_at, session_pasts.c.forgotten_at):
        table = marked_at.table
        these: ColumnElement[bool] = literal(True) if scope.session is None else table.c.session == scope.session
        conn.execute(delete(table).where(table.c.user_id == scope.user, these, marked_at <= at))


def _erase_user(conn: Connection, user: str, at: float) -> int:
    live = select(batches.c.id).where(LIVE)
    conn.execute(delete(erasures).where(erasures.c.user_id == user, erasures.c.batch_id.not_in(live)))
    conn.execute(delete(users).where(users.c.user_id == user))
    for table in (dropped, votes):
        conn.execute(delete(table).where(table.c.user_id == user, table.c.last_at <= at))
    used = forget_usage(conn, marks.digest(user), at)
    return used + conn.execute(delete(accesses).where(accesses.c.user_id == user, accesses.c.last_at <= at)).rowcount
