"""What fails or takes too long costs the memories, and nothing else."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from semmem.memory import Scope
from semmem.ports.errors import StoreTimeout, StoreUnavailable
from semmem.request.head import RequestHead
from semmem.request.outcome import Outcome
from tests.core.exchange.world import BUDGET, FOLLOW_UP, PATIENT, QUESTION, World, as_body, prompt, thinking


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(StoreUnavailable("down"), Outcome.STORE_DOWN), (StoreTimeout("slow"), Outcome.STORE_TIMEOUT)],
)
async def test_a_store_that_fails_costs_the_memories_and_nothing_else(error: Exception, outcome: Outcome) -> None:
    world = World()
    world.store.error = error
    result = await world.ask()
    assert (result.outcome, result.body) == (outcome, None)
    assert result.ticket is not None


async def test_a_store_that_hangs_costs_the_phase_and_nothing_else() -> None:
    world = World(phase_s=0.02)
    world.store.delay_s = world.store.list_delay_s = 60.0
    result = await world.ask()
    assert (result.outcome, result.body) == (Outcome.TIMEOUT, None)


async def test_memories_that_are_not_loaded_in_time_are_searched_for_by_the_store() -> None:
    world = World(rules=replace(PATIENT, store_timeout_s=1.0))
    await world.knows(BUDGET)
    world.store.list_delay_s = 60.0
    result = await world.ask()
    assert result.outcome is Outcome.COLD_DENSE
    assert BUDGET in prompt(result)
    assert (await world.ask("Where does my uncle live?")).outcome is Outcome.NO_HITS


async def test_a_question_that_cannot_be_embedded_in_time_is_found_by_its_words() -> None:
    world = World()
    await world.knows(BUDGET)
    world.embedder.busy = True
    result = await world.ask("What is my budget for the Hawaii trip?")
    assert result.outcome is Outcome.EMBEDDER_BUSY
    assert BUDGET in prompt(result)
    nobody = World()
    nobody.embedder.busy = True
    assert (await nobody.ask()).outcome is Outcome.EMBEDDER_BUSY


async def test_an_embedder_that_answers_too_late_is_busy_and_not_down() -> None:
    world = World(rules=replace(PATIENT, embed_timeout_s=0.02))
    world.embedder.delay_s = 60.0
    assert (await world.ask()).outcome is Outcome.EMBEDDER_BUSY
    await world.knows(BUDGET)
    result = await world.ask("What is my budget for the Hawaii trip?")
    assert result.outcome is Outcome.EMBEDDER_BUSY
    assert BUDGET in prompt(result)


async def test_memories_without_vectors_are_found_by_their_words() -> None:
    """As long as they are of another model."""
    world = World()
    await world.knows(BUDGET)
    [memory] = await world.store.list(Scope("alice"))
    await world.store.forget(Scope("alice"), memory.id)
    await world.store.put(Scope("alice"), replace(memory, embedding=None))
    result = await world.ask("What is my budget for the Hawaii trip?")
    assert result.outcome is Outcome.EMBEDDER_BUSY
    assert BUDGET in prompt(result)


async def test_without_an_embedder_the_newest_memories_stand_in() -> None:
    world = World()
    world.embedder.failing = True
    assert (await world.ask()).outcome is Outcome.EMBEDDER_DOWN
    await world.knows(BUDGET)
    result = await world.ask("Anything new?")
    assert result.outcome is Outcome.DEGRADED
    assert BUDGET in prompt(result)
    await world.knows("User has a cat called Turing")
    assert "Turing" not in prompt(await world.ask("What is my budget for the Hawaii trip?"))
    assert "Turing" in prompt(await world.ask("Anything new?"))
    for config in ({"retrieval_limit": 0}, {"memory_types": ["no such type"]}):
        asked = {"messages": [{"role": "user", "content": "Anything new?"}], "memory_config": config}
        assert (await world.ask(asked)).outcome is Outcome.NO_HITS


async def test_a_model_may_take_longer_than_the_phase_and_the_door_is_told() -> None:
    world = thinking(0.3)
    await world.knows(BUDGET)
    told: list[float] = []

    async def extend_deadline(extra_s: float) -> None:
        told.append(extra_s)

    head = RequestHead("POST", "/v1/chat/completions", {"x-user-id": ("alice",)})
    result = await world.exchange.request(head, as_body(FOLLOW_UP), extend_deadline=extend_deadline)
    assert result.outcome is Outcome.INJECTED
    assert told == [5.0]
    assert (
        await world.exchange.request(head, as_body(QUESTION), extend_deadline=extend_deadline)
    ).outcome is Outcome.INJECTED
    assert told == [5.0]


async def test_a_model_that_takes_too_long_costs_its_own_time_only() -> None:
    world = thinking(30, timeout_s=0.1)
    await world.knows(BUDGET)
    started = asyncio.get_running_loop().time()
    result = await world.ask(FOLLOW_UP)
    assert result.outcome is Outcome.INJECTED
    assert asyncio.get_running_loop().time() - started < 5
