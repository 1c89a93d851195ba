"""A memory is erased by its id or its type while turns that say it again wait to be learnt from: it does not come back,
what else they say is learnt, and so is what the user says afterwards."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from semmem.background.at_once import AtOnceLearner
from semmem.extraction.at_once import AtOnce
from semmem.extraction.comparing import Open, PairJudge
from semmem.extraction.contradiction.verdict import Judged, Verdict
from semmem.extraction.rules import RulesExtractor
from semmem.extraction.unlearning import WaitingWords, cut_out, restated
from semmem.extraction.work import InThread
from semmem.memory import Memory, Scope, Vector
from semmem.ports.learning import Batch, Extracted
from tests.core.lifecycle.erased_world import RULES, ErasedWorld, Store, erased_world
from tests.support.fakes import HashEmbedder

BEES, BOSTON = "User keeps bees", "User lives in Boston"
AGAIN = "I live in Boston. I keep bees."


class SlowExtractor(RulesExtractor):
    """Waits, where it is told to, until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self.go_on.set()

    async def extract(self, batch: Batch, notes: Sequence[Memory] = ()) -> Extracted:
        found = await super().extract(batch, notes)
        self.begun.set()
        await self.go_on.wait()
        return found


async def learnt(world: ErasedWorld) -> None:
    """What waits is learnt from, by batches alone."""
    learner = world.erasing.tasks.spawn("learner", world.learner.run())
    await world.quiet()
    learner.cancel()


async def told_before(world: ErasedWorld) -> str:
    """The id of what was learnt."""
    world.say("I keep bees.")
    await learnt(world)
    [memory] = await world.store.list(Scope("alice"))
    assert memory.content == BEES
    return memory.id


async def waits(world: ErasedWorld, text: str, **options: Any) -> None:
    world.say(text, **options)
    assert await world.writer.drained(5.0)


@pytest.mark.parametrize("by", ["id", "type"])
async def test_a_waiting_turn_that_says_it_again_does_not_bring_it_back(tmp_path: Path, by: str) -> None:
    async with erased_world(tmp_path, learning=False) as world:
        memory_id = await told_before(world)
        await waits(world, AGAIN)
        answer = await world.delete(f"/{memory_id}") if by == "id" else await world.delete(type="semantic")
        assert answer.json()["receipt"]["sentences"] == 1
        await learnt(world)
        assert await world.contents() == {BOSTON}, "what else the turn says is learnt"
        world.say("I keep bees.")
        await learnt(world)
        assert await world.contents() == {BEES, BOSTON}, "what is said afterwards is learnt"


async def test_a_turn_that_is_not_journalled_yet_does_not_bring_it_back(tmp_path: Path) -> None:
    async with erased_world(tmp_path, learning=False) as world:
        memory_id = await told_before(world)
        world.say(AGAIN)
        assert len(world.writer)
        await world.delete(f"/{memory_id}")
        await learnt(world)
        assert await world.contents() == {BOSTON}


async def test_a_batch_that_is_under_way_does_not_bring_it_back(tmp_path: Path) -> None:
    slow = SlowExtractor()
    async with erased_world(tmp_path, extractor=slow, learning=False) as world:
        memory_id = await told_before(world)
        slow.begun.clear()
        slow.go_on.clear()
        world.say(AGAIN)
        world.erasing.tasks.spawn("learner", world.learner.run())
        await slow.begun.wait()
        receipt = (await world.delete(f"/{memory_id}")).json()["receipt"]
        assert (receipt["sentences"], receipt["batches"]) == (1, 1)
        slow.go_on.set()
        await world.quiet()
        assert await world.contents() == {BOSTON}


async def test_a_batch_that_stores_while_it_is_hidden_does_not_bring_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with erased_world(tmp_path, learning=False) as world:
        memory_id = await told_before(world)
        await waits(world, AGAIN)
        batch = await world.journal.claim(RULES, now=time.time())
        assert batch is not None
        begin = world.journal.begin_erasure

        async def late(*what: Any, **options: Any) -> Any:
            await world.learning.learn(batch)
            return await begin(*what, **options)

        monkeypatch.setattr(world.journal, "begin_erasure", late)
        await world.delete(f"/{memory_id}")
        await learnt(world)
        assert await world.contents() == {BOSTON}


