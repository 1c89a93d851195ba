"""What the user asks to forget goes, whoever learns from it, and nothing beside it."""

from __future__ import annotations

import numpy as np
import pytest

from semmem.backends.in_process import InProcessStore
from semmem.extraction.comparing import PairJudge
from semmem.extraction.unlearning import MEANT_MAX, Undoing, Unlearning, WaitingWords, meant
from semmem.extraction.work import InThread
from semmem.lifecycle.erasure import ErasurePending, Receipt
from semmem.memory import Memory, MemoryType, Scope, Source
from tests.core.extraction.provisional_world import BEES, BOSTON, RULES, SEATTLE, ProvisionalWorld
from tests.support.fakes import HashEmbedder
from tests.support.traced_journal import TracedJournal

FORGET = "Please forget that I live in Boston."
GONE = {BOSTON: ("asked_to_forget", "")}


class World(ProvisionalWorld):
    """``erased``: what was erased for good. ``pending``: not all of an erasure is done at once."""

    def __init__(self, journal: TracedJournal, store: InProcessStore) -> None:
        super().__init__(journal, store)
        self.erased: list[str] = []
        self.pending = False
        waiting = WaitingWords(journal, HashEmbedder(), PairJudge(HashEmbedder(), InThread()), InThread())
        self.unlearning = Unlearning(store, journal, self.batches.storing, waiting, self._erase)
        self.at_once.unlearning = self.unlearning

    async def _erase(self, scope: Scope, memory_id: str) -> object:
        self.erased.append(memory_id)
        await self.store.forget(scope, memory_id)
        if self.pending:
            raise ErasurePending(Receipt(), remembered=True)
        return None

    async def keep_passage(self, turn: str, content: str) -> None:
        passage = Memory(
            id=f"said_{turn}",
            version=1,
            type=MemoryType.PASSAGE,
            content=f'"{content}"',
            user="alice",
            source=Source("user", "s-1", turn, "", self.now),
            created_at=self.now,
            updated_at=self.now,
            embedding=await HashEmbedder().embed(content),
        )
        await self.store.put(Scope("alice"), passage)


@pytest.fixture
def alice(journal: TracedJournal, store: InProcessStore) -> World:
    return World(journal, store)


async def test_it_goes_at_once_and_stays_in_the_history(alice: World) -> None:
    await alice.tell("I live in Boston", "I keep bees")
    await alice.learn()
    await alice.tell(FORGET)
    assert (set(await alice.known()), await alice.gone()) == ({BEES}, GONE)
    await alice.learn()
    assert (set(await alice.known()), await alice.gone()) == ({BEES}, GONE)


async def test_the_batch_of_what_was_said_does_not_bring_it_back(alice: World) -> None:
    await alice.tell("I live in Boston", FORGET)
    await alice.learn()
    assert await alice.known() == {}


async def test_a_model_is_not_shown_what_was_said(alice: World) -> None:
    await alice.tell("I live in Boston", FORGET, "I keep bees")
    await alice.learn({"Boston": ["User is a Bostonian"], "bees": [BEES]})
    assert set(await alice.known()) == {BEES}


async def test_a_batch_obeys_where_nobody_did_at_once(alice: World) -> None:
    alice.learner.committed = lambda *_: None  # type: ignore[method-assign]
    await alice.say("I live in Boston")
    await alice.say(FORGET)
    batch = await alice.claim()
    alice.batches.unlearning = alice.unlearning
    await alice.batches.learn(batch)
    while (again := await alice.journal.claim(RULES, now=alice.now)) is not None:
        await alice.batches.learn(again)
    assert await alice.known() == {}


async def test_what_is_said_again_afterwards_is_known_again(alice: World) -> None:
    await alice.tell("I live in Boston", FORGET, "I live in Boston")
    await alice.learn()
    assert set(await alice.known()) == {BOSTON}


async def test_what_was_had_back_is_not_forgotten_by_a_later_try(alice: World) -> None:
    await alice.tell("I live in Boston")
    await alice.learn()
    await alice.tell(FORGET)
    [memory] = await alice.memories()
    undone = await Undoing(alice.store, alice.journal, alice.batches.storing).undo(memory, hold="", now=alice.now)
    assert undone is not None
    assert set(await alice.known()) == {BOSTON}
    alice.batches.unlearning = alice.unlearning
    await alice.batches.learn(await alice.claim())
    assert set(await alice.known()) == {BOSTON}


@pytest.mark.parametrize("pending", [False, True])
async def test_passages_that_say_it_are_erased(alice: World, pending: bool) -> None:
    alice.pending = pending
    [home, bees] = await alice.tell("I live in Boston", "I keep bees")
    await alice.learn()
    await alice.keep_passage(home.id, "I live in Boston")
    await alice.keep_passage(bees.id, "I keep bees")
    await alice.keep_passage("other", "Well, as I live in Boston, I like snow.")
    await alice.tell(FORGET)
    assert sorted(alice.erased) == ["said_other", f"said_{home.id}"]
    assert set(await alice.known()) == {BEES}


async def test_another_project_s_memory_stays(alice: World) -> None:
    await alice.tell("I live in Boston", scope=Scope("alice", project="red", session="s-1"))
    await alice.tell(FORGET, scope=Scope("alice", project="blue", session="s-2"))
    assert set(await alice.known()) == {BOSTON}


def memory(content: str, vector: list[float]) -> Memory:
    return Memory(
        id=content,
        version=1,
        type=MemoryType.SEMANTIC,
        content=content,
        user="alice",
        created_at=1.0,
        updated_at=1.0,
        embedding=np.array(vector, np.float32),
    )


ASKED = np.array([1.0, 0.0], np.float32)


def test_meant_are_all_that_hold_every_word_else_the_nearest() -> None:
    near, nearer, far = memory(BOSTON, [0.8, 0.6]), memory(SEATTLE, [0.9, 0.4]), memory(BEES, [0.1, 1.0])
    assert meant("my home in Boston", ASKED, [near, nearer, far]) == [near]
    assert meant("where I am at home", ASKED, [near, nearer, far]) == [nearer]
    assert meant("where I am at home", ASKED, [far]) == []
    assert meant("that", ASKED, [near, nearer, far]) == []


def test_a_word_that_everything_holds_takes_nothing_away() -> None:
    assert meant("Boston", ASKED, [memory(f"{BOSTON} {n}", [0.8, 0.6]) for n in range(MEANT_MAX + 1)]) == []
