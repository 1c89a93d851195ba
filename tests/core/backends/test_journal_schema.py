"""How a journal's tables come to be: made at once, or brought up to date from what an earlier build has written."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from sqlalchemy import Connection, inspect, text
from sqlalchemy.schema import CreateIndex, CreateTable

from semmem.backends.sql.journal import SqlJournal
from semmem.backends.sql.schema import HEAD
from semmem.backends.sql.tables import metadata
from semmem.memory import PromptCache, Scope
from semmem.ports.errors import JournalError
from semmem.ports.memory_records import Uses
from semmem.ports.usage import DAY_S, Span, UsageRow
from tests.support.journal_samples import EAGER, Place, answered, change, learnt, rows_of, turn
from tests.support.newest_conversation import newest_conversation
from tests.support.postgres import TestServer, worker_name
from tests.support.usage import rows as rows_of_usage
from tests.support.usage import script

EARLIER = Path(__file__).parent / "journal_of_029ae4f.sql"
"""What that build's SQLite file holds: turns in all states, a leased batch with facts, a version, uses, marks."""
WITH_CONVERSATIONS = Path(__file__).parent / "journal_of_ffa58ef.sql"
"""What that build's file holds, of revision 15: turns, a conversation with its messages, uses, and marks."""


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[SqlJournal]:
    journal = SqlJournal(place)
    await journal.open()
    yield journal
    await journal.close()


def written_by_an_earlier_build(place: Place, dump: Path = EARLIER) -> Place:
    """In a database the same tables and rows, in its own words: that build knew only files."""
    if isinstance(place, Path):
        with closing(sqlite3.connect(place)) as file:
            file.executescript(dump.read_text())
    else:
        with psycopg.connect(place, autocommit=True) as connection:
            words = dump.read_text().replace(" DOUBLE", " DOUBLE PRECISION").replace(" BLOB", " BYTEA")
            connection.execute(words.encode())
    return place


@pytest.fixture(params=["sqlite", "postgresql"])
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A journal of that build's."""
    if request.param == "sqlite":
        return written_by_an_earlier_build(tmp_path / "journal.db")
    return written_by_an_earlier_build(request.getfixturevalue("postgres").create(f"earlier-{worker_name()}"))


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


def shape_of_a_file(conn: Connection) -> dict[str, Any]:
    """Without what only a server's columns say: the words of a file were used to make them."""
    return {
        name: ([(column, type_.replace(' COLLATE "C"', ""), null) for column, type_, null in columns], *rest)
        for name, (columns, *rest) in shape(conn).items()
    }


def _condition(index: Any) -> str:
    options = index.get("dialect_options", {})
    where = next((str(value) for name, value in options.items() if name.endswith("_where")), "")
    return where.replace("turns.", "").replace("batches.", "").replace("(", "").replace(")", "")


async def test_a_journal_of_an_earlier_build_keeps_what_it_has_and_goes_on(earlier: Place) -> None:
    for _ in range(2):
        async with opened(earlier) as journal:
            assert await journal.uses("ada") == {"mem_1": Uses(3, 123.0)}
            [version] = await journal.versions(Scope("ada"), "mem_1")
            assert version.content == "User likes tea"
            assert await journal.turn_of_answer("ada", "resp-t2") == ("t2", "s1")
    async with opened(earlier) as journal:
        again = await journal.claim(EAGER, now=310.0)
        assert again is not None
        assert again.facts is not None
        assert ([each.id for each in again.turns], again.attempt) == (["t3", "t4"], 2)
        assert (again.turns[1].user_text, again.facts[0].content) == ("My name is Bob\x00", "User keeps bees")
        await journal.finish(again.id, "done", now=311.0)
        await journal.record([turn("new", Scope("eve", session="s"))], [answered("lonely"), answered("new")])
        assert await learnt(journal) == {"new": "Noted.", "t5": None}


