"""Several processes on one journal, and processes that die."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Scope
from semmem.ports.learning import BatchRules
from tests.support.journal_samples import Place, answered, learnt, turn
from tests.support.postgres import TestServer, worker_name

FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload([__name__])  # each is a fork of a process that has imported what is needed here
EMPTY = f"empty-{worker_name()}"
SESSIONS, USERS, WORKERS = 200, 40, 4
RULES = BatchRules(size=2, idle_s=0.0, answer_wait_s=0.0, lease_s=1e6)


@contextmanager
def child(work: Callable[..., None], place: Place, *arguments: object) -> Iterator[tuple[BaseProcess, Connection]]:
    """A process that runs ``work(place, connection, *arguments)``; gone at the end, whatever happens."""
    mine, theirs = FORKING.Pipe()
    process = FORKING.Process(target=work, args=(place, theirs, *arguments))
    process.start()
    theirs.close()
    try:
        yield process, mine
    finally:
        process.kill()
        process.join()
        process.close()
        mine.close()


async def opened_journal(place: Place) -> SqlJournal:
    journal = SqlJournal(place)
    await journal.open()
    return journal


# --- two halves, two processes ---------------------------------------------------------------------------------------


def record_one_half(place: Place, parent: Connection, half: str) -> None:
    async def run() -> None:
        journal = await opened_journal(place)
        if half == "open":
            await journal.record([turn("t")], [])
        else:
            await journal.record([], [answered("t", "From over there.")])
        await journal.close()

    asyncio.run(run())
    parent.send("recorded")


@pytest.mark.parametrize("order", [("open", "close"), ("close", "open")])
async def test_a_turn_may_be_opened_here_and_closed_there(place: Place, order: tuple[str, str]) -> None:
    journal = await opened_journal(place)
    for half in order:
        with child(record_one_half, place, half) as (_process, connection):
            assert await asyncio.to_thread(connection.recv) == "recorded"
    assert await learnt(journal) == {"t": "From over there."}
    await journal.close()


# --- many workers ----------------------------------------------------------------------------------------------------


def learn_until_nothing_is_left(place: Place, parent: Connection) -> None:
    """Sends (start, end, user, batch id, turn ids, attempt) of each batch; times are those of the whole machine."""

    async def run() -> list[tuple[float, float, str, str, list[str], int]]:
        journal = await opened_journal(place)
        parent.send("ready")
        parent.recv()
        held = []
        while (await journal.counts())["ready"]:
            batch = await journal.claim(RULES, now=1000.0)
            if batch is None:
                await asyncio.sleep(0.001)
                continue
            start = time.monotonic()
            await asyncio.sleep(0.002)
            ids = [each.id for each in batch.turns]
            held.append((start, time.monotonic(), batch.scope.user, batch.id, ids, batch.attempt))
            await journal.finish(batch.id, "done", now=1000.0)
        await journal.close()
        return held

    parent.send(asyncio.run(run()))


async def test_no_batch_is_leased_twice_and_no_user_has_two(place: Place) -> None:
    journal = await opened_journal(place)
    scopes = [Scope(f"user{n % USERS}", session=f"s{n}") for n in range(SESSIONS)]
    turns = [turn(f"{n}-{k}", scope, opened_at=100.0 + k) for n, scope in enumerate(scopes) for k in range(2)]
    await journal.record(turns, [answered(each.id) for each in turns])
    results = await asyncio.to_thread(run_workers, place)
    held = [batch for result in results for batch in result]
    assert Counter(turn_id for batch in held for turn_id in batch[4]) == Counter(each.id for each in turns)
    assert len({batch[3] for batch in held}) == len(held) == SESSIONS
    assert {batch[5] for batch in held} == {1}
    for user in {scope.user for scope in scopes}:
        spans = sorted(batch[:2] for batch in held if batch[2] == user)
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert sum(bool(result) for result in results) > 1
    assert (await journal.counts())["done"] == len(turns)
    await journal.close()


def run_workers(place: Place) -> list[list[tuple[float, float, str, str, list[str], int]]]:
    with ExitStack() as stack:
        workers = [stack.enter_context(child(learn_until_nothing_is_left, place))[1] for _ in range(WORKERS)]
        for worker in workers:
            assert worker.recv() == "ready"
        for worker in workers:
            worker.send("go")
        return [worker.recv() for worker in workers]


# --- a new file, many hands ------------------------------------------------------------------------------------------


def open_and_record(place: Place, parent: Connection, name: str) -> None:
    async def run() -> None:
        parent.send("ready")
        parent.recv()
        journal = await opened_journal(place)
        await journal.record([turn(name, Scope(name, session="s"))], [])
        await journal.close()

    asyncio.run(run())
    parent.send("recorded")


async def test_several_processes_may_create_the_journal_at_once(place: Place, postgres: TestServer) -> None:
    new: Place = place.parent / "new" / "journal.db" if isinstance(place, Path) else postgres.create(EMPTY)
    with (
        child(open_and_record, new, "a") as (_, a),
        child(open_and_record, new, "b") as (_, b),
        child(open_and_record, new, "c") as (_, c),
    ):
        for connection in (a, b, c):
            assert await asyncio.to_thread(connection.recv) == "ready"
        for connection in (a, b, c):
            connection.send("go")
        for connection in (a, b, c):
            assert await asyncio.to_thread(connection.recv) == "recorded"
    journal = await opened_journal(new)
    assert set(await learnt(journal)) == {"a", "b", "c"}
    await journal.close()


# --- death -----------------------------------------------------------------------------------------------------------


def commit_for_ever(place: Place, parent: Connection) -> None:
    async def run() -> None:
        journal = await opened_journal(place)
        number = 0
        while True:
            ids = [f"{number}-{n}" for n in range(5)]
            await journal.record([turn(each, Scope("ada", session=each)) for each in ids], [])
            await journal.record([], [answered(each, f"answer {each}") for each in ids])
            parent.send(ids)
            number += 1

    asyncio.run(run())


async def test_nothing_that_was_accepted_is_lost_when_a_process_is_killed(place: Place) -> None:
    with child(commit_for_ever, place) as (process, connection):
        accepted = await asyncio.to_thread(accepted_until_killed, process, connection)
    assert len(accepted) >= 100
    journal = await opened_journal(place)
    found = await learnt(journal)
    assert {each: found.get(each) for each in accepted} == {each: f"answer {each}" for each in accepted}
    await journal.close()


def accepted_until_killed(process: BaseProcess, connection: Connection) -> list[str]:
    accepted: list[str] = []
    try:
        while True:
            accepted += connection.recv()
            if len(accepted) == 100:
                process.kill()
    except EOFError:
        return accepted


def claim_and_wait(place: Place, parent: Connection) -> None:
    async def run() -> None:
        journal = await opened_journal(place)
        batch = await journal.claim(RULES, now=1000.0)
        assert batch is not None
        await journal.save_facts(batch.id, [])
        parent.send(batch.id)
        parent.recv()

    asyncio.run(run())


async def test_a_batch_of_a_killed_worker_goes_to_another(place: Place) -> None:
    journal = await opened_journal(place)
    await journal.record([turn("t")], [answered("t")])
    with child(claim_and_wait, place) as (_process, connection):
        batch_id = await asyncio.to_thread(connection.recv)
    assert await journal.claim(RULES, now=1001.0) is None
    again = await journal.claim(RULES, now=1000.0 + RULES.lease_s)
    assert again is not None
    assert (again.id, again.attempt, again.facts) == (batch_id, 2, ())
    await journal.close()
