"""What of a request is journalled: whose turn it is, in which session, by whichever way its answer is captured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.exchange import RequestResult
from semmem.memory import Scope, Turn
from semmem.ports.learning import BatchRules
from semmem.ports.recording import TurnClosed
from semmem.request.head import RequestHead
from semmem.request.outcome import Outcome
from semmem.turns.observation import Ticket
from tests.core.exchange.world import NOW, QUESTION, World, reply
from tests.support.empty_journal import empty_journal


async def test_the_turn_is_journalled_before_the_search_and_joined_by_its_ticket() -> None:
    world = World()
    result = await world.ask(x_session_id="s1", x_request_id="r1", x_project_id="p1")
    [turn] = world.turns
    assert turn.user_text == QUESTION
    assert turn.scope == Scope("alice", project="p1", session="s1")
    assert (turn.ordinal, turn.opened_at, turn.request_id) == (1, NOW, "r1")
    assert result.ticket == Ticket(turn.id, "chat")


@pytest.mark.parametrize(("name", "kept"), [("org/model-7b", "org/model-7b"), ("a\nb", ""), ("m" * 2000, ""), (7, "")])
async def test_a_turn_says_which_model_was_asked(name: object, kept: str) -> None:
    world = World()
    await world.ask({"model": name, "messages": [{"role": "user", "content": QUESTION}]})
    assert [turn.model for turn in world.turns] == [kept]


async def test_a_retry_is_the_same_turn_and_the_next_words_are_another() -> None:
    world = World()
    await world.ask("I like tea")
    await world.ask("I like tea")
    more = [
        {"role": "user", "content": "I like tea"},
        {"role": "assistant", "content": "Good."},
        {"role": "user", "content": "I like tea"},
    ]
    await world.ask({"messages": more})
    first, retry, next_one = world.turns
    assert first.id == retry.id
    assert next_one.id != first.id
    assert next_one.scope.session == first.scope.session
    assert next_one.ordinal == 2


async def test_a_tool_result_continues_the_turn() -> None:
    world = World()
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [{"role": "user", "content": "How warm is it?"}]
    await world.ask({"messages": messages})
    messages += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "I live in 20 degrees"},
    ]
    result = await world.ask({"messages": messages})
    assert result.outcome is Outcome.TOOL_TURN
    assert len({turn.id for turn in world.turns}) == 1
    assert all(turn.user_text == "How warm is it?" for turn in world.turns)


async def test_a_full_journal_leaves_no_ticket() -> None:
    world = World()
    world.journal.full = True
    assert (await world.ask()).ticket is None


async def test_what_is_journalled_can_be_stored_anywhere() -> None:
    world = World()
    await world.ask(b'{"messages":[{"role":"user","content":"a\\u0000b \\ud83d c"}]}')
    [turn] = world.turns
    turn.user_text.encode()
    assert "\x00" not in turn.user_text
    assert "b" in turn.user_text
    assert "c" in turn.user_text


async def respond(world: World, ticket: Ticket | None, answer_id: str, **output: Any) -> None:
    assert ticket is not None
    item = {"type": "message", "content": [{"type": "output_text", "text": "Yes."}]} | output
    body = {"id": answer_id, "status": "completed", "output": [item]}
    observation = world.exchange.response(ticket, status=200, content_type="application/json", content_encoding="")
    observation.feed(json.dumps(body).encode())
    observation.end()


async def ask_on(world: World, **members: Any) -> RequestResult:
    head = RequestHead("POST", "/v1/responses", {"x-user-id": ("alice",)})
    return await world.exchange.request(head, json.dumps({"model": "m"} | members).encode())


async def test_a_chain_of_responses_is_one_session_and_the_same_words_are_another_turn() -> None:
    world = World()
    first = await ask_on(world, input="yes")
    await respond(world, first.ticket, "resp_1")
    second = await ask_on(world, input="yes", previous_response_id="resp_1")
    await respond(world, second.ticket, "resp_2")
    retried = await ask_on(world, input="yes", previous_response_id="resp_1")
    assert first.ticket != second.ticket
    assert second.ticket == retried.ticket
    assert len({turn.scope.session for turn in world.turns}) == 1


async def test_the_same_words_in_a_named_conversation_are_a_retry_only_until_they_are_answered() -> None:
    world = World()
    first = await ask_on(world, input="yes", conversation="conv_1")
    retried = await ask_on(world, input="yes", conversation="conv_1")
    await respond(world, first.ticket, "resp_1")
    second = await ask_on(world, input="yes", conversation="conv_1")
    assert first.ticket == retried.ticket
    assert second.ticket != first.ticket
    assert {turn.scope.session for turn in world.turns} == {"conv_1"}


@pytest.mark.parametrize("chain", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}])
async def test_a_tools_result_extends_the_turn_it_answers(chain: dict[str, str]) -> None:
    world = World()
    named = {"conversation": chain["conversation"]} if "conversation" in chain else {}
    first = await ask_on(world, input="How warm is it?", **named)
    await respond(world, first.ticket, "resp_1", type="function_call", name="f", call_id="c", arguments="{}")
    output = [{"type": "function_call_output", "call_id": "c", "output": "20 degrees"}]
    assert (await ask_on(world, input=output, **chain)).ticket == Ticket(world.turns[0].id, "responses")
    assert len(world.turns) == 1


def history(*said: str) -> dict[str, Any]:
    """User and assistant in turn."""
    return {"messages": [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(said)]}


async def test_from_history_the_next_request_closes_the_turn_before_it() -> None:
    world = World(capture="history")
    first = await world.ask(history("I like tea"))
    second = await world.ask(history("I like tea", "Noted.", "And milk"))
    assert (first.ticket, second.ticket) == (None, None)
    assert [turn.user_text for turn in world.turns] == ["I like tea", "And milk"]
    [closed] = [half for half in world.journal if isinstance(half, TurnClosed)]
    assert (closed.turn_id, closed.status, closed.answer) == (world.turns[0].id, "answered", "Noted.")


async def test_a_turn_captured_in_two_ways_is_one_turn(tmp_path: Path) -> None:
    journal = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await journal.open()
    for capture in ("history", "observe"):
        world = World(capture=capture)
        await world.ask(history("I like tea"), x_session_id="s")
        await world.ask(history("I like tea", "Noted.", "And milk"), x_session_id="s")
        if capture == "observe":
            observed = world.exchange.response(
                Ticket(world.turns[0].id, "chat"), status=200, content_type="application/json", content_encoding=""
            )
            observed.feed(reply("Noted.")[0])
            observed.end()
        await journal.record(world.turns, [half for half in world.journal if isinstance(half, TurnClosed)])
    await journal.end_session("alice", "s", now=NOW)
    batch = await journal.claim(BatchRules(), now=NOW)
    assert batch is not None
    assert [(turn.user_text, turn.answer) for turn in batch.turns] == [("I like tea", "Noted."), ("And milk", None)]
    await journal.close()


async def test_without_capture_the_users_words_are_journalled_all_the_same() -> None:
    world = World(capture="off")
    assert (await world.ask(history("I like tea", "Noted.", "And milk"))).ticket is None
    assert [type(half) for half in world.journal] == [Turn]
