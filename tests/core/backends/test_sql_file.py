"""The journal's SQLite file: private, locked, full, foreign, from the future; and what erasing leaves in it."""

from __future__ import annotations

import asyncio
import random
import resource
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from semmem.backends.sql.file import write_ahead
from semmem.backends.sql.journal import SqlJournal
from semmem.backends.sql.rows import json_facts
from semmem.memory import Fact, Memory, MemoryType, Scope
from semmem.ports.errors import JournalError, JournalFull
from semmem.ports.memory_records import Uses
from tests.support.empty_journal import empty_journal
from tests.support.journal_samples import EAGER, answered, erase, learnt, turn

SECRET = "the-safe-combination-is-4711"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made" / "journal.db"


@pytest.fixture
async def journal(path: Path) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(path, busy_timeout_s=0.05)
    await made.open()
    yield made
    await made.close()


@asynccontextmanager
async def aclosing_journal(path: Path) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(path)
    await made.open()
    yield made
    await made.close()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o755)
    path.write_bytes(content)
    path.chmod(0o644)


# --- modes -----------------------------------------------------------------------------------------------------------


async def test_the_files_are_private(journal: SqlJournal, path: Path) -> None:
    await journal.record([turn("t")], [])
    files = sorted(path.parent.iterdir())
    assert [each.name for each in files] == ["journal.db", "journal.db-shm", "journal.db-wal"]
    assert [mode(each) for each in files] == [0o600] * 3
    assert mode(path.parent) == 0o700


async def test_an_existing_file_is_made_private(path: Path) -> None:
    put(path, b"")
    journal = SqlJournal(path)
    await journal.open()
    assert mode(path) == 0o600
    assert mode(path.parent) == 0o755
    await journal.close()


async def test_two_journals_of_one_process_share_a_file(journal: SqlJournal, path: Path) -> None:
    other = SqlJournal(f"sqlite:///{path}")
    await other.open()
    await journal.record([turn("t")], [])
    await other.record([], [answered("t")])
    await other.close()
    assert await learnt(journal) == {"t": "Noted."}


# --- what cannot be opened -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://u@h/db"])
def test_other_databases_are_not_taken(url: str) -> None:
    with pytest.raises(ValueError, match="needs a path"):
        SqlJournal(url)


@pytest.mark.parametrize(
    "url", ["://ada:hunter2@h", "postgresql://ada:hunter2@h/db?hunter2=x", "sqlite://ada:hunter2@h:port/"]
)
def test_a_refused_url_does_not_show_its_password(url: str) -> None:
    with pytest.raises(ValueError, match=r"needs a path|not one that PostgreSQL takes") as caught:
        SqlJournal(url)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__context__ is None


async def test_a_newer_schema_is_refused(journal: SqlJournal, path: Path) -> None:
    await journal.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE journal_schema SET version = 99")
    connection.close()
    with pytest.raises(JournalError, match="schema version 99; this build knows version 2"):
        await journal.open()
    with pytest.raises(JournalError, match="not open"):
        await journal.health()


async def test_a_file_without_the_newest_columns_gets_them_and_an_older_build_could_go_on_with_it(path: Path) -> None:
    first = SqlJournal(path)
    await first.open()
    await first.record([turn("t")], [answered("t")])
    await first.close()
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE turns DROP COLUMN model")
        connection.execute("DROP TABLE journal_revision")
    connection.close()
    for _ in range(2):
        async with aclosing_journal(path) as journal:
            await journal.record([structs.replace(turn("u"), model="gpt \\ 4")], [answered("u")])
    with sqlite3.connect(path) as connection:
        connection.execute(
            "INSERT INTO turns (id, user_id, session, opened_at, seen_at) VALUES ('v', 'ada', 's1', 3, 3)"
        )
    connection.close()
    async with aclosing_journal(path) as journal:
        batch = await journal.claim(replace(EAGER, size=3), now=1e9)
        assert batch is not None
        assert {each.id: each.model for each in batch.turns} == {"t": "", "u": "gpt \\ 4", "v": ""}