async def test_a_journal_with_conversations_keeps_them_and_is_brought_up_to_date(
    place: Place, postgres: TestServer, tmp_path: Path
) -> None:
    earlier = tmp_path / "ffa58ef.db" if isinstance(place, Path) else postgres.create(f"ffa58ef-{worker_name()}")
    written_by_an_earlier_build(earlier, WITH_CONVERSATIONS)
    async with opened(place) as made:
        expected = await made._database.read(shape_of_a_file)
    ada = Scope("ada", session="s1")
    for _ in range(2):
        async with opened(earlier) as journal:
            assert await journal._database.read(shape_of_a_file) == expected
            assert await journal.uses("ada") == {"mem_1": Uses(3, 123.0)}
            assert await journal.forgotten_at("eve") == 170.0
            kept = await newest_conversation(journal, ada)
            assert kept is not None
            said = [each.content for each in await journal.messages(ada, kept.id)]
            assert said == ["I like tea", "Noted.", "My name is Ada\x00", "Hello Ada"]
            turns = await journal.unlearnt("bob", until=1000.0, limit=10)
            assert [each.user_text for each in turns] == ["I keep bees"]
            assert (await rows_of(journal))["journal_revision"] == [(HEAD,)]


async def test_whatever_a_journal_lacks_of_a_revision_is_added_without_a_change_to_what_was_there(
    earlier: Place,
) -> None:
    """Each index, each later table and each column with a default is taken away once."""
    names = {table: [name for (name,) in sqlite3_columns(table)] for table in EARLIER_TABLES}
    async with opened(earlier) as journal:
        before = await journal._database.read(lambda conn: rows(conn, names))
        expected = await journal._database.read(shape)
        assert before["turns"]
        await journal._database.write(take_away_what_came_later)
    for _ in range(2):
        async with opened(earlier) as journal:
            assert await journal._database.read(lambda conn: rows(conn, names)) == before
            assert await journal._database.read(shape) == expected


LATER_COLUMNS = {
    "turns": ("trace",),
    "conversation_messages": ("whole", "shown", "withheld"),
    "conversations": ("progress", "last_answer", "withheld_from", "withheld_until"),
    "forgotten": ("hidden_at", "ahead_at"),
    "usage_requests": ("prompt_tokens", "cached_tokens"),
    "usage_hours": ("cache_reported", "prompt_tokens", "cached_tokens"),
    "usage_days": ("cache_reported", "prompt_tokens", "cached_tokens"),
}
"""What revisions have added to tables that were there."""


def take_away_what_came_later(conn: Connection) -> None:
    for table in metadata.sorted_tables:
        for index in table.indexes:
            index.drop(conn)
    for name, columns in LATER_COLUMNS.items():
        for column in columns:
            conn.execute(text(f"ALTER TABLE {name} DROP COLUMN {column}"))
    for name in sorted(metadata.tables.keys() - {*EARLIER_TABLES, *LATER_COLUMNS, "journal_schema"}):
        conn.execute(text(f"DROP TABLE {name}"))
    conn.execute(text("DROP TABLE journal_revision"))


def rows(conn: Connection, names: dict[str, list[str]]) -> dict[str, list[tuple[object, ...]]]:
    """Of these columns."""
    return {
        table: sorted((tuple(row) for row in conn.exec_driver_sql(f"SELECT {', '.join(each)} FROM {table}")), key=repr)
        for table, each in names.items()
    }


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


def reported(identity: str) -> UsageRow:
    """A request at the beginning of time: 80 of its 100 tokens were cached."""
    row = rows_of_usage(script(1, seed=1, begins=datetime(2026, 5, 1, tzinfo=UTC)))[0]
    return msgspec.structs.replace(row, id=identity, at=0.0, tokens_in=100, prompt_cache=PromptCache(100, 80))


def add_sums_of_before(conn: Connection) -> None:
    """What a build before revision 17 writes of two requests of the same group."""
    row = reported("")
    group = {name: getattr(row, name) for name in ("project", "endpoint", "model_asked", "model", "provider")}
    figures = dict.fromkeys(("errors", "messages", "tool_calls", "tokens_out", "estimated", "duration_ms"), 0)
    sums = {"began_at": 0, "user_name": row.user, "streamed": int(row.streamed), "requests": 2, "tokens_in": 900}
    values = group | figures | sums
    for table in ("usage_hours", "usage_days"):
        places = ", ".join(f":{name}" for name in values)
        conn.execute(text(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})"), values)


