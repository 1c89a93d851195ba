"""Who shares the journal: signs of life, news, and who hides what another one is erasing."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

from sqlalchemy import Connection, and_, delete, func, select

from semmem.backends.sql import locks, marks
from semmem.backends.sql.database import OBEYED, Database
from semmem.backends.sql.erasure import erasure_id
from semmem.backends.sql.part import JournalLimits, JournalPart, one_look, one_read
from semmem.backends.sql.rows import upsert_into
from semmem.backends.sql.tables import obeyed, pending_erasures, replicas
from semmem.memory import Forgetting


class SqlReplicas(JournalPart):
    """ReplicaRecords, and the news of other processes. Each object is a replica of its own."""

    def __init__(self, database: Database, limits: JournalLimits) -> None:
        super().__init__(database, limits)
        self.replica_id = f"replica_{uuid.uuid4().hex}"

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

    @one_look
    def obey(self, conn: Connection, what: Forgetting, turned_away: Sequence[str]) -> None:
        locks.user(conn, what.scope.user)
        marks.shut(conn, [(turn_id, what.at) for turn_id in turned_away])
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
