"""The journal and the history of memories in an SQL database: SQLite now, with statements PostgreSQL takes as well.

Accepted means committed. With ``synchronous="NORMAL"`` a commit survives the death of the process, kill -9 included;
when the machine loses power the last commits before it may be missing, though the file stays whole. ``"FULL"`` waits
for the disk at every commit and survives that too.

A lease is held by whoever claimed the batch last, and the calls that follow name only the batch. So ``lease_s`` must
be longer than the work. A worker that overstays cannot break what the next one does, except by giving back a lease
that is not its own: the first facts that are saved stay, progress only rises, the first terminal status stays, and a
finished or erased batch takes no more.

``forget_turns`` overwrites what it deletes in the file; ``purge`` empties the write-ahead log as well. Of a turn whose
answer may still be under way the bare id stays until it is pruned, so that the answer is turned away. An answer whose
question never arrived belongs to nobody who could be named; it goes when it is pruned.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from sqlalchemy import Connection, and_, delete, select, update

from semmem.backends.sql import batches as sql_batches
from semmem.backends.sql import erasure as sql_erasure
from semmem.backends.sql import marks as sql_marks
from semmem.backends.sql import memory_records as sql_life
from semmem.backends.sql import messages as sql_said
from semmem.backends.sql import turns as sql_turns
from semmem.backends.sql.batches import claim_batch, finish_batch
from semmem.backends.sql.file import SqliteFile, Synchronous, sqlite_path
from semmem.backends.sql.tables import (
    LIVE,
    batches,
    facts_json,
    journal_schema,
    json_memory,
    memory_json,
    scope_row,
    versions,
    within,
)
from semmem.memory import Fact, Forgetting, Memory, Scope, Turn
from semmem.ports.history import Dropped, Uses
from semmem.ports.learning import Batch, BatchRules, WaitingSession
from semmem.ports.recording import SaidBefore, TurnClosed


class SqlJournal:
    """Journal, History, AccessStatistics, UserWork and UserList on one SQLite file.

    Several processes and several objects may share the file.

    ``url_or_path``: a path, or ``sqlite:///path``; ValueError for anything else. ``busy_timeout_s``: how long a write
    waits for another process before it is a JournalError. ``synchronous``: see above. ``size_bytes_max``: limit of the
    file's size, None for the disk's. ``batch_sizes_max``: a batch has at most this many times ``BatchRules.size``
    turns. ``versions_max``: earlier versions kept per memory. ``prune_rows_max``: rows erased per transaction when
    pruning, so that accepting turns goes on in between. ``waiting_sessions_max``, ``waiting_turns_max``: how many are
    looked at for a change of topic.

    Every call may raise JournalError. A cancelled call may still be committed. ``turned_away`` counts the turns that
    were not recorded since they had been said before their scope was erased.
    """

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        busy_timeout_s: float = 5.0,
        synchronous: Synchronous = "NORMAL",
        size_bytes_max: int | None = None,
        batch_sizes_max: int = 2,
        versions_max: int = 100,
        prune_rows_max: int = 1000,
        waiting_sessions_max: int = 1000,
        waiting_turns_max: int = 50,
    ) -> None:
        self._file = SqliteFile(
            sqlite_path(url_or_path),
            busy_timeout_s=busy_timeout_s,
            synchronous=synchronous,
            size_bytes_max=size_bytes_max,
        )
        self._batch_sizes_max = batch_sizes_max
        self._versions_max = versions_max
        self._prune_rows_max = prune_rows_max
        self._waiting_sessions_max = waiting_sessions_max
        self._waiting_turns_max = waiting_turns_max
        self.turned_away = 0

    async def open(self) -> None:
        """Create the file, or check that it is a journal this build can read. Idempotent."""
        await self._file.open()

    async def close(self) -> None:
        """Finish what was begun and release the file. Idempotent."""
        await self._file.close()

    async def health(self) -> None:
        """One read from the file. It does not prove that there is room to write."""
        await self._file.read(lambda conn: conn.execute(select(journal_schema.c.version)).one())

    # --- turns ---

    async def record(self, opened: Sequence[Turn], closed: Sequence[TurnClosed]) -> None:
        """As in the port. First means earliest by ``opened_at`` and ``closed_at``, whatever arrives first.

        ``Turn.answer`` is not read: answers come with their closed half.
        """

        def commit(conn: Connection) -> int:
            admitted = sql_marks.admitted(conn, opened) if opened else []
            if admitted:
                sql_turns.record_opened(conn, admitted)
            if closed:
                sql_turns.record_closed(conn, closed)
            sql_said.record_said(conn, opened, closed)
            return len(opened) - len(admitted)

        if opened or closed:
            self.turned_away += await self._file.write(commit)

    async def session_start(self, user: str, session_key: str, *, seen_since: float) -> float | None:
        """As in the port. Of several sessions with this key, the one with the newest turn."""
        return await self._file.read(lambda conn: sql_turns.session_start(conn, user, session_key, seen_since))

    async def turn_of_answer(self, user: str, answer_id: str) -> tuple[str, str] | None:
        """As in the port."""
        return await self._file.read(lambda conn: sql_turns.turn_of_answer(conn, user, answer_id))

    async def said_before(self, message_ids: Sequence[str]) -> list[SaidBefore]:
        """As in the port."""
        return await self._file.read(lambda conn: sql_said.said_before(conn, message_ids))

    async def end_session(self, user: str, session: str, *, now: float) -> int:
        """As in the port. Turns opened after ``now`` are not affected, those that arrive late are."""
        return await self._file.write(lambda conn: sql_turns.end_session(conn, user, session, now))

    async def session_turns(self, last: Turn, *, limit: int) -> list[Turn]:
        """As in the port."""
        return await self._file.read(lambda conn: sql_batches.session_turns(conn, last, limit))

    async def waiting_sessions(self, *, turns_min: int, opened_after: float) -> list[WaitingSession]:
        """As in the port; at most ``waiting_sessions_max``."""
        limit = self._waiting_sessions_max
        return await self._file.read(lambda conn: sql_turns.waiting_sessions(conn, turns_min, opened_after, limit))

    async def waiting_turns(self, user: str, session: str) -> list[Turn]:
        """As in the port; at most ``waiting_turns_max``."""
        return await self._file.read(lambda conn: sql_turns.waiting_turns(conn, user, session, self._waiting_turns_max))

    async def cut_session(self, user: str, session: str, *, before: float) -> None:
        """As in the port. A cut that lies before an earlier one changes nothing, and neither does one among turns that
        are erased."""

        def cut(conn: Connection) -> None:
            if not sql_marks.is_forgotten(conn, Scope(user, session=session), before):
                sql_turns.cut_session(conn, user, session, before)

        await self._file.write(cut)

    async def counts(self) -> dict[str, int]:
        """``open`` and ``ready`` wait; ``leased`` are in a batch; ``done``, ``refused``; ``lonely`` closed halves."""
        return await self._file.read(sql_turns.counts)

    async def forget_turns(self, scope: Scope) -> int:
        """As in the port. What a worker already holds in its hands is not reached; its batch takes no more."""
        return (await self._file.write(lambda conn: sql_erasure.erase_turns(conn, scope)))["turns"]

    async def forgotten_at(self, user: str) -> float | None:
        """As in the port."""
        return await self._file.read(lambda conn: sql_marks.forgotten_at(conn, user))

    async def begin_erasure(
        self, what: Forgetting, *, now: float, turned_away: Sequence[str] = (), hold_s: float = 60.0
    ) -> tuple[str, Counter[str]]:
        """Mark what is erased, remember it until ``finish_erasure``, and erase its turns with all that hangs on them.

        Whoever is at work on them is cut short, and later halves are turned away, those of the turns named in
        ``turned_away`` at once. Returns a hold of the user for ``hold_s`` (empty: somebody is at work on something
        else of theirs) and counts: turns, batches, versions, statistics. Idempotent.
        """
        return await self._file.write(lambda conn: sql_erasure.begin(conn, what, now, turned_away, hold_s))

    async def finish_erasure(self, what: Forgetting, hold_id: str) -> None:
        """The store holds nothing of it any more either. Ends the hold. Idempotent."""
        await self._file.write(lambda conn: sql_erasure.finish(conn, what, hold_id))

    async def pending_erasures(self, *, limit: int) -> list[Forgetting]:
        """What was begun and not finished by any process, longest ago first."""
        return await self._file.read(lambda conn: sql_erasure.pending(conn, limit))

    async def prune_marks(self, *, forgotten_before: float) -> None:
        """Of erasures before then nothing can be under way any more."""
        await self._file.write(lambda conn: sql_marks.prune(conn, forgotten_before))

    async def prune(self, *, done_before: float) -> int:
        """As in the port, in transactions of ``prune_rows_max`` rows."""
        number = await self._prune(lambda conn: sql_turns.prune(conn, done_before, self._prune_rows_max))
        await self._prune(lambda conn: sql_said.prune_said(conn, done_before, self._prune_rows_max))
        await self._file.write(lambda conn: sql_turns.prune_marks(conn, done_before))
        return number

    async def _prune(self, rows: Callable[[Connection], int]) -> int:
        number = 0
        while True:
            pruned = await self._file.write(rows)
            number += pruned
            if pruned < self._prune_rows_max:
                return number

    async def purge(self) -> bool:
        """As Purgeable says; True. JournalError while another process is reading the files."""
        await self._file.purge()
        return True

    # --- batches ---

    async def claim(self, rules: BatchRules, *, now: float) -> Batch | None:
        """As in the port. Trigger words: ``end``, ``drift``, ``size``, ``idle``; the first that holds.

        A turn that was refused meanwhile is left out when a batch is claimed again, with the facts it grounds; a batch
        of which nothing is left is finished as ``empty``.
        """
        turns_max = self._batch_sizes_max * rules.size
        return await self._file.write(lambda conn: claim_batch(conn, rules, now, turns_max))

    async def save_facts(self, batch_id: str, facts: Sequence[Fact]) -> None:
        """As in the port. The first facts that are saved stay."""
        unsaved = and_(batches.c.id == batch_id, LIVE, batches.c.facts.is_(None))
        save = update(batches).where(unsaved).values(facts=facts_json(facts))
        await self._file.write(lambda conn: conn.execute(save))

    async def mark_applied(self, batch_id: str, count: int) -> None:
        """As in the port. The number only rises."""
        higher = and_(batches.c.id == batch_id, LIVE, batches.c.applied < count)
        mark = update(batches).where(higher).values(applied=count)
        await self._file.write(lambda conn: conn.execute(mark))

    async def finish(self, batch_id: str, status: str, *, now: float) -> None:
        """As in the port. The first status stays."""
        await self._file.write(lambda conn: finish_batch(conn, batch_id, status, now))

    async def postpone(self, batch_id: str, *, until: float) -> None:
        """As in the port. Its user's other turns wait with it; holds do not."""
        await self._file.write(lambda conn: sql_life.rest(conn, batch_id, until))

    # --- history ---

    async def keep_version(self, memory: Memory) -> None:
        """As in the port. Beyond ``versions_max`` the oldest go. What is erased is not kept."""
        scope = Scope(memory.user, memory.project, memory.agent, memory.session)
        row = {**scope_row(scope), "memory_id": memory.id, "version": memory.version, "body": memory_json(memory)}
        this = and_(versions.c.user_id == memory.user, versions.c.memory_id == memory.id)
        newest_first = select(versions.c.version).where(this).order_by(versions.c.version.desc())
        too_old = newest_first.limit(1).offset(self._versions_max).scalar_subquery()

        def keep(conn: Connection) -> None:
            if sql_marks.is_forgotten(conn, scope, memory.said_at) or sql_life.is_forgotten(conn, scope, memory.id):
                return
            conn.execute(sql_turns.upsert_into(conn.dialect.name, versions).values(row).on_conflict_do_nothing())
            conn.execute(delete(versions).where(this, versions.c.version <= too_old))

        await self._file.write(keep)

    async def versions(self, scope: Scope, memory_id: str) -> list[Memory]:
        """As in the port. Those of another user, project, agent or session than the scope names are not seen."""
        this = and_(within(versions, scope), versions.c.memory_id == memory_id)
        bodies = select(versions.c.body).where(this).order_by(versions.c.version)
        found = await self._file.read(lambda conn: conn.execute(bodies).scalars().all())
        return [json_memory(body) for body in found]

    async def note_dropped(
        self, scope: Scope, memory_id: str, reason: str, *, now: float, batch: str | None = None
    ) -> None:
        """As in the port."""

        def note(conn: Connection) -> None:
            if batch is None or sql_life.allows(conn, batch, memory_id, written=False):
                sql_life.note_dropped(conn, scope.user, memory_id, reason, now)

        await self._file.write(note)

    async def dropped(self, scope: Scope, memory_id: str) -> list[Dropped]:
        """As in the port."""
        return await self._file.read(lambda conn: sql_life.dropped_at(conn, scope.user, memory_id))

    async def forget_versions(self, scope: Scope, memory_id: str) -> int:
        """As in the port. Bound to the scope like versions."""
        return await self.forget_memories(scope, [memory_id])

    async def forget_memories(self, scope: Scope, memory_ids: Sequence[str]) -> int:
        """``forget_versions`` for many, in one transaction."""
        return await self._file.write(lambda conn: sql_life.forget_memories(conn, scope, memory_ids))

    async def forget_past(self, user: str, sessions: Iterable[str], *, now: float) -> None:
        """Sessions of which a memory was forgotten: what was said in them before ``now`` is in no summary any more."""
        marked = sorted({*sessions} - {""})
        if marked:
            await self._file.write(lambda conn: sql_turns.forget_past(conn, user, marked, now))

    # --- uses, users, holds ---

    async def record_uses(self, uses: Sequence[tuple[str, str, Uses]]) -> None:
        """As in the port. The uses of what is erased are not kept."""

        def record(conn: Connection) -> None:
            erased = sql_marks.users_forgotten_at(conn, {user for user, _, _ in uses})
            sql_life.record_uses(conn, [use for use in uses if use[2].last_at > erased.get(use[0], -math.inf)])

        await self._file.write(record)

    async def uses(self, user: str) -> dict[str, Uses]:
        """As in the port."""
        return await self._file.read(lambda conn: sql_life.uses(conn, user))

    async def hold(self, user: str, *, now: float, lease_s: float) -> str | None:
        """As in the port. It lies among the batches, so the index that keeps those apart keeps it apart as well."""
        return await self._file.write(lambda conn: sql_life.hold(conn, user, now, lease_s))

    async def release(self, hold_id: str) -> None:
        """As in the port."""
        await self._file.write(lambda conn: sql_life.release(conn, hold_id))

    async def allows(self, batch_id: str, memory_id: str, *, written: bool = False) -> bool:
        """As in the port."""
        return await self._file.read(lambda conn: sql_life.allows(conn, batch_id, memory_id, written))

    async def orphans(self, *, limit: int) -> list[tuple[str, str]]:
        """As in the port."""
        return await self._file.read(lambda conn: sql_life.orphans(conn, limit))

    async def settle(self, user: str, memory_id: str) -> None:
        """As in the port."""
        await self._file.write(lambda conn: sql_life.settle(conn, user, memory_id))

    async def register_user(self, user: str) -> None:
        """As in the port."""
        await self._file.write(lambda conn: sql_life.know_users(conn, [user]))

    async def users_due(self, *, maintained_before: float, limit: int) -> list[str]:
        """As in the port."""
        return await self._file.read(lambda conn: sql_life.users_due(conn, maintained_before, limit))

    async def mark_maintained(self, user: str, *, now: float) -> None:
        """As in the port."""
        await self._file.write(lambda conn: sql_life.mark_maintained(conn, user, now))

    async def recorded_ids(self, user: str) -> set[str]:
        """As in the port."""
        return await self._file.read(lambda conn: sql_life.recorded_ids(conn, user))

    async def forget_user(self, user: str) -> None:
        """As in the port."""
        await self._file.write(lambda conn: sql_life.forget_user(conn, user))
