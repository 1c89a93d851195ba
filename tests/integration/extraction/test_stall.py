"""A text that is dear to read costs its own turn: the batch goes on, and the turn is counted, once."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.backends.worker_process import WorkerProcess
from semmem.extraction.candidate import Action, Candidate
from semmem.extraction.comparing import Comparing
from semmem.extraction.dedup import Dedup
from semmem.extraction.pipeline import Learning
from semmem.extraction.rules import RulesExtractor
from semmem.extraction.storing import Storing
from semmem.memory import Fact, MemoryType, Scope, Turn
from semmem.ports.errors import WorkLost, WorkTooSlow
from semmem.ports.events import Event, TurnsUnread
from semmem.ports.learning import Batch, BatchRules
from tests.support.fakes import HashEmbedder
from tests.support.traced_journal import TracedJournal

T = TypeVar("T")

ADA = Scope("ada", session="s_1")
NOW = 1_700_000_000.0
RULES = BatchRules(size=3, context_turns=0, idle_s=60.0, answer_wait_s=0.0, lease_s=60.0)


def turn(number: int, text: str) -> Turn:
    return Turn(f"t_{number}", ADA, number, text, NOW + number)


def batch(*texts: str) -> Batch:
    return Batch("b_1", ADA, tuple(turn(n, text) for n, text in enumerate(texts)), (), "size", attempt=1)


class Poisoned:
    """Does what it is asked, and is never done with anything that holds ``poison``. Keeps the budgets it was given."""

    def __init__(self, poison: str, error: type[Exception] = WorkTooSlow) -> None:
        self._poison = poison
        self._error = error
        self.budgets: list[float] = []
        self.stopped = 0

    async def run(self, work: Callable[..., T], *args: Any, budget_s: float) -> T:
        self.budgets.append(budget_s)
        if self._poison in repr(args):
            self.stopped += 1
            raise self._error
        return work(*args)


async def test_the_other_turns_of_a_batch_are_read() -> None:
    unread: list[Event] = []
    extractor = RulesExtractor(work=Poisoned("oak"), announce=unread.append)
    facts = (await extractor.extract(batch("I live in Rome", "I like oak", "I hate fish"))).facts
    assert [fact.turn_id for fact in facts] == ["t_0", "t_2"]
    assert unread == [TurnsUnread("b_1", "too_slow", 1)]


async def test_a_turn_whose_reader_died_has_a_reason_of_its_own() -> None:
    unread: list[Event] = []
    extractor = RulesExtractor(work=Poisoned("oak", WorkLost), announce=unread.append)
    await extractor.extract(batch("I like oak"))
    assert unread == [TurnsUnread("b_1", "worker_died", 1)]


async def test_a_turn_is_given_up_once_however_often_its_batch_comes_back() -> None:
    work = Poisoned("oak")
    extractor = RulesExtractor(work=work)
    for _ in range(5):
        assert len((await extractor.extract(batch("I like oak", "I live in Rome"))).facts) == 1
    assert work.stopped == 1


async def test_a_batch_of_such_turns_takes_no_longer_than_its_budget() -> None:
    unread: list[Event] = []
    work = Poisoned("oak")
    extractor = RulesExtractor(work=work, turn_budget_s=1.0, batch_budget_s=2.5, announce=unread.append)
    await extractor.extract(batch(*["I like oak"] * 10))
    assert work.budgets == [1.0, 1.0, 0.5]
    assert unread == [TurnsUnread("b_1", why, 1) for why in ["too_slow"] * 3 + ["batch_too_slow"] * 7]


@pytest.fixture
async def worker() -> AsyncIterator[WorkerProcess]:
    running = WorkerProcess()
    yield running
    await running.close()


async def test_what_a_worker_process_finds_is_what_is_found_here(worker: WorkerProcess) -> None:
    said = batch("I live in Rome. My budget for the trip is $3,000.", "I moved to Oslo last May", "Hello")
    assert (await RulesExtractor(work=worker).extract(said)).facts == (await RulesExtractor().extract(said)).facts != []


async def test_a_batch_is_learnt_by_way_of_a_worker_process(worker: WorkerProcess, journal: TracedJournal) -> None:
    store = InProcessStore()
    await store.open()
    dedup = Dedup(Comparing(store, judge=_same_words, text_work=worker), journal)
    extractor = RulesExtractor(work=worker)
    learning = Learning(journal, Storing(HashEmbedder(), dedup, work=worker, clock=lambda: NOW), extractor)
    texts = ("I live in Rome", "I hate fish", "I live in Rome")
    await journal.record([turn(n, text) for n, text in enumerate(texts)], [])
    claimed = await journal.claim(replace(RULES, idle_s=0.0), now=NOW + 100)
    assert claimed is not None
    result = await learning.learn(claimed)
    assert (result.status, result.cause) == ("stored", "")
    assert {memory.content for memory in await store.list(Scope("ada"))} == {"User lives in Rome", "User hates fish"}


def _same_words(old: str, new: str, _cosine: float) -> Any:
    from semmem.extraction.contradiction.verdict import Verdict

    return Verdict.SAME if old == new else Verdict.DIFFERENT


async def test_facts_that_take_too_long_to_screen_are_rejected_and_the_batch_ends(journal: TracedJournal) -> None:
    store = InProcessStore()
    await store.open()
    work = Poisoned("_screen_nothing", WorkTooSlow)
    learning = Learning(
        journal,
        Storing(
            HashEmbedder(), Dedup(Comparing(store), journal), work=work, screening=_screen_nothing, clock=lambda: NOW
        ),
        RulesExtractor(),
    )
    await journal.record([turn(0, "I live in Rome")], [])
    claimed = await journal.claim(replace(RULES, idle_s=0.0), now=NOW + 100)
    assert claimed is not None
    result = await learning.learn(claimed)
    assert (result.status, result.rejected) == ("rejected", {"too_slow": 1})
    assert journal.statuses == ["rejected"]


def _screen_nothing(_fact: Fact, _said: object) -> Any:
    raise AssertionError("nobody gets here")


async def test_a_fact_whose_comparison_takes_too_long_is_stored_beside_what_is_there(journal: TracedJournal) -> None:
    """Losing is worse than doubling."""
    store = InProcessStore()
    await store.open()
    dedup = Dedup(Comparing(store, judge=_same_words, text_work=Poisoned("oak")), journal)
    embedder = HashEmbedder()

    async def put(number: int, content: str) -> Action:
        fact = Fact(MemoryType.SEMANTIC, content, "t_1")
        vector = await embedder.embed(content)
        return await dedup.put(Candidate(f"m_{number}", fact, turn(1, content), vector, NOW))

    assert await put(1, "User likes the old oak") is Action.CREATED
    assert await put(2, "User likes the very old oak") is Action.CREATED
    assert len(await store.list(Scope("ada"))) == 2


async def test_an_endless_expression_costs_its_turn_and_no_more(worker: WorkerProcess) -> None:
    """With the real thing, whatever expression it may be that nobody has found yet."""
    unread: list[Event] = []
    extractor = RulesExtractor(work=_Endless(worker), turn_budget_s=0.3, announce=unread.append)
    facts = (await extractor.extract(batch("I like oak", "I live in Rome"))).facts
    assert [fact.turn_id for fact in facts] == ["t_1"]
    assert unread == [TurnsUnread("b_1", "too_slow", 1)]


class _Endless:
    """Asks the worker for something that never ends in place of what holds oak."""

    def __init__(self, worker: WorkerProcess) -> None:
        self._worker = worker

    async def run(self, work: Callable[..., T], *args: Any, budget_s: float) -> T:
        if "oak" in repr(args):
            await self._worker.run(re.match, r"(a+)+$", "a" * 60 + "b", budget_s=budget_s)
        return await self._worker.run(work, *args, budget_s=60.0)
