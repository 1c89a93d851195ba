"""The journal's server: who waits for whom, connections that are lost, a server that is away and comes back."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from msgspec import structs
from sqlalchemy import Connection, text

from semmem.backends.sql import locks
from semmem.backends.sql.database import DEAF, DUE, MISSED, ServerLimits
from semmem.backends.sql.journal import SqlJournal
from semmem.backends.sql.rows import Transaction
from semmem.background import Tasks
from semmem.background.writers import JournalWriter
from semmem.memory import Forgetting, Scope, Source
from semmem.ports.errors import JournalError, JournalUnavailable
from semmem.wiring.stores import open_journal
from tests.support.journal_samples import ADA, EAGER, answered, change, learnt, rows_of, turn
from tests.support.memories import memory
from tests.support.postgres import TestServer, worker_name

SECRET = "the-safe-combination-is-4711"
QUICK = ServerLimits(statement_timeout_s=0.5, retry_s=0.05)


@pytest.fixture
def url(postgres: TestServer, database: str) -> str:
    postgres.empty(database)
    return postgres.url(database)


@pytest.fixture
async def journal(url: str) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(url)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def other(url: str, journal: SqlJournal) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(url, server=QUICK)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def patient(url: str, journal: SqlJournal) -> AsyncIterator[SqlJournal]:
    """One that waits for others as long as it must."""
    made = SqlJournal(url)
    await made.open()
    yield made
    await made.close()


@pytest.fixture(scope="module")
def own_server() -> Iterator[TestServer]:
    """One that may be stopped, if it is started again."""
    folder = Path(tempfile.mkdtemp(prefix="semmem-postgres-"))
    server = TestServer(folder / "data")
    yield server
    server.close()
    shutil.rmtree(folder)


class Slow:
    """A transaction of the journal's that stops in the middle, until it is told to go on."""

    def __init__(self, journal: SqlJournal) -> None:
        self._journal = journal
        self._begun, self._go = threading.Event(), threading.Event()

    async def begin(self, user: str, *, shared: bool) -> asyncio.Task[None]:
        def work(connection: Connection) -> None:
            conn = Transaction(connection)
            locks.users_shared(conn, [user]) if shared else locks.user(conn, user)
            self._begun.set()
            assert self._go.wait(20.0)
            self._journal._record.__wrapped__(self._journal, conn, [turn("t")], [])  # type: ignore[attr-defined]

        task = asyncio.Task(self._journal._database.write(work))
        assert await asyncio.to_thread(self._begun.wait, 20.0)
        return task

    def go_on(self) -> None:
        self._go.set()


# --- who waits for whom ----------------------------------------------------------------------------------------------


async def test_an_erasure_waits_for_turns_that_are_being_recorded_and_takes_them_too(
    journal: SqlJournal, patient: SqlJournal
) -> None:
    slow = Slow(journal)
    recording = await slow.begin("ada", shared=True)
    erasing = asyncio.Task(patient.begin_erasure(Forgetting(Scope("ada"), 1000.0), now=1000.0))
    await asyncio.sleep(0.2)
    assert not erasing.done()
    slow.go_on()
    await recording
    _, counts = await erasing
    assert counts["turns"] == 1
    assert await learnt(journal) == {}


async def test_a_user_who_is_being_changed_is_passed_over_and_others_are_not(
    journal: SqlJournal, other: SqlJournal
) -> None:
    bob = Scope("bob", session="s")
    await journal.record([turn("a"), turn("b", bob, opened_at=200.0)], [answered("a"), answered("b")])
    slow = Slow(journal)
    changing = await slow.begin("ada", shared=False)
    batch = await other.claim(EAGER, now=1000.0)
    assert batch is not None
    assert batch.scope == bob
    assert await other.claim(EAGER, now=1000.0) is None
    slow.go_on()
    await changing
    assert await other.claim(EAGER, now=1000.0) is not None


async def test_a_batch_that_lost_its_worker_goes_to_one_of_many_who_ask_at_once(
    journal: SqlJournal, other: SqlJournal
) -> None:
    await journal.record([turn("t")], [answered("t")])
    first = await journal.claim(EAGER, now=1000.0)
    assert first is not None
    after = 1001.0 + EAGER.lease_s
    found = await asyncio.gather(*(each.claim(EAGER, now=after) for each in (journal, other) * 4))
    assert [(batch.id, batch.attempt) for batch in found if batch is not None] == [(first.id, 2)]


async def test_many_who_record_the_same_turns_at_once_all_come_through(journal: SqlJournal, other: SqlJournal) -> None:
    turns = [structs.replace(turn(f"t{n}"), message_id=f"m{n % 7}") for n in range(40)]
    closes = [answered(each.id) for each in turns]
    orders = [turns, turns[::-1], turns[20:] + turns[:20]]
    await asyncio.gather(*(each.record(order, closes) for each in (journal, other) for order in orders))
    assert set(await learnt(journal)) == {each.id for each in turns}


