"""Which messages were journalled or declined, as bare ids, inside the caller's transaction.

A row outlives its turn when the turn is erased, so that what was erased is known when a client resends it, and goes
when it is as old as turns that are pruned. It names nobody: the id is a digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    Connection,
    Double,
    Index,
    Insert,
    Integer,
    Row,
    Select,
    Table,
    delete,
    select,
    tuple_,
)

from semmem.backends.sql.prepared import Prepared, PreparedForMany
from semmem.backends.sql.rows import upsert_into
from semmem.backends.sql.tables import AnyText, as_told, metadata
from semmem.memory import Turn, TurnEnding
from semmem.ports.recording import SaidBefore, TurnClosed

ROWS_MAX = 4000
"""Rows of one answer: 500 messages are asked for at most, most of which have one place or none."""

said_messages = Table(
    "said_messages",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
)
"""``ordinal`` is negative where the message was declined."""
Index("said_messages_at", said_messages.c.at)


def record_said(conn: Connection, opened: Sequence[Turn], closed: Sequence[TurnClosed]) -> None:
    """The first time stays."""
    rows = [{"id": t.message_id, "ordinal": t.ordinal, "at": t.opened_at} for t in opened if t.message_id]
    rows += [_bare_row(half) for half in closed if half.status in (TurnEnding.DECLINED, TurnEnding.ERASED)]
    if rows:
        _SAID.run(conn, sorted(rows, key=itemgetter("id", "ordinal")))


def _said_insert(dialect: str) -> Insert:
    insert: Insert = upsert_into(dialect, said_messages).on_conflict_do_nothing()
    return insert


_SAID = Prepared(_said_insert, ("id", "ordinal", "at"))


def _bare_row(half: TurnClosed) -> dict[str, object]:
    message_id, _, ordinal = half.turn_id.rpartition(".")
    sign = -1 if half.status == TurnEnding.DECLINED else 1
    return {"id": message_id, "ordinal": sign * int(ordinal), "at": half.closed_at}


def said_before(conn: Connection, message_ids: Sequence[str]) -> list[SaidBefore]:
    rows: Iterable[Row[Any]] = _SAID_BEFORE.run(conn, message_ids) if message_ids else ()
    return [SaidBefore(as_told(row.id), abs(row.ordinal), row.at, declined=row.ordinal < 0) for row in rows]


def _these(ids: Sequence[BindParameter[str]]) -> Select[tuple[str, int, float]]:
    columns = said_messages.c
    these = select(columns.id, columns.ordinal, columns.at).where(columns.id.in_(ids))
    return these.order_by(columns.ordinal).limit(ROWS_MAX)


_SAID_BEFORE = PreparedForMany(_these)


def prune_said(conn: Connection, said_before: float, rows_max: int) -> int:
    """At most ``rows_max`` rows, the oldest; how many there were."""
    key = (said_messages.c.id, said_messages.c.ordinal)
    some = select(*key).where(said_messages.c.at < said_before).order_by(said_messages.c.at).limit(rows_max)
    return conn.execute(delete(said_messages).where(tuple_(*key).in_(some))).rowcount
