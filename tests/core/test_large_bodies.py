"""Large bodies are read and rewritten beside the event loop, within the phase; bodies of too much pass unread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from semmem.background import OffloadThreads, Tasks
from semmem.dialects.parsing import ParseLimits
from semmem.exchange import RequestResult
from semmem.request.outcome import Outcome
from semmem.retrieval.context import strip_block
from semmem.retrieval.recall import RecallRules
from tests.core.exchange.world import BUDGET, QUESTION, World, prompt

T = TypeVar("T")

LARGE = "long ago " * 1000
PATIENT = RecallRules(threshold=0.2, embed_timeout_s=30.0, store_timeout_s=30.0)


class Side:
    """Does work aside, and counts how often; or never comes back, from the ``stuck_from``-th time on."""

    def __init__(self, *, stuck_from: int = 10) -> None:
        self.calls = 0
        self._stuck_from = stuck_from

    async def __call__(self, work: Callable[[], T], /) -> T:
        self.calls += 1
        if self.calls >= self._stuck_from:
            await asyncio.Event().wait()
        return await asyncio.to_thread(work)


def said(*texts: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text} for text in texts]}


async def test_a_large_body_is_read_and_rewritten_aside_and_has_its_memories() -> None:
    side = Side()
    world = World(rules=PATIENT, offload=side, phase_s=30.0, inline_body_bytes_max=1024)
    await world.knows(BUDGET)
    result = await world.ask(said(LARGE, QUESTION))
    assert (result.outcome, side.calls) == (Outcome.INJECTED, 3)  # read, its messages named, rewritten
    assert BUDGET in prompt(result)
    assert LARGE in prompt(result)


async def test_blocks_are_looked_for_once_in_each_text_and_in_large_bodies_beside_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[tuple[str, bool]] = []

    def watched(text: str) -> str:
        looked_at.append((text, threading.current_thread() is threading.main_thread()))
        return strip_block(text)

    monkeypatch.setattr("semmem.retrieval.context.strip_block", watched)
    world = World(rules=PATIENT, phase_s=30.0, inline_body_bytes_max=1024)
    await world.ask(said(LARGE, QUESTION))
    assert looked_at == [(LARGE, False), (QUESTION, False)]


async def test_a_body_of_a_chat_does_not_wait_behind_the_longest() -> None:
    usual, stuck = Side(), Side(stuck_from=1)
    world = World(rules=PATIENT, offload=usual, offload_large=stuck, phase_s=30.0, inline_body_bytes_max=1024)
    await world.knows(BUDGET)
    async with asyncio.TaskGroup() as others:
        held = others.create_task(world.ask(said("x" * 2_000_000)))
        await asyncio.sleep(0)
        result = await world.ask(said(LARGE, QUESTION))
        held.cancel()
    assert (result.outcome, usual.calls, stuck.calls) == (Outcome.INJECTED, 3, 1)


async def test_a_small_body_is_not_worth_a_thread() -> None:
    side = Side()
    world = World(rules=PATIENT, offload=side, phase_s=30.0, inline_body_bytes_max=1024)
    await world.ask()
    assert side.calls == 0


async def test_reading_a_large_body_is_part_of_the_phase_and_ends_with_it() -> None:
    world = World(offload=Side(stuck_from=1), phase_s=0.05, inline_body_bytes_max=1024)
    assert await world.ask(said(LARGE)) == RequestResult(Outcome.TIMEOUT)


async def test_rewriting_a_large_body_ends_with_the_phase_and_the_turn_is_journalled_all_the_same() -> None:
    world = World(rules=PATIENT, offload=Side(stuck_from=2), phase_s=1.0, inline_body_bytes_max=1024)
    await world.knows(BUDGET)
    result = await world.ask(said(LARGE, QUESTION))
    assert (result.outcome, result.body) == (Outcome.TIMEOUT, None)
    assert [turn.user_text for turn in world.turns] == [LARGE.strip(), QUESTION]
    assert result.ticket is not None


@pytest.mark.parametrize(
    "reading", [ParseLimits(messages_max=2), ParseLimits(values_max=5)], ids=["messages", "values"]
)
@pytest.mark.parametrize("inline_body_bytes_max", [10, 10_000], ids=["aside", "inline"])
async def test_a_body_of_too_much_passes_unread_as_oversize(reading: ParseLimits, inline_body_bytes_max: int) -> None:
    world = World(reading=reading, phase_s=30.0, inline_body_bytes_max=inline_body_bytes_max)
    assert await world.ask(said("a", "b", "c")) == RequestResult(Outcome.OVERSIZE)
    assert world.turns == []


async def test_work_that_nobody_waits_for_any_more_is_not_begun() -> None:
    side, done = OffloadThreads(1), list[str]()
    gate = threading.Event()
    first = Tasks().spawn("first", side(gate.wait))
    await asyncio.sleep(0)  # it has the only thread
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await side(lambda: done.append("second"))
    gate.set()
    await first
    await side(lambda: done.append("third"))
    assert done == ["third"]
    await side.close()
