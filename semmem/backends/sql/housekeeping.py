"""What keeps the journal small, says how full it is and what is being learnt from, who may have memories, and who
shares it: signs of life, news, who hides what another one is erasing, and how far a reindex is."""

from collections import ChainMap
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Row, Select, and_, func, or_, select, tuple_

from semmem.backends.sql import locks, marks, tables
from semmem.backends.sql.database import OBEYED, REPLICA, VERSION, JournalPart, one_read, one_write, quiet_write
from semmem.backends.sql.erasure import erasure_id
from semmem.backends.sql.memory_records import HOLD
from semmem.backends.sql.rows import Transaction, know_users, slices
from semmem.backends.sql.tables import WAITING, batches, obeyed, reindex_writers, reindexes, replicas, turns, users
from semmem.backends.sql.unlearnt import prune_notes
from semmem.memory import Forgetting
from semmem.ports.housekeeping import EndedBatch, LiveBatch, Replica, Work
from semmem.ports.reindexing import Reindex, ReindexState

TURNS_PER_USER = 20
"""So many turns are read for each user who is looked for, since active users say many things."""
TURNS_MAX = 200_000
SEEN_AT_ONCE = 50
"""Users of whom it is read at a time when they were last seen: at most 50 ms where each has 300 turns."""

_BATCH = batches.c.trigger_word != HOLD
_LIVE, _ENDED = and_(tables.LIVE, _BATCH), and_(batches.c.status.is_not(None), _BATCH)

_DONE = turns.c.done_at.is_not(None)
_STATES = {
    "open": and_(WAITING, turns.c.closed_at.is_(None)),
    "ready": and_(WAITING, turns.c.closed_at.is_not(None)),
    "leased": tables.IN_BATCH,
    "done": and_(_DONE, turns.c.closing < tables.REFUSED),
    "refused": and_(_DONE, turns.c.closing == tables.REFUSED),
    "lonely": tables.LONELY,
}
_COUNTS = select(
    *(select(func.count()).select_from(turns).where(of).scalar_subquery().label(name) for name, of in _STATES.items())
)


