"""Statements that are compiled once: what every commit runs costs the toolkit more than the database otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BindParameter, ClauseElement, Connection, CursorResult, Dialect, bindparam

from semmem.backends.sql.tables import AnyText

NAMES_MAX = 32_766
"""What SQLite binds in one statement."""


class Prepared:
    """``make`` gives the statement for a dialect's name, ``names`` are the parameters that its rows bring. What else
    the statement binds is constant. Columns of a result come as the driver gives them."""

    def __init__(self, make: Callable[[str], ClauseElement], names: Iterable[str]) -> None:
        self._make = make
        self._names = frozenset(names)
        self._compiled: dict[str, _Compiled] = {}

    def run(self, conn: Connection, rows: Sequence[Mapping[str, Any]]) -> CursorResult[Any]:
        """Once for each row. Raises as ``conn.execute`` does."""
        compiled = self._compiled.get(conn.dialect.name)
        if compiled is None:
            compiled = self._compiled[conn.dialect.name] = self._compile(conn.dialect)
        return conn.exec_driver_sql(compiled.sql, [compiled.bound(row) for row in rows])

    def _compile(self, dialect: Dialect) -> _Compiled:
        compiled: Any = self._make(dialect.name).compile(dialect=dialect, column_keys=sorted(self._names))
        places = tuple(compiled.positiontup) if compiled.positional else None
        types = {name: bind.type.dialect_impl(dialect) for name, bind in compiled.binds.items()}
        converts = {name: convert for name in types if (convert := types[name].bind_processor(dialect)) is not None}
        constants = {name: value for name, value in compiled.params.items() if name not in self._names}
        return _Compiled(str(compiled), places, converts, constants)


class PreparedForMany:
    """The same for a statement about any number of names (at least one, at most NAMES_MAX), which ``make`` compares
    with these parameters. There is one for each power of two: the last name is then asked for several times."""

    def __init__(self, make: Callable[[Sequence[BindParameter[str]]], ClauseElement]) -> None:
        self._make = make
        self._prepared: dict[int, Prepared] = {}

    def run(self, conn: Connection, names: Sequence[str]) -> CursorResult[Any]:
        """Raises as ``conn.execute`` does."""
        number = max(len(names), min(1 << (len(names) - 1).bit_length(), NAMES_MAX))
        prepared = self._prepared.get(number)
        if prepared is None:
            prepared = self._prepared[number] = self._prepare(number)
        padded = [*names, *[names[-1]] * (number - len(names))]
        return prepared.run(conn, [{_nth(place): name for place, name in enumerate(padded)}])

    def _prepare(self, number: int) -> Prepared:
        places = [_nth(place) for place in range(number)]
        statement = self._make([bindparam(place, type_=AnyText()) for place in places])
        return Prepared(lambda _dialect: statement, places)


def _nth(place: int) -> str:
    return f"name_{place}"


@dataclass(frozen=True, slots=True)
class _Compiled:
    """``places``: the name behind each question mark; None where the driver takes values by their names."""

    sql: str
    places: tuple[str, ...] | None
    converts: Mapping[str, Callable[[Any], Any]]
    constants: Mapping[str, Any]

    def bound(self, row: Mapping[str, Any]) -> Any:
        """A row's values as the driver takes them."""
        values = {**self.constants, **row}
        for name, convert in self.converts.items():
            values[name] = convert(values[name])
        return values if self.places is None else tuple([values[name] for name in self.places])