async def test_usage_of_before_what_was_cached_was_kept_is_unknown_and_is_added_to(place: Place) -> None:
    async with opened(place) as journal:
        for table in ("usage_requests", "usage_hours", "usage_days"):
            for column in LATER_COLUMNS[table]:
                await change(journal, f"ALTER TABLE {table} DROP COLUMN {column}")
        await change(journal, "UPDATE journal_revision SET version_num = '0016'")
        await journal._database.write(add_sums_of_before)
    async with opened(place) as journal:
        [before] = await journal.usage_sums(Span(0, DAY_S), ())
        assert (before.requests, before.cache_reported, before.prompt_tokens, before.cached_tokens) == (2, 0, 0, 0)
        assert await journal.add_usage([reported("a")]) == 1
        for by in ("hour", "day"):
            [used] = await journal.usage_sums(Span(0, DAY_S), (by,))
            assert (used.requests, used.tokens_in, used.cache_reported) == (3, 1000, 1)
            assert (used.prompt_tokens, used.cached_tokens) == (100, 80)


async def test_an_earlier_build_adds_usage_beside_one_that_keeps_what_was_cached(place: Place) -> None:
    async with opened(place) as journal:
        await journal._database.write(add_sums_of_before)
        assert await journal.add_usage([reported("a")]) == 1
        [used] = await journal.usage_sums(Span(0, DAY_S), ())
        assert (used.requests, used.cache_reported, used.prompt_tokens) == (3, 1, 100)


EARLIER_TABLES = (
    "accesses answers batches erasures session_drifts session_ends session_pasts turns users versions".split()
)


def sqlite3_columns(table: str) -> list[tuple[str]]:
    """Of the table as the earlier build made it."""
    with closing(sqlite3.connect(":memory:")) as file:
        file.executescript(EARLIER.read_text())
        return [(name,) for _, name, *_ in file.execute(f"PRAGMA table_info({table})")]


def test_a_change_of_the_tables_raises_the_revision() -> None:
    """Else journals that have the revision would not be given what they lack. Then a new digest belongs here."""
    made = [str(CreateTable(table)) for table in metadata.sorted_tables]
    made += sorted(str(CreateIndex(index)) for table in metadata.sorted_tables for index in table.indexes)
    assert (HEAD, hashlib.sha256("".join(made).encode()).hexdigest()[:16]) == ("0020", "45a0b7bfe3c1fb98")


async def test_a_journal_of_schema_1_learns_who_is_known(earlier: Place) -> None:
    async with opened(earlier) as journal:
        await change(journal, "DELETE FROM users")
        await change(journal, "DROP TABLE journal_revision")
        await change(journal, "UPDATE journal_schema SET version = 1")
    async with opened(earlier) as journal:
        assert {"ada", "bob"} <= set(await journal.named_users())
        assert (await rows_of(journal))["journal_schema"] == [(2,)]


async def test_a_build_goes_on_with_what_a_later_one_has_added_to(place: Place) -> None:
    async with opened(place) as journal:
        await journal.record([turn("t")], [])
        await change(journal, "UPDATE journal_revision SET version_num = '9999'")
    try:
        async with opened(place) as journal:
            await journal.record([turn("u")], [])
            assert set(await learnt(journal)) == {"t", "u"}
            assert (await rows_of(journal))["journal_revision"] == [("9999",)]
    finally:
        await behind_its_back(place, f"UPDATE journal_revision SET version_num = '{HEAD}'")


async def test_a_journal_that_only_a_later_build_can_read_is_refused_and_left_alone(place: Place) -> None:
    async with opened(place) as journal:
        await journal.record([turn("t")], [])
        await change(journal, "UPDATE journal_schema SET version = 3")
    try:
        with pytest.raises(JournalError, match="schema version 3"):
            await SqlJournal(place).open()
    finally:
        await behind_its_back(place, "UPDATE journal_schema SET version = 2")
    async with opened(place) as journal:
        assert await learnt(journal) == {"t": None}


async def behind_its_back(place: Place, statement: str) -> None:
    """To a journal that would not be opened."""
    if isinstance(place, Path):
        with closing(sqlite3.connect(place)) as file, file:
            file.execute(statement)
    else:
        with psycopg.connect(place) as connection:
            connection.execute(statement.encode())
