"""A question is embedded while its turn is recorded: what is done when, and who still waits in the end."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from semmem.background import Tasks
from semmem.memory import Memory, MemoryType, Scope, Turn
from semmem.ports.recording import TurnClosed
from semmem.request.outcome import Outcome
from semmem.request.permission import PermissionRules
from semmem.request.verdicts import VerdictRules, VerdictSource
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.search import ResolvedQuery, Strategy, best_of, read_words
from tests.core.exchange.world import BUDGET, NOW, PATIENT, QUESTION, Halves, World, prompt
from tests.core.test_tool_loops import Client
from tests.support.decisions import Decided
from tests.support.fakes import HeldEmbedder, bag_of_words


class Watching(Halves):
    """Notes how many texts were asked for, and how many vectors were made, when each turn was offered; then lets the
    embedder go on."""

    error: Exception | None = None

    def __init__(self, embedder: HeldEmbedder) -> None:
        super().__init__()
        self.embedder = embedder
        self.seen: list[tuple[int, int]] = []

    def offer(self, half: Turn | TurnClosed) -> bool:
        self.seen.append((len(self.embedder.asked), self.embedder.made))
        self.embedder.gate.set()
        if self.error is not None:
            raise self.error
        return super().offer(half)


async def world(*, held: bool = True, **others: Any) -> tuple[World, HeldEmbedder, Watching]:
    embedder = HeldEmbedder(held=held)
    journal = Watching(embedder)
    made = World(embedder=embedder, journal=journal, **others)
    await made.knows(BUDGET)
    return made, embedder, journal


async def nobody_waits(made: World, embedder: HeldEmbedder) -> bool:
    for _ in range(3):
        await asyncio.sleep(0)
    return len(made.tasks) == 0 and embedder.waiting == 0


async def test_embedding_has_begun_before_the_turn_is_offered_to_the_journal() -> None:
    made, embedder, journal = await world()
    result = await made.ask()
    assert journal.seen == [(1, 0)]
    assert embedder.asked == [QUESTION]
    assert result.outcome is Outcome.INJECTED
    assert BUDGET in prompt(result)
    assert await nobody_waits(made, embedder)


async def test_a_vector_that_is_at_hand_is_not_asked_for() -> None:
    made, embedder, _ = await world()
    embedder.kept[QUESTION] = bag_of_words(QUESTION)
    assert (await made.ask()).outcome is Outcome.INJECTED
    assert embedder.asked == []
    assert len(made.tasks) == 0


async def test_a_request_that_is_cancelled_leaves_nobody_waiting_for_its_vector() -> None:
    made, embedder, journal = await world()
    journal.embedder = HeldEmbedder(held=False)  # so that recording opens nothing
    asked = Tasks().spawn("ask", made.ask())
    while not journal:
        await asyncio.sleep(0.001)
    assert (embedder.waiting, len(made.turns)) == (1, 1)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert await nobody_waits(made, embedder)


async def test_recording_that_fails_leaves_nobody_waiting_for_the_vector() -> None:
    made, embedder, journal = await world()
    journal.embedder = HeldEmbedder(held=False)
    journal.error = RuntimeError("a defect")
    with pytest.raises(RuntimeError, match="a defect"):
        await made.ask()
    assert embedder.asked == [QUESTION]
    assert await nobody_waits(made, embedder)


async def test_the_phase_ends_in_time_and_nobody_waits_longer_for_the_vector() -> None:
    made, embedder, journal = await world(phase_s=0.05)
    journal.embedder = HeldEmbedder(held=False)
    result = await made.ask()
    assert (result.outcome, len(made.turns)) == (Outcome.TIMEOUT, 1)
    assert await nobody_waits(made, embedder)


async def test_a_vector_that_comes_too_late_costs_neither_the_turn_nor_what_shares_words() -> None:
    made, embedder, journal = await world(rules=replace(PATIENT, embed_timeout_s=0.02))
    journal.embedder = HeldEmbedder(held=False)
    result = await made.ask()
    assert (result.outcome, len(made.turns)) == (Outcome.EMBEDDER_BUSY, 1)
    assert BUDGET in prompt(result)
    assert await nobody_waits(made, embedder)


@pytest.mark.parametrize(
    ("outcome", "body", "headers"),
    [
        (Outcome.GREETING, "Hello, thank you!", {}),
        (Outcome.NO_QUESTION, {"messages": [{"role": "system", "content": "be brief"}]}, {}),
        (
            Outcome.TOOL_TURN,
            {"messages": [{"role": "user", "content": QUESTION}, {"role": "tool", "content": "delayed"}]},
            {},
        ),
        (Outcome.WRITE_ONLY, QUESTION, {"x_semmem_memory": "write"}),
        (Outcome.OPTED_OUT, QUESTION, {"x_semmem_memory": "off"}),
        (Outcome.ANONYMOUS, QUESTION, {"x_user_id": ""}),
        (
            Outcome.NO_HITS,
            {"messages": [{"role": "user", "content": QUESTION}], "memory_config": {"retrieval_limit": 0}},
            {},
        ),
        (
            Outcome.NO_HITS,
            {"messages": [{"role": "user", "content": QUESTION}], "memory_config": {"memory_types": []}},
            {},
        ),
    ],
)
async def test_what_is_not_searched_for_is_not_embedded(outcome: Outcome, body: Any, headers: dict[str, str]) -> None:
    made, embedder, _ = await world(held=False, permissions=PermissionRules())
    assert (await made.ask(body, **headers)).outcome is outcome
    assert embedder.asked == []


async def test_a_prompt_that_has_its_memories_is_not_embedded_again() -> None:
    made, embedder, _ = await world(held=False)
    first = await made.ask()
    again = await made.ask(first.body or b"")
    assert (again.outcome, embedder.asked) == (Outcome.ALREADY_INJECTED, [QUESTION])


async def test_a_tool_loop_that_has_its_block_is_not_embedded_again() -> None:
    embedder = HeldEmbedder(held=False)
    client = Client(embedder=embedder, upstream=VerdictRules(tool=VerdictSource("x-tool")))
    await client.world.knows(BUDGET)
    assert (await client.send(0)).outcome is Outcome.INJECTED
    assert (await client.send(1, {"x-tool": "false"})).outcome is Outcome.REPEATED
    assert embedder.asked == [QUESTION]


# --- the words -------------------------------------------------------------------------------------------------------


def index_of(*contents: str) -> MemoryIndex:
    return MemoryIndex(
        [
            Memory(f"mem_{content}", 1, MemoryType.SEMANTIC, content, "ada", embedding=bag_of_words(content))
            for content in contents
        ]
    )


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("text", ["Where is the red boat?", "red"])
def test_words_that_were_read_before_the_vector_was_there_change_nothing(strategy: Strategy, text: str) -> None:
    index, other, decision = index_of("a red boat", "tea", "blue"), index_of("red"), Decided()
    query = ResolvedQuery(text, Scope("ada"), NOW, strategy, limit=5)
    for place, words in ((index, text), (other, text), (index, "tea")):
        read = read_words(place, replace(query, text=words), decision)
        found, alone = (best_of(index, query, bag_of_words(text), decision, read=given) for given in (read, None))
        assert found == alone
        assert found.hits
