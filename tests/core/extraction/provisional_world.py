"""What one user says, learnt from at once and by batches, around a store and a journal that outlive both."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from semmem.backends.in_process import InProcessStore
from semmem.background.at_once import AtOnceLearner
from semmem.extraction.at_once import AtOnce
from semmem.extraction.candidate import Removal
from semmem.extraction.comparing import Comparing
from semmem.extraction.dedup import Dedup
from semmem.extraction.pipeline import Learning
from semmem.extraction.reading import Reader
from semmem.extraction.result import BatchResult, TurnLearnt
from semmem.extraction.storing import Storing
from semmem.lifecycle.holds import Holds
from semmem.memory import (
    CONTRADICTED,
    REPEATED,
    UPDATED,
    Fact,
    Memory,
    MemoryStatus,
    MemoryType,
    Scope,
    Turn,
    TurnEnding,
)
from semmem.ports.events import Event
from semmem.ports.learning import Batch, BatchRules, Extractor
from semmem.ports.recording import TurnClosed
from semmem.text.quoting import quoted
from tests.core.extraction.fakes import GivenFacts, all_own
from tests.support.fakes import HashEmbedder
from tests.support.telling_judge import judge
from tests.support.traced_journal import TracedJournal

ALICE = Scope("alice", session="s-1")
RULES = BatchRules(size=100, idle_s=3600.0, answer_wait_s=3600.0, lease_s=60.0)

BOSTON, SEATTLE = "User lives in Boston", "User lives in Seattle"
BEES, BUDGET = "User keeps bees", "User's budget is 10000 dollars"
SAID = {
    BOSTON: "I live in Boston",
    SEATTLE: "Now I live in Seattle",
    BEES: "I keep bees",
    BUDGET: "My budget is 10000 dollars",
}
"""What the rules phrase of what a user says."""
KNEE = quoted("my knee hurts whenever I climb stairs")


Found = Mapping[str, Sequence[Fact | str]]
"""What an extractor finds, by the word that the text of a turn holds; a text is a semantic fact of importance 0.5."""


def by_word(found: Found) -> Callable[[Batch], list[Fact]]:
    def facts(batch: Batch) -> list[Fact]:
        return [
            each if isinstance(each, Fact) else Fact(MemoryType.SEMANTIC, each, turn.id)
            for turn in batch.turns
            for word, contents in found.items()
            if word in turn.user_text
            for each in contents
        ]

    return facts


LOCALLY: Found = {
    "in Boston": [BOSTON],
    "in Seattle": [SEATTLE],
    "bees": [BEES],
    "budget": [BUDGET],
    "knee": [KNEE],
}


class ProvisionalWorld:
    """One process. ``replica`` gives another one on the same store and journal."""

    def __init__(self, journal: Any, store: Any, *, local: Found = LOCALLY, unanswered: bool = False) -> None:
        self.journal = journal
        self.store = store
        self.now = 1000.0
        self.announced: list[Event] = []
        self.learnt: list[BatchResult] = []
        self.local = GivenFacts("rules", by_word(local))
        self.dedup = Dedup(Comparing(store, judge=judge), journal)
        self.batches = self.learning(self.local)
        self.at_once = AtOnce(
            journal, self.local, self.batches.storing, unanswered=unanswered, reader=Reader(hear=all_own)
        )
        self.holds = Holds(journal, clock=lambda: self.now, poll_s=0.005)
        self.learner = AtOnceLearner(
            self.at_once,
            self.batches.settling,
            self.holds,
            clock=lambda: self.now,
            announce=self.announced.append,
        )
        self._said = 0

    def learning(self, extractor: Extractor, **settings: Any) -> Learning:
        settings = {"reader": Reader(hear=all_own), **settings}
        storing = {
            name: settings.pop(name) for name in ("quota", "screening", "facts_max", "ttl_s") if name in settings
        }
        stored = Storing(HashEmbedder(), self.dedup, clock=lambda: self.now, **storing)
        return Learning(self.journal, stored, extractor, **settings)

    # --- what the user does ---

    async def say(
        self, text: str, *, scope: Scope = ALICE, ending: TurnEnding | None = TurnEnding.ANSWERED, turn_id: str = ""
    ) -> Turn:
        """A turn and how its answer ended (None: it did not), in the journal and told to whoever learns at once."""
        self._said += 1
        self.now += 1.0
        turn = Turn(turn_id or f"t-{self._said}", scope, self._said, text, opened_at=self.now)
        closed = [] if ending is None else [TurnClosed(turn.id, ending, self.now)]
        await self.journal.record([turn], closed)
        self.learner.committed([turn], closed)
        return turn

    async def close(self, turn: Turn, ending: TurnEnding) -> None:
        closed = [TurnClosed(turn.id, ending, self.now)]
        await self.journal.record([], closed)
        self.learner.committed([], closed)

    async def tell(self, *texts: str, scope: Scope = ALICE) -> list[Turn]:
        """Turns that are learnt from at once, one after another."""
        turns = []
        for text in texts:
            turns.append(await self.say(text, scope=scope))
            assert await self.learner.drained(10.0)
        return turns

    # --- what semmem does ---

    async def claim(self, session: str = "s-1") -> Batch:
        self.now += 1.0
        await self.journal.end_session("alice", session, now=self.now)
        batch: Batch | None = await self.journal.claim(RULES, now=self.now)
        assert batch is not None
        return batch

    async def learn(
        self, model: Found | None = None, *, wrong: Collection[str] = (), session: str = "s-1", **settings: Any
    ) -> BatchResult:
        """Learn from what waits: by a model that finds this and names these memories as wrong, or locally."""
        extractor = self.local if model is None else GivenFacts("llm", by_word(model), wrong)
        self.learnt.append(await self.learning(extractor, **settings).learn(await self.claim(session)))
        return self.learnt[-1]

    # --- what is there ---

    async def memories(self) -> list[Memory]:
        found: list[Memory] = await self.store.list(Scope("alice"), limit=1000)
        return sorted(found, key=lambda memory: (memory.created_at, memory.content))

    async def known(self) -> dict[str, str]:
        """What is retrieved, and whether a batch has settled it."""
        active = [memory for memory in await self.memories() if memory.status is MemoryStatus.ACTIVE]
        assert len({memory.content for memory in active}) == len(active), "a second copy"
        return {memory.content: "provisional" if memory.is_provisional else "settled" for memory in active}

    async def gone(self) -> dict[str, tuple[str, str]]:
        """What is no longer retrieved: why, and what says it now. What was removed is kept as a version."""
        memories = await self.memories()
        by = {memory.id: memory.content for memory in memories} | {"": ""}
        found = {
            memory.content: (memory.metadata["superseded_why"], by[memory.metadata["superseded_by"]])
            for memory in memories
            if memory.status is MemoryStatus.SUPERSEDED
        }
        for removal in self.removals:
            versions = await self.journal.versions(Scope("alice"), removal.id)
            if removal.reason not in (CONTRADICTED, UPDATED, REPEATED):
                found[versions[-1].content] = (removal.reason, by[removal.by])
        return found

    @property
    def removals(self) -> list[Removal]:
        at_once = [event.result for event in self.announced if isinstance(event, TurnLearnt)]
        return [removal for result in [*at_once, *self.learnt] for removal in result.removals]

    async def versions(self, content: str) -> list[tuple[int, str]]:
        memory = next(memory for memory in await self.memories() if memory.content == content)
        earlier = await self.journal.versions(Scope("alice"), memory.id)
        return [(old.version, old.status.value) for old in earlier]

    def results(self) -> list[str]:
        return [event.result.status for event in self.announced if isinstance(event, TurnLearnt)]


async def provisional_world(journal: TracedJournal, **options: Any) -> ProvisionalWorld:
    store = InProcessStore()
    await store.open()
    return ProvisionalWorld(journal, store, **options)
