"""What an opinion of a model, or the judge, makes of a fact and its neighbours."""

from __future__ import annotations

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.extraction.candidate import Action, Placed, Removal
from semmem.extraction.comparing import Comparing
from semmem.extraction.contradiction.verdict import Verdict
from semmem.extraction.dedup import Dedup
from semmem.memory import MemoryStatus, MemoryType, Scope
from semmem.ports.memory_records import Dropped
from tests.core.extraction.dedup_world import (
    BOSTON,
    BUDGET,
    NEW_BUDGET,
    NOW,
    SEATTLE,
    candidate,
    contents,
    found,
)
from tests.support.telling_judge import judge
from tests.support.traced_journal import TracedJournal

REPLACES = {(BOSTON, SEATTLE): Verdict.CONTRADICTION}


@pytest.fixture
def dedup(store: InProcessStore, journal: TracedJournal) -> Dedup:
    return Dedup(Comparing(store), journal)


@pytest.fixture
def judging(store: InProcessStore, journal: TracedJournal) -> Dedup:
    return Dedup(Comparing(store, judge=judge), journal)


async def test_a_contradicted_memory_is_kept_but_no_longer_found(
    dedup: Dedup, store: InProcessStore, journal: TracedJournal
) -> None:
    old, new = await candidate(BOSTON), await candidate(SEATTLE, index=1, now=NOW + 10)
    await dedup.put(old)
    assert await dedup.put(new, REPLACES) is Action.SUPERSEDED
    found = await store.search(Scope("alice"), new.vector, limit=5, now=NOW + 10)
    assert [hit.memory.content for hit in found] == [SEATTLE]
    retired = await store.get(Scope("alice"), old.id)
    assert retired is not None
    assert (retired.status, retired.version, retired.content) == (MemoryStatus.SUPERSEDED, 2, BOSTON)
    why = {"superseded_by": new.id, "superseded_why": "contradicted"}
    assert (retired.updated_at, retired.metadata) == (NOW + 10, why)
    assert [memory.version for memory in await journal.versions(Scope("alice"), old.id)] == [1]


async def test_doubtful_is_what_lies_between_the_thresholds_nearest_first(
    store: InProcessStore, journal: TracedJournal
) -> None:
    dedup = Dedup(Comparing(store, doubts_per_fact_max=2), journal)
    for index, content in enumerate(["User cooks on Sundays", "User lives in a big tower", BOSTON, "User lives"]):
        await dedup.put(await candidate(content, index=index))
    doubts = await dedup.comparing.doubts([await candidate(SEATTLE, index=9)])
    assert [(doubt.old, doubt.new) for doubt in doubts] == [(BOSTON, SEATTLE), ("User lives", SEATTLE)]
    assert doubts[0].cosine == pytest.approx(3 / 20**0.5)


@pytest.mark.parametrize(
    ("changed", "doubtful"),
    [
        (("10000", "15000"), True),
        (("Hawaii", "Norway"), True),
        (("is 10000", "is not 10000"), True),
        (("the big", "the very big"), False),
        (("User", "user"), False),
    ],
    ids=["number", "name", "negation", "word", "the same text"],
)
async def test_above_the_update_threshold_only_what_vectors_do_not_see_is_doubtful(
    dedup: Dedup, changed: tuple[str, str], doubtful: bool
) -> None:
    one, other = await candidate(BUDGET), await candidate(BUDGET.replace(*changed), index=1)
    assert float(one.vector @ other.vector) > 0.9
    await dedup.put(one)
    assert bool(await dedup.comparing.doubts([other])) is doubtful


async def test_facts_of_one_batch_are_doubtful_among_themselves(dedup: Dedup) -> None:
    news = [await candidate(BOSTON), await candidate(SEATTLE, index=1)]
    assert [(doubt.old, doubt.new) for doubt in await dedup.comparing.doubts(news)] == [(BOSTON, SEATTLE)]
    apart = [await candidate(BOSTON), await candidate(SEATTLE, index=1, kind=MemoryType.PROCEDURAL)]
    assert await dedup.comparing.doubts(apart) == []


async def test_what_is_known_word_for_word_raises_no_doubt(dedup: Dedup) -> None:
    await dedup.put(await candidate(BOSTON))
    await dedup.put(await candidate(SEATTLE, index=1), {(BOSTON, SEATTLE): Verdict.DIFFERENT})
    assert await dedup.comparing.doubts([await candidate(SEATTLE.upper(), index=2)]) == []


