"""Two semmem processes on one PostgreSQL journal, asked in turn: either may get any half of any turn."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest

from semmem._proto import semmem_ext_proc_pb2 as pb
from semmem.envoy.server import SERVICE
from tests.core.envoy.test_service import body, ended, headers, response_body, response_headers, written
from tests.support.harness import ADMIN_TOKEN, SemmemProcess, semmem_process
from tests.support.postgres import TestServer, worker_name

TURNS = 15
ASKED = "SELECT 1 FROM turns WHERE user_id = %s AND user_text = %s"
Json = dict[str, Any]


@dataclass
class Pair:
    processes: list[SemmemProcess]
    url: str

    async def ask(self, process: SemmemProcess, user: str, messages: list[Json]) -> Json:
        """The request phase; what Envoy would hand to the response phase."""
        request = json.dumps({"model": "m", "messages": messages}).encode()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{process.grpc_port}") as channel:
            call = stream(channel)
            await written(call, headers(x_user_id=user))
            await call.read()
            await written(call, body(request))
            answer = await call.read()
            await call.done_writing()
            await ended(call)
        return {name: value for name, value in answer.dynamic_metadata["semmem"].items() if name != "injected"}

    async def answer(self, process: SemmemProcess, ticket: Json, text: str) -> None:
        whole = json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{process.grpc_port}") as channel:
            call = stream(channel)
            for message in (response_headers(ticket), response_body(whole, True)):
                message.observability_mode = True
                message.metadata_context.filter_metadata["semmem"].update(ticket)
                await written(call, message)
            await call.done_writing()
            await ended(call)

    def rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as connection:
            return connection.execute(query.encode(), values).fetchall()

    async def until(self, check: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60.0
        while not check():
            assert time.monotonic() < deadline, self.rows("SELECT id, user_text, answer, session, closing FROM turns")
            await asyncio.sleep(0.05)


def stream(channel: Any) -> Any:
    return channel.stream_stream(
        f"/{SERVICE}/Process",
        request_serializer=pb.ProcessingRequest.SerializeToString,
        response_deserializer=pb.ProcessingResponse.FromString,
    )()


@pytest.fixture(scope="module")
def pair(postgres: TestServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    url = postgres.create(f"pair-{worker_name()}")
    settings = {"journal": {"url": url}, "memory": {"backend": "in_process"}}
    folder: Path = tmp_path_factory.mktemp("pair")
    with ExitStack() as stack:
        yield Pair([stack.enter_context(semmem_process(folder / name, settings)) for name in "ab"], url)


@pytest.mark.long(20)
async def test_every_answer_finds_its_turn_whichever_process_saw_the_question(pair: Pair) -> None:
    history: list[Json] = []
    for number in range(TURNS):
        asked, observing = pair.processes[number % 2], pair.processes[(number + 1) % 2]
        history.append({"role": "user", "content": f"Question number {number}?"})
        ticket = await pair.ask(asked, "alice", history)
        assert ticket["store"]
        # As while a model answers: a request that overtook its own history would begin a session of its own.
        await pair.until(partial(pair.rows, ASKED, "alice", history[-1]["content"]))
        await pair.answer(observing, ticket, f"Answer {number}.")
        history.append({"role": "assistant", "content": f"Answer {number}."})
    mine = "SELECT user_text, answer, session FROM turns WHERE user_id = %s ORDER BY opened_at"
    await pair.until(lambda: sum(row[1] is not None for row in pair.rows(mine, "alice")) == TURNS)
    found = pair.rows(mine, "alice")
    assert [row[:2] for row in found] == [(f"Question number {n}?", f"Answer {n}.") for n in range(TURNS)]
    assert len({row[2] for row in found}) == 1
    done = "SELECT count(*) FROM turns WHERE user_id = %s AND done_at IS NOT NULL"
    await pair.until(lambda: pair.rows(done, "alice") == [(TURNS,)])
    batches = pair.rows("SELECT attempt, status FROM batches WHERE user_id = %s", "alice")
    assert batches
    assert {attempt for attempt, _ in batches} == {1}
    assert pair.rows("SELECT count(*) FROM turns WHERE opened_at IS NULL") == [(0,)]


def erased(process: SemmemProcess, user: str) -> bool:
    """Asked for again while it is pending, as the answer says: on a busy machine the database may be late once."""
    admin = {"authorization": f"Bearer {ADMIN_TOKEN}"}
    for _ in range(5):
        answer = process.http.delete(f"{process.api_url}/v1/memory", params={"user_id": user}, headers=admin)
        if answer.status_code != 503:
            break
    return answer.status_code == 200


@pytest.mark.long(5)
async def test_what_one_process_erased_is_in_no_table_when_it_answers_and_does_not_come_back(pair: Pair) -> None:
    one, other = pair.processes
    for number, process in enumerate((one, other) * 4):
        said = [{"role": "user", "content": f"I like tea number {number}."}]
        ticket = await pair.ask(process, "bob", said)
        assert erased(one, "bob")
        await pair.answer(other, ticket, "Noted.")
    await asyncio.sleep(0.5)
    assert pair.rows("SELECT count(*) FROM turns WHERE user_id = %s", "bob") == [(0,)]
    assert pair.rows("SELECT count(*) FROM turns WHERE answer = %s", "Noted.") == [(0,)]
    assert one.contents("bob") == other.contents("bob") == set()


async def test_both_are_counted_and_one_that_ends_is_not_any_more(postgres: TestServer, tmp_path: Path) -> None:
    url = postgres.create(f"leaving-{worker_name()}")
    settings = {"journal": {"url": url}, "memory": {"backend": "in_process"}}
    with semmem_process(tmp_path / "a", settings) as process:
        pair = Pair([process], url)
        assert pair.rows("SELECT count(*) FROM replicas") == [(1,)]
    assert pair.rows("SELECT count(*) FROM replicas") == [(0,)]


def test_a_second_process_on_one_file_says_so_and_stays_out(tmp_path: Path) -> None:
    settings = {"memory": {"backend": "in_process"}}
    with semmem_process(tmp_path, settings) as first:
        with pytest.raises(AssertionError, match="another semmem process has"), semmem_process(tmp_path, settings):
            pass
        assert first.contents("alice") == set()