class SqlHousekeeping(JournalPart):
    """Housekeeping, Purgeable, WorkRecords, users, ReplicaRecords, ReindexRecords, and the news of other processes."""

    async def prune(self, *, done_before: float) -> int:
        """In transactions of ``prune_rows_max`` rows."""
        number = await self._prune_all(self._prune_turns, done_before)
        await self._prune_all(self._prune_said, done_before)
        await self._prune_leftovers(done_before)
        return number

    async def _prune_all(self, some: Callable[[float], Awaitable[int]], done_before: float) -> int:
        number = 0
        while True:
            pruned = await some(done_before)
            number += pruned
            if pruned < self._limits.prune_rows_max:
                return number

    @one_write
    def _prune_turns(self, conn: Transaction, done_before: float) -> int:
        """At most ``prune_rows_max`` turns and lonely halves; how many there were."""
        number = 0
        for old in (turns.c.done_at < done_before, and_(tables.LONELY, turns.c.closed_at < done_before)):
            some = select(turns.c.id).where(old).limit(self._limits.prune_rows_max - number)
            number += conn.remove(turns, turns.c.id.in_(some), old)
        return number

    @one_write
    def _prune_said(self, conn: Transaction, done_before: float) -> int:
        """At most ``prune_rows_max`` rows, the oldest; how many there were."""
        said = tables.said_messages.c
        oldest = select(said.id, said.ordinal).where(said.at < done_before).order_by(said.at)
        some = oldest.limit(self._limits.prune_rows_max)
        return conn.remove(tables.said_messages, tuple_(said.id, said.ordinal).in_(some))

    @one_write
    def _prune_leftovers(self, conn: Transaction, done_before: float) -> None:
        """Finished batches, names of answers whose turn is gone, and marks of sessions of which nothing waits any
        more, or where they say what is forgotten, nothing is here."""
        gone = ~select(turns.c.id).where(turns.c.id == tables.answers.c.turn_id).exists()
        conn.remove(tables.answers, tables.answers.c.answered_at < done_before, gone)
        conn.remove(batches, batches.c.status.is_not(None), batches.c.finished_at < done_before)
        prune_notes(conn)
        conn.remove(tables.resting, tables.resting.c.batch_id.not_in(select(batches.c.id).where(tables.LIVE)))
        for marked_at in tables.SESSION_MARKS:
            mark = marked_at.table.c
            left = select(turns.c.id).where(turns.c.user_id == mark.user_id, turns.c.session == mark.session)
            needed = left if marked_at.table is tables.session_pasts else left.where(WAITING)
            conn.remove(marked_at.table, marked_at < done_before, ~needed.exists())

    @one_write
    def prune_marks(self, conn: Transaction, *, forgotten_before: float) -> None:
        for table in tables.MARKS:
            conn.remove(table, table.c.forgotten_at < forgotten_before)

    async def purge(self) -> bool:
        """As Purgeable says. JournalError while another process is reading the files."""
        return await self._database.purge()

    async def check_room(self) -> None:
        await self._database.check_room()

    @one_read
    def counts(self, conn: Transaction) -> dict[str, int]:
        """``open`` and ``ready`` wait; ``leased`` are in a batch; ``done``, ``refused``; ``lonely`` closed halves. Each
        number comes from one partial index: done turns, which are most, are never read with their texts."""
        return dict(conn.execute(_COUNTS).mappings().one())

    @one_read
    def health(self, conn: Transaction) -> None:
        """One read from the file. It does not prove that there is room to write."""
        conn.execute(select(tables.journal_schema.c.version)).one()

    @one_write
    def register_user(self, conn: Transaction, user: str) -> None:
        know_users(conn, [user])

    @one_read
    def users_due(self, conn: Transaction, *, maintained_before: float, limit: int) -> list[str]:
        due = select(users.c.user_id).where(users.c.kept_at < maintained_before).order_by(users.c.kept_at).limit(limit)
        return list(conn.execute(due).scalars())

    @one_read
    def users_after(self, conn: Transaction, user: str, *, limit: int) -> list[str]:
        """Of an erased turn nobody knows whose it was: its user is empty."""
        known = (
            select(table.c.user_id).where(table.c.user_id > user).distinct().order_by(table.c.user_id).limit(limit)
            for table in (
                users,
                turns,
                tables.conversations,
                tables.session_states,
                tables.shown_blocks,
                tables.aliases,
                tables.request_log,
            )
        )
        return sorted({name for each in known for name in conn.execute(each).scalars()})[:limit]

    async def last_seen(self, known: Sequence[str]) -> dict[str, float]:
        """Some users at a time, so that other reads come in between."""
        seen = [await self._last_seen(some) for some in slices(known, SEEN_AT_ONCE)]
        return dict(ChainMap(*seen))

    @one_read
    def _last_seen(self, conn: Transaction, known: Sequence[str]) -> dict[str, float]:
        """Of turns only an index is read. What a request writes anyway tells it, so that none writes more for this."""
        found: dict[str, float] = {}
        for at in (turns.c.opened_at, tables.accesses.c.last_at):
            user = at.table.c.user_id
            newest = select(user, func.max(at)).where(user.in_(known), at.is_not(None)).group_by(user)
            for name, seen_at in conn.execute(newest):
                found[name] = max(seen_at, found.get(name, seen_at))
        return found

    @one_read
    def users_active(self, conn: Transaction, *, limit: int) -> list[str]:
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
    def mark_maintained(self, conn: Transaction, user: str, *, now: float) -> None:
        conn.change(users, users.c.user_id == user, kept_at=now)

    @one_read
    def recorded_ids(self, conn: Transaction, user: str) -> set[str]:
        """What its batch removed is kept as a version on purpose, until its turn is pruned."""
        withdrawn = select(tables.provisional.c.memory_id).where(
            tables.provisional.c.user_id == user, tables.provisional.c.state == tables.WITHDRAWN
        )
        found = (
            select(table.c.memory_id).where(table.c.user_id == user, table.c.memory_id.not_in(withdrawn))
            for table in (tables.versions, *tables.STATISTICS)
        )
        return {memory_id for each in found for memory_id in conn.execute(each).scalars()}

    @one_write
    def forget_user(self, conn: Transaction, user: str) -> None:
        locks.user(conn, user)
        for table in (users, tables.versions, *tables.STATISTICS):
            conn.remove(table, table.c.user_id == user)

    @one_read
    def work(self, conn: Transaction, *, ended_after: float, limit: int) -> Work:
        waiting, oldest_at = conn.execute(select(func.count(), func.min(turns.c.opened_at)).where(WAITING)).one()
        by_word = select(batches.c.status, func.count().label("number")).where(
            _ENDED, batches.c.finished_at > ended_after
        )
        return Work(
            waiting,
            oldest_at,
            _live(conn, limit),
            conn.count(batches, _LIVE),
            _ended(conn, limit),
            {row.status: row.number for row in conn.execute(by_word.group_by(batches.c.status))},
        )

    async def listen(self, heard: Callable[[str], None]) -> None:
        """``heard`` is called with each word that a process says to the others, from the moment this one is counted
        among them, and with ``MISSED`` whenever there may have been some before; with ``DEAF`` when none is heard.
        Until cancelled; it ends at once where nobody can tell anything."""
        await self._database.listen(heard)

    @quiet_write
    def tell_all(self, conn: Transaction, word: str) -> None:
        """All processes that listen hear the word. A server takes 7,999 bytes."""
        self._database.say(conn, word)

    @quiet_write
    def show_life(self, conn: Transaction, *, now: float, dead_before: float) -> int:
        """This replica is alive. Those that were not for so long are forgotten: how many."""
        conn.put(replicas, id=self.replica_id, seen_at=now)
        conn.remove(obeyed, obeyed.c.erasure_id.not_in(select(tables.pending_erasures.c.id)))
        return conn.remove(replicas, replicas.c.seen_at < dead_before)

    @quiet_write
    def leave(self, conn: Transaction) -> None:
        """Nobody needs to wait for this replica any more."""
        conn.remove(replicas, replicas.c.id == self.replica_id)

    @one_read
    def replicas(self, conn: Transaction) -> Sequence[Replica]:
        """The part of WorkRecords that is about replicas."""
        rows = conn.execute(select(replicas.c.id, replicas.c.seen_at).order_by(replicas.c.id)).all()
        return [Replica(row.id, row.seen_at, _began(row.id), row.id == self.replica_id) for row in rows]

    @quiet_write
    def obey(self, conn: Transaction, what: Forgetting, turned_away: Sequence[str]) -> None:
        locks.user(conn, what.scope.user)
        marks.shut(conn, [(turn_id, what.at) for turn_id in turned_away])
        now = self._clock.now()
        marks.lower(conn, now, now)  # all that this one took until now it has dropped
        conn.put(obeyed, erasure_id=erasure_id(what), replica_id=self.replica_id, forgotten_at=what.at)
        self._database.say(conn, OBEYED)

    @one_read
    def not_obeyed(self, conn: Transaction, what: Forgetting) -> int:
        this = and_(obeyed.c.erasure_id == erasure_id(what), obeyed.c.forgotten_at >= what.at)
        return self._others_but(conn, select(obeyed.c.replica_id).where(this))

    def _others_but(self, conn: Transaction, these: Select[Any]) -> int:
        return conn.count(replicas, replicas.c.id != self.replica_id, replicas.c.id.not_in(these))

    @one_read
    def reindex(self, conn: Transaction, store: str) -> Reindex | None:
        return _known(conn, store)

    @quiet_write
    def begin_reindex(self, conn: Transaction, store: str, begun: Reindex) -> Reindex:
        present = _known(conn, store)
        if present is not None and present.target == begun.target:
            return present
        conn.put(reindexes, store=store, **_row(begun), claimed_by=None, claimed_until=0.0)
        conn.remove(reindex_writers, reindex_writers.c.replica_id.not_in(select(replicas.c.id)))
        return begun

    @quiet_write
    def claim_reindex(self, conn: Transaction, store: str, *, now: float, lease_s: float) -> bool:
        free = or_(reindexes.c.claimed_by == self.replica_id, reindexes.c.claimed_until <= now)
        claim = {"claimed_by": self.replica_id, "claimed_until": now + lease_s}
        return conn.change(reindexes, reindexes.c.store == store, free, **claim) == 1

    @quiet_write
    def note_reindex(self, conn: Transaction, store: str, noted: Reindex, *, now: float, lease_s: float) -> bool:
        mine = and_(reindexes.c.store == store, reindexes.c.claimed_by == self.replica_id)
        row = {**_row(noted), "claimed_until": now + lease_s}
        return conn.change(reindexes, mine, reindexes.c.target == noted.target, **row) == 1

    @quiet_write
    def end_reindex(self, conn: Transaction, store: str) -> None:
        conn.remove(reindexes, reindexes.c.store == store)

    @quiet_write
    def writes_to(self, conn: Transaction, target: str) -> None:
        conn.put(reindex_writers, replica_id=self.replica_id, target=target)

    @one_read
    def not_writing(self, conn: Transaction, target: str) -> int:
        return self._others_but(conn, select(reindex_writers.c.replica_id).where(reindex_writers.c.target == target))


