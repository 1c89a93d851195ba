"""How a journal's tables come to be: made at once, or brought up to date from what an earlier build has written."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from semmem.backends.sql.journal import SqlJournal
from semmem.backends.sql.schema import HEAD, MIGRATIONS, _upgrade
from semmem.memory import Scope
from semmem.ports.errors import JournalError
from semmem.ports.history import Uses
from tests.support.journal_samples import EAGER, Place, answered, change, learnt, rows_of, turn
from tests.support.postgres import TestServer, worker_name

EARLIER = Path(__file__).parent / "journal_of_029ae4f.sql"
"""What that build's SQLite file holds: turns in all states, a leased batch with facts, a version, uses, marks."""


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[SqlJournal]:
    journal = SqlJournal(place)
    await journal.open()
    yield journal
    await journal.close()


def written_by_an_earlier_build(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as file:
        file.executescript(EARLIER.read_text())
    return path


def shape(conn: Connection) -> dict[str, Any]:
    """Tables with their columns, keys and indexes; what a default is spelled like is the database's affair."""
    found = inspect(conn)
    return {
        name: (
            sorted((each["name"], str(each["type"]), each["nullable"]) for each in found.get_columns(name)),
            found.get_pk_constraint(name)["constrained_columns"],
            sorted(
                (each["name"], each["column_names"], bool(each["unique"]), _condition(each))
                for each in found.get_indexes(name)
            ),
        )
        for name in found.get_table_names()
    }


def _condition(index: Any) -> str:
    options = index.get("dialect_options", {})
    where = next((str(value) for name, value in options.items() if name.endswith("_where")), "")
    return where.replace("turns.", "").replace("batches.", "").replace("(", "").replace(")", "")


async def test_a_file_of_an_earlier_build_keeps_what_it_has_and_goes_on(tmp_path: Path) -> None:
    path = written_by_an_earlier_build(tmp_path / "journal.db")
    for _ in range(2):
        async with opened(path) as journal:
            assert await journal.uses("ada") == {"mem_1": Uses(3, 123.0)}
            [version] = await journal.versions(Scope("ada"), "mem_1")
            assert version.content == "User likes tea"
            assert await journal.turn_of_answer("ada", "resp-t2") == ("t2", "s1")
    async with opened(path) as journal:
        again = await journal.claim(EAGER, now=310.0)
        assert again is not None
        assert again.facts is not None
        assert ([each.id for each in again.turns], again.attempt) == (["t3", "t4"], 2)
        assert (again.turns[1].user_text, again.facts[0].content) == ("My name is Bob\x00", "User keeps bees")
        await journal.finish(again.id, "done", now=311.0)
        await journal.record([turn("new", Scope("eve", session="s"))], [answered("lonely"), answered("new")])
        assert await learnt(journal) == {"new": "Noted.", "t5": None}


async def test_an_earlier_build_goes_on_with_the_file_of_this_one(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with opened(path):
        pass
    earlier = [line for line in EARLIER.read_text().split(";\n") if line.startswith("INSERT")]
    with closing(sqlite3.connect(path)) as file:
        for row in (line for line in earlier if "journal_schema" not in line):
            table = row.split('"')[1]
            names = [name for (name,) in sqlite3_columns(table)]
            file.execute(row.replace(f'"{table}"', f'"{table}" ({", ".join(names)})', 1))
        file.commit()
    async with opened(path) as journal:
        assert await journal.uses("ada") == {"mem_1": Uses(3, 123.0)}


def sqlite3_columns(table: str) -> list[tuple[str]]:
    """Of the table as the earlier build made it."""
    with closing(sqlite3.connect(":memory:")) as file:
        file.executescript(EARLIER.read_text())
        return [(name,) for _, name, *_ in file.execute(f"PRAGMA table_info({table})")]


async def test_the_revisions_come_to_what_is_made_at_once(place: Place, postgres: TestServer, tmp_path: Path) -> None:
    by_revisions: Place = (
        tmp_path / "upgraded.db" if isinstance(place, Path) else postgres.create(f"upgraded-{worker_name()}")
    )
    async with opened(place) as made:
        expected = await made._database.read(shape)
    async with opened(by_revisions) as upgraded:
        for name in expected:
            await change(upgraded, f"DROP TABLE {name}")
        await upgraded._database.write(_upgrade)
        assert await upgraded._database.read(shape) == expected
        assert (await rows_of(upgraded))["journal_revision"] == [(HEAD,)]
        assert (await rows_of(upgraded))["journal_schema"] == [(2,)]


def test_the_newest_revision_is_the_one_that_is_asked_for() -> None:
    assert ScriptDirectory(str(MIGRATIONS)).get_heads() == [HEAD]


async def test_a_journal_of_a_later_build_is_refused_and_left_alone(place: Place) -> None:
    async with opened(place) as journal:
        await journal.record([turn("t")], [])
        await change(journal, "UPDATE journal_revision SET version_num = '9999'")
    with pytest.raises(JournalError, match="later build"):
        await SqlJournal(place).open()
    if isinstance(place, Path):
        with closing(sqlite3.connect(place)) as file:
            assert file.execute("SELECT id FROM turns").fetchall() == [("t",)]
            file.execute("UPDATE journal_revision SET version_num = ?", (HEAD,))
            file.commit()
    else:
        restore(place)
    async with opened(place) as journal:
        assert await learnt(journal) == {"t": None}


def restore(url: str) -> None:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("UPDATE journal_revision SET version_num = %s", (HEAD,))
