"""Erasing what was said in a scope, what is to be erased still, and what is known of erasures that are done.

The last is applied to what comes from a copy of earlier: a backup, an export, another replica's journal. Marks hold
digests, so a copy's own names are looked up in them, and never the other way round."""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, Table, and_, literal, or_, select

from semmem.backends.sql import conversation_rows, locks, marks, tables
from semmem.backends.sql.accounts import forget_answers
from semmem.backends.sql.conversation_rows import forget_marked_conversations, forget_marked_turns_said, forget_said
from semmem.backends.sql.database import ERASED as ERASED_NEWS
from semmem.backends.sql.database import JournalPart, one_read, one_write
from semmem.backends.sql.marks import lower
from semmem.backends.sql.memory_records import HOLD, end_hold, hold_user, is_live, unmarked
from semmem.backends.sql.request_log import forget_logged
from semmem.backends.sql.rows import Transaction, json_memory, row_scope, scope_row, within
from semmem.backends.sql.states import forget_states
from semmem.backends.sql.tables import aliases, answers, batches, erasures, forgotten, pending_erasures, turns, versions
from semmem.backends.sql.tables import request_log as logged
from semmem.backends.sql.unlearnt import end_batches
from semmem.backends.sql.usage import forget_usage
from semmem.backends.sql.withholding import withhold, withhold_marked
from semmem.memory import SKEW_S, Forgetting, Memory, MemoryType, Scope
from semmem.ports.erasure import Mark
from semmem.ports.errors import JournalError

NOBODY = ("", "", "", "")
"""The scope of a mark that names no user, not even by a digest."""


