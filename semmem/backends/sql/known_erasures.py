"""What is known of erasures that are done, and applied to what comes from a copy of earlier: a backup, an export,
another replica's journal. Marks hold digests, so a copy's own names are looked up in them, and never the other way
round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Table, and_, delete, or_, select, update

from semmem.backends.sql import locks, marks
from semmem.backends.sql.conversation_erasure import (
    forget_marked_conversations,
    forget_marked_turns_said,
    forget_turns_said,
    mark_conversations,
)
from semmem.backends.sql.erasure import bare_id, forgetting
from semmem.backends.sql.holds import is_live, is_marked
from semmem.backends.sql.marks import lower
from semmem.backends.sql.part import JournalPart, one_read, one_write
from semmem.backends.sql.rows import raise_times, row_scope
from semmem.backends.sql.states import forget_all_states
from semmem.backends.sql.tables import (
    IN_BATCH,
    NARROWING,
    WAITING,
    accesses,
    answers,
    conversations,
    dropped,
    forgotten,
    forgotten_conversations,
    forgotten_memories,
    pending_erasures,
    provisional,
    turns,
    users,
    versions,
    votes,
)
from semmem.backends.sql.unlearnt import end_batches
from semmem.backends.sql.usage import forget_usage
from semmem.backends.sql.withholding import withhold, withhold_marked
from semmem.memory import Forgetting, Memory, Scope
from semmem.ports.erasure import Mark

ROWS_MAX = 500
"""Rows in one statement: SQLite takes some thousands of parameters."""
_SCOPE = ("user_digest", "project_digest", "agent_digest", "session_digest")
NOBODY = ("", "", "", "")
"""The scope of a mark that names no user, not even by a digest."""
_MEMORY = ("user_digest", "memory_digest", "turn_digest")


class SqlKnownErasures(JournalPart):
    """KnownErasures, and what writes them for single memories."""

    @one_write
    def mark_memories(
        self, conn: Connection, memories: Sequence[Memory], *, at: float, now: float | None = None
    ) -> int:
        now = at if now is None else now
        locks.users(conn, {memory.user for memory in memories})
        rows = [(memory.user, memory.id, memory.source.turn) for memory in memories]
        _raise(conn, forgotten_memories, _MEMORY, [(*map(_digest, row), at) for row in rows])
        number = 0
        for user in sorted({memory.user for memory in memories}):
            mine = [memory for memory in memories if memory.user == user]
            said = {memory.source.turn: at for memory in mine if memory.source.turn}
            messages, begun = forget_turns_said(conn, said, user, now=now)
            withhold(conn, user, now=now, memories={memory.id for memory in mine}, begun=begun)
            number += messages
        return number

    @one_read
    def marks(self, conn: Connection) -> list[Mark]:
        scopes = conn.execute(select(forgotten).order_by(*(forgotten.c[name] for name in _SCOPE)))
        single = conn.execute(select(forgotten_memories).order_by(*(forgotten_memories.c[name] for name in _MEMORY)))
        removed = conn.execute(select(forgotten_conversations).order_by(forgotten_conversations.c.id))
        found = [Mark((row[0], row[1], row[2], row[3]), max(row.forgotten_at, row.ahead_at)) for row in scopes]
        found += [Mark(NOBODY, row.forgotten_at, conversation=row.id) for row in removed]
        return found + [
            Mark((row.user_digest, "", "", ""), row.forgotten_at, row.memory_digest, row.turn_digest) for row in single
        ]

    @one_write
    def add_marks(self, conn: Connection, marks: Sequence[Mark]) -> None:
        if marks:
            forget_all_states(conn)
        scopes = [mark for mark in marks if not mark.memory and not mark.conversation]
        _raise(conn, forgotten, _SCOPE, [(*mark.scope, mark.at) for mark in scopes])
        mark_conversations(conn, [(mark.conversation, mark.at) for mark in marks if mark.conversation])
        for mark in scopes:
            if not any(mark.scope[1:]):
                forget_usage(conn, mark.scope[0], mark.at)  # its digest is all that names the user here
        single = [(mark.scope[0], mark.memory, mark.turn, mark.at) for mark in marks if mark.memory]
        _raise(conn, forgotten_memories, _MEMORY, single)
        lower(conn, self._clock.now(), self._clock.now())

    @one_read
    def may_stay(self, conn: Connection, batch_id: str, memory: Memory) -> bool:
        """As WriteRecords says. A batch that has ended, or was cut off, hears of nothing that is forgotten since: only
        marks and erasures under way tell it."""
        if is_marked(conn, batch_id, memory.id):
            return False
        return is_live(conn, batch_id) or not _is_meant(conn, memory)

    @one_read
    def is_erased(self, conn: Connection, memory: Memory) -> bool:
        return _is_meant(conn, memory)

    @one_read
    def erased_among(self, conn: Connection, memories: Sequence[Memory]) -> set[str]:
        single = _marked_until(conn, {memory.user for memory in memories})
        return {memory.id for memory in memories if _is_erased(conn, memory, single, of_a_copy=True)}

    @one_read
    def erased_scopes(self, conn: Connection) -> list[Forgetting]:
        found = {what for scope in _named(conn) for what in _marks_over(conn, scope)}
        return sorted(found, key=lambda what: (what.at, repr(what.scope)))

    @one_write
    def erase_marked(self, conn: Connection) -> Counter[str]:
        forget_all_states(conn)  # they are made again of what may be kept
        single = list(conn.execute(select(forgotten_memories)))
        counts = Counter(turns=_erase_turns(conn, {row.turn_digest: row.forgotten_at for row in single}))
        counts.update(_erase_beside(conn, {(row.user_digest, row.memory_digest) for row in single}))
        said = {row.turn_digest: row.forgotten_at for row in single if row.turn_digest}
        counts["messages"] += forget_marked_turns_said(conn, said) if said else 0
        counts.update(forget_marked_conversations(conn))
        withhold_marked(conn)
        return counts


def _digest(name: str) -> str:
    return marks.digest(name) if name else ""


def _raise(conn: Connection, table: Table, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Marks move on to a later time, never back."""
    named = [dict(zip((*names, "forgotten_at"), row, strict=True)) for row in sorted(rows)]
    raise_times(conn, table.c.forgotten_at, named)


