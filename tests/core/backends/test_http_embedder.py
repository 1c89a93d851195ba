"""The remote embedder over real HTTP to a scripted server."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import numpy as np
import pytest

from semmem.backends.models.embeddings import HttpEmbedder
from semmem.ports.errors import EmbedderBusy, EmbedderError
from tests.support.scripted_llm import Body, Reply, ScriptedLLM

Make = Callable[..., Any]


@pytest.fixture
async def opened() -> AsyncIterator[Make]:
    async with AsyncExitStack() as stack:

        async def make(server: ScriptedLLM | str, **settings: Any) -> HttpEmbedder:
            url = server if isinstance(server, str) else server.base_url
            made = HttpEmbedder(url, "tiny", **{"dimension": 2, "calls_max": 1} | settings)
            stack.push_async_callback(made.close)
            await made.open()
            return made

        yield make


def reply(*vectors: object) -> Reply:
    told = [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]
    return Reply(raw=json.dumps({"data": told[::-1]}).encode())


def lengths(body: Body) -> Reply:
    """Each text's length, and 1; a text of poison is refused."""
    if "poison" in body["input"]:
        return Reply(status=400)
    return reply(*([len(text), 1.0] for text in body["input"]))


def slowly(body: Body) -> Reply:
    return Reply(raw=lengths(body).raw, slow_s=0.05)


def length_of(vector: np.typing.NDArray[np.float32]) -> int:
    return round(float(vector[0] / vector[1]))


async def test_a_text_is_sent_and_its_vector_comes_back_at_length_one(opened: Make) -> None:
    async with ScriptedLLM(lengths) as server:
        made = await opened(server, api_key="k-1")
        assert await made.embed("four") == pytest.approx(np.array([4, 1]) / np.sqrt(17))
    assert server.paths == ["/v1/embeddings"] * 2
    assert server.headers[0]["authorization"] == "Bearer k-1"
    assert server.requests[1] == {"model": "tiny", "input": ["four"], "encoding_format": "base64"}
    assert made.signature == "openai/tiny/2"


async def test_base64_is_understood_as_well(opened: Make) -> None:
    packed = base64.b64encode(np.array([3, 4], dtype="<f4").tobytes()).decode()
    async with ScriptedLLM(reply(packed)) as server:
        assert await (await opened(server)).embed("x") == pytest.approx([0.6, 0.8])


async def test_what_waits_goes_together_requests_first(opened: Make) -> None:
    async with ScriptedLLM(slowly) as server:
        made = await opened(server, batch_max=3)
        spawn = asyncio.get_running_loop().create_task
        first = spawn(made.embed("first", within_s=9.0))
        await asyncio.sleep(0.01)
        learnt = [spawn(made.embed(f"fact {n}")) for n in range(2)]
        asked = [spawn(made.embed(f"question {n}" + "!" * n, within_s=9.0)) for n in range(4)]
        vectors = await asyncio.gather(first, *learnt, *asked)
    sent = [request["input"] for request in server.requests[1:]]
    assert sent == [["first"], ["question 0", "question 1!", "question 2!!"], ["question 3!!!"], ["fact 0", "fact 1"]]
    assert [length_of(vector) for vector in vectors] == [5, 6, 6, 10, 11, 12, 13]


async def test_a_text_the_server_refuses_fails_only_its_own_caller(opened: Make) -> None:
    async with ScriptedLLM(slowly, lengths) as server:
        made = await opened(server)
        texts = ("good", "poison", "fine")
        outcomes = await asyncio.gather(*(made.embed(text) for text in texts), return_exceptions=True)
    assert [isinstance(outcome, EmbedderError) for outcome in outcomes] == [False, True, False]
    assert "poison" not in str(outcomes[1])


async def test_who_leads_and_leaves_does_not_take_the_others_along(opened: Make) -> None:
    async with ScriptedLLM(slowly) as server:
        made = await opened(server)
        spawn = asyncio.get_running_loop().create_task
        tasks = [spawn(made.embed(text)) for text in ("one", "three", "seven")]
        await asyncio.sleep(0.02)
        tasks[0].cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert [length_of(outcome) for outcome in outcomes[1:] if isinstance(outcome, np.ndarray)] == [5, 5]


async def test_a_request_that_would_be_late_is_told_so_at_once(opened: Make) -> None:
    async with ScriptedLLM(slowly) as server:
        made = await opened(server)
        waiting = [asyncio.get_running_loop().create_task(made.embed(f"{n}", within_s=9.0)) for n in range(2)]
        await asyncio.sleep(0.01)
        with pytest.raises(EmbedderBusy):
            await made.embed("late", within_s=0.06)
        await asyncio.gather(*waiting)


async def test_a_call_has_a_deadline_and_a_server_that_keeps_failing_is_left_alone(opened: Make) -> None:
    async with ScriptedLLM(lengths, Reply(hang=True)) as server:
        made = await opened(server, timeout_s=0.05, breaker_failures=2)
        for _ in range(2):
            with pytest.raises(EmbedderBusy, match="no answer within the deadline"):
                await made.embed("x")
        asked = len(server.requests)
        with pytest.raises(EmbedderError, match="circuit open") as left_alone:
            await made.embed("x")
        assert len(server.requests) == asked
        assert not isinstance(left_alone.value, EmbedderBusy), "a server that never answers is no busy one"


@pytest.mark.parametrize(("status", "is_busy"), [(429, True), (529, True), (500, False), (503, False)])
async def test_a_server_that_has_too_much_to_do_is_busy_also_while_it_is_left_alone(
    opened: Make, status: int, is_busy: bool
) -> None:
    async with ScriptedLLM(lengths, Reply(status=status)) as server:
        made = await opened(server, breaker_failures=2)
        for told in (f"status {status}", f"status {status}", "circuit open"):
            with pytest.raises(EmbedderError, match=told) as caught:
                await made.embed("x")
            assert isinstance(caught.value, EmbedderBusy) is is_busy


async def test_a_server_that_is_away_at_the_start_is_asked_again(opened: Make) -> None:
    async with ScriptedLLM(Reply(status=503), lengths) as server:
        made = await opened(server)
        assert length_of(await made.embed("four")) == 4


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Reply(status=404), "status 404"),
        (reply([1.0, 2.0, 3.0]), "dimension 3, but dimension 2 is configured"),
        (Reply(raw=b"[]"), "does not hold a vector for each text"),
        (reply(), "does not hold a vector for each text"),
        (reply("!"), "does not hold a vector for each text"),
        (reply([0.0, 0.0]), "no direction"),
    ],
)
async def test_a_server_that_makes_something_else_is_refused_at_the_start(
    opened: Make, answer: Reply, told: str
) -> None:
    async with ScriptedLLM(answer) as server:
        with pytest.raises(EmbedderError, match=told):
            await opened(server)
