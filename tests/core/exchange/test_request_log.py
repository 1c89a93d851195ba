"""The request log's part in an exchange: what it notes of a request and of its answer, and how it is written."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
import pytest
from msgspec import structs

from semmem.background import Tasks
from semmem.background.writers import RequestLogWriter
from semmem.envoy.wire import NAMESPACE, body_reply, metadata, read_ticket
from semmem.exchange import RequestResult
from semmem.memory import Scope
from semmem.ports.errors import JournalError
from semmem.ports.request_log import KeptRequest, LoggedAnswer, LoggedRequest
from semmem.request.outcome import Outcome
from semmem.request_log.feature import RequestLogging
from semmem.turns.observation import Ticket
from tests.core.exchange.world import BUDGET, QUESTION, World
from tests.core.usage.test_ticket import observed

Half = LoggedRequest | LoggedAnswer
T = TypeVar("T")


def logging_world() -> tuple[World, list[Half]]:
    world, halves = World(), list[Half]()
    world.features.append(RequestLogging(halves.append))
    return world, halves


async def test_a_request_is_noted_with_what_its_prompt_was_given_and_how_long_each_step_took() -> None:
    world, halves = logging_world()
    await world.knows(BUDGET)
    await world.knows("User's budget for the Hawaii trip was $9,000 once")
    body = {"model": "m1", "messages": [{"role": "user", "content": QUESTION}]}
    result = await world.ask(body | {"memory_config": {"retrieval_limit": 1}})
    [half] = halves
    assert isinstance(half, LoggedRequest)
    assert (half.outcome, half.memories, half.tokens) == (Outcome.INJECTED, 1, result.tokens)
    assert (half.api, half.model, half.purpose, half.turn) == ("chat", "m1", "recall", world.turns[0].id)
    assert half.scope.user == world.turns[0].scope.user
    assert half.scope.session == world.turns[0].scope.session
    [(left, reason, _)] = half.left
    assert reason == "limit"
    assert left not in half.shown
    assert len({left, *half.shown}) == 2
    assert [name for name, _ in half.steps] == ["reading", "journalling", "finding", "rewriting"]
    assert all(taken >= 0 for _, taken in half.steps)
    assert result.ticket is not None
    assert result.ticket.request == half.key


async def test_an_answer_is_noted_under_the_requests_key_with_the_providers_count() -> None:
    world, halves = logging_world()
    result = await world.ask({"messages": [{"role": "user", "content": QUESTION}]})
    assert result.ticket is not None
    observation = world.exchange.response(
        result.ticket, status=200, content_type="application/json", content_encoding=""
    )
    usage = {"prompt_tokens": 11, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8}}
    told = {"usage": usage, "choices": [{"finish_reason": "stop", "message": {"content": "Nine."}}]}
    observation.feed(msgspec.json.encode(told))
    observation.end()
    request, answer = halves
    assert answer == LoggedAnswer(request.key, world.now, "answered", 11, 5, 8)


async def test_an_answer_that_is_lost_is_noted_without_figures_and_one_without_a_ticket_is_not() -> None:
    world, halves = logging_world()
    result = await world.ask({"messages": [{"role": "user", "content": QUESTION}]})
    assert result.ticket is not None
    for ticket in (result.ticket, msgspec.structs.replace(result.ticket, request="")):
        world.exchange.response(ticket, status=500, content_type="", content_encoding="").end()
    assert halves[1:] == [LoggedAnswer(halves[0].key, world.now, "answer_lost")]


async def test_a_prompt_that_could_not_be_rewritten_in_time_had_no_memories() -> None:
    calls = 0

    async def stuck_at_the_third(work: Callable[[], T]) -> T:
        nonlocal calls
        calls += 1  # reading, naming, rewriting
        await asyncio.sleep(60.0 if calls == 3 else 0.0)
        return work()

    world = World(phase_s=1.0, inline_body_bytes_max=0, offload=stuck_at_the_third)
    halves = list[Half]()
    world.features.append(RequestLogging(halves.append))
    await world.knows(BUDGET)
    result = await world.ask(QUESTION)
    [half] = halves
    assert isinstance(half, LoggedRequest)
    assert (result.outcome, half.outcome) == (Outcome.TIMEOUT, "timeout")
    assert (half.memories, half.shown, half.weighed, half.purpose) == (0, (), (), "recall")


KEY = uuid.UUID(int=7).hex
PLAIN = Ticket("t_" + "1" * 32, "chat")


@pytest.mark.parametrize("request_key", ["", KEY])
@pytest.mark.parametrize("earlier", [(), ("t_" + "2" * 32,)])
def test_the_key_travels_with_the_ticket(request_key: str, earlier: tuple[str, ...]) -> None:
    ticket = structs.replace(PLAIN, request=request_key, earlier=earlier)
    result = RequestResult(Outcome.INJECTED, ticket=ticket, injected=2)
    message = observed(body_reply(result))
    assert message.metadata_context.filter_metadata[NAMESPACE] == metadata(result).fields[NAMESPACE].struct_value
    assert read_ticket(message) == ticket


@pytest.mark.parametrize("told", ["x", KEY + "\0", KEY + "0", "\0" * 32, KEY.replace("0", "G"), "k" * 10**6])
def test_a_key_that_is_none_costs_no_answer_and_is_not_written(told: str) -> None:
    """One that no server stores would be in the way of all that waits behind it."""
    message = observed(body_reply(RequestResult(Outcome.NO_HITS, ticket=PLAIN)))
    message.metadata_context.filter_metadata[NAMESPACE].fields["request"].string_value = told
    assert read_ticket(message) == PLAIN


async def test_nothing_is_noted_of_who_is_opted_out_or_unknown() -> None:
    world, halves = logging_world()
    assert (await world.ask(x_semmem_memory="off")).outcome is Outcome.OPTED_OUT
    assert (await world.ask(x_user_id="")).outcome is Outcome.ANONYMOUS
    assert halves == []


async def test_a_request_that_stores_nothing_is_noted_and_its_answer_is_not_observed() -> None:
    world, halves = logging_world()
    result = await world.ask(x_semmem_memory="read")
    assert (result.ticket, len(halves)) == (None, 1)


# --- how it is written -----------------------------------------------------------------------------------------------


class Records:
    """A request log that can fail."""

    def __init__(self) -> None:
        self.written: list[Half] = []
        self.fails = False
        self.erased = 0
        self.pruned: list[tuple[float, int]] = []

    async def log_requests(self, halves: Sequence[Half]) -> int:
        if self.fails:
            raise JournalError("away")
        self.written += halves
        return self.erased

    async def logged(self, user: str, *, outcome: str | None, limit: int) -> list[KeptRequest]:
        return []

    async def logged_request(self, id: str, user: str | None) -> KeptRequest | None:
        return None

    async def prune_requests(self, *, before: float, number: int) -> int:
        if self.fails:
            raise JournalError("away")
        self.pruned.append((before, number))
        return 3 if len(self.pruned) < 3 else 0


def half(key: str) -> LoggedRequest:
    return LoggedRequest(key=key, id=key, scope=Scope("ada"), at=1.0, outcome="injected")


async def test_halves_wait_for_each_other_and_are_written_together() -> None:
    records, tasks = Records(), Tasks()
    writer = RequestLogWriter(records, kept_s=10.0, interval_s=0.01)
    tasks.spawn("writer", writer.run())
    for key in "abc":
        writer.add(half(key))
    assert await writer.drained(1.0)
    await tasks.cancel()
    assert [each.key for each in records.written] == ["a", "b", "c"]
    assert writer.counts == {"written": 3, "dropped": 0, "erased": 0, "expired": 0}


async def test_while_the_journal_is_away_so_many_wait_and_the_rest_is_dropped_and_counted() -> None:
    records = Records()
    records.fails = True
    writer = RequestLogWriter(records, kept_s=10.0, queue_max=2)
    for key in "abc":
        writer.add(half(key))
    assert not await writer.flush()
    assert (len(writer), writer.counts["dropped"], writer.counts["written"]) == (2, 1, 0)
    records.fails, records.erased = False, 1
    assert await writer.flush()
    assert [each.key for each in records.written] == ["a", "b"]
    assert (writer.counts["written"], writer.counts["erased"]) == (1, 1)


async def test_it_is_kept_small_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RequestLogWriter, "prune_every_s", 0.001)
    records, tasks = Records(), Tasks()
    tasks.spawn("writer", RequestLogWriter(records, kept_s=10.0).keep_small())
    async with asyncio.timeout(10.0):
        while len(records.pruned) < 5:
            await asyncio.sleep(0.001)
    await tasks.cancel()


@pytest.mark.parametrize("fails", [False, True])
async def test_it_is_kept_small(fails: bool) -> None:
    records = Records()
    records.fails = fails
    writer = RequestLogWriter(records, kept_s=10.0, requests_max=7, clock=lambda: 100.0)
    await asyncio.wait_for(writer.prune(), 1.0)
    assert records.pruned == ([] if fails else [(90.0, 7)] * 3)
    assert writer.counts["expired"] == (0 if fails else 6)
