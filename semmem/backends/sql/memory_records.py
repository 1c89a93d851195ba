"""What is kept beside memories (earlier versions, what was not stored, uses, votes), and holds on users.

A hold is a batch without turns. The index that keeps one user's batches apart keeps holds and batches apart as well,
and a hold that outlives its holder is found by the next claim, which ends it as an empty batch."""

import math
import uuid
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import and_, bindparam, func, select

from semmem.backends.sql import locks, marks, tables
from semmem.backends.sql.database import JournalPart, one_read, one_write, quiet_write
from semmem.backends.sql.rows import (
    Prepared,
    Transaction,
    json_memory,
    know_users,
    later,
    memory_json,
    scope_row,
    slices,
    within,
)
from semmem.backends.sql.tables import LIVE, accesses, batches, dropped, erasures, provisional, resting, versions, votes
from semmem.memory import REPEATED, Memory, Scope
from semmem.ports.memory_records import Dropped, Uses, VoteRow

VOTES_MAX = 20
"""Beyond so many votes on a memory both counts are halved, so that opinions may change."""
THOUSANDTHS = 1000
HOLD = "hold"
"""Trigger word of a hold."""


class SqlMemoryRecords(JournalPart):
    """UseRecords, FeedbackRecords, and most of MemoryRecords."""

    @one_write
    def keep_version(self, conn: Transaction, memory: Memory) -> None:
        """Beyond ``versions_max`` the oldest go. What is erased is not kept."""
        locks.users_shared(conn, [memory.user])
        scope = Scope(memory.user, memory.project, memory.agent, memory.session)
        # somebody may be at work on the user's memories, who may still write it
        under_way = (erasures.c.user_id == memory.user, erasures.c.memory_id == memory.id)
        if marks.is_forgotten(conn, scope, memory.said_at) or conn.is_there(erasures, *under_way):
            return
        row = {**scope_row(scope), "memory_id": memory.id, "version": memory.version, "body": memory_json(memory)}
        conn.insert_new(versions, [row])
        this = and_(versions.c.user_id == memory.user, versions.c.memory_id == memory.id)
        newest_first = select(versions.c.version).where(this).order_by(versions.c.version.desc())
        too_old = newest_first.limit(1).offset(self._limits.versions_max).scalar_subquery()
        conn.remove(versions, this, versions.c.version <= too_old)

    @one_read
    def versions(self, conn: Transaction, scope: Scope, memory_id: str) -> list[Memory]:
        """Those of another user, project, agent or session than the scope names are not seen."""
        this = and_(within(versions, scope), versions.c.memory_id == memory_id)
        bodies = select(versions.c.body).where(this).order_by(versions.c.version)
        return [json_memory(body) for body in conn.execute(bodies).scalars()]

    @one_write
    def note_dropped(
        self, conn: Transaction, scope: Scope, memory_id: str, reason: str, *, now: float, batch: str | None = None
    ) -> None:
        locks.users_shared(conn, [scope.user])
        if batch is not None and not (is_live(conn, batch) and unmarked(conn, batch, [memory_id])):
            return
        row = {"user_id": scope.user, "memory_id": memory_id, "reason": reason, "times": 1, "last_at": now}
        conn.upsert(dropped, [row], lambda new: {"times": dropped.c.times + 1, "last_at": new.last_at})

    @one_read
    def dropped(self, conn: Transaction, scope: Scope, memory_id: str) -> list[Dropped]:
        mine = and_(dropped.c.user_id == scope.user, dropped.c.memory_id == memory_id)
        rows = conn.rows_of(dropped, mine, by=dropped.c.reason)
        return [Dropped(row.reason, row.times, row.last_at) for row in rows]

    @one_read
    def said_again(self, conn: Transaction, user: str) -> dict[str, float]:
        rows = conn.rows_of(dropped, dropped.c.user_id == user, dropped.c.reason == REPEATED)
        return {row.memory_id: row.last_at for row in rows}

    @one_write
    def forget_memories(
        self, conn: Transaction, scope: Scope, memory_ids: Sequence[str], *, shuts_turns: bool = True
    ) -> int:
        """Bound to the scope like versions. What a batch holds in its hands it may not write again."""
        locks.user(conn, scope.user)
        live = select(batches.c.id).where(LIVE, batches.c.user_id == scope.user)
        at_work, number = list(conn.execute(live).scalars()), 0
        for ids in slices(memory_ids):
            if shuts_turns:
                made_of = (provisional.c.user_id == scope.user, provisional.c.memory_id.in_(ids))
                conn.change(provisional, *made_of, state=tables.FORGOTTEN)
            for batch_id in at_work:
                rows = [{"batch_id": batch_id, "memory_id": memory_id, "user_id": scope.user} for memory_id in ids]
                conn.insert_new(erasures, rows)
            number += conn.remove(versions, within(versions, scope), versions.c.memory_id.in_(ids))
            for table in tables.STATISTICS:
                conn.remove(table, table.c.user_id == scope.user, table.c.memory_id.in_(ids))
        return number

    @one_write
    def record_uses(self, conn: Transaction, uses: Sequence[tuple[str, str, Uses]]) -> None:
        """The uses of what is erased are not kept."""
        named = {user for user, _, _ in uses}
        locks.users_shared(conn, named)
        erased = marks.users_forgotten_at(conn, named)
        rows: list[dict[str, Any]] = [
            {"user_id": user, "memory_id": memory_id, "used": each.count, "last_at": each.last_at}
            for user, memory_id, each in sorted(uses, key=itemgetter(0, 1))  # so nobody waits in a circle
            if each.last_at > erased.get(user, -math.inf)
        ]
        old = accesses.c
        know_users(conn, (row["user_id"] for row in rows))
        conn.upsert(
            accesses, rows, lambda new: {"used": old.used + new.used, "last_at": later(old.last_at, new.last_at)}
        )

    @one_read
    def uses(self, conn: Transaction, user: str) -> dict[str, Uses]:
        rows = conn.rows_of(accesses, accesses.c.user_id == user)
        return {row.memory_id: Uses(row.used, row.last_at) for row in rows}

    @quiet_write
    def add_votes(
        self,
        conn: Transaction,
        user: str,
        memories: Mapping[str, float],
        *,
        helpful: bool,
        now: float,
        entries_max: int,
    ) -> None:
        """What is erased gets no vote."""
        locks.alone_with(conn, locks.VOTES)
        locks.users_shared(conn, [user])
        erased_at = marks.users_forgotten_at(conn, [user]).get(user)
        if erased_at is not None and now <= erased_at:
            return
        know_users(conn, [user])
        newest = conn.execute(select(func.max(votes.c.number))).scalar() or 0
        number = max(newest + 1, int(now * THOUSANDTHS))  # above those that have gone, which others may have read
        for each, (memory_id, said_at) in enumerate(sorted(memories.items())):
            row = conn.row_of(votes, votes.c.user_id == user, votes.c.memory_id == memory_id)
            up, down = (0, 0) if row is None or row.last_at < said_at else (row.up, row.down)
            up, down = up + helpful, down + (not helpful)
            if up + down > VOTES_MAX:
                up, down = up // 2, down // 2
            conn.put(votes, user_id=user, memory_id=memory_id, up=up, down=down, last_at=now, number=number + each)
        surplus = conn.count(votes) - entries_max
        if surplus > 0:
            oldest = select(votes.c.number).order_by(votes.c.number).limit(surplus)
            conn.remove(votes, votes.c.number.in_(oldest))

    @one_read
    def votes_since(self, conn: Transaction, number: int) -> list[VoteRow]:
        found = conn.rows_of(votes, votes.c.number > number, by=votes.c.number)
        return [VoteRow(row.user_id, row.memory_id, row.up, row.down, row.last_at, row.number) for row in found]

    @one_write
    def hold(self, conn: Transaction, user: str, *, now: float, lease_s: float) -> str | None:
        locks.user(conn, user)
        return hold_user(conn, user, now, lease_s)

    @one_write
    def release(self, conn: Transaction, hold_id: str) -> None:
        locks.user_of(conn, batches, hold_id)
        end_hold(conn, hold_id)

    @one_read
    def allows(self, conn: Transaction, batch_id: str, *memory_ids: str) -> set[str]:
        return unmarked(conn, batch_id, memory_ids) if is_live(conn, batch_id) else set()

    @one_read
    def orphans(self, conn: Transaction, *, limit: int) -> list[tuple[str, str]]:
        done = select(erasures.c.user_id, erasures.c.memory_id).where(tables.NOT_LIVE)
        return [(row.user_id, row.memory_id) for row in conn.execute(done.distinct().limit(limit))]

    @one_write
    def settle(self, conn: Transaction, user: str, memory_id: str) -> None:
        conn.remove(erasures, erasures.c.user_id == user, erasures.c.memory_id == memory_id, tables.NOT_LIVE)


