"""Until when what was said in a scope is erased: marks that outlive the erasure, inside the caller's transaction.

An erasure reaches what is in the file. What was said before it may still be on its way here, in the queue of this or
another process, so each scope that was erased leaves a mark, and every half of a turn is looked at before it is
written. A mark holds digests of names: it shall recognise a name, not tell it."""

import hashlib
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, bindparam, case, delete, func, or_, select, update

from semmem.backends.sql.rows import Prepared, PreparedForMany, Transaction, later
from semmem.backends.sql.tables import ERASED, NARROWING, forgotten, forgotten_memories, turns
from semmem.memory import SKEW_S, Scope, Turn

_Marks = Mapping[str, Sequence[Row[Any]]]
"""By digest of the user."""

_MARKS = PreparedForMany(lambda users: select(forgotten).where(forgotten.c.user_digest.in_(users)))
EVERYBODY = ""
"""In place of a user's digest: erasures are lost (recovering.py), and nobody can say whose. Of what was said until then
nothing is learnt from a history; what is here, and what comes for the first time, nobody doubts."""
_HIS_OR_ANYBODYS = forgotten.c.user_digest.in_([bindparam("user"), EVERYBODY])
_NEWEST = Prepared(select(func.max(forgotten.c.forgotten_at)).where(_HIS_OR_ANYBODYS))


def mark(conn: Transaction, scope: Scope, at: float, now: float) -> None:
    """The scope's mark moves on to ``at``, never back. Narrower ones that it covers go. An ``at`` that lies ahead of
    ``now`` is that of a clock which was set back: what is said from now on is not meant."""
    is_ahead = at > now + SKEW_S
    at, ahead_at = (now, at) if is_ahead else (at, 0.0)
    row: dict[str, Any] = {"user_digest": digest(scope.user)}
    row |= {f"{name}_digest": "" if (given := getattr(scope, name)) is None else digest(given) for name in NARROWING}
    times = {"forgotten_at": at, "ahead_at": ahead_at}
    conn.upsert(forgotten, [row | times], lambda new: {name: later(forgotten.c[name], new[name]) for name in times})
    if scope == Scope(scope.user):
        narrower = or_(*(forgotten.c[name] != value for name, value in row.items()))
        mine = forgotten.c.user_digest == row["user_digest"]
        covered = (forgotten.c.forgotten_at <= at, forgotten.c.ahead_at <= max(at, ahead_at))
        conn.remove(forgotten, mine, narrower, *covered)


def lower(conn: Transaction, since: float, now: float) -> None:
    """Marks that lie ahead of the clock are by one that was ahead and is not any more: they end at ``since``, after
    which it was not set. What was erased was said before that; so was what comes and is dated later than now."""
    behind_s = 0.0
    if conn.dialect.name == "postgresql":  # the later of two clocks counts: one alone may be behind
        server = conn.execute(select(func.extract("epoch", func.clock_timestamp()))).scalar_one()
        behind_s = max(0.0, float(server) - now)
    since, ahead = since + behind_s, now + behind_s + SKEW_S
    f = forgotten.c
    hidden_at = case((f.hidden_at > ahead, since), else_=f.hidden_at)
    before = case((f.ahead_at > f.forgotten_at, f.ahead_at), else_=f.forgotten_at)
    marks = update(forgotten).where(f.forgotten_at > ahead)
    conn.execute(marks.values(forgotten_at=since, hidden_at=hidden_at, ahead_at=before))
    # The same words in the same place are said again: only their bare id is here, and is in their way.
    shut = update(turns).where(turns.c.done_at > ahead, turns.c.closing == ERASED)
    conn.execute(shut.values(done_at=since))


def forgotten_at(conn: Transaction, user: str) -> float | None:
    """When something of the user's was erased last, or may have been."""
    found: float | None = _NEWEST.run(conn, [{"user": digest(user)}]).scalar()
    return found


def is_forgotten(conn: Transaction, scope: Scope, said_at: float, *, of_a_copy: bool = False) -> bool:
    """Whether what was said then, in exactly this scope, is erased. ``of_a_copy``: nobody knows by which clock it is
    dated, so the later time of a mark counts."""
    return covered(of_users(conn, [scope.user]), scope, said_at, of_a_copy=of_a_copy)


def of_users(conn: Transaction, users: Iterable[str]) -> _Marks:
    """Their marks, for ``covered``."""
    found: dict[str, list[Row[Any]]] = {}
    if digests := sorted({digest(user) for user in users}):
        for row in _MARKS.run(conn, digests):
            found.setdefault(row.user_digest, []).append(row)
    return found


