"""What is worked out once for each memory: how often, and for how long it stays."""

from __future__ import annotations

import gc
import math
from collections.abc import Sized
from dataclasses import replace
from weakref import ref

import numpy as np

from semmem.backends.embedding.cached import CachedEmbedder
from semmem.backends.in_process import InProcessStore
from semmem.memory import Conversation, Hit, Memory, MemoryType, Message, Role, Scope
from semmem.request.outcome import Outcome
from semmem.request.question import Question
from semmem.retrieval import context, notes, rank
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.index.sizes import FOUND_MAX
from semmem.retrieval.once import FoundBefore, OncePerMemory
from semmem.retrieval.recall import Recall, Recalled, RecallRules
from semmem.text.quoting import quoted
from tests.support.decisions import Decided
from tests.support.fakes import HashEmbedder, bag_of_words, hot


def plain(content: str = "User likes tea") -> Memory:
    return Memory("mem_1", 1, MemoryType.SEMANTIC, content, "ada")


def test_it_is_worked_out_once_for_the_same_memory_and_anew_for_another_version() -> None:
    asked: list[str] = []

    def length(one: Memory) -> int:
        asked.append(one.content)
        return len(one.content)

    once, first = OncePerMemory(length), plain()
    other = replace(first, version=2, content="User likes coffee")
    assert [once(first), once(first), once(other), once(replace(first))] == [14, 14, 17, 14]
    assert asked == ["User likes tea", "User likes coffee", "User likes tea"]


def test_nothing_of_a_memory_stays_when_nobody_holds_it() -> None:
    once = OncePerMemory(lambda one: one.content.upper())
    held = [plain(f"User has {number} cats") for number in range(5)]
    assert [once(one) for one in held][-1:] == ["USER HAS 4 CATS"]
    del held[1:]
    gc.collect()
    assert len(once) == 1


def test_nothing_that_is_shown_stays_after_its_memory() -> None:
    kept: tuple[Sized, ...] = (rank._content, rank._screened, context._note, notes._told)
    gc.collect()
    before = [len(once) for once in kept]  # of other tests' memories
    hits = [Hit(plain(content), 0.5, 0.5) for content in ("User likes tea", quoted("I never eat nuts"))]
    verdicts = rank.rank(hits, said=[], limit=5, now=0.0)
    context.render([one.hit for one in verdicts], tokens_max=500, mark=lambda _: "0" * 16)
    assert [len(once) - been for once, been in zip(kept, before, strict=True)] == [2, 2, 2, 2]
    del hits, verdicts
    gc.collect()
    assert all(len(once) <= been for once, been in zip(kept, before, strict=True))


# --- what was found before is found again as long as it is the same, and no longer -----------------------------------


ADA, NOW = Scope("ada"), 1_800_000_000.0
QUESTION = "Where is the red boat?"


def memory(content: str, **fields: float | None) -> Memory:
    made = Memory(
        f"mem_{content}", 1, MemoryType.SEMANTIC, content, "ada", updated_at=NOW, embedding=bag_of_words(content)
    )
    return replace(made, **fields)  # type: ignore[arg-type]


class World:
    """Ada's memories in process, an embedder with its cache, and a decision that notes what it is asked."""

    def __init__(self) -> None:
        self.store = hot(InProcessStore(), staleness_s=math.inf)
        self.decision = Decided()
        self.recall = Recall(
            self.store, CachedEmbedder(HashEmbedder()), RecallRules(embed_timeout_s=10.0), decision=self.decision
        )

    async def ask(self, text: str = QUESTION, *, scope: Scope = ADA, now: float = NOW) -> Recalled:
        return await self.recall.search(Question(Conversation((Message(Role.USER, text),)), scope, now))

    @property
    def judged(self) -> int:
        return len(self.decision.asked)


async def world(*memories: Memory) -> World:
    made = World()
    await made.store.open()
    for each in memories or (memory("the red boat is in Oslo"), memory("tea is drunk at four")):
        await made.store.put(ADA, each)
    return made


async def test_a_question_that_is_asked_again_is_judged_once_and_shows_the_same() -> None:
    made = await world()
    first, again = await made.ask(), await made.ask(now=NOW + 60)
    assert first.outcome is Outcome.INJECTED
    assert (again.block, made.judged) == (first.block, 1)


async def test_another_question_another_scope_and_another_time_that_is_asked_for_are_judged_anew() -> None:
    made = await world()
    await made.ask()
    await made.ask("Is tea drunk at four?")
    await made.ask(scope=Scope("ada", project="p"))
    assert made.judged == 3  # what belongs to no project is read in it
    await made.ask("What did I do yesterday?")
    await made.ask("What did I do yesterday?", now=NOW + 86_400)
    assert made.judged == 5


async def test_what_is_written_or_forgotten_meanwhile_is_seen() -> None:
    made = await world()
    await made.ask()
    await made.store.put(ADA, memory("the red boat is painted"))
    told = await made.ask()
    assert told.block is not None
    assert "painted" in told.block.injection.text
    await made.store.forget(ADA, "mem_the red boat is in Oslo")
    left = await made.ask()
    assert left.block is not None
    assert "Oslo" not in left.block.injection.text


async def test_a_memory_that_expires_meanwhile_is_not_shown() -> None:
    made = await world(memory("the red boat is in Oslo", expires_at=NOW + 30), memory("a red boat", expires_at=NOW + 5))
    assert (await made.ask()).block is not None
    assert (await made.ask(now=NOW + 4)).block is not None
    assert made.judged == 1
    assert (await made.ask(now=NOW + 6)).hits[0].memory.content == "the red boat is in Oslo"
    assert (await made.ask(now=NOW + 31)).block is None
    assert (await made.ask(now=NOW + 6)).block is not None  # a clock that was set back
    assert made.judged == 3


def test_another_vector_in_the_same_place_is_another_question() -> None:
    before, index = FoundBefore[str](), MemoryIndex([memory("tea")])
    one, other = bag_of_words("a"), bag_of_words("b")
    before.put(index, "asked", one, NOW, "found")
    assert before.get(index, "asked", one, NOW) == "found"
    assert before.get(index, "asked", other, NOW) is None
    assert before.get(index, "other", one, NOW) is None
    assert before.get(MemoryIndex([memory("tea")]), "asked", one, NOW) is None


def test_only_so_many_are_kept_and_those_that_are_asked_stay() -> None:
    before, index, vector = FoundBefore[int](), MemoryIndex([memory("tea")]), bag_of_words("a")
    for number in range(FOUND_MAX):
        before.put(index, number, vector, NOW, number)
    assert before.get(index, 0, vector, NOW) == 0
    before.put(index, FOUND_MAX, vector, NOW, FOUND_MAX)
    kept = [before.get(index, number, vector, NOW) for number in (0, 1, 2, FOUND_MAX)]
    assert kept == [0, None, 2, FOUND_MAX]


def test_neither_an_index_nor_a_vector_is_held() -> None:
    before, index, vector = FoundBefore[tuple[Memory, ...]](), MemoryIndex([memory("tea")]), np.ones(3, np.float32)
    told = ref(index.memories[0])
    before.put(index, "asked", vector, NOW, index.memories)
    asked = ref(vector)
    del vector
    gc.collect()
    assert asked() is None
    del index
    gc.collect()
    assert told() is None