@pytest.mark.parametrize(
    ("opinion", "action"),
    [
        (Verdict.CONTRADICTION, Action.UPDATED),
        (Verdict.DIFFERENT, Action.CREATED),
    ],
)
async def test_an_opinion_outweighs_the_rules(
    store: InProcessStore, journal: TracedJournal, opinion: Verdict, action: Action
) -> None:
    def guessing(old: str, new: str, cosine: float) -> Verdict:
        return Verdict.DIFFERENT if opinion is Verdict.CONTRADICTION else Verdict.CONTRADICTION

    dedup = Dedup(Comparing(store, judge=guessing), journal)
    await dedup.put(await candidate(BUDGET))
    assert await dedup.put(await candidate(NEW_BUDGET, index=1), {(BUDGET, NEW_BUDGET): opinion}) is action


async def test_nobody_is_believed_who_would_lose_something(store: InProcessStore, journal: TracedJournal) -> None:
    texts = ["User leads 4 engineers and a designer called Mei", "User leads 3 engineers"]
    wrong = {(texts[0], texts[1]): Verdict.CONTRADICTION}
    dedup = Dedup(Comparing(store, judge=lambda _old, _new, _cosine: Verdict.SAME), journal)
    for index, text in enumerate(texts):
        assert await dedup.put(await candidate(text, index=index), wrong) is Action.CREATED
    assert await contents(store) == sorted(texts)


async def test_vectors_alone_do_not_make_a_text_lose_its_words(
    dedup: Dedup, store: InProcessStore, journal: TracedJournal
) -> None:
    team = BUDGET.replace("10000 dollars", "10000 dollars and the designer of it is Mei")
    await dedup.put(await candidate(team))
    later = await candidate(NEW_BUDGET, index=1)
    assert float((await candidate(team)).vector @ later.vector) > 0.8
    lax = Dedup(Comparing(store, update_threshold=0.8), journal)
    assert await lax.put(later) is Action.CREATED
    assert await contents(store) == sorted([team, NEW_BUDGET])


async def test_what_went_is_told_with_its_reason(store: InProcessStore, journal: TracedJournal) -> None:
    judging = Dedup(Comparing(store, judge=judge), journal)
    boston, again, seattle = [
        await candidate(text, index=index) for index, text in enumerate([BOSTON, f"The {BOSTON}.", SEATTLE])
    ]
    assert await judging.place(boston) == Placed(Action.CREATED)
    repeated = Placed(Action.UNCHANGED, (Removal("repeated", again.id, boston.id),))
    assert await judging.place(again) == repeated
    assert await journal.dropped(Scope("alice"), boston.id) == [Dropped("repeated", 1, NOW)]
    moved = Placed(Action.SUPERSEDED, (Removal("contradicted", boston.id, seattle.id),))
    assert await judging.place(seattle) == moved
    first, later = await candidate(BUDGET, index=3), await candidate(NEW_BUDGET, index=4)
    assert await judging.place(first) == Placed(Action.CREATED)
    assert await judging.place(later) == Placed(Action.UPDATED, (Removal("updated", first.id, first.id),))
    await journal.forget_memories(Scope("alice"), [boston.id], shuts_turns=False)
    assert await journal.dropped(Scope("alice"), boston.id) == []


async def test_the_same_words_are_no_second_memory_of_another_type(dedup: Dedup, store: InProcessStore) -> None:
    await dedup.put(await candidate(BUDGET))
    assert await dedup.put(await candidate(BUDGET, kind=MemoryType.EPISODIC, index=1)) is Action.UNCHANGED
    assert await contents(store) == [BUDGET]


async def test_an_event_retires_what_was_known_but_keeps_its_own_type(judging: Dedup, store: InProcessStore) -> None:
    old, moved = await candidate(BOSTON), await candidate(SEATTLE, kind=MemoryType.EPISODIC, index=1)
    await judging.put(old)
    assert await judging.put(moved) is Action.SUPERSEDED
    (active,) = [memory for memory in await store.list(Scope("alice")) if memory.status is MemoryStatus.ACTIVE]
    assert (active.content, active.type) == (SEATTLE, MemoryType.EPISODIC)


async def test_an_event_is_retired_by_an_opinion_only(judging: Dedup, store: InProcessStore) -> None:
    broke, fixed = "User's oven broke", "User's oven is fixed"
    await judging.put(await candidate(broke, kind=MemoryType.EPISODIC))
    assert await judging.put(await candidate(fixed, index=1)) is Action.CREATED
    again = {(broke, f"{fixed} again"): Verdict.CONTRADICTION}
    assert await judging.put(await candidate(f"{fixed} again", index=2), again) is Action.SUPERSEDED
    assert broke not in await found(store, "oven")
