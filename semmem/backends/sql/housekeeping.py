"""What keeps the journal small, says how full it is and what is being learnt from, who may have memories, and who
shares it: signs of life, news, who hides what another one is erasing, and how far a reindex is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, delete, func, or_, select, update

from semmem.backends.sql import locks, marks
from semmem.backends.sql.database import OBEYED, REPLICA, VERSION, JournalPart, one_read, one_write, quiet_write
from semmem.backends.sql.erasure import erasure_id
from semmem.backends.sql.memory_records import HOLD
from semmem.backends.sql.recording import prune_said
from semmem.backends.sql.rows import know_users, put
from semmem.backends.sql.tables import (
    IN_BATCH,
    LIVE,
    LONELY,
    REFUSED,
    WAITING,
    accesses,
    answers,
    batches,
    conversations,
    dropped,
    journal_schema,
    obeyed,
    pending_erasures,
    provisional,
    reindex_writers,
    reindexes,
    replicas,
    resting,
    session_drifts,
    session_ends,
    session_pasts,
    session_states,
    shown_blocks,
    turns,
    users,
    versions,
    votes,
)
from semmem.backends.sql.unlearnt import WITHDRAWN, prune_notes
from semmem.memory import Forgetting
from semmem.ports.housekeeping import EndedBatch, LiveBatch, Replica, Work
from semmem.ports.reindexing import Reindex, ReindexState

TURNS_PER_USER = 20
"""So many turns are read for each user who is looked for, since active users say many things."""
TURNS_MAX = 200_000

_BATCH = batches.c.trigger_word != HOLD
_LIVE, _ENDED = and_(LIVE, _BATCH), and_(batches.c.status.is_not(None), _BATCH)


def _counts(**rows: ColumnElement[bool]) -> Select[Any]:
    """One row: how many turns there are of each, by name."""
    return select(
        *(select(func.count()).select_from(turns).where(of).scalar_subquery().label(n) for n, of in rows.items())
    )


_DONE = turns.c.done_at.is_not(None)
_COUNTS = _counts(
    open=and_(WAITING, turns.c.closed_at.is_(None)),
    ready=and_(WAITING, turns.c.closed_at.is_not(None)),
    leased=IN_BATCH,
    done=and_(_DONE, turns.c.closing < REFUSED),
    refused=and_(_DONE, turns.c.closing == REFUSED),
    lonely=LONELY,
)


class SqlHousekeeping(JournalPart):
    """Housekeeping, Purgeable, WorkRecords, users, ReplicaRecords, ReindexRecords, and the news of other processes."""

    async def prune(self, *, done_before: float) -> int:
        """In transactions of ``prune_rows_max`` rows."""
        number = await self._prune(lambda conn: _prune_turns(conn, done_before, self._limits.prune_rows_max))
        await self._prune(lambda conn: prune_said(conn, done_before, self._limits.prune_rows_max))
        await self._prune_leftovers(done_before)
        return number

    async def _prune(self, rows: Callable[[Connection], int]) -> int:
        number = 0
        while True:
            pruned = await self._database.write(rows)
            number += pruned
            if pruned < self._limits.prune_rows_max:
                return number

    @one_write
    def _prune_leftovers(self, conn: Connection, done_before: float) -> None:
        """Finished batches, names of answers whose turn is gone, and marks of sessions of which nothing waits any
        more."""
        gone = ~select(turns.c.id).where(turns.c.id == answers.c.turn_id).exists()
        conn.execute(delete(answers).where(answers.c.answered_at < done_before, gone))
        conn.execute(delete(batches).where(batches.c.status.is_not(None), batches.c.finished_at < done_before))
        prune_notes(conn)
        conn.execute(delete(resting).where(resting.c.batch_id.not_in(select(batches.c.id).where(LIVE))))
        for marked_at in (session_ends.c.ended_at, session_drifts.c.drifted_at):
            table = marked_at.table
            waits = and_(WAITING, turns.c.user_id == table.c.user_id, turns.c.session == table.c.session)
            conn.execute(delete(table).where(marked_at < done_before, ~select(turns.c.id).where(waits).exists()))
        past = session_pasts.c
        left = select(turns.c.id).where(turns.c.user_id == past.user_id, turns.c.session == past.session)
        conn.execute(delete(session_pasts).where(past.forgotten_at < done_before, ~left.exists()))

    @one_write
    def prune_marks(self, conn: Connection, *, forgotten_before: float) -> None:
        marks.prune(conn, forgotten_before)

    async def purge(self) -> bool:
        """As Purgeable says. JournalError while another process is reading the files."""
        return await self._database.purge()

    async def check_room(self) -> None:
        await self._database.check_room()

    @one_read
    def counts(self, conn: Connection) -> dict[str, int]:
        """``open`` and ``ready`` wait; ``leased`` are in a batch; ``done``, ``refused``; ``lonely`` closed halves.

        Each number comes from one partial index: done turns, which are most, are never read with their texts.
        """
        return dict(conn.execute(_COUNTS).mappings().one())

    @one_read
    def health(self, conn: Connection) -> None:
        """One read from the file. It does not prove that there is room to write."""
        conn.execute(select(journal_schema.c.version)).one()

    @one_write
    def register_user(self, conn: Connection, user: str) -> None:
        know_users(conn, [user])

    @one_read
    def users_due(self, conn: Connection, *, maintained_before: float, limit: int) -> list[str]:
        due = select(users.c.user_id).where(users.c.kept_at < maintained_before).order_by(users.c.kept_at).limit(limit)
        return list(conn.execute(due).scalars())

    @one_read
    def users_after(self, conn: Connection, user: str, *, limit: int) -> list[str]:
        """Of an erased turn nobody knows whose it was: its user is empty."""
        known = (
            select(table.c.user_id).where(table.c.user_id > user).distinct().order_by(table.c.user_id).limit(limit)
            for table in (users, turns, conversations, session_states, shown_blocks)
        )
        return sorted({name for each in known for name in conn.execute(each).scalars()})[:limit]

    @one_read
    def users_active(self, conn: Connection, *, limit: int) -> list[str]:
        """Read along the indexes, so that it takes as long in a large journal as in a small one."""
        lately = (
            select(turns.c.user_id).where(WAITING).order_by(turns.c.opened_at.desc()),
            select(turns.c.user_id).where(turns.c.done_at.is_not(None)).order_by(turns.c.done_at.desc()),
        )
        found: dict[str, None] = {}
        for query in lately:
            for user in conn.execute(query.limit(min(limit * TURNS_PER_USER, TURNS_MAX))).scalars():
                if len(found) >= limit:
                    return list(found)
                if user:  # of an erased turn nobody knows whose it was
                    found[user] = None
        return list(found)

    @one_write
    def mark_maintained(self, conn: Connection, user: str, *, now: float) -> None:
        conn.execute(update(users).where(users.c.user_id == user).values(kept_at=now))

    @one_read
    def recorded_ids(self, conn: Connection, user: str) -> set[str]:
        """What its batch removed is kept as a version on purpose, until its turn is pruned."""
        withdrawn = select(provisional.c.memory_id).where(
            provisional.c.user_id == user, provisional.c.state == WITHDRAWN
        )
        found = (
            select(table.c.memory_id).where(table.c.user_id == user, table.c.memory_id.not_in(withdrawn))
            for table in (versions, accesses, dropped, votes)
        )
        return {memory_id for each in found for memory_id in conn.execute(each).scalars()}

    @one_write
    def forget_user(self, conn: Connection, user: str) -> None:
        locks.user(conn, user)
        for table in (users, accesses, dropped, votes, versions):
            conn.execute(delete(table).where(table.c.user_id == user))

    @one_read
    def work(self, conn: Connection, *, ended_after: float, limit: int) -> Work:
        waiting, oldest_at = conn.execute(select(func.count(), func.min(turns.c.opened_at)).where(WAITING)).one()
        by_word = select(batches.c.status, func.count().label("number")).where(
            _ENDED, batches.c.finished_at > ended_after
        )
        return Work(
            waiting,
            oldest_at,
            _live(conn, limit),
            conn.execute(select(func.count()).select_from(batches).where(_LIVE)).scalar_one(),
            _ended(conn, limit),
            {row.status: row.number for row in conn.execute(by_word.group_by(batches.c.status))},
        )

    async def listen(self, heard: Callable[[str], None]) -> None:
        """``heard`` is called with each word that a process says to the others, from the moment this one is counted
        among them, and with ``MISSED`` whenever there may have been some before; with ``DEAF`` when none is heard.
        Until cancelled; it ends at once where nobody can tell anything."""
        await self._database.listen(heard)

    @quiet_write
    def tell_all(self, conn: Connection, word: str) -> None:
        """All processes that listen hear the word. A server takes 7,999 bytes."""
        self._database.say(conn, word)

    @quiet_write
    def show_life(self, conn: Connection, *, now: float, dead_before: float) -> int:
        """This replica is alive. Those that were not for so long are forgotten: how many."""
        put(conn, replicas, {"id": self.replica_id, "seen_at": now})
        lost = conn.execute(delete(replicas).where(replicas.c.seen_at < dead_before)).rowcount
        conn.execute(delete(obeyed).where(obeyed.c.erasure_id.not_in(select(pending_erasures.c.id))))
        return int(lost)

    @quiet_write
    def leave(self, conn: Connection) -> None:
        """Nobody needs to wait for this replica any more."""
        conn.execute(delete(replicas).where(replicas.c.id == self.replica_id))

    @one_read
    def replicas(self, conn: Connection) -> Sequence[Replica]:
        """The part of WorkRecords that is about replicas."""
        rows = conn.execute(select(replicas.c.id, replicas.c.seen_at).order_by(replicas.c.id)).all()
        return [Replica(row.id, row.seen_at, _began(row.id), row.id == self.replica_id) for row in rows]

    @quiet_write
    def obey(self, conn: Connection, what: Forgetting, turned_away: Sequence[str]) -> None:
        locks.user(conn, what.scope.user)
        marks.shut(conn, [(turn_id, what.at) for turn_id in turned_away])
        now = self._clock.now()
        marks.lower(conn, now, now)  # all that this one took until now it has dropped
        put(conn, obeyed, {"erasure_id": erasure_id(what), "replica_id": self.replica_id, "forgotten_at": what.at})
        self._database.say(conn, OBEYED)

    @one_read
    def not_obeyed(self, conn: Connection, what: Forgetting) -> int:
        this = and_(obeyed.c.erasure_id == erasure_id(what), obeyed.c.forgotten_at >= what.at)
        others = replicas.c.id.not_in(select(obeyed.c.replica_id).where(this))
        return conn.execute(
            select(func.count()).select_from(replicas).where(others, replicas.c.id != self.replica_id)
        ).scalar_one()

    @one_read
    def reindex(self, conn: Connection, store: str) -> Reindex | None:
        return _known(conn, store)

    @quiet_write
    def begin_reindex(self, conn: Connection, store: str, begun: Reindex) -> Reindex:
        present = _known(conn, store)
        if present is not None and present.target == begun.target:
            return present
        put(conn, reindexes, {"store": store, **_row(begun), "claimed_by": None, "claimed_until": 0.0})
        conn.execute(delete(reindex_writers).where(reindex_writers.c.replica_id.not_in(select(replicas.c.id))))
        return begun

    @quiet_write
    def claim_reindex(self, conn: Connection, store: str, *, now: float, lease_s: float) -> bool:
        free = or_(reindexes.c.claimed_by == self.replica_id, reindexes.c.claimed_until <= now)
        claim = update(reindexes).where(reindexes.c.store == store, free)
        return conn.execute(claim.values(claimed_by=self.replica_id, claimed_until=now + lease_s)).rowcount == 1

    @quiet_write
    def note_reindex(self, conn: Connection, store: str, noted: Reindex, *, now: float, lease_s: float) -> bool:
        mine = and_(reindexes.c.store == store, reindexes.c.claimed_by == self.replica_id)
        row = {**_row(noted), "claimed_until": now + lease_s}
        return conn.execute(update(reindexes).where(mine, reindexes.c.target == noted.target).values(row)).rowcount == 1

    @quiet_write
    def end_reindex(self, conn: Connection, store: str) -> None:
        conn.execute(delete(reindexes).where(reindexes.c.store == store))

    @quiet_write
    def writes_to(self, conn: Connection, target: str) -> None:
        put(conn, reindex_writers, {"replica_id": self.replica_id, "target": target})

    @one_read
    def not_writing(self, conn: Connection, target: str) -> int:
        writing = select(reindex_writers.c.replica_id).where(reindex_writers.c.target == target)
        others = and_(replicas.c.id != self.replica_id, replicas.c.id.not_in(writing))
        return conn.execute(select(func.count()).select_from(replicas).where(others)).scalar_one()


def _prune_turns(conn: Connection, done_before: float, rows_max: int) -> int:
    """At most ``rows_max`` turns and lonely halves; how many there were."""
    done = turns.c.done_at < done_before
    lonely = and_(LONELY, turns.c.closed_at < done_before)
    number = 0
    for old in (done, lonely):
        some = select(turns.c.id).where(old).limit(rows_max - number)
        number += conn.execute(delete(turns).where(turns.c.id.in_(some), old)).rowcount
    return number


# --- batches in figures, each out of an index ------------------------------------------------------------------------


def _live(conn: Connection, limit: int) -> list[LiveBatch]:
    rests = resting.c.batch_id.is_not(None)
    found = select(
        batches.c.id, batches.c.trigger_word, batches.c.attempt, batches.c.claimable_at, rests.label("rests")
    )
    joined = found.outerjoin(resting, resting.c.batch_id == batches.c.id).where(_LIVE)
    rows = conn.execute(joined.order_by(batches.c.claimable_at).limit(limit)).all()
    return [LiveBatch(row.id, row.trigger_word, row.attempt, row.claimable_at, bool(row.rests)) for row in rows]


def _ended(conn: Connection, limit: int) -> list[EndedBatch]:
    newest = select(batches).where(_ENDED).order_by(batches.c.finished_at.desc(), batches.c.id).limit(limit)
    rows = conn.execute(newest).all()
    learnt = _learnt_from(conn, rows)
    return [
        EndedBatch(row.id, row.trigger_word, row.attempt, row.status, row.finished_at, *learnt.get(row.id, (0, None)))
        for row in rows
    ]


def _learnt_from(conn: Connection, ended: Sequence[Row[Any]]) -> dict[str, tuple[int, float | None]]:
    """By batch how many turns, and when the first was said. They were done when it ended, and there is an index of
    that."""
    at, ids = {row.finished_at for row in ended}, [row.id for row in ended]
    mine = select(turns.c.batch_id, func.count(), func.min(turns.c.opened_at)).where(
        turns.c.done_at.in_(at), turns.c.batch_id.in_(ids)
    )
    return {batch_id: (number, said_at) for batch_id, number, said_at in conn.execute(mine.group_by(turns.c.batch_id))}


def _began(replica_id: str) -> float | None:
    """When the process began whose id this is. None for ids that do not tell, as those of earlier versions."""
    digits = replica_id.removeprefix(REPLICA)
    return int(digits[:12], 16) / 1000 if digits[12:13] == f"{VERSION:x}" else None


def _known(conn: Connection, store: str) -> Reindex | None:
    row = conn.execute(select(reindexes).where(reindexes.c.store == store)).first()
    if row is None:
        return None
    told = {name: getattr(row, name) for name in Reindex.__dataclass_fields__}
    return Reindex(**{**told, "state": ReindexState(row.state)})


def _row(known: Reindex) -> dict[str, Any]:
    return {**asdict(known), "state": known.state.value}
