"""How far a reindex is, which process is at it, and which ones write to the new collection."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, and_, delete, func, or_, select, update

from semmem.backends.sql.part import one_look, one_read
from semmem.backends.sql.replicas import SqlReplicas
from semmem.backends.sql.rows import upsert_into
from semmem.backends.sql.tables import reindex_writers, reindexes, replicas
from semmem.ports.reindexing import Reindex, ReindexState


class SqlReindexing(SqlReplicas):
    """ReindexRecords."""

    @one_read
    def reindex(self, conn: Connection, store: str) -> Reindex | None:
        return _known(conn, store)

    @one_look
    def begin_reindex(self, conn: Connection, store: str, begun: Reindex) -> Reindex:
        present = _known(conn, store)
        if present is not None and present.target == begun.target:
            return present
        statement = upsert_into(conn.dialect.name, reindexes).values({"store": store, **_row(begun)})
        new = {**_row(begun), "claimed_by": None, "claimed_until": 0.0}
        conn.execute(statement.on_conflict_do_update(index_elements=["store"], set_=new))
        conn.execute(delete(reindex_writers).where(reindex_writers.c.replica_id.not_in(select(replicas.c.id))))
        return begun

    @one_look
    def claim_reindex(self, conn: Connection, store: str, *, now: float, lease_s: float) -> bool:
        free = or_(reindexes.c.claimed_by == self.replica_id, reindexes.c.claimed_until <= now)
        claim = update(reindexes).where(reindexes.c.store == store, free)
        return conn.execute(claim.values(claimed_by=self.replica_id, claimed_until=now + lease_s)).rowcount == 1

    @one_look
    def note_reindex(self, conn: Connection, store: str, noted: Reindex, *, now: float, lease_s: float) -> bool:
        mine = and_(reindexes.c.store == store, reindexes.c.claimed_by == self.replica_id)
        row = {**_row(noted), "claimed_until": now + lease_s}
        return conn.execute(update(reindexes).where(mine, reindexes.c.target == noted.target).values(row)).rowcount == 1

    @one_look
    def end_reindex(self, conn: Connection, store: str) -> None:
        conn.execute(delete(reindexes).where(reindexes.c.store == store))

    @one_look
    def writes_to(self, conn: Connection, target: str) -> None:
        statement = upsert_into(conn.dialect.name, reindex_writers).values(replica_id=self.replica_id, target=target)
        conn.execute(statement.on_conflict_do_update(index_elements=["replica_id"], set_={"target": target}))

    @one_read
    def not_writing(self, conn: Connection, target: str) -> int:
        writing = select(reindex_writers.c.replica_id).where(reindex_writers.c.target == target)
        others = and_(replicas.c.id != self.replica_id, replicas.c.id.not_in(writing))
        return conn.execute(select(func.count()).select_from(replicas).where(others)).scalar_one()


def _known(conn: Connection, store: str) -> Reindex | None:
    row = conn.execute(select(reindexes).where(reindexes.c.store == store)).first()
    if row is None:
        return None
    told = {name: getattr(row, name) for name in Reindex.__dataclass_fields__}
    return Reindex(**{**told, "state": ReindexState(row.state)})


def _row(known: Reindex) -> dict[str, Any]:
    return {**asdict(known), "state": known.state.value}