async def test_who_has_no_memories_left_is_forgotten_after_those_who_count_their_uses(
    journal: SqlJournal, patient: SqlJournal
) -> None:
    slow = Slow(journal)
    counting = await slow.begin("ada", shared=True)
    forgetting = asyncio.Task(patient.forget_user("ada"))
    await asyncio.sleep(0.1)
    assert not forgetting.done()
    slow.go_on()
    await asyncio.gather(counting, forgetting)


async def test_marked_turns_are_erased_after_whoever_is_putting_them_into_a_batch(
    journal: SqlJournal, patient: SqlJournal
) -> None:
    await journal.record([turn("t")], [answered("t")])
    learnt_from = memory("ada", source=Source(turn="t"))
    await journal.mark_memories([learnt_from], at=1000.0)
    slow = Slow(journal)
    claiming = await slow.begin("ada", shared=False)
    erasing = asyncio.Task(patient.erase_marked())
    await asyncio.sleep(0.1)
    assert not erasing.done()
    slow.go_on()
    await claiming
    assert (await erasing)["turns"] == 1


async def test_a_turn_that_is_asked_again_while_it_is_pruned_stays(journal: SqlJournal, url: str) -> None:
    await journal.record([turn("t"), turn("u")], [])
    await change(journal, "UPDATE turns SET done_at = 1.0")
    with psycopg.connect(url) as asking:
        asking.execute("UPDATE turns SET done_at = NULL WHERE id = 't'")
        pruning = asyncio.Task(journal.prune(done_before=1000.0))
        await asyncio.sleep(0.2)
        assert not pruning.done()
    await pruning
    assert [row[0] for row in (await rows_of(journal))["turns"]] == ["t"]


async def test_who_mark_the_same_memories_do_not_wait_in_a_circle(journal: SqlJournal, patient: SqlJournal) -> None:
    told = [memory("ada", f"m{number}") for number in range(200)]
    before = await deadlocks(journal)
    for round_ in range(5):
        await asyncio.gather(
            *(
                each.mark_memories(order, at=1000.0 + round_)
                for each in (journal, patient)
                for order in (told, told[::-1])
            )
        )
    assert await deadlocks(journal) == before
    assert len(await journal.marks()) == len(told)


async def deadlocks(journal: SqlJournal) -> int:
    def work(conn: Connection) -> int:
        conn.execute(text("SELECT pg_stat_force_next_flush()"))
        found = conn.execute(text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"))
        return int(found.scalar_one())

    return await journal._database.write(work)


async def test_a_statement_that_waits_too_long_is_a_journal_error(journal: SqlJournal, other: SqlJournal) -> None:
    slow = Slow(journal)
    changing = await slow.begin("ada", shared=False)
    with pytest.raises(JournalError):
        await other.record([turn("u")], [])
    slow.go_on()
    await changing
    await other.record([turn("u")], [])


# --- news ------------------------------------------------------------------------------------------------------------


async def test_a_session_that_is_ended_here_is_looked_at_there(journal: SqlJournal, other: SqlJournal) -> None:
    heard = asyncio.Queue[str]()
    tasks = Tasks()
    tasks.spawn("news", other.listen(heard.put_nowait))
    assert await asyncio.wait_for(heard.get(), 20.0) == MISSED
    before = other.last_write()
    await journal.end_session("ada", "s1", now=100.0)
    assert await asyncio.wait_for(heard.get(), 20.0) == DUE
    assert other.last_write() != before
    await tasks.cancel()


async def test_a_word_to_all_is_heard_and_who_is_cut_off_hears_that_too(
    journal: SqlJournal, other: SqlJournal, postgres: TestServer, database: str
) -> None:
    heard, tasks, word = asyncio.Queue[str](), Tasks(), "changed " + "x" * 7900
    tasks.spawn("news", other.listen(heard.put_nowait))
    assert await asyncio.wait_for(heard.get(), 20.0) == MISSED
    before = journal.last_write()
    await journal.tell_all(word)
    assert await asyncio.wait_for(heard.get(), 20.0) == word
    assert journal.last_write() == before
    postgres.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}' AND query LIKE 'LISTEN%'"
    )
    assert [await asyncio.wait_for(heard.get(), 20.0) for _ in range(2)] == [DEAF, MISSED]
    await tasks.cancel()


async def test_a_look_that_finds_nothing_is_no_reason_for_another(journal: SqlJournal) -> None:
    before = journal.last_write()
    assert await journal.claim(EAGER, now=1000.0) is None
    assert journal.last_write() == before
    await journal.record([turn("t")], [])
    assert journal.last_write() != before


# --- lost connections ------------------------------------------------------------------------------------------------


async def test_connections_that_the_server_ended_are_made_anew(
    journal: SqlJournal, postgres: TestServer, database: str
) -> None:
    await journal.record([turn("t")], [])
    await journal.health()
    postgres.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")
    await journal.record([turn("u")], [])
    await journal.health()
    assert set(await learnt(journal)) == {"t", "u"}


