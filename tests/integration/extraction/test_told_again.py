"""What was lost, doubled or left beside each other in use, told in other words: the real embedder and the judge as it
is shipped."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from semmem.backends.in_process import InProcessStore
from semmem.extraction.candidate import Action, Candidate, Placed, memory_id
from semmem.extraction.comparing import CORRECTED_S, Comparing, PairJudge
from semmem.extraction.contradiction.pair_model import trained_for
from semmem.extraction.contradiction.verdict import closed
from semmem.extraction.dedup import Dedup
from semmem.extraction.work import InThread
from semmem.memory import CONTRADICTED, UNSETTLED, Fact, Memory, MemoryStatus, MemoryType, Scope, Turn
from semmem.ports.embedder import Embedder
from semmem.text.quoting import unquoted
from tests.support.traced_journal import journals_in

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOW = 1_000_000.0
HOUR_S = 3600.0
SEMANTIC, EPISODIC = MemoryType.SEMANTIC, MemoryType.EPISODIC


class Ann:
    """Tells facts one after another, each an hour after the one before and in a session of its own."""

    def __init__(self, embedder: Embedder, store: InProcessStore, dedup: Dedup) -> None:
        self.embedder, self.store, self.dedup = embedder, store, dedup
        self.now, self.numbers = NOW, itertools.count(1)

    async def tells(
        self,
        text: str,
        kind: MemoryType = SEMANTIC,
        *,
        day: float | None = None,
        session: str | None = None,
        after_s: float = HOUR_S,
        turn: str | None = None,
    ) -> Placed:
        number = next(self.numbers)
        self.now += after_s
        turn_id = f"t-{number}" if turn is None else turn
        said = Turn(turn_id, Scope("ann", session=session or f"s-{number}"), number, text, opened_at=self.now)
        vector = await self.embedder.embed(unquoted(text))
        fact = Fact(kind, text, said.id, occurred_at=day)
        return await self.dedup.place(Candidate(memory_id("b", number), fact, said, vector, self.now))

    async def tells_all(self, *texts: str) -> None:
        for text in texts:
            await self.tells(text)

    async def memories(self) -> dict[str, Memory]:
        return {memory.content: memory for memory in await self.store.list(Scope("ann"), limit=100)}

    async def known(self) -> set[str]:
        return {text for text, memory in (await self.memories()).items() if memory.status is MemoryStatus.ACTIVE}

    async def stands_against(self, text: str) -> set[str]:
        memories = await self.memories()
        ids = memories[text].metadata.get(UNSETTLED, [])
        return {other.content for other in memories.values() if other.id in ids}


@pytest_asyncio.fixture(loop_scope="module")
async def ann(embedder: Embedder, tmp_path: Path) -> AsyncIterator[Ann]:
    async with journals_in(tmp_path) as journals:
        store = InProcessStore()
        await store.open()
        judge = PairJudge(embedder, InThread(), budget_s=30.0)
        yield Ann(
            embedder,
            store,
            Dedup(Comparing(store, judge=closed, pair_judge=judge, judge_budget_s=30.0), await journals.open()),
        )
        await store.close()


async def test_the_judge_is_the_one_of_the_shipped_weights(embedder: Embedder) -> None:
    assert trained_for(embedder.signature) is not None


@pytest.mark.parametrize(
    "texts",
    [
        ("User's daughter Mia is 7", "User's daughter Mia loves horses", "User's daughter Mia wears glasses"),
        ("Project Osprey is written in Rust", "Project Osprey's budget is 50000 euros", "Project Osprey ships in May"),
        ("User's husband Tariq has diabetes", "User's husband Tariq has his birthday on 12 August"),
        ("User manages 4 engineers and a designer named Mei", "User manages 3 engineers now"),
        ("User plays the lute", "User took lute lessons during a stay in Graz"),
        ("User is allergic to cashews and to wasp stings", "User is no longer allergic to cashews"),
        ("User's brother smokes", "User does not smoke"),
        ("User's son Emil is afraid of dogs", "User's sister Emma is afraid of cats"),
    ],
    ids=["daughter", "project", "husband", "team", "refined", "half denied", "relative", "namesakes"],
)
async def test_what_is_true_at_the_same_time_stays(ann: Ann, texts: tuple[str, ...]) -> None:
    await ann.tells_all(*texts)
    assert await ann.known() == set(texts)


async def test_and_stays_in_the_other_order(ann: Ann) -> None:
    texts = ["User's daughter Mia loves horses", "User's daughter Mia is 7", "Project Osprey's budget is 50000 euros"]
    texts += ["Project Osprey is written in Rust", "User's husband Tariq has his birthday on 12 August"]
    texts += ["User's husband Tariq has diabetes"]
    await ann.tells_all(*texts)
    assert await ann.known() == set(texts)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("User lives in Boston", "User has moved to San Francisco"),
        ("user lives in texas", "user has moved to canada"),
        ("user lives in texas", "user now lives in canada"),
        ('"i live in texas"', '"i moved to canada"'),
        ("User works for Siemens", "User has started a new job at Bosch"),
    ],
)
async def test_what_has_changed_is_replaced_and_kept_as_history(ann: Ann, old: str, new: str) -> None:
    await ann.tells(old)
    placed = await ann.tells(new)
    assert [removal.reason for removal in placed.removals] == [CONTRADICTED]
    assert await ann.known() == {new}
    assert (await ann.memories())[old].status is MemoryStatus.SUPERSEDED


async def test_what_is_fixed_is_not_broken_whatever_kind_of_memory_said_so(ann: Ann) -> None:
    await ann.tells("User's oven broke", EPISODIC)
    await ann.tells("User's oven has been repaired and works again")
    assert await ann.known() == {"User's oven has been repaired and works again"}


async def test_what_broke_on_a_day_stays_history(ann: Ann) -> None:
    await ann.tells("User's oven broke", EPISODIC, day=NOW - 86_400)
    await ann.tells("User's oven has been repaired and works again")
    assert len(await ann.known()) == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("User has a walnut allergy", "User is allergic to walnuts"),
        ("User is allergic to walnuts", "User has a walnut allergy"),
        ("User's interview is at 15:00", "User's interview is at 3 pm"),
        ("User earns 28k a year", "User earns 28,000 a year"),
        ("User isn't married", "User is unmarried"),
        ("User's horse is called Nelly", "The name of user's horse is Nelly"),
    ],
)
async def test_the_same_in_other_forms_is_stored_once_in_the_words_of_the_first(ann: Ann, old: str, new: str) -> None:
    await ann.tells(old)
    assert (await ann.tells(new)).action is Action.UNCHANGED
    assert await ann.known() == {old}


async def test_a_pair_in_doubt_is_marked_until_one_of_the_two_goes(ann: Ann) -> None:
    old, new = "User manages 4 engineers and a designer named Mei", "User manages 3 engineers now"
    await ann.tells_all(old, new)
    assert await ann.stands_against(new) == {old}
    await ann.tells("User does not manage 4 engineers and a designer named Mei")
    assert old not in await ann.known()
    assert await ann.stands_against(new) == set()
    assert UNSETTLED not in (await ann.memories())[new].metadata


async def test_what_goes_well_together_is_not_marked(ann: Ann) -> None:
    texts = ["User's daughter Mia is 7", "User's daughter Mia loves horses", "Project Osprey is written in Rust"]
    await ann.tells_all(*texts)
    assert [await ann.stands_against(text) for text in texts] == [set()] * 3


GOOGLE = "User works at Google"


@pytest.mark.parametrize(
    ("new", "turns", "left"),
    [
        ("User works at Meta", ("t", "t"), {GOOGLE, "User works at Meta"}),
        ("User works at Meta", ("t", "u"), {"User works at Meta"}),
        ("User works at Meta", ("", ""), {"User works at Meta"}),
        ("User now works at Meta", ("t", "t"), {"User now works at Meta"}),
    ],
    ids=["one message", "two messages", "of no message", "a change in one message"],
)
async def test_what_one_message_says_side_by_side_stays(
    ann: Ann, new: str, turns: tuple[str, str], left: set[str]
) -> None:
    for text, turn in zip((GOOGLE, new), turns, strict=True):
        await ann.tells(text, turn=turn, session="s", after_s=0)
    assert await ann.known() == left


SISTER, FLIGHT, CORRECTION = '"My sister lives in Ulm"', '"We fly to Oslo"', '"Actually to Bergen"'


async def test_a_correction_in_the_next_message_replaces_what_was_said(ann: Ann) -> None:
    await ann.tells(SISTER, session="s")
    await ann.tells(FLIGHT, session="s", after_s=60)
    await ann.tells(CORRECTION, session="s", after_s=30)
    assert await ann.known() == {SISTER, CORRECTION}


@pytest.mark.parametrize(
    ("session", "after_s"), [("s", CORRECTED_S + 1), ("another", 30.0)], ids=["later", "in another session"]
)
async def test_what_corrects_something_else_replaces_nothing(ann: Ann, session: str, after_s: float) -> None:
    await ann.tells(FLIGHT, session="s")
    await ann.tells(CORRECTION, session=session, after_s=after_s)
    assert await ann.known() == {FLIGHT, CORRECTION}
