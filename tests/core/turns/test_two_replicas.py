"""A conversation that the API keeps, one request of it here and the next one there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.core.turns.talk import ReticentJournal, Talk
from tests.support.journal_samples import Place

CALL = {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c", "output": "20 degrees"}
CHAIN: dict[str, Any] = {"api": "responses", "conversation": "conv_1"}


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[ReticentJournal]:
    made = ReticentJournal(place)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def replicas(journal: ReticentJournal) -> list[Talk]:
    return [Talk(journal, shared=True) for _ in range(2)]


async def test_a_tools_result_goes_on_with_the_turn_that_another_replica_saw(replicas: list[Talk]) -> None:
    one, other = replicas
    asked = await one.ask("What is the weather?", **CHAIN)
    await one.respond(asked.ticket, "resp_1", CALL)
    other.now = one.now
    result = await other.ask(RESULT, **CHAIN)
    assert result.ticket is not None
    assert asked.ticket is not None
    assert result.ticket.turn_id == asked.ticket.turn_id
    await other.respond(result.ticket, "resp_2", said("It is 20 degrees."))
    await other.learn()
    assert other.answers == {"What is the weather?": "It is 20 degrees."}


async def test_the_same_word_after_each_answer_is_another_turn_on_whichever_replica(replicas: list[Talk]) -> None:
    turns, now = set(), replicas[0].now
    for number in range(6):
        talk = replicas[number // 2 % 2]
        talk.now = now
        asked = await talk.ask("Yes", **CHAIN)
        assert asked.ticket is not None
        turns.add(asked.ticket.turn_id)
        await talk.respond(asked.ticket, f"resp_{number}", said("And now?"))
        now = talk.now
    assert len(turns) == 6
    assert (await replicas[0].learn())["Yes"] == 6


async def test_a_request_that_is_sent_again_to_another_replica_is_the_same_turn(replicas: list[Talk]) -> None:
    one, other = replicas
    first = await one.ask("I like tea", **CHAIN)
    await one.respond(first.ticket, "resp_1", said("Noted."))
    other.now = one.now
    tickets = [(await talk.ask("I like cake", **CHAIN)).ticket for talk in (one, other)]
    assert tickets[0] is not None
    assert tickets[0] == tickets[1]
    assert await one.learn() == {"I like tea": 1, "I like cake": 1}