def covered(marks: _Marks, scope: Scope, said_at: float, *, of_a_copy: bool = False) -> bool:
    """As ``is_forgotten``, for many at a time."""
    of_user = marks.get(digest(scope.user), ())
    return any(_covers(found, scope, said_at, of_a_copy=of_a_copy) for found in of_user)


def covered_until(marks: _Marks, scope: Scope, said_at: float) -> float:
    """When the memories of the scopes were hidden with which it was erased; ``said_at`` where it is not."""
    over = (found for found in marks.get(digest(scope.user), ()) if _covers(found, scope, said_at))
    return max((max(found.forgotten_at, found.hidden_at) for found in over), default=said_at)


def users_forgotten_at(conn: Transaction, users: Iterable[str]) -> dict[str, float]:
    """Of those users who were erased as a whole: until when."""
    named = {digest(user): user for user in users}
    return {
        named[key]: found.forgotten_at
        for key, rows in of_users(conn, named.values()).items()
        for found in rows
        if not any(getattr(found, f"{name}_digest") for name in NARROWING)
    }


def admitted(conn: Transaction, opened: Sequence[Turn]) -> list[Turn]:
    """The turns that may be written; the door is shut for what may still come of the others. A turn that is only
    resumed (its words were said in an earlier request) is written in an erased scope when it is here already: then it
    was said after the erasure."""
    marks = of_users(conn, {turn.scope.user for turn in opened})
    if not marks:
        return list(opened)
    marked = [turn for turn in opened if digest(turn.scope.user) in marks]
    late = {id(turn) for turn in marked if covered(marks, turn.scope, turn.opened_at)}
    anew = [turn for turn in marked if id(turn) not in late and not turn.resumed]
    # The same words in the same place, said after they were erased, are a turn like any other.
    shut_then = and_(turns.c.id == bindparam("turn"), turns.c.closing == ERASED, turns.c.done_at < bindparam("opened"))
    if anew:
        conn.execute(delete(turns).where(shut_then), [{"turn": turn.id, "opened": turn.opened_at} for turn in anew])
    in_erased = [turn for turn in marked if id(turn) not in late and covered(marks, turn.scope, -math.inf)]
    resumed = [turn for turn in in_erased if turn.resumed]
    known = {turn.id for turn in anew} | _alive(conn, [turn.id for turn in resumed])
    late |= {id(turn) for turn in resumed if turn.id not in known}
    shut(conn, [(turn.id, turn.opened_at) for turn in marked if id(turn) in late and turn.id not in known])
    return [turn for turn in opened if id(turn) not in late]


def shut(conn: Transaction, ids: Sequence[tuple[str, float]]) -> None:
    """Leave the bare (id, time) of turns that were turned away, so that their other halves are too."""
    rows = [{"id": turn_id, "closing": ERASED, "done_at": at} for turn_id, at in sorted(ids)]
    blank = ("closing", "closed_at", "answer", "finish_reason", "done_at")
    conn.upsert(turns, rows, lambda new: {name: new[name] for name in blank}, where=turns.c.opened_at.is_(None))


def memories_forgotten(conn: Transaction, *which: ColumnElement[bool]) -> dict[tuple[str, str], float]:
    """Of these marks of single memories: by digests of user and memory until when it is erased."""
    f = forgotten_memories.c
    found = select(f.user_digest, f.memory_digest, func.max(f.forgotten_at).label("at")).where(*which)
    rows = conn.execute(found.group_by(f.user_digest, f.memory_digest))
    return {(row.user_digest, row.memory_digest): row.at for row in rows}


def turns_forgotten(conn: Transaction, *which: ColumnElement[bool]) -> dict[str, float]:
    """The same by digest of the turn that such a memory was learnt from."""
    f = forgotten_memories.c
    found = select(f.turn_digest, func.max(f.forgotten_at).label("at")).where(f.turn_digest != "", *which)
    return {row.turn_digest: row.at for row in conn.execute(found.group_by(f.turn_digest))}


def digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def _covers(found: Row[Any], scope: Scope, said_at: float, *, of_a_copy: bool = False) -> bool:
    is_ahead = of_a_copy or said_at > time.time() + SKEW_S
    until = max(found.forgotten_at, found.ahead_at) if is_ahead else found.forgotten_at
    return bool(said_at <= until) and all(
        getattr(found, f"{name}_digest") in ("", digest(getattr(scope, name) or "")) for name in NARROWING
    )


def _alive(conn: Transaction, ids: Sequence[str]) -> set[str]:
    here = select(turns.c.id).where(turns.c.id.in_(ids), turns.c.opened_at.is_not(None), turns.c.closing != ERASED)
    return set(conn.execute(here).scalars()) if ids else set()