def _marked_until(conn: Connection, names: set[str]) -> dict[tuple[str, str], float]:
    mine = forgotten_memories.c.user_digest.in_([marks.digest(name) for name in names])
    return marks.memories_forgotten(conn, mine)


def _is_erased(
    conn: Connection, memory: Memory, single: dict[tuple[str, str], float], *, of_a_copy: bool = False
) -> bool:
    until = single.get((marks.digest(memory.user), marks.digest(memory.id)))
    if until is not None and memory.updated_at <= until:
        return True
    scope = Scope(memory.user, memory.project, memory.agent, memory.session)
    return marks.is_forgotten(conn, scope, memory.said_at, of_a_copy=of_a_copy)


def _is_meant(conn: Connection, memory: Memory) -> bool:
    """Whether an erasure took the memory, or is about to."""
    single = _marked_until(conn, {memory.user})
    if (marks.digest(memory.user), marks.digest(memory.id)) in single or _is_erased(conn, memory, single):
        return True
    pending = conn.execute(select(pending_erasures).where(pending_erasures.c.user_id == memory.user))
    return any(forgetting(row).covers(memory) for row in pending)


def _named(conn: Connection) -> Iterator[Scope]:
    """Every scope of which this journal has anything."""
    for table in (turns, versions, conversations):
        columns = [table.c.user_id, *(table.c[name] for name in NARROWING)]
        yield from (row_scope(row) for row in conn.execute(select(*columns).where(table.c.user_id != "").distinct()))
    yield from (Scope(name) for name in conn.execute(select(users.c.user_id)).scalars())


def _marks_over(conn: Connection, scope: Scope) -> Iterator[Forgetting]:
    """The marks that cover what was said in exactly this scope, with its names in place of their digests."""
    for row in conn.execute(select(forgotten).where(forgotten.c.user_digest == marks.digest(scope.user))):
        named = [name for name in NARROWING if getattr(row, f"{name}_digest")]
        given: dict[str, Any] = {name: getattr(scope, name) or "" for name in named}
        if all(getattr(row, f"{name}_digest") == marks.digest(value) for name, value in given.items()):
            yield Forgetting(Scope(scope.user, **given), max(row.forgotten_at, row.ahead_at))


def _erase_turns(conn: Connection, until: dict[str, float]) -> int:
    """Turns from which a marked memory was learnt, and that would be learnt from again; only their ids stay."""
    locks.users(conn, {row.user_id for row in _marked(conn, until)})
    doomed = _marked(conn, until)  # once more: a batch may have taken some of them before the locks were had
    end_batches(conn, sorted({row.batch_id for row in doomed if row.batch_id}))
    for row in doomed:
        conn.execute(delete(answers).where(answers.c.turn_id == row.id))
        conn.execute(delete(provisional).where(provisional.c.turn_id == row.id))
        conn.execute(update(turns).where(turns.c.id == row.id).values(bare_id(until[marks.digest(row.id)])))
    return len(doomed)


def _marked(conn: Connection, until: dict[str, float]) -> list[Row[Any]]:
    return [row for row in conn.execute(select(turns).where(or_(WAITING, IN_BATCH))) if _is_marked(row, until)]


def _is_marked(row: Row[Any], until: dict[str, float]) -> bool:
    at = until.get(marks.digest(row.id))
    return at is not None and row.opened_at <= at


def _erase_beside(conn: Connection, single: set[tuple[str, str]]) -> Counter[str]:
    """Versions and statistics of marked memories."""
    counts: Counter[str] = Counter()
    for table in (versions, accesses, dropped, votes):
        word = "versions" if table is versions else "statistics"
        ids = conn.execute(select(table.c.user_id, table.c.memory_id).distinct())
        for user, memory_id in [(row.user_id, row.memory_id) for row in ids]:
            if (marks.digest(user), marks.digest(memory_id)) in single:
                this = and_(table.c.user_id == user, table.c.memory_id == memory_id)
                counts[word] += conn.execute(delete(table).where(this)).rowcount
    return counts