def test_facts_that_were_saved_before_they_had_all_their_fields_are_read() -> None:
    saved = '[{"type": "semantic", "content": "User likes tea", "turn_id": "t", "importance": 0.5, "key": null}]'
    assert json_facts(saved) == (Fact(MemoryType.SEMANTIC, "User likes tea", "t"),)


async def test_a_file_of_the_first_schema_is_extended_and_keeps_what_it_has(path: Path) -> None:
    first = SqlJournal(path)
    await first.open()
    await first.record([turn("t")], [answered("t")])
    old = Memory(id="m", version=1, type=MemoryType.SEMANTIC, content="User likes tea", user="bob")
    await first.keep_version(old)
    await first.close()
    with sqlite3.connect(path) as connection:
        for table in ("users", "accesses", "erasures", "journal_revision"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("UPDATE journal_schema SET version = 1")
    connection.close()
    for _ in range(2):
        journal = SqlJournal(path)
        await journal.open()
        assert await journal.versions(Scope("bob"), "m") == [old]
        assert await journal.users_due(maintained_before=1.0, limit=10) == ["ada", "bob"]
        await journal.record_uses([("bob", "m", Uses(1, 5.0))])
        await journal.close()
    async with aclosing_journal(path) as journal:
        assert await journal.uses("bob") == {"m": Uses(2, 5.0)}
        assert await learnt(journal) == {"t": "Noted."}


async def test_a_file_from_before_topics_were_looked_at_gets_their_table(journal: SqlJournal, path: Path) -> None:
    await journal.close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE session_drifts")
        connection.execute("DROP TABLE journal_revision")
    connection.close()
    await journal.open()
    await journal.cut_session("ada", "s1", before=1.0)


async def test_another_programs_database_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE turns (mine)")
    connection.close()
    with pytest.raises(JournalError, match="not a journal"):
        await SqlJournal(path).open()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("turns",)]
    connection.close()


async def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    put(path, b"something else entirely" * 100)
    with pytest.raises(JournalError, match="not a database"):
        await SqlJournal(path).open()
    assert holding(path, "something else entirely" * 100) == ["journal.db"]