async def test_what_a_server_says_of_rows_is_not_told(journal: SqlJournal) -> None:
    row = f"INSERT INTO users (user_id) VALUES ('{SECRET}')"
    await change(journal, row)
    with pytest.raises(JournalError, match="UniqueViolation: SQLSTATE 23505") as error:
        await change(journal, row)
    assert SECRET not in str(error.value)


async def test_turns_wait_while_the_server_is_away_and_are_written_when_it_is_back(own_server: TestServer) -> None:
    journal, tasks = SqlJournal(own_server.create("journal"), server=QUICK), Tasks()
    await journal.open()
    writer = JournalWriter(journal, interval_s=0.01, retry_s=0.05)
    tasks.spawn("writer", writer.run())
    heard = list[str]()
    tasks.spawn("news", journal.listen(heard.append))
    writer.offer(turn("before"))
    assert await writer.drained(20.0)
    own_server.stop()
    writer.offer(turn("meanwhile"))
    with pytest.raises(JournalUnavailable):
        await journal.session_start("ada", "k", seen_since=0.0)
    with pytest.raises(JournalUnavailable):
        await journal.claim(EAGER, now=1000.0)
    await asyncio.sleep(0.2)
    assert len(writer) == 1
    own_server.start()
    assert await writer.drained(20.0)
    assert await learnt(journal) == {"before": None, "meanwhile": None}
    async with asyncio.timeout(20.0):
        while heard.count(MISSED) < 2:
            await asyncio.sleep(0.02)
    await tasks.cancel()
    await journal.close()


@pytest.fixture
async def hanging(own_server: TestServer) -> AsyncIterator[Hanging]:
    """Calls to a server that hangs, in which reads and writes were under way."""
    made = Hanging(own_server)
    yield made
    own_server.go_on()


class Hanging:
    def __init__(self, server: TestServer) -> None:
        self.server = server
        self.url = server.create("journal")
        self.calls: list[asyncio.Task[Any]] = []

    async def begin(self, journal: SqlJournal) -> None:
        """Every thread of the journal has something to do, and more waits for them."""
        await asyncio.gather(*(journal.health() for _ in range(20)))
        self.server.hang()
        for number in range(10):
            self.calls.append(asyncio.Task(journal.session_start("ada", "k", seen_since=0.0)))
            self.calls.append(asyncio.Task(journal.record([turn(f"t{number}")], [])))
        await asyncio.sleep(0.2)

    async def results(self) -> list[object]:
        async with asyncio.timeout(60.0):
            return [*await asyncio.gather(*self.calls, return_exceptions=True)]


async def test_a_server_that_hangs_is_away_until_it_goes_on(hanging: Hanging) -> None:
    journal = SqlJournal(hanging.url, server=QUICK)
    await journal.open()
    await hanging.begin(journal)
    for result in await hanging.results():
        assert isinstance(result, JournalUnavailable)
    with pytest.raises(JournalUnavailable):
        await journal.session_start("ada", "k", seen_since=0.0)
    hanging.server.go_on()
    async with asyncio.timeout(60.0):
        while True:
            with suppress(JournalUnavailable):
                await journal.record([turn("after")], [])
                break
            await asyncio.sleep(0.02)
    assert "after" in await learnt(journal)
    await journal.close()


async def test_a_journal_is_closed_soon_though_its_server_hangs(hanging: Hanging) -> None:
    journal = SqlJournal(hanging.url, server=ServerLimits(statement_timeout_s=3600.0, connect_timeout_s=2.0))
    await journal.open()
    await hanging.begin(journal)
    async with asyncio.timeout(60.0):
        await journal.close()
    for result in await hanging.results():
        assert isinstance(result, JournalUnavailable)


async def test_what_ends_while_the_journal_is_closed_is_kept(journal: SqlJournal, other: SqlJournal) -> None:
    slow = Slow(other)
    recording = await slow.begin("ada", shared=True)
    closing = asyncio.Task(other.close())
    await asyncio.sleep(0.05)
    slow.go_on()
    await recording
    await closing
    assert set(await learnt(journal)) == {"t"}


async def test_the_start_waits_for_the_server_as_long_as_it_may(own_server: TestServer) -> None:
    journal = SqlJournal(own_server.create("journal"), server=QUICK)
    own_server.stop()
    with pytest.raises(JournalUnavailable):
        await open_journal(journal, wait_s=0.0)
    opening = asyncio.Task(open_journal(journal, wait_s=60.0))
    await asyncio.sleep(0.1)
    own_server.start()
    await opening
    await journal.record([turn("t", ADA)], [])
    await journal.close()


async def test_a_database_of_somebody_else_is_refused_and_left_alone(postgres: TestServer) -> None:
    url = postgres.create(f"foreign-{worker_name()}")
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE turns (mine int)")
    with pytest.raises(JournalError, match="not a journal of semmem"):
        await SqlJournal(url).open()