async def test_what_an_earlier_try_of_a_batch_extracted_does_not_bring_it_back(tmp_path: Path) -> None:
    async with erased_world(tmp_path, learning=False) as world:
        memory_id = await told_before(world)
        await waits(world, AGAIN)
        batch = await world.journal.claim(RULES, now=time.time())
        assert batch is not None
        await world.journal.save_facts(batch.id, (await RulesExtractor().extract(batch)).facts)
        await world.journal.postpone(batch.id, until=0.0)
        await world.delete(f"/{memory_id}")
        await learnt(world)
        assert await world.contents() == {BOSTON}


@pytest.mark.parametrize("wait_s", [0.0, 0.005, 0.01, 0.02, 0.03, 0.05])
async def test_learning_at_once_at_any_moment_of_it_does_not_bring_it_back(tmp_path: Path, wait_s: float) -> None:
    store = Store()
    async with erased_world(tmp_path, store=store, learning=False) as world:
        memory_id = await told_before(world)
        at_once = AtOnceLearner(
            AtOnce(world.journal, RulesExtractor(), world.learning.storing),
            world.learning.settling,
            world.erasing.holds,
        )
        world.erasing.writer.committed = at_once.committed
        store.pause_s = 0.005
        world.say("I keep bees.")
        await asyncio.sleep(wait_s)
        await world.delete(f"/{memory_id}")
        assert await at_once.drained(10.0)
        await learnt(world)
        assert await world.contents() == set()


async def test_an_erasure_that_could_not_look_is_pending_and_looks_before_it_removes(tmp_path: Path) -> None:
    async with erased_world(tmp_path, learning=False) as world:
        memory_id = await told_before(world)
        await waits(world, AGAIN)
        with world.locked():
            assert (await world.delete(f"/{memory_id}")).status_code == 503
        assert not await world.erasing.erasure.finish_pending()
        await learnt(world)
        assert await world.contents() == {BOSTON}


async def test_what_was_taken_out_is_not_in_the_journal_any_more(tmp_path: Path) -> None:
    async with erased_world(tmp_path, learning=False) as world:
        memory_id = (await world.create("Keeps bees in Tilburg")).json()["id"]
        await waits(world, "I keep bees in Tilburg. I live in Boston.")
        assert world.tables_with("Tilburg") == {"turns"}
        await world.delete(f"/{memory_id}")
        assert world.tables_with("Tilburg") == set()
        assert world.tables_with("Boston") == {"turns"}


@pytest.mark.parametrize(
    ("text", "project"), [("I no longer keep bees.", None), ("I keep bees.", "hive"), ("I live in Boston.", None)]
)
async def test_what_denies_it_or_is_of_another_project_or_says_something_else_stays(
    tmp_path: Path, text: str, project: str | None
) -> None:
    async with erased_world(tmp_path, learning=False) as world:
        memory_id = await told_before(world)
        await waits(world, text, scope=Scope("alice", project=project, session="s"))
        receipt = (await world.delete(f"/{memory_id}")).json()["receipt"]
        assert receipt["sentences"] == 0
        assert world.tables_with(text) == {"turns"}


@dataclass(frozen=True, slots=True)
class SureJudge(PairJudge):
    """Holds whatever shares a word to be the same."""

    async def judged(self, said: str, vector: Vector, memories: Any) -> list[Judged]:
        assert all(isinstance(each, Open) for each in memories)
        return [Judged(Verdict.SAME)] * len(memories)


async def test_a_paraphrase_goes_as_far_as_the_judge_sees(tmp_path: Path) -> None:
    async with erased_world(tmp_path, learning=False) as world:
        memory = (await world.create("User plays the violin in an orchestra")).json()
        await waits(world, "I am a violin player. I live in Boston.")
        [held] = await world.store.list(Scope("alice"))
        assert held.id == memory["id"]
        for judge, taken in ((PairJudge, 0), (SureJudge, 1)):
            words = WaitingWords(world.journal, HashEmbedder(), judge(HashEmbedder(), InThread()), InThread())
            assert await words.take_out("alice", [held], until=1e12) == (taken, 0)
        [turn] = await world.journal.unlearnt("alice", until=1e12, limit=10)
        assert turn.user_text == "I live in Boston."


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("I keep bees and I live in Boston.", "and I live in Boston."),
        ("I never said that I keep bees. I live in Boston.", "I live in Boston."),
        ("My bees, which I keep in\nthe garden", "the garden"),
        ("I like honey.", "I like honey."),
    ],
)
def test_only_the_clause_that_states_it_goes(text: str, left: str) -> None:
    found = restated(text, [BEES])
    assert cut_out(found.text, found.stated) == left
