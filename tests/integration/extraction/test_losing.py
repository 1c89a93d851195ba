"""Losing is worse than doubling: pairs of facts through the whole deduplication, with the real embedder.

``kept_pairs.jsonl``: both are true of the user at the same time, so both must be found afterwards. Those of kind ``held
out`` were written when the rules were done. ``restated_pairs.jsonl``: the second says the same, or replaces the first.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from semmem.backends.in_process import InProcessStore
from semmem.extraction.candidate import Candidate, memory_id
from semmem.extraction.comparing import NO_OPINIONS, Comparing, Open, PairJudge
from semmem.extraction.contradiction.pair_model import parts
from semmem.extraction.contradiction.verdict import Verdict, closed
from semmem.extraction.dedup import Dedup
from semmem.extraction.model_judge import Opinions
from semmem.extraction.work import InThread
from semmem.memory import Fact, MemoryStatus, MemoryType, Scope, Turn, Vector
from semmem.text.quoting import unquoted
from tests.support.shipped import shipped_embedder
from tests.support.traced_journal import TracedJournal, journals_in

pytestmark = pytest.mark.asyncio(loop_scope="module")

HERE = Path(__file__).parent
NOW = 1000.0
Pair = dict[str, str]


def rows(name: str) -> list[Pair]:
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]


KEPT = rows("kept_pairs.jsonl")
RESTATED = rows("restated_pairs.jsonl")
REPLACED = [
    ("User lives in Texas", "User moved to Canada"),
    ("user lives in texas", "user moved to canada"),
    ("User lives in Boston", "User moved to San Francisco"),
    ("User works at Google", "User now works at Meta"),
    ('"I live in Ulm"', '"I have moved to Jena"'),
]
UNRELATED = [
    ('"I\'m allergic to peanuts."', '"I no longer eat meat"'),
    ('"my wife gets panic attacks on motorways"', '"now that my divorce is through"'),
    ('"I use a wheelchair"', '"I had a stroke two years ago"'),
    ('"my travel budget this year is 2500 pounds"', '"The trip has been moved from the zoo to the planetarium"'),
    ('"I drive ambulances in Gothenburg"', '"I want to become a sommelier"'),
    ('"and my mum\'s joining in Verona"', '"I moved from Leeds to Dundee last month"'),
    ("User collects Jesavifofa stamps", '"We decided to use Vibepenedi for the billing service."'),
    ("User uses Nofavikaro for note taking", '"We decided to use Fegolagizo for the billing service."'),
    ("User uses Holafofaka for note taking", '"We decided to use Fadohoneka for the billing service."'),
    ("User has a friend called Vobovoripo", '"We decided to use Vohepariki for the billing service."'),
]
"""Both stay true; the second alone says how something else is or became."""
BESIDE = [
    ("User has a dog called Rex", "User took Rex to the vet"),
    ("User lives in Boston", "User visited San Francisco last week"),
    ("User lives in Boston", "User's office moved to Cambridge"),
    ("User works at Siemens", "User had an interview at Bosch last week"),
    ("User works at Siemens", "User did an internship at Bosch"),
    ("User goes to bed at ten", "User stayed up until two last night"),
    ("User's laptop is a ThinkPad", "User bought a monitor from Dell"),
    ("User was born in Boston", "User moved to San Francisco last week"),
    ("User's team uses Jira for tickets", "User's team did without Jira for half a day during an outage"),
    ("User banks with Santander", "User phoned Santander about a wrongly charged fee"),
    ("User's bakery is called Krume", "User's bakery Krume ran out of rye bread on Saturday"),
    ("User is married", "User has been married to Renzo since 2016"),
]
"""Something happens near what lasts, and leaves it true."""
ENDED = [
    ("User works at Nokia", "User left Nokia"),
    ("User's bakery is called Krume", "User renamed the bakery from Krume to Goldkruste"),
    ("User currently lives in Boston, Massachusetts", "User just moved to San Francisco last week"),
    ("User lives in Leeds", "User moved house, to York, in May"),
]
"""The same subjects, and an end."""
DEMOS = [{"old": old, "new": new} for old, new in (*BESIDE, *ENDED)]
DEMOS += [{"old": old, "new": new} for old, new in REPLACED]
DEMOS += [{"old": "User leads 4 engineers and a designer called Mei", "new": "User now leads 3 engineers"}]
DEMOS += [{"old": "User's oven broke", "new": "User's oven was repaired"}]
DEMOS += [{"old": old, "new": new} for old, new in UNRELATED]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def vectors() -> dict[str, Vector]:
    """Of every text of the files."""
    embedder = shipped_embedder()
    await embedder.open()
    both = [(pair["old"], pair["new"]) for pair in (*KEPT, *RESTATED, *DEMOS)]
    said = {text for pair in both for text in pair}
    told = {form for text in said for form in (text, unquoted(text))}
    told |= {part for old, new in both for part in (*parts(old, new), *parts(new, old)) if part}
    texts = sorted(told - {""})
    found = await asyncio.gather(*map(embedder.embed, texts))
    await embedder.close()
    return dict(zip(texts, found, strict=True))


class Known:
    """Has every vector already."""

    dimension = 384
    signature = "sentence-transformers/multilingual-e5-small/384/int8"

    def __init__(self, vectors: dict[str, Vector]) -> None:
        self.vectors = vectors

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        return self.vectors[text]

    def at_hand(self, text: str) -> Vector | None:
        return None


class World:
    """One store, and the deduplication as it is assembled; each pair has a user of its own unless told otherwise."""

    def __init__(self, vectors: dict[str, Vector], journal: TracedJournal) -> None:
        self.vectors = vectors
        self.store = InProcessStore()
        self.dedup = Dedup(
            Comparing(self.store, judge=closed, pair_judge=PairJudge(Known(vectors), InThread(), pairs_max=20)), journal
        )
        self.told = 0

    async def tell(
        self,
        user: str,
        text: str,
        opinions: Opinions = NO_OPINIONS,
        kind: MemoryType = MemoryType.SEMANTIC,
        day: float | None = None,
    ) -> None:
        self.told += 1
        turn = Turn(f"t-{self.told}", Scope(user), self.told, text, opened_at=NOW)
        fact = Fact(kind, text, turn.id, occurred_at=day)
        new = Candidate(memory_id("b", self.told), fact, turn, self.vectors[unquoted(text)], NOW + self.told)
        await self.dedup.put(new, opinions)

    async def found(self, user: str) -> list[str]:
        memories = await self.store.list(Scope(user), limit=10_000)
        return sorted(memory.content for memory in memories if memory.status is MemoryStatus.ACTIVE)

    async def lost(self, pairs: Sequence[Pair], opinion: Verdict | None = None) -> list[Pair]:
        """Those of which not both are found."""
        lost = []
        for number, pair in enumerate(pairs):
            opinions = {(pair["old"], pair["new"]): opinion} if opinion is not None else NO_OPINIONS
            await self.tell(f"u-{number}", pair["old"])
            await self.tell(f"u-{number}", pair["new"], opinions)
            lost += [pair] if await self.found(f"u-{number}") != sorted([pair["old"], pair["new"]]) else []
        return lost


@pytest_asyncio.fixture(loop_scope="module")
async def world(vectors: dict[str, Vector], tmp_path: Path) -> AsyncIterator[World]:
    async with journals_in(tmp_path) as journals:
        made = World(vectors, await journals.open())
        await made.store.open()
        yield made
        await made.store.close()


async def test_the_pairs_are_many_and_varied() -> None:
    assert len({(pair["old"], pair["new"]) for pair in KEPT}) == len(KEPT) >= 280
    assert len({pair["language"] for pair in KEPT}) >= 12
    assert len(RESTATED) >= 60


async def test_no_fact_about_somebody_known_is_lost(world: World) -> None:
    assert await world.lost(KEPT) == []


async def test_nor_in_the_other_order(world: World) -> None:
    assert await world.lost([{"old": pair["new"], "new": pair["old"]} for pair in KEPT]) == []


async def test_nor_when_a_model_calls_everything_a_repetition(world: World) -> None:
    assert await world.lost(KEPT, Verdict.SAME) == []


async def test_nor_across_types(world: World) -> None:
    for number, pair in enumerate(KEPT):
        await world.tell(f"u-{number}", pair["old"])
        await world.tell(f"u-{number}", pair["new"], kind=MemoryType.EPISODIC)
        assert await world.found(f"u-{number}") == sorted([pair["old"], pair["new"]])


async def test_news_of_one_thing_does_not_retire_another(world: World) -> None:
    assert await world.lost([{"old": old, "new": new} for old, new in UNRELATED]) == []


async def test_what_happens_beside_a_lasting_fact_does_not_retire_it(world: World) -> None:
    assert await world.lost([{"old": old, "new": new} for old, new in BESIDE]) == []


async def test_what_ends_it_does(world: World) -> None:
    assert await world.lost(pairs := [{"old": old, "new": new} for old, new in ENDED]) == pairs


async def test_of_what_is_restated_nothing_but_doubles_remain(world: World) -> None:
    """How many doubles there are is no promise; that what is said last is found, is one."""
    doubles: Counter[str] = Counter()
    for number, pair in enumerate(RESTATED):
        await world.tell(f"u-{number}", pair["old"])
        await world.tell(f"u-{number}", pair["new"])
        found = await world.found(f"u-{number}")
        assert pair["new"] in found or pair["label"] == "same", pair
        doubles[pair["label"]] += len(found) == 2
    print(f"doubles: {dict(doubles)} of {dict(Counter(pair['label'] for pair in RESTATED))}")
    assert doubles["contradiction"] <= 5


@pytest.mark.parametrize(("old", "new"), REPLACED)
async def test_what_changed_over_time_is_replaced(world: World, old: str, new: str) -> None:
    await world.tell("ann", old)
    await world.tell("ann", new)
    assert await world.found("ann") == [new]


async def test_a_partial_update_keeps_the_rest_and_says_that_it_is_unsettled(world: World) -> None:
    old, new = "User leads 4 engineers and a designer called Mei", "User now leads 3 engineers"
    await world.tell("ann", old)
    await world.tell("ann", new)
    memories = {memory.content: memory for memory in await world.store.list(Scope("ann"))}
    assert sorted(memories) == sorted([old, new])
    assert memories[new].metadata["unsettled"] == [memories[old].id]


async def test_nothing_is_embedded_for_what_shares_no_word(vectors: dict[str, Vector]) -> None:
    old, new = '"I live in Ulm"', '"I have moved to Jena"'
    judge = PairJudge(Known({}), InThread())  # raises for any text
    judged = await judge.judged(new, vectors[unquoted(new)], [Open(old, vectors[unquoted(old)])])
    assert judged[0].verdict is Verdict.CONTRADICTION


async def test_an_event_without_a_day_gives_way_and_one_with_a_day_stays(world: World) -> None:
    old, new = "User's oven broke", "User's oven was repaired"
    for user, day in (("ann", None), ("bob", NOW - 86_400)):
        await world.tell(user, old, kind=MemoryType.EPISODIC, day=day)
        await world.tell(user, new)
    assert await world.found("ann") == [new]
    assert await world.found("bob") == sorted([old, new])
