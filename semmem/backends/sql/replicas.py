"""Who shares the journal: signs of life, news, and who hides what another one is erasing."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence

from sqlalchemy import Connection, and_, delete, func, select

from semmem.backends.sql import locks, marks
from semmem.backends.sql.clock import WatchedClock
from semmem.backends.sql.database import OBEYED, Database
from semmem.backends.sql.erasure import erasure_id
from semmem.backends.sql.part import JournalLimits, JournalPart, one_look, one_read
from semmem.backends.sql.rows import upsert_into
from semmem.backends.sql.tables import obeyed, pending_erasures, replicas
from semmem.memory import Forgetting
from semmem.ports.work import Replica

PREFIX = "replica_"
VERSION, VARIANT = 0x7, 0x8
"""Of a UUID that begins with the milliseconds since 1970 (RFC 9562, 5.7)."""


class SqlReplicas(JournalPart):
    """ReplicaRecords, and the news of other processes. Each object is a replica of its own."""

    def __init__(self, database: Database, limits: JournalLimits, clock: WatchedClock) -> None:
        super().__init__(database, limits, clock)
        self.replica_id = f"{PREFIX}{_time_ordered(time.time())}"

    async def listen(self, heard: Callable[[str], None]) -> None:
        """``heard`` is called with each word that a process says to the others, from the moment this one is counted
        among them, and with ``MISSED`` whenever there may have been some before; with ``DEAF`` when none is heard.
        Until cancelled; it ends at once where nobody can tell anything."""
        await self._database.listen(heard)

    @one_look
    def tell_all(self, conn: Connection, word: str) -> None:
        """All processes that listen hear the word. A server takes 7,999 bytes."""
        self._database.say(conn, word)

    @one_look
    def show_life(self, conn: Connection, *, now: float, dead_before: float) -> int:
        """This replica is alive. Those that were not for so long are forgotten: how many."""
        statement = upsert_into(conn.dialect.name, replicas).values(id=self.replica_id, seen_at=now)
        conn.execute(statement.on_conflict_do_update(index_elements=["id"], set_={"seen_at": now}))
        lost = conn.execute(delete(replicas).where(replicas.c.seen_at < dead_before)).rowcount
        conn.execute(delete(obeyed).where(obeyed.c.erasure_id.not_in(select(pending_erasures.c.id))))
        return int(lost)

    @one_look
    def leave(self, conn: Connection) -> None:
        """Nobody needs to wait for this replica any more."""
        conn.execute(delete(replicas).where(replicas.c.id == self.replica_id))

    @one_read
    def replicas(self, conn: Connection) -> Sequence[Replica]:
        """The part of WorkRecords that is about replicas."""
        rows = conn.execute(select(replicas.c.id, replicas.c.seen_at).order_by(replicas.c.id)).all()
        return [Replica(row.id, row.seen_at, _began(row.id), row.id == self.replica_id) for row in rows]

    @one_look
    def obey(self, conn: Connection, what: Forgetting, turned_away: Sequence[str]) -> None:
        locks.user(conn, what.scope.user)
        marks.shut(conn, [(turn_id, what.at) for turn_id in turned_away])
        now = self._clock.now()
        marks.lower(conn, now, now)  # all that this one took until now it has dropped
        row = {"erasure_id": erasure_id(what), "replica_id": self.replica_id, "forgotten_at": what.at}
        statement = upsert_into(conn.dialect.name, obeyed).values(row)
        later = statement.excluded.forgotten_at
        keys = ["erasure_id", "replica_id"]
        conn.execute(statement.on_conflict_do_update(index_elements=keys, set_={"forgotten_at": later}))
        self._database.say(conn, OBEYED)

    @one_read
    def not_obeyed(self, conn: Connection, what: Forgetting) -> int:
        this = and_(obeyed.c.erasure_id == erasure_id(what), obeyed.c.forgotten_at >= what.at)
        others = replicas.c.id.not_in(select(obeyed.c.replica_id).where(this))
        return conn.execute(
            select(func.count()).select_from(replicas).where(others, replicas.c.id != self.replica_id)
        ).scalar_one()


def _time_ordered(now: float) -> str:
    """A UUID of version 7, in hexadecimal without hyphens."""
    return f"{int(now * 1000):012x}{VERSION:x}{secrets.token_hex(2)[:3]}{VARIANT:x}{secrets.token_hex(8)[:15]}"


def _began(replica_id: str) -> float | None:
    """When the process began whose id this is. None for ids that do not tell, as those of earlier versions."""
    digits = replica_id.removeprefix(PREFIX)
    return int(digits[:12], 16) / 1000 if digits[12:13] == f"{VERSION:x}" else None
