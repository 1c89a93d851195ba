"""How values become rows and come back, and statements that are compiled once."""

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import sqlalchemy as sa
from msgspec import MsgspecError
from sqlalchemy import BindParameter, ClauseElement, Column, ColumnElement, Connection, CursorResult, Row, Table, select
from sqlalchemy.dialects import postgresql, sqlite

from semmem.backends.sql.tables import ANSWERED, CLOSING, NARROWING, REFUSED, AnyText, users
from semmem.memory import Fact, Memory, MemoryStatus, MemoryType, Scope, Source, Standing, Turn
from semmem.ports.errors import JournalError
from semmem.ports.recording import TurnClosed

IDS_MAX = 500
"""Ids in one statement: SQLite takes some thousands of parameters."""
T = TypeVar("T")

_DERIVED_SESSION = re.compile(r"(.+)\.[0-9]{1,12}", re.DOTALL)
_UPSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
NAMES_MAX = 32_766
"""What SQLite binds in one statement."""


def upsert_into(dialect: str, table: Table) -> Any:
    """An insert that knows ON CONFLICT, in the words of this dialect."""
    return _UPSERTS[dialect](table)


class Transaction:
    """A connection within one, and what most statements do."""

    def __init__(self, connection: Connection) -> None:
        self.dialect = connection.dialect
        self.execute = connection.execute
        self.exec_driver_sql = connection.exec_driver_sql

    def upsert_into(self, table: Table) -> Any:
        """An insert that knows ON CONFLICT."""
        return upsert_into(self.dialect.name, table)

    def row_of(self, table: Table, *which: ColumnElement[bool]) -> Row[Any] | None:
        return self.execute(select(table).where(*which)).first()

    def rows_of(self, table: Table, *which: ColumnElement[bool], by: Any = None) -> Sequence[Row[Any]]:
        """All of these rows, in the order of this column."""
        return self.execute(select(table).where(*which).order_by(by)).all()

    def is_there(self, table: Table, *which: ColumnElement[bool]) -> bool:
        return self.execute(select(*table.primary_key).where(*which).limit(1)).first() is not None

    def count(self, table: Table, *which: ColumnElement[bool]) -> int:
        return self.execute(select(sa.func.count()).select_from(table).where(*which)).scalar_one()

    def among(self, column: Any, values: Sequence[str], *also: ColumnElement[bool]) -> list[Any]:
        """The rows of a table whose column is one of these."""
        table = select(column.table)
        return [row for some in slices(values) for row in self.execute(table.where(column.in_(some), *also))]

    def change(self, table: Table, *which: ColumnElement[bool], **values: Any) -> int:
        """These rows are given these values; how many there were."""
        return self.execute(sa.update(table).where(*which).values(values)).rowcount

    def remove(self, table: Table, *which: ColumnElement[bool]) -> int:
        """These rows go; how many there were."""
        return self.execute(sa.delete(table).where(*which)).rowcount

    def upsert(
        self,
        table: Table,
        rows: Sequence[Mapping[str, Any]],
        changed: Callable[[Any], Mapping[str, Any]],
        where: ColumnElement[bool] | None = None,
    ) -> None:
        """These rows; those that are there are given what ``changed`` makes of the new ones' columns."""
        if rows:
            statement = self.upsert_into(table)
            keys, values = list(table.primary_key), changed(statement.excluded)
            self.execute(statement.on_conflict_do_update(index_elements=keys, set_=values, where=where), rows)

    def put(self, table: Table, **row: Any) -> None:
        """This row, in the place of one with the same key."""
        self.upsert(table, [row], lambda new: {name: new[name] for name in row})

    def insert_new(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Those of these rows that are not there yet."""
        if rows:
            self.execute(self.upsert_into(table).on_conflict_do_nothing(), rows)

    def raise_times(self, column: Column[float], rows: Sequence[Mapping[str, Any]]) -> None:
        """These rows; in those that are there the time of this column moves on to a later one, never back."""
        statement = self.upsert_into(column.table)
        later = statement.excluded[column.name]
        rising = statement.on_conflict_do_update(
            index_elements=list(column.table.primary_key), set_={column.name: later}, where=column < later
        )
        if rows:
            self.execute(rising, rows)

    def keep_newest(self, these: ColumnElement[bool], at: Column[float], number: int) -> None:
        """Only so many of these rows stay, the latest by the time of this column."""
        key = tuple(at.table.primary_key)
        newest = select(*key).where(these).order_by(at.desc()).limit(number)
        self.remove(at.table, these, sa.tuple_(*key).not_in(newest))


def later(old: Any, new: Any) -> ColumnElement[Any]:
    return sa.case((old < new, new), else_=old)


def slices(values: Sequence[T], number: int = IDS_MAX) -> Iterator[Sequence[T]]:
    return (values[start : start + number] for start in range(0, len(values), number))


def know_users(conn: Transaction, names: Iterable[str]) -> None:
    conn.insert_new(users, [{"user_id": name} for name in dict.fromkeys(names)])


def scope_row(scope: Scope) -> dict[str, str]:
    return {"user_id": scope.user, **{name: getattr(scope, name) or "" for name in NARROWING}}


def within(table: Table, scope: Scope) -> ColumnElement[bool]:
    """The rows a scope may touch: all of the user's, narrowed by what is given."""
    narrowed = {name: getattr(scope, name) for name in NARROWING}
    given = [table.c[name] == value for name, value in narrowed.items() if value is not None]
    return sa.and_(table.c.user_id == scope.user, *given)


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
def unreadable(what: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, MsgspecError):
        # The cause would show the content.
        raise JournalError(f"the journal holds {what} that cannot be read") from None


def facts_json(facts: Sequence[Fact]) -> str:
    """Without ``beside``, which whoever reads the turn sees again, and a version before this one would not know."""
    fields = (dataclasses.asdict(fact) for fact in facts)
    return json.dumps([{name: value for name, value in each.items() if name != "beside"} for each in fields])


def json_facts(text: str) -> tuple[Fact, ...]:
    """Raises JournalError when the text is not what facts_json wrote."""
    with unreadable("facts"):
        return tuple(_fact(item) for item in json.loads(text))


def _fact(item: dict[str, Any]) -> Fact:
    standing = item.get("standing")
    return Fact(
        **{**item, "type": MemoryType(item["type"]), "standing": None if standing is None else Standing(standing)}
    )


def memory_json(memory: Memory) -> str:
    fields = dataclasses.asdict(dataclasses.replace(memory, embedding=None))
    del fields["embedding"]
    return json.dumps(fields)


def json_memory(text: str) -> Memory:
    """Raises JournalError when the text is not what memory_json wrote."""
    with unreadable("a memory"):
        fields = json.loads(text)
        fields["type"] = MemoryType(fields["type"])
        fields["status"] = MemoryStatus(fields["status"])
        fields["source"] = Source(**fields["source"])
        return Memory(**fields)


class Prepared:
    """A statement that every commit runs: to compile it anew costs the toolkit more than the database. ``made``: the
    statement, or what gives it for a dialect's name; ``columns`` are those that an insert's rows bring. Columns of a
    result come as the driver gives them."""

    def __init__(self, made: ClauseElement | Callable[[str], ClauseElement], columns: Iterable[str] = ()) -> None:
        self._made = made
        self._columns = sorted(columns)
        self._compiled: dict[str, tuple[str, Callable[[Mapping[str, Any]], Any]]] = {}

    def run(self, conn: Transaction, rows: Sequence[Mapping[str, Any]]) -> CursorResult[Any]:
        """Once for each row. Raises as ``conn.execute`` does."""
        if conn.dialect.name not in self._compiled:
            self._compiled[conn.dialect.name] = self._compile(conn.dialect)
        sql, bound = self._compiled[conn.dialect.name]
        return conn.exec_driver_sql(sql, [bound(row) for row in rows])

    def _compile(self, dialect: sa.Dialect) -> tuple[str, Callable[[Mapping[str, Any]], Any]]:
        """Its words, and what makes of a row's values what the driver takes: by place where that knows no names."""
        statement = self._made if isinstance(self._made, ClauseElement) else self._made(dialect.name)
        compiled: Any = statement.compile(dialect=dialect, column_keys=self._columns)
        places = tuple(compiled.positiontup) if compiled.positional else None
        types = {name: bind.type.dialect_impl(dialect) for name, bind in compiled.binds.items()}
        converts = {name: convert for name in types if (convert := types[name].bind_processor(dialect)) is not None}
        constants = {name: value for name, value in compiled.params.items() if not compiled.binds[name].required}

        def bound(row: Mapping[str, Any]) -> Any:
            values = {**constants, **row}
            for name, convert in converts.items():
                values[name] = convert(values[name])
            return values if places is None else tuple([values[name] for name in places])

        return str(compiled), bound


class PreparedForMany:
    """The same for a statement about any number of names (at least one, at most NAMES_MAX), which ``make`` compares
    with these parameters. There is one for each power of two: the last name is then asked for several times."""

    def __init__(self, make: Callable[[Sequence[BindParameter[str]]], ClauseElement]) -> None:
        self._make = make
        self._prepared: dict[int, Prepared] = {}

    def run(self, conn: Transaction, names: Sequence[str]) -> CursorResult[Any]:
        """Raises as ``conn.execute`` does."""
        number = max(len(names), min(1 << (len(names) - 1).bit_length(), NAMES_MAX))
        places = [f"name_{place}" for place in range(number)]
        if number not in self._prepared:
            asked = [sa.bindparam(place, type_=AnyText()) for place in places]
            self._prepared[number] = Prepared(self._make(asked))
        padded = [*names, *[names[-1]] * (number - len(names))]
        return self._prepared[number].run(conn, [dict(zip(places, padded, strict=True))])
