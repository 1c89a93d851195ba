"""Who shares the journal: signs of life, news, who hides what another one is erasing, and how far a reindex is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, and_, delete, func, or_, select, update

from semmem.backends.sql import locks, marks
from semmem.backends.sql.database import OBEYED, REPLICA, VERSION, JournalPart, one_read, quiet_write
from semmem.backends.sql.erasure import erasure_id
from semmem.backends.sql.rows import put
from semmem.backends.sql.tables import obeyed, pending_erasures, reindex_writers, reindexes, replicas
from semmem.memory import Forgetting
from semmem.ports.housekeeping import Replica
from semmem.ports.reindexing import Reindex, ReindexState


class SqlReplicas(JournalPart):
    """ReplicaRecords, ReindexRecords, and the news of other processes."""

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
