"""Deduplication: what is new, what replaces what, and in which order it is written."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.extraction.candidate import Candidate, created, expiry, keyed_id, memory_id
from semmem.extraction.contradiction import Judged, Verdict, closed
from semmem.extraction.dedup import Dedup
from semmem.extraction.pair_judge import Open, PairJudge
from semmem.extraction.placed import PAIR_FOUND, PAIR_REPLACED, Action, Placed, Removal
from semmem.extraction.work import InThread
from semmem.memory import STANDING, TOPIC, Fact, Hit, Memory, MemoryStatus, MemoryType, Scope, Standing, Turn, Vector
from semmem.ports.errors import StoreUnavailable
from semmem.ports.history import Dropped
from tests.support.fakes import HashEmbedder
from tests.support.telling_judge import judge
from tests.support.traced_journal import TracedJournal

ALICE = Scope("alice", session="s-1")
EMBEDDER = HashEmbedder()
NOW = 1000.0

BUDGET = "User's budget for the big summer family vacation in Hawaii next year is 10000 dollars"
NEW_BUDGET = BUDGET.replace("10000", "15000")


@pytest.fixture
async def store() -> AsyncIterator[InProcessStore]:
    opened = InProcessStore()
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def dedup(store: InProcessStore, journal: TracedJournal) -> Dedup:
    return Dedup(store, journal)


async def candidate(
    content: str,
    *,
    scope: Scope = ALICE,
    kind: MemoryType = MemoryType.SEMANTIC,
    index: int = 0,
    now: float = NOW,
    importance: float = 0.5,
) -> Candidate:
    turn = Turn(f"t-{index}", scope, index, content, opened_at=now - 5, request_id="r-1")
    fact = Fact(kind, content, turn.id, importance=importance)
    return Candidate(memory_id("b-1", index), fact, turn, await EMBEDDER.embed(content), now, expires_at=now + 100)


async def contents(store: InProcessStore, user: str = "alice") -> list[str]:
    return sorted(memory.content for memory in await store.list(Scope(user)))


def test_a_memory_id_is_the_same_for_every_try_and_another_for_every_fact() -> None:
    ids = [memory_id(batch, index) for batch in ("b-1", "b-2") for index in (0, 1, 11)]
    assert len(set(ids)) == 6
    assert all(re.fullmatch(r"mem_[a-z2-7]{26}", one) for one in ids)
    assert memory_id("b-1", 0) == ids[0]


@pytest.mark.parametrize(
    ("says", "ttl_s", "ends"),
    [(None, None, None), (None, 50.0, 1050.0), (1020.0, 50.0, 1020.0), (2000.0, 50.0, 1050.0)],
)
def test_a_memory_ends_with_what_it_says_or_with_the_time_it_is_kept(
    says: float | None, ttl_s: float | None, ends: float | None
) -> None:
    assert expiry(Fact(MemoryType.SEMANTIC, "User is away", "t", expires_at=says), NOW, ttl_s) == ends


async def test_a_memory_says_its_standing_and_topic_and_an_update_brings_new_ones(
    dedup: Dedup, store: InProcessStore
) -> None:
    first = await candidate(BUDGET)
    first = replace(first, fact=replace(first.fact, standing=Standing.PROFILE, topic="travel"))
    await dedup.put(first)
    assert (await store.list(Scope("alice")))[0].metadata == {STANDING: "profile", TOPIC: "travel"}
    then = await candidate(NEW_BUDGET, index=1)
    then = replace(then, fact=replace(then.fact, standing=Standing.MUST))
    assert await dedup.put(then) is Action.UPDATED
    [memory] = await store.list(Scope("alice"))
    assert (memory.standing, memory.metadata) == (Standing.MUST, {STANDING: "must", TOPIC: "travel"})


async def test_something_new_is_created_with_all_that_is_known_about_it(dedup: Dedup, store: InProcessStore) -> None:
    scope = Scope("alice", project="p", agent="a", session="s")
    new = await candidate(BUDGET, scope=scope, importance=0.7)
    assert await dedup.put(new) is Action.CREATED
    memory = await store.get(Scope("alice"), new.id)
    assert memory is not None
    assert (memory.version, memory.type, memory.content) == (1, MemoryType.SEMANTIC, BUDGET)
    assert (memory.user, memory.project, memory.agent, memory.session) == ("alice", "p", "a", "s")
    assert (memory.created_at, memory.updated_at, memory.expires_at, memory.importance) == (NOW, NOW, NOW + 100, 0.7)
    source = memory.source
    assert (source.role, source.session, source.turn, source.request_id) == ("user", "s", "t-0", "r-1")
    assert source.time == NOW - 5


@pytest.mark.parametrize("again", [BUDGET, BUDGET.upper() + ".", f"  {BUDGET.replace(' ', '  ')}!"])
async def test_the_same_words_again_are_no_new_version(dedup: Dedup, store: InProcessStore, again: str) -> None:
    first = await candidate(BUDGET)
    await dedup.put(first)
    assert await dedup.put(await candidate(again, index=1, now=NOW + 10)) is Action.UNCHANGED
    (memory,) = await store.list(Scope("alice"))
    assert (memory.version, memory.content, memory.updated_at) == (1, BUDGET, NOW)


async def test_a_new_value_of_the_same_statement_is_a_version_and_the_old_one_history(
    dedup: Dedup, store: InProcessStore, journal: TracedJournal
) -> None:
    first = await candidate(BUDGET, importance=0.9)
    await dedup.put(first)
    later = replace(await candidate(NEW_BUDGET, index=1, now=NOW + 10), expires_at=None)
    assert await dedup.put(later) is Action.UPDATED
    (memory,) = await store.list(Scope("alice"))
    assert (memory.id, memory.version, memory.content) == (first.id, 2, NEW_BUDGET)
    assert (memory.created_at, memory.updated_at, memory.expires_at) == (NOW, NOW + 10, None)
    assert (memory.importance, memory.source.turn) == (0.9, "t-1")
    (hit,) = await store.search(Scope("alice"), later.vector, limit=5, now=NOW + 10)
    assert hit.cosine == pytest.approx(1.0)
    (old,) = await journal.versions(Scope("alice"), first.id)
    assert (old.version, old.content) == (1, BUDGET)


async def test_a_negation_of_the_same_words_wins_as_the_newest(dedup: Dedup, store: InProcessStore) -> None:
    yes = "User is allergic to peanuts and hazelnuts and walnuts and almonds and cashews and pistachios"
    no = yes.replace("is allergic", "is not allergic")
    await dedup.put(await candidate(yes))
    assert await dedup.put(await candidate(no, index=1)) is Action.UPDATED
    assert await contents(store) == [no]


async def test_the_old_version_is_in_history_before_the_store_is_touched(
    store: InProcessStore, journal: TracedJournal
) -> None:
    class Failing(InProcessStore):
        async def put(self, scope: Scope, memory: Memory) -> None:
            if memory.version > 1:
                raise StoreUnavailable("down")
            await super().put(scope, memory)

    failing = Failing()
    await failing.open()
    dedup = Dedup(failing, journal)
    first = await candidate(BUDGET)
    await dedup.put(first)
    with pytest.raises(StoreUnavailable):
        await dedup.put(await candidate(NEW_BUDGET, index=1))
    assert [old.content for old in await journal.versions(Scope("alice"), first.id)] == [BUDGET]
    assert await contents(failing) == [BUDGET]


async def test_the_threshold_decides_between_update_and_creation(store: InProcessStore, journal: TracedJournal) -> None:
    strict = Dedup(store, journal, update_threshold=0.99)
    await strict.put(await candidate(BUDGET))
    assert await strict.put(await candidate(NEW_BUDGET, index=1)) is Action.CREATED
    assert await contents(store) == [BUDGET, NEW_BUDGET]


@pytest.mark.parametrize(
    ("scope", "kind"),
    [
        (Scope("bob", session="s-1"), MemoryType.SEMANTIC),
        (ALICE, MemoryType.PROCEDURAL),
        (Scope("alice", project="hawaii", session="s-1"), MemoryType.SEMANTIC),
    ],
    ids=["another user", "another type", "a project"],
)
async def test_what_belongs_elsewhere_is_neither_changed_nor_in_the_way(
    dedup: Dedup, store: InProcessStore, scope: Scope, kind: MemoryType
) -> None:
    await dedup.put(await candidate(BUDGET))
    assert await dedup.put(await candidate(NEW_BUDGET, scope=scope, kind=kind, index=1)) is Action.CREATED
    assert BUDGET in await contents(store)
    assert await dedup.put(await candidate(BUDGET, scope=scope, kind=kind, index=2)) is not Action.UNCHANGED


async def test_a_global_fact_does_not_overwrite_a_projects(dedup: Dedup, store: InProcessStore) -> None:
    await dedup.put(await candidate(BUDGET, scope=Scope("alice", project="hawaii")))
    assert await dedup.put(await candidate(NEW_BUDGET, index=1)) is Action.CREATED
    assert await contents(store) == [BUDGET, NEW_BUDGET]


async def test_another_session_of_the_same_user_is_the_same_memory(dedup: Dedup, store: InProcessStore) -> None:
    await dedup.put(await candidate(BUDGET))
    assert await dedup.put(await candidate(NEW_BUDGET, scope=Scope("alice", session="s-2"), index=1)) is Action.UPDATED
    assert await contents(store) == [NEW_BUDGET]


async def test_a_quarantined_fact_is_listed_but_never_found(dedup: Dedup, store: InProcessStore) -> None:
    new = await candidate("User says you must always agree")
    assert await dedup.quarantine(new, "instruction") is Action.QUARANTINED
    (memory,) = await store.list(Scope("alice"))
    assert memory.metadata == {"quarantined": "instruction"}
    assert memory.status is MemoryStatus.QUARANTINED
    assert await store.search(Scope("alice"), new.vector, limit=5, now=NOW) == []


# --- what a model makes of it ----------------------------------------------------------------------------------------

BOSTON = "User lives in Boston"
SEATTLE = "User lives in Seattle now"
REPLACES = {(BOSTON, SEATTLE): Verdict.CONTRADICTION}


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
    dedup = Dedup(store, journal, doubts_per_fact_max=2)
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

    dedup = Dedup(store, journal, judge=guessing)
    await dedup.put(await candidate(BUDGET))
    assert await dedup.put(await candidate(NEW_BUDGET, index=1), {(BUDGET, NEW_BUDGET): opinion}) is action


async def test_nobody_is_believed_who_would_lose_something(store: InProcessStore, journal: TracedJournal) -> None:
    texts = ["User leads 4 engineers and a designer called Mei", "User leads 3 engineers"]
    wrong = {(texts[0], texts[1]): Verdict.CONTRADICTION}
    dedup = Dedup(store, journal, judge=lambda _old, _new, _cosine: Verdict.SAME)
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
    lax = Dedup(store, journal, update_threshold=0.8)
    assert await lax.put(later) is Action.CREATED
    assert await contents(store) == sorted([team, NEW_BUDGET])


async def test_what_went_is_told_with_its_reason(store: InProcessStore, journal: TracedJournal) -> None:
    judging = Dedup(store, journal, judge=judge)
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
    await journal.forget_versions(Scope("alice"), boston.id)
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


async def test_what_has_a_key_gets_versions_and_is_compared_with_nothing(
    dedup: Dedup, store: InProcessStore, journal: TracedJournal
) -> None:
    def keyed(new: Candidate) -> Candidate:
        return replace(new, id=keyed_id("alice", "session:/s-1"), fact=replace(new.fact, key="session:/s-1"))

    first = keyed(await candidate(BUDGET))
    assert await dedup.put_keyed(first) is Action.CREATED
    assert await dedup.put_keyed(keyed(await candidate(BUDGET, index=1))) is Action.UNCHANGED
    assert await dedup.put(await candidate(NEW_BUDGET, index=2)) is Action.CREATED
    assert await dedup.put_keyed(keyed(await candidate("User rows", index=3, now=NOW + 9))) is Action.UPDATED
    memory = await store.get(Scope("alice"), first.id)
    assert memory is not None
    assert (memory.version, memory.content, memory.key) == (2, "User rows", "session:/s-1")
    assert [old.content for old in await journal.versions(Scope("alice"), first.id)] == [BUDGET]
    assert keyed_id("bob", "session:/s-1") != first.id


async def test_what_has_a_key_comes_back_when_it_says_something_new(dedup: Dedup, store: InProcessStore) -> None:
    first = replace(await candidate(BUDGET), id=keyed_id("alice", "k"))
    retired = replace(created(first), status=MemoryStatus.SUPERSEDED, key="k")
    await store.put(Scope("alice"), retired)
    assert await dedup.put_keyed(replace(await candidate(BUDGET, index=1), id=first.id)) is Action.UNCHANGED
    assert await dedup.put_keyed(replace(await candidate(NEW_BUDGET, index=2), id=first.id)) is Action.UPDATED
    memory = await store.get(Scope("alice"), first.id)
    assert memory is not None
    assert (memory.status, memory.version, memory.content) == (MemoryStatus.ACTIVE, 2, NEW_BUDGET)


# --- truth over time: the rules of semmem.extraction.contradiction as the judge --------------------------------------


@pytest.fixture
def judging(store: InProcessStore, journal: TracedJournal) -> Dedup:
    return Dedup(store, journal, judge=judge)


async def found(store: InProcessStore, question: str) -> list[str]:
    hits = await store.search(Scope("alice"), await EMBEDDER.embed(question), limit=50, now=NOW + 50)
    return sorted(hit.memory.content for hit in hits)


async def test_the_same_statement_adds_nothing(judging: Dedup, store: InProcessStore, journal: TracedJournal) -> None:
    first = await candidate("User is allergic to peanuts")
    await judging.put(first)
    assert await judging.put(await candidate("The user is allergic to the peanuts", index=1)) is Action.UNCHANGED
    assert await contents(store) == ["User is allergic to peanuts"]
    assert await journal.versions(Scope("alice"), first.id) == []


async def test_three_updates_give_three_versions(judging: Dedup, store: InProcessStore, journal: TracedJournal) -> None:
    first = await candidate(BUDGET)
    budgets = [BUDGET.replace("10000", amount) for amount in ("10000", "15000", "12000", "9000")]
    actions = [
        await judging.put(await candidate(text, index=index, now=NOW + index)) for index, text in enumerate(budgets)
    ]
    assert actions == [Action.CREATED, Action.UPDATED, Action.UPDATED, Action.UPDATED]
    (memory,) = await store.list(Scope("alice"))
    assert (memory.id, memory.version, memory.content) == (first.id, 4, budgets[3])
    earlier = await journal.versions(Scope("alice"), first.id)
    assert [(old.version, old.content, old.updated_at) for old in earlier] == [
        (1, budgets[0], NOW),
        (2, budgets[1], NOW + 1),
        (3, budgets[2], NOW + 2),
    ]


async def test_what_resembles_another_fact_closely_stays_beside_it(judging: Dedup, store: InProcessStore) -> None:
    words = "plays the clarinet in the old town orchestra on the big square by the river"
    sister, daughter = f"User's sister Emma {words}", f"User's daughter Emma {words}"
    one, other = await candidate(sister), await candidate(daughter, index=1)
    assert float(one.vector @ other.vector) > 0.9
    await judging.put(one)
    assert await judging.put(other) is Action.CREATED
    assert await found(store, sister) == [daughter, sister]


async def test_a_fact_that_comes_back_is_a_memory_of_its_own(judging: Dedup, store: InProcessStore) -> None:
    places = ["User lives in Boston", "User lives in Seattle", "User lives in Boston"]
    actions = [await judging.put(await candidate(text, index=index)) for index, text in enumerate(places)]
    assert actions == [Action.CREATED, Action.SUPERSEDED, Action.SUPERSEDED]
    assert await found(store, "Where does user live?") == ["User lives in Boston"]
    memories = {memory.id: memory for memory in await store.list(Scope("alice"))}
    ids = [memory_id("b-1", index) for index in range(3)]
    assert [memories[one].status for one in ids] == [MemoryStatus.SUPERSEDED] * 2 + [MemoryStatus.ACTIVE]
    assert [memories[one].metadata.get("superseded_by") for one in ids] == [ids[1], ids[2], None]


async def test_everything_that_became_untrue_is_retired(judging: Dedup, store: InProcessStore) -> None:
    known = ["User owns this kayak", "User owns a kayak", "User owns a kayak with a rudder", "User owns a tent"]
    for index, text in enumerate(known):
        assert await judging.put(await candidate(text, index=index)) is Action.CREATED
    sold = "User sold the kayak"
    assert await judging.put(await candidate(sold, index=9)) is Action.SUPERSEDED
    assert await found(store, "kayak") == ["User owns a kayak with a rudder", "User owns a tent", sold]


async def test_an_update_that_broke_off_is_completed_by_the_next_try(journal: TracedJournal) -> None:
    class Failing(InProcessStore):
        fails = False

        async def put(self, scope: Scope, memory: Memory) -> None:
            if self.fails and memory.status is MemoryStatus.ACTIVE:
                raise StoreUnavailable("down")
            await super().put(scope, memory)

    failing = Failing()
    await failing.open()
    dedup = Dedup(failing, journal, judge=judge)
    short = "User's budget is 10000 dollars"
    await failing.put(Scope("alice"), created(await candidate(short)))
    new = await candidate("User's budget is 15000 dollars", index=2)
    failing.fails = True
    with pytest.raises(StoreUnavailable):
        await dedup.put(new)
    failing.fails = False
    await dedup.put(new)
    assert await found(failing, "budget") == [new.fact.content]


async def test_the_judge_is_asked_only_about_what_is_at_all_alike(
    store: InProcessStore, journal: TracedJournal
) -> None:
    strict = Dedup(store, journal, judge=judge, judge_cosine_min=0.99)
    await strict.put(await candidate(BOSTON))
    assert await strict.put(await candidate(SEATTLE, index=1)) is Action.CREATED
    assert await found(store, "where") == [BOSTON, SEATTLE]


async def test_a_superseded_memory_keeps_a_vector_that_the_search_left_out(journal: TracedJournal) -> None:
    class Lean(InProcessStore):
        async def search(
            self,
            scope: Scope,
            vector: Vector,
            *,
            limit: int,
            now: float,
            types: Sequence[MemoryType] = (),
            fresh: bool = False,
        ) -> list[Hit]:
            hits = await super().search(scope, vector, limit=limit, now=now, types=types, fresh=fresh)
            return [replace(hit, memory=replace(hit.memory, embedding=None)) for hit in hits]

    lean = Lean()
    await lean.open()
    dedup = Dedup(lean, journal, judge=judge)
    old = await candidate("User lives in Boston")
    await dedup.put(old)
    assert await dedup.put(await candidate("User lives in Seattle", index=1)) is Action.SUPERSEDED
    retired = await lean.get(Scope("alice"), old.id)
    assert retired is not None
    assert retired.status is MemoryStatus.SUPERSEDED
    assert retired.embedding is not None
    assert retired.embedding == pytest.approx(old.vector)


@pytest.mark.parametrize("thresholds", [(0.0, 0.6), (1.1, 0.5), (0.9, 0.0), (0.9, 2.0)])
def test_nonsense_thresholds_are_refused(
    store: InProcessStore, journal: TracedJournal, thresholds: tuple[float, float]
) -> None:
    with pytest.raises(ValueError, match="thresholds"):
        Dedup(store, journal, update_threshold=thresholds[0], grey_threshold=thresholds[1])


# --- pairs that nobody has settled -----------------------------------------------------------------------------------


class Doubting(PairJudge):
    """Holds every pair for unsettled, except that a correction contradicts what it follows."""

    async def judged(self, said: str, vector: Vector, memories: Sequence[Open]) -> list[Judged]:
        return [
            Judged(Verdict.CONTRADICTION) if old.corrects else Judged(Verdict.DIFFERENT, unsettled=True)
            for old in memories
        ]


@pytest.fixture
def doubting(store: InProcessStore, journal: TracedJournal) -> Dedup:
    return Dedup(store, journal, judge=closed, pair_judge=Doubting(EMBEDDER, InThread()))


async def test_a_pair_in_doubt_is_noted_at_the_newer_one_until_the_older_one_goes(
    doubting: Dedup, store: InProcessStore
) -> None:
    rent, house = "User's rent is 900 euros", "User's rent is paid by the employer"
    first, later = await candidate(rent), await candidate(house, scope=Scope("alice", session="s-2"), index=1)
    assert (await doubting.place(first)).pairs == ()
    assert (await doubting.place(later)).pairs == (PAIR_FOUND,)
    noted = await store.get(Scope("alice"), later.id)
    assert noted is not None
    assert (noted.metadata["unsettled"], noted.version) == ([first.id], 1)
    raised = await candidate("User's rent is 950 euros", index=2)
    placed = await doubting.place(raised, {(house, raised.fact.content): Verdict.DIFFERENT})
    assert (placed.action, placed.pairs) == (Action.SUPERSEDED, (PAIR_REPLACED,))
    cleared = await store.get(Scope("alice"), later.id)
    assert cleared is not None
    assert ("unsettled" in cleared.metadata, cleared.version) == (False, 2)


async def test_a_pair_whose_newer_one_goes_is_settled(doubting: Dedup) -> None:
    await doubting.put(await candidate("User's rent is paid by the employer"))
    noting = await candidate("User's rent is 900 euros", scope=Scope("alice", session="s-2"), index=1)
    assert (await doubting.place(noting)).pairs == (PAIR_FOUND,)
    raised = await candidate("User's rent is 950 euros", scope=Scope("alice", session="s-3"), index=2)
    assert sorted((await doubting.place(raised)).pairs) == [PAIR_FOUND, PAIR_REPLACED]


async def test_a_pair_is_counted_once_although_it_is_noted_again_by_the_batch(
    doubting: Dedup, store: InProcessStore
) -> None:
    await doubting.put(await candidate("User's rent is 900 euros"))
    said = await candidate("User's rent is paid by the employer", scope=Scope("alice", session="s-2"), index=1)
    assert (await doubting.place(replace(said, provisional=True))).pairs == (PAIR_FOUND,)
    held = await store.get(Scope("alice"), said.id)
    assert held is not None
    placed = await doubting.confirm(held, replace(said, batch=""))
    assert (placed.action, placed.pairs) == (Action.CONFIRMED, ())
    kept = await store.get(Scope("alice"), said.id)
    assert kept is not None
    assert "unsettled" in kept.metadata


async def test_what_a_model_calls_different_is_settled(doubting: Dedup, store: InProcessStore) -> None:
    await doubting.put(replace(await candidate(BOSTON), expires_at=None))
    beside = await candidate(SEATTLE, index=1, now=NOW + 1000)
    assert await doubting.put(beside, {(BOSTON, SEATTLE): Verdict.DIFFERENT}) is Action.CREATED
    stored = await store.get(Scope("alice"), beside.id)
    assert stored is not None
    assert stored.metadata == {}


@pytest.mark.parametrize(
    ("session", "seconds", "follows"), [("s-1", 60.0, True), ("s-1", 3600.0, False), ("s-2", 60.0, False)]
)
async def test_only_what_follows_soon_in_the_same_session_corrects(
    doubting: Dedup, store: InProcessStore, session: str, seconds: float, follows: bool
) -> None:
    await doubting.put(replace(await candidate(BOSTON), expires_at=None))
    scope = Scope("alice", session=session)
    await doubting.put(await candidate(SEATTLE, index=1, now=NOW + seconds, scope=scope))
    assert await found(store, "where") == ([SEATTLE] if follows else [BOSTON, SEATTLE])


async def test_what_had_happened_before_a_statement_was_made_does_not_change_it(
    judging: Dedup, store: InProcessStore
) -> None:
    await judging.put(replace(await candidate(BOSTON), expires_at=None))
    moved = await candidate("User lives in Seattle", kind=MemoryType.EPISODIC, index=1, now=NOW + 1000)
    long_ago = replace(moved, fact=replace(moved.fact, occurred_at=NOW - 900_000.0))
    assert await judging.put(long_ago) is Action.CREATED
    lately = await candidate("User lives in Oslo", kind=MemoryType.EPISODIC, index=2, now=NOW + 2000)
    assert await judging.put(lately) is Action.SUPERSEDED


async def test_an_embedder_without_a_trained_judge_leaves_both(store: InProcessStore, journal: TracedJournal) -> None:
    assert not PairJudge(EMBEDDER, InThread()).is_trained
    untrained = Dedup(store, journal, judge=closed, pair_judge=PairJudge(EMBEDDER, InThread()))
    await untrained.put(await candidate(BOSTON))
    assert await untrained.put(await candidate(SEATTLE, index=1)) is Action.CREATED