def hold_user(conn: Transaction, user: str, now: float, lease_s: float) -> str | None:
    row = {**scope_row(Scope(user)), "id": f"hold_{uuid.uuid4().hex}", "trigger_word": HOLD, "attempt": 1}
    statement = conn.upsert_into(batches).values(**row, claimable_at=now + lease_s)
    taken = conn.execute(statement.on_conflict_do_nothing().returning(batches.c.id)).first()
    return str(row["id"]) if taken else _take_the_place_of_a_resting_batch(conn, user, now + lease_s)


def _take_the_place_of_a_resting_batch(conn: Transaction, user: str, until: float) -> str | None:
    """A batch that waits for its next try, for an hour perhaps, is not under way: nobody claims it before ``until``."""
    free = and_(resting.c.until == batches.c.claimable_at, resting.c.held_until.is_(None))
    rests = and_(resting.c.batch_id == batches.c.id, free)
    mine = select(batches.c.id, batches.c.claimable_at).where(LIVE, batches.c.user_id == user, rests)
    row = conn.execute(mine).first()
    if row is None:
        return None
    later = max(row.claimable_at, until)
    conn.change(batches, batches.c.id == row.id, claimable_at=later)
    conn.change(resting, resting.c.batch_id == row.id, held_until=later)
    return str(row.id)


def end_hold(conn: Transaction, hold_id: str) -> None:
    conn.remove(batches, batches.c.id == hold_id, batches.c.trigger_word == HOLD)
    mine = resting.c.batch_id == hold_id
    until, held_until = (select(time).where(mine).scalar_subquery() for time in (resting.c.until, resting.c.held_until))
    held = batches.c.claimable_at == held_until  # else somebody claimed it meanwhile
    conn.change(batches, batches.c.id == hold_id, held, claimable_at=until)
    conn.change(resting, mine, held_until=None)


def is_live(conn: Transaction, batch_id: str) -> bool:
    """Whether a batch or hold has neither ended nor been cut off."""
    return _LIVE.run(conn, [{"batch": batch_id}]).first() is not None


def unmarked(conn: Transaction, batch_id: str, memory_ids: Sequence[str]) -> set[str]:
    """Those memories that were not forgotten while the batch or hold was live."""
    return {*memory_ids} - {tables.as_told(row.memory_id) for row in _MARKED.run(conn, [{"batch": batch_id}])}


_LIVE = Prepared(select(batches.c.id).where(batches.c.id == bindparam("batch"), LIVE))
_MARKED = Prepared(select(erasures.c.memory_id).where(erasures.c.batch_id == bindparam("batch")))