@pytest.mark.parametrize("bad", ["a file for a directory", "a directory for a file"])
async def test_a_path_that_cannot_be_is_a_journal_error(tmp_path: Path, bad: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    path = tmp_path / "file" / "journal.db" if bad == "a file for a directory" else tmp_path / "folder"
    with pytest.raises(JournalError):
        await SqlJournal(path).open()


# --- locked, full, damaged -------------------------------------------------------------------------------------------


async def test_a_lock_held_too_long_is_a_journal_error(journal: SqlJournal, path: Path) -> None:
    await journal.record([turn("before")], [])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for call in (journal.record([turn("t")], []), journal.claim(EAGER, now=1.0), erase(journal, Scope("ada"))):
        with pytest.raises(JournalError, match="database is locked"):
            await call
    other.execute("ROLLBACK")
    other.close()
    await journal.record([turn("after")], [])
    assert await learnt(journal) == {"before": None, "after": None}


async def test_reading_does_not_wait_for_a_writer(path: Path) -> None:
    journal = SqlJournal(path, busy_timeout_s=60.0)
    await journal.open()
    await journal.record([turn("t", Scope("ada", session="k.7"))], [])
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.Task(journal.record([turn("u")], []))
    await asyncio.sleep(0.05)
    assert await journal.session_start("ada", "k", seen_since=0.0) == 7.0
    await journal.health()
    assert (await journal.counts())["open"] == 1
    assert not waiting.done()
    other.execute("ROLLBACK")
    other.close()
    await waiting
    assert (await journal.counts())["open"] == 2
    await journal.close()


async def fill(journal: SqlJournal, kept: list[str]) -> None:
    """Record until the journal refuses; ``kept`` are the turns it took."""
    while True:
        ids = [f"{len(kept)}-{n}" for n in range(10)]
        scope = Scope(f"user{len(kept) // 10 % 2}", session="s")
        await journal.record([turn(each, scope, text="x" * 1000) for each in ids], [])
        kept += ids


async def test_a_full_disk_is_a_journal_error_and_passes(path: Path) -> None:
    journal = SqlJournal(path, size_bytes_max=_size(empty_journal(path)) + 200_000)
    await journal.open()
    kept: list[str] = []
    with pytest.raises(JournalFull, match="full"):
        await fill(journal, kept)
    assert 50 < len(kept) < 400
    assert (await journal.counts())["open"] == len(kept)
    await erase(journal, Scope("user0"))
    await journal.record([turn("again", text="x" * 1000)], [])
    assert (await learnt(journal))["again"] is None
    await journal.close()


async def test_whether_there_is_room_is_told_without_a_write_to_the_file(journal: SqlJournal, path: Path) -> None:
    before = journal.last_write()
    await journal.check_room()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(JournalFull, match="File too large"):
            await journal.check_room()
        with pytest.raises(JournalFull):
            await journal.record([turn("t")], [])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    await journal.check_room()
    assert journal.last_write() == before
    assert {each.name.removeprefix(path.name) for each in path.parent.iterdir()} == {"", "-wal", "-shm"}


def _size(path: Path) -> int:
    return path.stat().st_size


async def test_a_group_that_fails_leaves_nothing(path: Path) -> None:
    journal = SqlJournal(path, size_bytes_max=_size(empty_journal(path)) + 40_000)
    await journal.open()
    with pytest.raises(JournalError):
        await journal.record([turn(f"{n}", text="x" * 1000) for n in range(500)], [answered("0")])
    assert sum((await journal.counts()).values()) == 0
    await journal.record([turn("t")], [])
    assert await learnt(journal) == {"t": None}
    await journal.close()


async def test_a_lost_table_is_a_journal_error_without_content(journal: SqlJournal, path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE turns")
        connection.execute("DROP TABLE journal_schema")
    connection.close()
    with pytest.raises(JournalError, match="no such table") as caught:
        await journal.record([turn("t", Scope("ada@example.org"), text=SECRET)], [])
    assert caught.value.__cause__ is None
    assert SECRET not in str(caught.value)
    assert "ada@" not in str(caught.value)
    with pytest.raises(JournalError, match="no such table"):
        await journal.health()


# --- what the rows say ----------------------------------------------------------------------------------------------


async def test_the_first_status_of_a_batch_stays_and_its_facts_go(journal: SqlJournal, path: Path) -> None:
    await journal.record([turn("t")], [answered("t")])
    batch = await journal.claim(EAGER, now=200.0)
    assert batch is not None
    await journal.save_facts(batch.id, [Fact(MemoryType.SEMANTIC, SECRET, "t")])
    await journal.finish(batch.id, "failed", now=201.0)
    await journal.finish(batch.id, "done", now=202.0)
    await journal.postpone(batch.id, until=0.0)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT status, finished_at, facts FROM batches").fetchall() == [("failed", 201.0, None)]
    connection.close()


# --- erasing ---------------------------------------------------------------------------------------------------------


def holding(path: Path, secret: str) -> list[str]:
    return [each.name for each in sorted(path.parent.iterdir()) if secret.encode() in each.read_bytes()]


async def test_forgetting_and_purging_leave_no_byte(journal: SqlJournal, path: Path) -> None:
    ada = Scope(f"user-{SECRET}", session=f"session-{SECRET}")
    long = f"{SECRET} " * 2000
    await journal.record([turn("t", ada, text=long)], [answered("t", long)])
    await journal.keep_version(Memory("mem_1", 1, MemoryType.SEMANTIC, SECRET, ada.user))
    await journal.end_session(ada.user, str(ada.session), now=200.0)
    assert await journal.claim(EAGER, now=200.0) is not None
    await journal.record([turn("open", ada, text=long)], [])
    await journal.purge()
    assert holding(path, SECRET) == ["journal.db"]
    await erase(journal, Scope(ada.user))
    await journal.record([turn("open", ada, text=long)], [answered("open", long)])
    await journal.purge()
    assert holding(path, SECRET) == []


async def test_purging_while_somebody_reads_is_a_journal_error(journal: SqlJournal, path: Path) -> None:
    await journal.record([turn("t", text=SECRET)], [])
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM turns").fetchone() == (1,)
    await erase(journal, Scope("ada"))
    with pytest.raises(JournalError, match="in use"):
        await journal.purge()
    reader.close()
    await journal.purge()
    assert holding(path, SECRET) == []


class BusyAtFirst(sqlite3.Connection):
    """As SQLite is on a new file that somebody else gives its log at the same moment, about once in a thousand."""

    busy = 3

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        if self.busy:
            self.busy -= 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        return super().execute(sql, parameters)


def test_many_may_make_one_journal_at_the_same_moment(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "journal.db", factory=BusyAtFirst)
    assert write_ahead(connection, 60.0) == "wal"
    assert connection.busy == 0
    connection.close()


def test_a_file_that_stays_busy_is_given_up(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "journal.db", factory=BusyAtFirst)
    connection.busy = 10**9
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        write_ahead(connection, 0.02)
    connection.close()


async def test_the_last_write_is_another_after_each_commit_of_anybody_and_the_same_after_a_look(
    journal: SqlJournal, path: Path
) -> None:
    await journal.record([turn("a")], [])
    first = journal.last_write()
    assert await journal.claim(EAGER, now=0.0) is None
    await journal.said_before(["m"])
    assert journal.last_write() == first
    async with aclosing_journal(path) as other:
        await other.record([turn("b")], [])
        assert journal.last_write() not in (first, None)


def moved_about(path: Path, seed: int) -> set[str]:
    """Rows of many lengths come, grow and go beside the journal's; what those said that are gone."""
    dice, alive, gone = random.Random(seed), dict[str, str](), set[str]()
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in ("synchronous=OFF", "secure_delete=ON"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute(f"CREATE TABLE rows{seed}(id TEXT PRIMARY KEY, body TEXT, note TEXT)")
    for number in range(600):
        if alive and dice.random() < 0.35:
            id = dice.choice(list(alive))
            connection.execute(f"DELETE FROM rows{seed} WHERE id = ?", (id,))
            gone.add(alive.pop(id))
        else:
            id, word = f"{dice.getrandbits(64):016x}", f"{SECRET}{seed}x{number:04d}x"
            connection.execute(f"INSERT INTO rows{seed} VALUES (?, ?, '')", (id, word + "y" * dice.randrange(400)))
            alive[id] = word
        if dice.random() < 0.2:
            grown = ("z" * dice.randrange(300), dice.choice(list(alive) or [""]))
            connection.execute(f"UPDATE rows{seed} SET note = ? WHERE id = ?", grown)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return gone


def left(path: Path, gone: set[str]) -> set[str]:
    raw = path.read_bytes()
    return {word for word in gone if word.encode() in raw}


async def test_a_purge_removes_the_copies_that_pages_keep_of_rows_that_were_moved(
    journal: SqlJournal, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = set[str]().union(*(moved_about(path, seed) for seed in range(8)))
    assert left(path, gone), "SQLite's secure_delete leaves some"
    with monkeypatch.context() as patch:
        patch.setattr("semmem.backends.sql.file.REWRITTEN_BYTES_MAX", 4096)
        assert await journal.purge() is False
        assert left(path, gone)
    await journal.record([turn("t")], [answered("t")])
    assert await journal.purge() is True
    assert left(path, gone) == set()
    assert (await journal.counts())["ready"] == 1
