"""However long the names in a request are: what is journalled and remembered of it stays small."""

from __future__ import annotations

import json
from typing import Any

import pytest

from semmem.ports.names import NAME_BYTES_MAX, bounded
from semmem.ports.recording import TurnClosed
from semmem.request.head import RequestHead
from semmem.turns.observation import Ticket
from tests.core.exchange.world import World

PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/messages")
HUGE = "c" * 15_000_000


def body(path: str, text: str, **members: Any) -> bytes:
    said = {"input": text} if path == "/v1/responses" else {"messages": [{"role": "user", "content": text}]}
    return json.dumps({"model": "m", "max_tokens": 9, **said, **members}).encode()


async def post(world: World, path: str, content: bytes, **headers: str) -> Ticket:
    sent = {name.replace("_", "-"): (value,) for name, value in ({"x_user_id": "alice"} | headers).items()}
    result = await world.exchange.request(RequestHead("POST", path, sent), content)
    assert result.ticket is not None, result.outcome
    return result.ticket


def answer(world: World, ticket: Ticket, answer_id: str, finish: str = "stop") -> None:
    """The model answers; its own names of the answer are not to be relied on either."""
    observation = world.exchange.response(
        ticket, status=200, content_type="application/json", content_encoding="identity"
    )
    said = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Noted."}]}]
    given = {
        "chat": {"id": answer_id, "choices": [{"message": {"content": "Noted."}, "finish_reason": finish}]},
        "responses": {"id": answer_id, "object": "response", "status": "completed", "output": said},
        "messages": {
            "id": answer_id,
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": "Noted."}],
            "stop_reason": finish,
        },
    }
    observation.feed(json.dumps(given[ticket.dialect]).encode())
    observation.end()


def texts(half: Any) -> list[str]:
    """Every string of a half of a turn but what was said, its names above all."""
    if isinstance(half, TurnClosed):
        return [text for text in (half.turn_id, half.status, half.finish_reason, half.answer_id) if text]
    scope = half.scope
    return [half.id, half.request_id, scope.user, scope.project or "", scope.agent or "", scope.session or ""]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", ["n" * 100_000, "漢" * 20_000, "with\x00control\nin it", "ok"])
async def test_no_name_beyond_the_bound_is_journalled(path: str, name: str) -> None:
    world = World(phase_s=20.0)
    members: dict[str, Any] = {"conversation": name} if path == "/v1/responses" else {}
    content = body(path, "I like tea", memory_context={"project_id": name}, **members)
    headers = {"x_agent_id": name, "x_request_id": name} | ({} if members else {"x_session_id": name})
    ticket = await post(world, path, content, **headers)
    answer(world, ticket, name, finish=name if name != "ok" else "stop")
    assert [type(half).__name__ for half in world.journal] == ["Turn", "TurnClosed"]
    for half in world.journal:
        assert all(len(text.encode()) <= NAME_BYTES_MAX for text in texts(half))
        assert all(text.isprintable() for text in texts(half))
    [turn] = world.turns
    kept = bounded(name)
    assert (turn.scope.project, turn.scope.agent, turn.scope.session) == (kept, kept, kept)
    assert turn.request_id == ("ok" if name == "ok" else "")


async def test_the_same_long_conversation_is_the_same_session_and_another_is_another() -> None:
    world = World(phase_s=20.0)
    for number, name in enumerate((HUGE, HUGE, HUGE + "d")):
        await post(world, "/v1/responses", body("/v1/responses", f"I like tea number {number}", conversation=name))
    first, again, other = (turn.scope.session for turn in world.turns)
    assert first == again == bounded(HUGE)
    assert other not in (None, first)


async def test_a_chain_of_answers_with_long_names_stays_one_session() -> None:
    world = World(phase_s=20.0)
    ticket = await post(world, "/v1/responses", body("/v1/responses", "I like tea"))
    answer(world, ticket, "resp_" + "r" * 5000)
    going_on = body("/v1/responses", "And coffee", previous_response_id="resp_" + "r" * 5000)
    await post(world, "/v1/responses", going_on)
    first, second = (turn.scope.session for turn in world.turns)
    assert first == second
    tool = [{"type": "function_call_output", "call_id": "c", "output": "18 degrees"}]
    went_on = json.dumps({"model": "m", "input": tool, "previous_response_id": "resp_" + "r" * 5000}).encode()
    assert (await post(world, "/v1/responses", went_on)).turn_id == ticket.turn_id