class SqlErasure(JournalPart):
    """ErasureRecords and KnownErasures; and of MemoryRecords whether a memory is erased."""

    async def begin_erasure(
        self, what: Forgetting, *, now: float, turned_away: Sequence[str] = (), hold_s: float = 60.0
    ) -> tuple[str, Counter[str]]:
        await self.notice_clock()
        return await self._begin_erasure(what, now=now, turned_away=turned_away, hold_s=hold_s)

    @one_write
    def _begin_erasure(
        self, conn: Transaction, what: Forgetting, *, now: float, turned_away: Sequence[str], hold_s: float
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
    def withhold_answers(self, conn: Transaction, user: str, memory_ids: Sequence[str], *, now: float) -> None:
        locks.user(conn, user)
        mine = forgotten.c.user_digest == marks.digest(user)  # no prompt is given the memories of these scopes any more
        conn.change(forgotten, mine, forgotten.c.hidden_at < now, hidden_at=now)
        withhold(conn, user, now=now, memories=memory_ids)

    @one_write
    def finish_erasure(self, conn: Transaction, what: Forgetting, hold_id: str) -> None:
        """Nobody needs to know any more whose it was."""
        locks.user(conn, what.scope.user)
        end_hold(conn, hold_id)
        conn.remove(erasures, erasures.c.batch_id == hold_id, tables.NOT_LIVE)
        self._database.say(conn, ERASED_NEWS)
        pending = pending_erasures.c
        conn.remove(pending_erasures, pending.id == erasure_id(what), pending.forgotten_at <= what.at)

    @one_read
    def pending_erasures(self, conn: Transaction, *, limit: int) -> list[Forgetting]:
        rows = conn.execute(select(pending_erasures).order_by(pending_erasures.c.forgotten_at).limit(limit))
        return [forgetting(row) for row in rows]

    @one_write
    def mark_memories(
        self, conn: Transaction, memories: Sequence[Memory], *, at: float, now: float | None = None
    ) -> int:
        now = at if now is None else now
        locks.users(conn, {memory.user for memory in memories})
        ids = [(memory.user, memory.id, memory.source.turn) for memory in memories]
        _raise(conn, tables.forgotten_memories, [(*(name and marks.digest(name) for name in each), at) for each in ids])
        number = 0
        for user in sorted({memory.user for memory in memories}):
            mine = [memory for memory in memories if memory.user == user]
            said = {memory.source.turn: at for memory in mine if memory.source.turn}
            messages, begun = conversation_rows.forget_turns_said(conn, said, user, now=now)
            withhold(conn, user, now=now, memories={memory.id for memory in mine}, begun=begun)
            number += messages
        return number

    @one_read
    def marks(self, conn: Transaction) -> list[Mark]:
        scopes, single, removed = (conn.execute(select(each).order_by(*each.primary_key)) for each in tables.MARKS)
        found = [Mark((row[0], row[1], row[2], row[3]), max(row.forgotten_at, row.ahead_at)) for row in scopes]
        found += [Mark(NOBODY, row.forgotten_at, conversation=row.id) for row in removed]
        return found + [
            Mark((row.user_digest, "", "", ""), row.forgotten_at, row.memory_digest, row.turn_digest) for row in single
        ]

    @one_write
    def add_marks(self, conn: Transaction, marks: Sequence[Mark]) -> None:
        if marks:
            forget_states(conn)
            forget_logged(conn)
        scopes = [mark for mark in marks if not mark.memory and not mark.conversation]
        _raise(conn, forgotten, [(*mark.scope, mark.at) for mark in scopes])
        conversation_rows.mark_conversations(
            conn, [(mark.conversation, mark.at) for mark in marks if mark.conversation]
        )
        for mark in scopes:
            if not any(mark.scope[1:]):
                forget_usage(conn, mark.scope[0], mark.at)  # its digest is all that names the user here
        single = [(mark.scope[0], mark.memory, mark.turn, mark.at) for mark in marks if mark.memory]
        _raise(conn, tables.forgotten_memories, single)
        lower(conn, self._clock.now(), self._clock.now())

    @one_read
    def may_stay(self, conn: Transaction, batch_id: str, *memories: Memory) -> set[str]:
        """As WriteRecords says. A batch that has ended, or was cut off, hears of nothing that is forgotten since: only
        marks and erasures under way tell it."""
        staying = unmarked(conn, batch_id, [memory.id for memory in memories])
        if is_live(conn, batch_id):
            return staying
        return {memory.id for memory in memories if memory.id in staying and not _is_meant(conn, memory)}

    @one_read
    def is_erased(self, conn: Transaction, memory: Memory) -> bool:
        return _is_meant(conn, memory)

    @one_read
    def erased_among(self, conn: Transaction, memories: Sequence[Memory]) -> set[str]:
        single = _marked_until(conn, {memory.user for memory in memories})
        return {memory.id for memory in memories if _is_erased(conn, memory, single, of_a_copy=True)}

    @one_read
    def erased_scopes(self, conn: Transaction) -> list[Forgetting]:
        found = {what for scope in _named(conn) for what in _marks_over(conn, scope)}
        return sorted(found, key=lambda what: (what.at, repr(what.scope)))

    @one_write
    def erase_marked(self, conn: Transaction) -> Counter[str]:
        forget_states(conn)  # they are made again of what may be kept
        forget_logged(conn)
        until = marks.turns_forgotten(conn)
        counts = Counter(turns=_erase_marked_turns(conn, until))
        counts.update(_erase_beside(conn, marks.memories_forgotten(conn)))
        counts["messages"] += forget_marked_turns_said(conn, until) if until else 0
        counts.update(forget_marked_conversations(conn))
        withhold_marked(conn)
        return counts


def _remember(conn: Transaction, what: Forgetting) -> None:
    row = scope_row(what.scope) | {
        "id": erasure_id(what),
        "narrowed": json.dumps([name for name in tables.NARROWING if getattr(what.scope, name) is not None]),
        "types": json.dumps([each.value for each in what.types]),
        "memory_id": what.memory_id,
        "forgotten_at": what.at,
    }
    conn.raise_times(pending_erasures.c.forgotten_at, [row])


def forgetting(row: Row[Any]) -> Forgetting:
    narrowed = {name: getattr(row, name) for name in json.loads(row.narrowed)}
    types = tuple(MemoryType(each) for each in json.loads(row.types))
    return Forgetting(Scope(row.user_id, **narrowed), row.forgotten_at, types, row.memory_id)


def erasure_id(what: Forgetting) -> str:
    """Two erasures of the same are one."""
    scope, types = what.scope, sorted(each.value for each in what.types)
    text = json.dumps([scope.user, scope.project, scope.agent, scope.session, types, what.memory_id])
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _erase_turns(conn: Transaction, scope: Scope, at: float, now: float) -> Counter[str]:
    """Everything of the scope until ``at``, and the batches and holds that have it in their hands; how many of each. Of
    a turn its bare id stays until it is pruned, so that an answer that comes later is turned away."""
    # What is here and dated ahead was said before, by a clock that was ahead. Not so on a later try: it may be anew.
    ahead = now + SKEW_S if now - at < SKEW_S else math.inf
    mine = and_(within(turns, scope), or_(turns.c.opened_at <= at, turns.c.opened_at > ahead))
    counts: Counter[str] = Counter(turns=conn.count(turns, mine))
    torn = set(conn.execute(select(turns.c.batch_id).where(mine, tables.IN_BATCH).distinct()).scalars())
    for named in (answers, tables.provisional):  # neither the answers' names stay, nor the ids of their memories
        conn.remove(named, named.c.turn_id.in_(select(turns.c.id).where(mine)))
    conn.change(turns, mine, **bare_id(at))
    counts["batches"] = _cut_batches(conn, scope, at, torn)
    counts["versions"] = _erase_versions(conn, scope, at)
    counts.update(forget_said(conn, scope, at, now=now))
    counts["requests"] = forget_logged(conn, within(logged, scope), or_(logged.c.at <= at, logged.c.at > ahead))
    if scope.project is None and scope.agent is None:
        _erase_sessions(conn, scope, at)
    if scope == Scope(scope.user):
        counts["statistics"] = _erase_user(conn, scope.user, at)
        counts["aliases"] = conn.remove(aliases, aliases.c.user_id == scope.user, aliases.c.changed_at <= at)
    return counts


def bare_id(at: float) -> dict[str, Any]:
    """What is left of a turn."""
    blank = dict.fromkeys(("user_id", "project", "agent", "session", "request_id", "user_text", "model", "trace"), "")
    names = ("session_key", "opened_at", "seen_at", "batch_id", "closed_at", "answer", "finish_reason")
    return {**blank, **dict.fromkeys(names), "ordinal": 0, "closing": tables.ERASED, "done_at": at}


def _cut_batches(conn: Transaction, scope: Scope, at: float, torn: set[str]) -> int:
    """Whoever learns from an erased turn, or holds the user, may write no more; turns said later wait for another
    batch. How many batches and holds were under way."""
    empty = ~select(turns.c.id).where(turns.c.batch_id == batches.c.id).exists()
    lost = and_(within(batches, scope), or_(batches.c.id.in_(torn), empty))
    held = and_(batches.c.user_id == scope.user, batches.c.trigger_word == HOLD)
    cut = end_batches(conn, conn.execute(select(batches.c.id).where(tables.LIVE, or_(lost, held))).scalars().all())
    over = and_(within(batches, scope), batches.c.status.is_not(None))
    conn.remove(batches, over, or_(batches.c.finished_at <= at, batches.c.finished_at.is_(None)))
    return cut


def _erase_versions(conn: Transaction, scope: Scope, at: float) -> int:
    mine = within(versions, scope)
    rows = conn.execute(select(versions.c.memory_id, versions.c.version, versions.c.body).where(mine)).all()
    old = [row for row in rows if _said_at(row.body) <= at]
    for row in old:
        memory = (versions.c.user_id == scope.user, versions.c.memory_id == row.memory_id)
        conn.remove(versions, *memory, versions.c.version == row.version)
    return len(old)


def _said_at(body: str) -> float:
    """What cannot be read must not stay for that."""
    try:
        return json_memory(body).said_at
    except JournalError:
        return -math.inf


def _erase_sessions(conn: Transaction, scope: Scope, at: float) -> None:
    for marked_at in tables.SESSION_MARKS:
        table = marked_at.table
        these: ColumnElement[bool] = literal(True) if scope.session is None else table.c.session == scope.session
        conn.remove(table, table.c.user_id == scope.user, these, marked_at <= at)


def _erase_user(conn: Transaction, user: str, at: float) -> int:
    conn.remove(erasures, erasures.c.user_id == user, tables.NOT_LIVE)
    conn.remove(tables.users, tables.users.c.user_id == user)
    gone = {table: conn.remove(table, table.c.user_id == user, table.c.last_at <= at) for table in tables.STATISTICS}
    return gone[tables.accesses] + forget_usage(conn, marks.digest(user), at)


def _raise(conn: Transaction, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Marks move on to a later time, never back. A row: the table's key, and the time."""
    names = [*table.primary_key.columns.keys(), "forgotten_at"]
    named = [dict(zip(names, row, strict=True)) for row in sorted(rows)]
    conn.raise_times(table.c.forgotten_at, named)


def _marked_until(conn: Transaction, names: set[str]) -> dict[tuple[str, str], float]:
    return marks.memories_forgotten(conn, tables.forgotten_memories.c.user_digest.in_([*map(marks.digest, names)]))


def _is_erased(
    conn: Transaction, memory: Memory, single: dict[tuple[str, str], float], *, of_a_copy: bool = False
) -> bool:
    until = single.get((marks.digest(memory.user), marks.digest(memory.id)))
    if until is not None and memory.updated_at <= until:
        return True
    scope = Scope(memory.user, memory.project, memory.agent, memory.session)
    return marks.is_forgotten(conn, scope, memory.said_at, of_a_copy=of_a_copy)


def _is_meant(conn: Transaction, memory: Memory) -> bool:
    single = _marked_until(conn, {memory.user})
    if (marks.digest(memory.user), marks.digest(memory.id)) in single or _is_erased(conn, memory, single):
        return True
    pending = conn.rows_of(pending_erasures, pending_erasures.c.user_id == memory.user)
    return any(forgetting(row).covers(memory) for row in pending)


def _named(conn: Transaction) -> Iterator[Scope]:
    """Every scope of which this journal has anything."""
    for table in (turns, versions, tables.conversations):
        columns = [table.c.user_id, *(table.c[name] for name in tables.NARROWING)]
        yield from (row_scope(row) for row in conn.execute(select(*columns).where(table.c.user_id != "").distinct()))
    for column in (tables.users.c.user_id, aliases.c.user_id):
        yield from (Scope(name) for name in conn.execute(select(column)).scalars())


def _marks_over(conn: Transaction, scope: Scope) -> Iterator[Forgetting]:
    """The marks that cover what was said in exactly this scope, with its names in place of their digests."""
    for row in conn.execute(select(forgotten).where(forgotten.c.user_digest == marks.digest(scope.user))):
        named = [name for name in tables.NARROWING if getattr(row, f"{name}_digest")]
        given: dict[str, Any] = {name: getattr(scope, name) or "" for name in named}
        if all(getattr(row, f"{name}_digest") == marks.digest(value) for name, value in given.items()):
            yield Forgetting(Scope(scope.user, **given), max(row.forgotten_at, row.ahead_at))


def _erase_marked_turns(conn: Transaction, until: dict[str, float]) -> int:
    """Turns from which a marked memory was learnt, and that would be learnt from again; only their ids stay."""
    locks.users(conn, {row.user_id for row in _marked(conn, until)})
    doomed = _marked(conn, until)  # once more: a batch may have taken some of them before the locks were had
    end_batches(conn, sorted({row.batch_id for row in doomed if row.batch_id}))
    for row in doomed:
        conn.remove(answers, answers.c.turn_id == row.id)
        conn.remove(tables.provisional, tables.provisional.c.turn_id == row.id)
        conn.change(turns, turns.c.id == row.id, **bare_id(until[marks.digest(row.id)]))
    return len(doomed)


def _marked(conn: Transaction, until: dict[str, float]) -> list[Row[Any]]:
    waiting = conn.execute(select(turns).where(or_(tables.WAITING, tables.IN_BATCH)))
    return [row for row in waiting if row.opened_at <= until.get(marks.digest(row.id), -math.inf)]


def _erase_beside(conn: Transaction, single: Container[tuple[str, str]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for table in (versions, *tables.STATISTICS):
        word = "versions" if table is versions else "statistics"
        ids = conn.execute(select(table.c.user_id, table.c.memory_id).distinct())
        for user, memory_id in [(row.user_id, row.memory_id) for row in ids]:
            if (marks.digest(user), marks.digest(memory_id)) in single:
                counts[word] += conn.remove(table, table.c.user_id == user, table.c.memory_id == memory_id)
    return counts
