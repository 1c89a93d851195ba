"""What a damaged journal is called, and what of it can be read into a new one."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.backends.sql.damaged_pages import DamagedFile, Walked
from semmem.backends.sql.journal import SqlJournal
from semmem.backends.sql.recovering import TELL_OF_ERASURES, Salvage, is_sound, salvage
from semmem.backends.sql.tables import metadata
from semmem.memory import Forgetting, Scope
from semmem.ports.errors import JournalDamaged, JournalError
from tests.support.examples import examples
from tests.support.journal_samples import answered, turn
from tests.support.memories import memory

PAGE, ZEROS = 4096, 40 * 1024
USERS, TURNS = 25, 16
NOW = 10_000.0
LONG = "a long story about a lighthouse, told in one go; " * 400


async def fill(path: Path) -> None:
    """Turns, long and short, versions, and two erasures, one of them pending."""
    journal = SqlJournal(path)
    await journal.open()
    for number in range(TURNS):
        texts = [LONG if user == 7 else f"I was in town number {number}." for user in range(USERS)]
        said = [
            turn(
                f"t{number}.{user}",
                Scope(f"u{user}"),
                opened_at=100.0 + number,
                text=text,
                message_id=f"{number}.{user}",
            )
            for user, text in enumerate(texts)
        ]
        await journal.record(said, [answered(each.id) for each in said])
    for user in range(USERS):
        await journal.register_user(f"u{user}")
        for version in range(1, 9):
            await journal.keep_version(memory(f"u{user}", f"m{user}", version=version))
    hold, _ = await journal.begin_erasure(Forgetting(Scope("u3"), 500.0), now=500.0)
    await journal.finish_erasure(Forgetting(Scope("u3"), 500.0), hold)
    await journal.begin_erasure(Forgetting(Scope("u4"), 600.0), now=600.0)
    await journal.close()


@cache
def whole() -> bytes:
    with TemporaryDirectory() as folder, ThreadPoolExecutor(1) as thread:  # the caller's may have a loop
        thread.submit(asyncio.run, fill(Path(folder) / "journal.db")).result()
        return (Path(folder) / "journal.db").read_bytes()


def damaged(folder: Path, content: bytes) -> Path:
    path = folder / "journal.db"
    path.write_bytes(content)
    return path


def zeroed(at: int, size: int = ZEROS) -> bytes:
    content = whole()
    return content[:at] + bytes(min(size, len(content) - at)) + content[at + size :]


def recovered(folder: Path, content: bytes) -> tuple[Path, Salvage]:
    new = folder / "new.db"
    return new, salvage(damaged(folder, content), new, now=NOW)


def rows(path: Path, table: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as journal:
        return sorted(journal.execute(f"SELECT * FROM {table}").fetchall(), key=repr)


def root_page(table: str) -> int:
    with TemporaryDirectory() as folder, closing(sqlite3.connect(damaged(Path(folder), whole()))) as journal:
        asked = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        return int(journal.execute(asked, [table]).fetchone()[0])


def without(table: str) -> bytes:
    """The journal with the root of this table, and that of its key, overwritten."""
    content = whole()
    for name in (table, f"sqlite_autoindex_{table}_1"):
        at = (root_page(name) - 1) * PAGE
        content = content[:at] + bytes(PAGE) + content[at + PAGE :]
    return content


# --- what it is called -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["zeros at the beginning", "half of it", "a text"])
async def test_the_error_names_the_file_and_the_command(tmp_path: Path, bad: str) -> None:
    content = {
        "zeros at the beginning": zeroed(0),
        "half of it": whole()[: len(whole()) // 2],
        "a text": b"dear diary\n" * 1000,
    }[bad]
    path = damaged(tmp_path, content)
    with pytest.raises(JournalDamaged) as met:
        await SqlJournal(path).open()
    assert str(met.value).startswith(f"{path} is damaged (")
    assert "`semmem journal recover`" in str(met.value)


async def test_damage_that_is_met_later_is_named_as_well(tmp_path: Path) -> None:
    journal = SqlJournal(damaged(tmp_path, without("turns")))
    await journal.open()
    with pytest.raises(JournalDamaged, match=r"journal\.db is damaged .*journal recover"):
        await journal.record([turn("t")], [])
    await journal.close()


# --- what is saved ---------------------------------------------------------------------------------------------------


async def test_of_a_whole_file_nothing_is_lost(tmp_path: Path) -> None:
    path, found = recovered(tmp_path, whole())
    assert (found.lost, found.log_is_damaged) == ({}, False)
    assert found.saved["turns"] == USERS * TURNS
    for table in metadata.tables:
        assert rows(path, table) == rows(tmp_path / "journal.db", table), table
    assert path.stat().st_mode & 0o777 == 0o600


@settings(max_examples=examples(100), deadline=None)
@given(at=st.integers(0, 10_000_000), size=st.sampled_from([512, PAGE, ZEROS]))
def test_wherever_zeros_are_what_is_read_is_true_and_what_is_not_is_noticed(at: int, size: int) -> None:
    with TemporaryDirectory() as folder:
        source = DamagedFile(damaged(Path(folder), zeroed(at % len(whole()), size)))
    for table, root in roots().items():
        walked = Walked()
        read, all_rows = dict(source.rows(root, walked)), rows_by_id()[table]
        assert all(tuple(row) == all_rows[rowid] for rowid, row in read.items()), table
        assert walked.bad or len(read) == len(all_rows), table
    source.close()


@cache
def roots() -> dict[str, int]:
    return {table: root_page(table) for table in ("turns", "said_messages", "versions", "forgotten", "answers")}


@cache
def rows_by_id() -> dict[str, dict[int, tuple[object, ...]]]:
    with TemporaryDirectory() as folder, closing(sqlite3.connect(damaged(Path(folder), whole()))) as journal:
        return {
            table: {row[0]: row[1:] for row in journal.execute(f"SELECT rowid, * FROM {table}")} for table in roots()
        }


@pytest.mark.parametrize("quarter", [1, 2, 3])
def test_zeros_inside_cost_only_what_was_there(tmp_path: Path, quarter: int) -> None:
    before = tmp_path / "before"
    before.mkdir()
    damaged(before, whole())
    path, found = recovered(tmp_path, zeroed(len(whole()) * quarter // 4 + 100))
    assert found.lost
    assert is_sound(path)
    for table, saved in found.saved.items():
        all_rows = rows(before / "journal.db", table)
        assert set(rows(path, table)) - {everybodys()} <= set(all_rows), table
        if table not in found.lost:
            assert saved == len(all_rows), table


def everybodys() -> tuple[object, ...]:
    return ("", "", "", "", NOW, 0.0, 0.0)


async def test_half_a_file_opens_again_and_goes_on(tmp_path: Path) -> None:
    path, found = recovered(tmp_path, whole()[: len(whole()) // 2])
    assert found.lost
    journal = SqlJournal(path)
    await journal.open()
    await journal.record([turn("new", Scope("u1"), opened_at=NOW + 1)], [answered("new")])
    await journal.close()
    assert len(rows(path, "turns")) == found.saved["turns"] + 1


def test_a_broken_index_costs_nothing(tmp_path: Path) -> None:
    at = (root_page("sqlite_autoindex_versions_1") - 1) * PAGE
    content = whole()[:at] + bytes(PAGE) + whole()[at + PAGE :]
    assert not is_sound(damaged(tmp_path, content))
    path, found = recovered(tmp_path, content)
    assert found.lost == {}
    assert rows(path, "versions") == rows(damaged(tmp_path, whole()), "versions")


@pytest.mark.parametrize("content", [b"", b"dear diary\n" * 1000, bytes(50_000)])
def test_of_what_is_no_journal_any_more_everything_is_lost_erasures_too(tmp_path: Path, content: bytes) -> None:
    assert not is_sound(damaged(tmp_path, content))
    path, found = recovered(tmp_path, content)
    assert found.saved == {}
    assert set(found.erasures_lost) == TELL_OF_ERASURES
    assert is_sound(path)


@pytest.mark.parametrize("table", sorted(TELL_OF_ERASURES))
def test_a_table_of_erasures_that_is_gone_is_told(tmp_path: Path, table: str) -> None:
    assert recovered(tmp_path, without(table))[1].erasures_lost == [table]


def test_turns_of_a_batch_that_is_gone_wait_for_another(tmp_path: Path) -> None:
    with closing(sqlite3.connect(damaged(tmp_path, whole()))) as journal:
        journal.execute("UPDATE turns SET batch_id = 'gone' WHERE id = 't1.1'")
        journal.commit()
    path, _ = recovered(tmp_path, (tmp_path / "journal.db").read_bytes())
    assert rows(path, "turns WHERE batch_id IS NOT NULL") == []


def test_whoever_has_turns_or_memories_is_known_again(tmp_path: Path) -> None:
    path, found = recovered(tmp_path, without("users"))
    assert found.lost == {"users": None}
    assert {row[0] for row in rows(path, "users")} == {f"u{number}" for number in range(USERS)}


async def test_after_a_loss_nothing_said_before_is_learnt_from_a_history_for_anybody(tmp_path: Path) -> None:
    path, _ = recovered(tmp_path, without("said_messages"))
    journal = SqlJournal(path)
    await journal.open()
    assert await journal.forgotten_at("somebody") == NOW
    await journal.record([turn("late", Scope("u1"), opened_at=NOW - 1)], [])  # and nothing that is said is turned away
    assert journal.turned_away == 0
    await journal.close()
    whole_path, _ = recovered_in(tmp_path / "whole", whole())
    journal = SqlJournal(whole_path)
    await journal.open()
    assert await journal.forgotten_at("somebody") is None
    await journal.close()


def recovered_in(folder: Path, content: bytes) -> tuple[Path, Salvage]:
    folder.mkdir()
    return recovered(folder, content)


async def test_what_was_erased_is_still_turned_away(tmp_path: Path) -> None:
    path, found = recovered(tmp_path, without("turns"))
    assert found.lost == {"turns": None}
    journal = SqlJournal(path)
    await journal.open()
    await journal.record([turn("late", Scope("u3"), opened_at=499.0)], [])
    assert journal.turned_away == 1
    assert [what.scope.user for what in await journal.pending_erasures(limit=10)] == ["u4"]
    await journal.close()


# --- the write-ahead log ---------------------------------------------------------------------------------------------


async def with_log(folder: Path) -> Path:
    """A journal as a kill leaves it: the newest commits are in the log alone."""
    running = folder / "running"
    running.mkdir()
    journal = SqlJournal(damaged(running, whole()))
    await journal.open()
    await journal.record([turn("newest", Scope("u1"), opened_at=700.0)], [])
    hold, _ = await journal.begin_erasure(Forgetting(Scope("u5"), 700.0), now=700.0)
    await journal.finish_erasure(Forgetting(Scope("u5"), 700.0), hold)
    for end in ("", "-wal"):
        shutil.copy(running / f"journal.db{end}", folder / f"journal.db{end}")
    await journal.close()
    return folder / "journal.db"


async def test_the_newest_commits_are_read_from_the_log(tmp_path: Path) -> None:
    path = await with_log(tmp_path)
    found = salvage(path, tmp_path / "new.db", now=NOW)
    assert (found.lost, found.log_is_damaged) == ({}, False)
    assert ("newest",) in [row[:1] for row in rows(tmp_path / "new.db", "turns")]
    assert len(rows(tmp_path / "new.db", "forgotten")) == 3
    assert path.with_name("journal.db-wal").stat().st_size > 0


async def test_a_page_that_is_whole_in_the_log_is_not_lost(tmp_path: Path) -> None:
    path = await with_log(tmp_path)
    at = (root_page("forgotten") - 1) * PAGE
    path.write_bytes(path.read_bytes()[:at] + bytes(PAGE) + path.read_bytes()[at + PAGE :])
    assert salvage(path, tmp_path / "new.db", now=NOW).erasures_lost == []


@pytest.mark.parametrize("where", ["its head", "its middle", "its end"])
async def test_a_damaged_log_is_told_since_erasures_may_have_been_in_it(tmp_path: Path, where: str) -> None:
    path = await with_log(tmp_path)
    log = path.with_name("journal.db-wal")
    content = log.read_bytes()
    frames = (len(content) - 32) // (PAGE + 24)
    at = {"its head": 8, "its middle": 32 + frames // 2 * (PAGE + 24), "its end": len(content) - PAGE - 24}[where]
    log.write_bytes(content[:at] + bytes(PAGE + 24) + content[at + PAGE + 24 :])
    assert salvage(path, tmp_path / "new.db", now=NOW).log_is_damaged


async def test_one_changed_byte_of_the_log_is_told_as_well(tmp_path: Path) -> None:
    path = await with_log(tmp_path)
    log = path.with_name("journal.db-wal")
    content = bytearray(log.read_bytes())
    content[32 + 24 + 100] ^= 1
    log.write_bytes(content)
    assert salvage(path, tmp_path / "new.db", now=NOW).log_is_damaged


async def test_of_a_log_that_was_cut_off_in_mid_write_the_whole_commits_count(tmp_path: Path) -> None:
    path = await with_log(tmp_path)
    log = path.with_name("journal.db-wal")
    log.write_bytes(log.read_bytes()[:-100])
    found = salvage(path, tmp_path / "new.db", now=NOW)
    assert not found.log_is_damaged
    assert ("newest",) in [row[:1] for row in rows(tmp_path / "new.db", "turns")]


# --- what is not recovered -------------------------------------------------------------------------------------------


def test_another_database_and_a_later_builds_journal_are_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    with pytest.raises(JournalError, match="not a journal"):
        salvage(tmp_path / "other.db", tmp_path / "new.db", now=NOW)
    with closing(sqlite3.connect(damaged(tmp_path, whole()))) as later:
        later.execute("UPDATE journal_schema SET version = 99")
        later.commit()
    with pytest.raises(JournalError, match="later build"):
        salvage(tmp_path / "journal.db", tmp_path / "newer.db", now=NOW)


@settings(max_examples=examples(100), deadline=None)
@given(seed=st.integers(0, 1 << 30))
def test_no_bytes_make_reading_fail(seed: int) -> None:
    chance, content = random.Random(seed), bytearray(whole())
    for _ in range(chance.randrange(1, 2000)):
        content[chance.randrange(100, len(content))] = chance.randrange(256)
    with TemporaryDirectory() as folder:
        source = DamagedFile(damaged(Path(folder), bytes(content)))
    for root in (1, *roots().values(), 10**9):
        assert len(list(source.rows(root, Walked()))) < 10**6
        source.entries(root)
    source.close()
