"""What a request was shown travels to whoever observes its answer, and stands with it in the record."""

from __future__ import annotations

import json

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.envoy.wire import NAMESPACE, body_reply, read_ticket
from semmem.exchange import RequestResult
from semmem.memory import Scope
from semmem.ports.conversations import FIRST_ANSWER, SHOWN_MAX, ConversationLimits, SaidHalf, Step, conversation_id
from semmem.request.outcome import Outcome
from semmem.retrieval.past_talks import PastTalks
from tests.core.exchange.world import BUDGET, NOW, QUESTION, World, prompt, reply
from tests.core.test_tool_loops import Client, chained
from tests.core.usage.test_ticket import observed
from tests.support.talks import ListedTalks, talk
from tests.support.tickets import step_of, with_step

LONG = " ".join(
    f"The drain of the patio needs {number} bags of gravel, says the plan of the house." for number in range(9)
)
PATIO = talk("patio", NOW - 900.0, "We want a patio.", f"Begin with the drain of the patio. {LONG}")


def tapped(world: World) -> list[SaidHalf]:
    """Conversations are recorded from now on."""
    halves: list[SaidHalf] = []
    world.records(halves.append)
    return halves


def shown(result: RequestResult) -> tuple[str, ...]:
    """As whoever observes the answer is told."""
    ticket = read_ticket(observed(body_reply(result)))
    assert ticket is not None
    step = step_of(ticket)
    assert step is not None
    return step.shown


async def ids(world: World) -> set[str]:
    return {memory.id for memory in await world.store.list(Scope("alice"))}


async def test_a_request_tells_which_memories_it_was_shown_and_the_record_has_them_with_the_answer(
    journal: SqlJournal,
) -> None:
    world = World()
    halves = tapped(world)
    await world.knows(BUDGET)
    result = await world.ask(x_session_id="s1")
    assert set(shown(result)) == await ids(world)
    assert result.ticket is not None
    answer = world.exchange.response(result.ticket, status=200, content_type="application/json", content_encoding="")
    answer.feed(b"".join(reply("$10,000")))
    answer.end()
    await journal.record(world.turns, [])
    await journal.record_said(halves, ConversationLimits())
    told = await journal.messages(Scope("alice"), conversation_id(world.turns[0].scope))
    assert [set(message.shown) for message in told] == [set(), await ids(world)]


async def test_a_request_that_is_shown_nothing_tells_nothing() -> None:
    world = World()
    tapped(world)
    assert shown(await world.ask()) == ()


async def test_without_a_record_nothing_of_it_travels() -> None:
    world = World()
    await world.knows(BUDGET)
    result = await world.ask()
    assert result.outcome is Outcome.INJECTED
    assert b"mem_" not in body_reply(result)[len(result.body or b"") :]
    assert result.ticket is not None
    assert result.ticket.notes == ()


async def test_each_request_of_a_tool_loop_tells_what_its_loop_was_shown() -> None:
    client = Client()
    tapped(client.world)
    await client.world.knows(BUDGET)
    first, again = await client.send(0), await client.send(1)
    assert again.outcome is Outcome.REPEATED
    assert shown(again) == shown(first) != ()


async def test_a_block_that_stands_in_the_chain_already_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    worlds: list[World] = []
    begin = Client.__init__

    def taps(self: Client, *args: object, **kwargs: object) -> None:
        begin(self, *args, **kwargs)  # type: ignore[arg-type]
        tapped(self.world)
        worlds.append(self.world)

    monkeypatch.setattr(Client, "__init__", taps)
    first, again = await chained("before_last_user", "system")
    assert again.outcome is Outcome.ALREADY_INJECTED
    assert shown(again) == shown(first) != ()


async def test_a_conversation_that_is_shown_in_several_lines_is_told_once() -> None:
    world = World()
    tapped(world)
    world.exchange.recall.past = PastTalks(ListedTalks({"alice": [PATIO]}), timeout_s=5.0)
    result = await world.ask("What did we say about the patio drain?")
    assert prompt(result).count("Conversation") > 1
    assert shown(result) == (PATIO.id,)


# --- the ticket ------------------------------------------------------------------------------------------------------


def test_a_ticket_of_before_is_read_as_one_that_was_shown_nothing() -> None:
    message = observed(body_reply(RequestResult(Outcome.NO_HITS, ticket=with_step(Step("", 1, NOW)))))
    for told in (["", FIRST_ANSWER, NOW], ["", FIRST_ANSWER, NOW, 1, "claim"]):
        message.metadata_context.filter_metadata[NAMESPACE].fields["step"].string_value = json.dumps(told)
        ticket = read_ticket(message)
        assert ticket is not None
        step = step_of(ticket)
        assert step == Step("", FIRST_ANSWER, NOW, *told[3:])  # type: ignore[arg-type]
        assert step.shown == ()


def test_as_many_names_as_a_block_may_have_fit_into_a_ticket() -> None:
    names = tuple(f"mem_{number:026d}" for number in range(SHOWN_MAX))
    ticket = with_step(Step("", FIRST_ANSWER, NOW, shown=names))
    told = body_reply(RequestResult(Outcome.INJECTED, ticket=ticket))
    assert read_ticket(observed(told)) == ticket
    assert len(told) < 10_000


async def test_of_too_many_names_the_first_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semmem.conversations.feature.SHOWN_MAX", 1)
    world = World()
    tapped(world)
    await world.knows(BUDGET)
    await world.knows(QUESTION)
    result = await world.ask()
    assert result.injected == 2
    assert len(shown(result)) == 1


def test_what_a_half_was_shown_counts_to_what_it_takes_in_memory() -> None:
    plain = SaidHalf("t_1", Step("", 1, NOW))
    assert SaidHalf("t_1", Step("", 1, NOW, shown=("mem_1",) * 100)).size >= plain.size + 100 * 40
