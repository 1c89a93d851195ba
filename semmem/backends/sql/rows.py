"""How values become rows and come back.

A statement that every commit runs is made once, as a constant or ``cache``d by dialect: of the same object SQLAlchemy
finds what it compiled, and to make and compile it anew costs more than the database.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import Column, ColumnElement, Connection, Row, Table, and_, delete, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite

from semmem.backends.sql.tables import ANSWERED, CLOSING, NARROWING, REFUSED, users
from semmem.memory import Fact, Memory, MemoryStatus, MemoryType, Scope, Source, Standing, Turn
from semmem.ports.errors import JournalError
from semmem.ports.recording import TurnClosed

IDS_MAX = 500
"""Ids in one statement: SQLite takes some thousands of parameters."""
T = TypeVar("T")

_DERIVED_SESSION = re.compile(r"(.+)\.[0-9]{1,12}", re.DOTALL)
_UPSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


def upsert_into(dialect: str, table: Table) -> Any:
    """An insert that knows ON CONFLICT, in the words of this dialect."""
    return _UPSERTS[dialect](table)


def put(conn: Connection, table: Table, row: Mapping[str, Any]) -> None:
    """This row, in the place of one with the same key."""
    statement = upsert_into(conn.dialect.name, table).values(row)
    conn.execute(statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=row))


def insert_new(conn: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Those of these rows that are not there yet."""
    if rows:
        conn.execute(_first_stays(conn.dialect.name, table), rows)


@cache
def _first_stays(dialect: str, table: Table) -> Any:
    return upsert_into(dialect, table).on_conflict_do_nothing()


def raise_times(conn: Connection, column: Column[float], rows: Sequence[Mapping[str, Any]]) -> None:
    """These rows; in those that are there the time of this column moves on to a later one, never back."""
    statement = upsert_into(conn.dialect.name, column.table)
    later = statement.excluded[column.name]
    rising = statement.on_conflict_do_update(
        index_elements=list(column.table.primary_key), set_={column.name: later}, where=column < later
    )
    if rows:
        conn.execute(rising, rows)


def keep_newest(conn: Connection, these: ColumnElement[bool], at: Column[float], number: int) -> None:
    """Only so many of these rows stay, the latest by the time of this column."""
    key = tuple(at.table.primary_key)
    newest = select(*key).where(these).order_by(at.desc()).limit(number)
    conn.execute(delete(at.table).where(these, tuple_(*key).not_in(newest)))


def among(conn: Connection, column: Any, values: Sequence[str], *also: ColumnElement[bool]) -> list[Any]:
    """The rows of a table whose column is one of these."""
    table = select(column.table)
    return [row for some in slices(values) for row in conn.execute(table.where(column.in_(some), *also))]


def slices(values: Sequence[T], number: int = IDS_MAX) -> Iterator[Sequence[T]]:
    return (values[start : start + number] for start in range(0, len(values), number))


def know_users(conn: Connection, names: Iterable[str]) -> None:
    insert_new(conn, users, [{"user_id": name} for name in dict.fromkeys(names)])


def scope_row(scope: Scope) -> dict[str, str]:
    """The scope columns of a row that is written."""
    return {"user_id": scope.user, **{name: getattr(scope, name) or "" for name in NARROWING}}


def within(table: Table, scope: Scope) -> ColumnElement[bool]:
    """The rows a scope may touch: all of the user's, narrowed by what is given."""
    narrowed = {name: getattr(scope, name) for name in NARROWING}
    given = [table.c[name] == value for name, value in narrowed.items() if value is not None]
    return and_(table.c.user_id == scope.user, *given)


def row_scope(row: Row[Any]) -> Scope:
    return Scope(row.user_id, row.project or None, row.agent or None, row.session or None)


_TURN = ("id", "ordinal", "opened_at", "request_id", "user_text", "model", "trace")
"""Of a turn what its columns are called, and hold as it is."""


def opened_row(turn: Turn) -> dict[str, Any]:
    derived = _DERIVED_SESSION.fullmatch(turn.scope.session or "")
    told = {name: getattr(turn, name) for name in _TURN}
    return {**scope_row(turn.scope), **told, "session_key": derived and derived[1], "seen_at": turn.opened_at}


def closed_row(closed: TurnClosed) -> dict[str, Any]:
    closing = CLOSING[closed.status]
    return {
        "id": closed.turn_id,
        "closing": closing,
        "closed_at": closed.closed_at,
        "answer": closed.answer if closing == ANSWERED else None,
        "finish_reason": closed.finish_reason,
        "done_at": closed.closed_at if closing == REFUSED else None,
    }


def answer_row(closed: TurnClosed) -> dict[str, Any]:
    return {"id": closed.answer_id, "turn_id": closed.turn_id, "answered_at": closed.closed_at}


def row_turn(row: Row[Any]) -> Turn:
    return Turn(scope=row_scope(row), answer=row.answer, **{name: getattr(row, name) for name in _TURN})


def lines_text(names: Sequence[str]) -> str:
    """Tags, or ids, which have no line ends in them."""
    return "".join(f"\n{name}" for name in names) + "\n" if names else ""


def lines_told(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split("\n") if name)


@contextmanager
def _unreadable(what: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError):
        # The cause would show the content.
        raise JournalError(f"the journal holds {what} that cannot be read") from None


def facts_json(facts: Sequence[Fact]) -> str:
    """Without ``beside``, which whoever reads the turn sees again, and a version before this one would not know."""
    fields = (dataclasses.asdict(fact) for fact in facts)
    return json.dumps([{name: value for name, value in each.items() if name != "beside"} for each in fields])


def json_facts(text: str) -> tuple[Fact, ...]:
    """Raises JournalError when the text is not what facts_json wrote."""
    with _unreadable("facts"):
        return tuple(_fact(item) for item in json.loads(text))


def _fact(item: dict[str, Any]) -> Fact:
    standing = item.get("standing")
    return Fact(
        **{**item, "type": MemoryType(item["type"]), "standing": None if standing is None else Standing(standing)}
    )


def memory_json(memory: Memory) -> str:
    """Everything but the vector."""
    fields = dataclasses.asdict(dataclasses.replace(memory, embedding=None))
    del fields["embedding"]
    return json.dumps(fields)


def json_memory(text: str) -> Memory:
    """Raises JournalError when the text is not what memory_json wrote."""
    with _unreadable("a memory"):
        fields = json.loads(text)
        fields["type"] = MemoryType(fields["type"])
        fields["status"] = MemoryStatus(fields["status"])
        fields["source"] = Source(**fields["source"])
        return Memory(**fields)