# --- batches in figures, each out of an index ------------------------------------------------------------------------


def _live(conn: Transaction, limit: int) -> list[LiveBatch]:
    rests = tables.resting.c.batch_id.is_not(None)
    found = select(batches.c.id, batches.c.trigger_word, batches.c.attempt, batches.c.claimable_at, rests)
    joined = found.outerjoin(tables.resting, tables.resting.c.batch_id == batches.c.id).where(_LIVE)
    rows = conn.execute(joined.order_by(batches.c.claimable_at).limit(limit))
    return [LiveBatch(*row) for row in rows]


def _ended(conn: Transaction, limit: int) -> list[EndedBatch]:
    newest = select(batches).where(_ENDED).order_by(batches.c.finished_at.desc(), batches.c.id).limit(limit)
    rows = conn.execute(newest).all()
    learnt = _learnt_from(conn, rows)
    return [
        EndedBatch(row.id, row.trigger_word, row.attempt, row.status, row.finished_at, *learnt.get(row.id, (0, None)))
        for row in rows
    ]


def _learnt_from(conn: Transaction, ended: Sequence[Row[Any]]) -> dict[str, tuple[int, float | None]]:
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


def _known(conn: Transaction, store: str) -> Reindex | None:
    row = conn.row_of(reindexes, reindexes.c.store == store)
    if row is None:
        return None
    told = {name: getattr(row, name) for name in Reindex.__dataclass_fields__}
    return Reindex(**{**told, "state": ReindexState(row.state)})


def _row(known: Reindex) -> dict[str, Any]:
    return {**asdict(known), "state": known.state.value}
