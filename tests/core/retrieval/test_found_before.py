"""What was found before is found again as long as it is the same, and no longer."""

from __future__ import annotations

import gc
import math
from dataclasses import replace
from weakref import ref

import numpy as np

from semmem.backends.embedding.cached import CachedEmbedder
from semmem.backends.in_process import InProcessStore
from semmem.memory import Conversation, Memory, MemoryType, Message, Role, Scope
from semmem.request.outcome import Outcome
from semmem.request.question import Question
from semmem.retrieval.found_before import FoundBefore
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.recall import Recall, Recalled, RecallRules
from tests.support.decisions import Decided
from tests.support.fakes import HashEmbedder, bag_of_words, hot

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
    before, index = FoundBefore[str](entries_max=2), MemoryIndex([memory("tea")])
    vectors = [bag_of_words(name) for name in "abc"]
    for name, vector in zip("ab", vectors, strict=False):
        before.put(index, name, vector, NOW, name)
    assert before.get(index, "a", vectors[0], NOW) == "a"
    before.put(index, "c", vectors[2], NOW, "c")
    kept = [before.get(index, name, vector, NOW) for name, vector in zip("abc", vectors, strict=True)]
    assert kept == ["a", None, "c"]


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
