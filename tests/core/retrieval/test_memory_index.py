"""One user's memories, ranked for a question."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from semmem.memory import MEMORY_TYPES, STANDING, Memory, MemoryType, Scope, Source, Standing, Vector
from semmem.ports.storable import contains
from semmem.retrieval.index.memory_index import (
    ANSWER_WEIGHT,
    ASKS_WEIGHT,
    GAP_S_MAX,
    LONG_TERMS,
    NEIGHBOUR_WEIGHTS,
    SPEAKER_WEIGHT,
    Membership,
    MemoryIndex,
    Scores,
    Succession,
)
from tests.support.cpu_time import within_cpu_s

EAST: Vector = np.array([1, 0, 0], dtype=np.float32)
NORTH: Vector = np.array([0, 1, 0], dtype=np.float32)
DAY_S = 86_400.0


def memory(content: str, embedding: Vector | None = None, *, id: str | None = None, **fields: Any) -> Memory:
    return Memory(id or f"mem_{content[:60]}", 1, MemoryType.SEMANTIC, content, "ada", embedding=embedding, **fields)


def apart(*contents: str, embedding: Vector | None = None) -> list[Memory]:
    """Memories of different days, so that they say nothing about each other."""
    return [memory(text, embedding, created_at=number * DAY_S) for number, text in enumerate(contents, start=1)]


def ranked(memories: list[Memory], query: str, vector: Vector | None = None) -> list[str]:
    index = MemoryIndex(memories)
    return [index.memories[row].content for row in np.argsort(-index.scores(query, vector).fused, kind="stable")]


def fused(memories: list[Memory], query: str, vector: Vector | None = None) -> dict[str, float]:
    index = MemoryIndex(memories)
    scores = index.scores(query, vector)
    return {one.content: float(score) for one, score in zip(index.memories, scores.fused, strict=True)}


def by_id(index: MemoryIndex, scores: Scores) -> dict[str, tuple[float, ...]]:
    rows = zip(scores.cosine, scores.keyword, scores.coverage, scores.fused, strict=True)
    return {one.id: tuple(map(float, row)) for one, row in zip(index.memories, rows, strict=True)}


def test_no_memories_have_no_scores() -> None:
    for query in ("", "Where do I live in May?"):
        assert MemoryIndex([]).scores(query, EAST).fused.shape == (0,)


def test_one_memory_is_ranked_like_any() -> None:
    scores = MemoryIndex([memory("User lives in Rome", EAST)]).scores("Where do I live?", EAST)
    assert scores.cosine == pytest.approx([1])
    assert scores.coverage == pytest.approx([1])
    assert scores.fused[0] > 1


def test_without_any_words_and_kinds_the_score_is_the_cosine() -> None:
    half: Vector = np.array([0.6, 0.8, 0], dtype=np.float32)
    assert fused(apart("sea", embedding=half), "sun", EAST) == pytest.approx({"sea": 0.6})


def test_words_and_meaning_count_together() -> None:
    both, meaning, words, neither = "User owns a red boat", "User sails", "a boat", "User likes tea"
    memories = [
        memory(both, EAST, created_at=1 * DAY_S),
        memory(meaning, EAST, created_at=2 * DAY_S),
        memory(words, NORTH, created_at=3 * DAY_S),
        memory(neither, NORTH, created_at=4 * DAY_S),
    ]
    assert ranked(memories, "red boat?", EAST) == [both, meaning, words, neither]


def test_a_memory_without_a_vector_is_found_by_its_words() -> None:
    score = fused(apart("User owns a boat", "User likes tea"), "my boat", EAST)
    assert score["User owns a boat"] > score["User likes tea"] == 0


def test_without_a_vector_of_the_question_words_decide() -> None:
    score = fused(apart("User owns a boat", "User likes tea", embedding=EAST), "my boat", None)
    assert score["User owns a boat"] > score["User likes tea"] == 0


def test_vectors_of_another_length_are_not_compared() -> None:
    odd: Vector = np.array([1, 0], dtype=np.float32)
    index = MemoryIndex([memory("a1", EAST), memory("a2", EAST), memory("a3", odd)])
    assert list(index.scores("x", EAST).cosine) == [1, 1, 0]
    assert list(index.scores("x", odd).cosine) == [0, 0, 0]


def test_chinese_is_found_by_its_characters() -> None:
    memories = apart("用户住在北京", "用户喜欢喝绿茶", "User lives in Rome")
    assert ranked(memories, "我喜欢喝什么茶？")[0] == "用户喜欢喝绿茶"
    assert ranked(memories, "我住在哪里？")[0] == "用户住在北京"


def test_two_words_side_by_side_are_more_than_both_apart() -> None:
    apart_, together = "bent wand, hot steam", "hot bent steam wand"
    assert ranked(apart(apart_, together), "the steam wand") == [together, apart_]


def test_a_relative_of_the_word_beats_a_stranger() -> None:
    assert ranked(apart("User likes tea", "User purchased a lamp", "User saw a whale"), "What did I buy?")[0] == (
        "User purchased a lamp"
    )


def test_the_kind_of_answer_that_is_asked_for_orders_equals() -> None:
    score = fused(apart("User met Bob", "User met Bob yesterday"), "When did I meet him?")
    other = fused(apart("User met Bob", "User met Bob yesterday"), "Did I meet him?")
    gain = {text: score[text] - other[text] for text in score}
    assert gain == pytest.approx({"User met Bob": 0, "User met Bob yesterday": ANSWER_WEIGHT})


def test_what_asks_does_not_answer() -> None:
    score = fused(apart("sea", "sea?", "sea? [shared image: a boat]", "sea? Yes."), "sun", EAST)
    assert score == pytest.approx(
        {"sea": 0, "sea?": -ASKS_WEIGHT, "sea? [shared image: a boat]": -ASKS_WEIGHT, "sea? Yes.": 0}
    )


def test_a_line_of_talk_counts_for_its_speaker() -> None:
    score = fused(apart("Ann: sea", "Bob: sea", "at 10: sea"), "Ann 10", EAST)
    named = fused(apart("Ann: sea", "Bob: sea", "at 10: sea"), "ann 10", EAST)
    assert {text: score[text] - named[text] for text in score} == pytest.approx(
        {"Ann: sea": SPEAKER_WEIGHT, "Bob: sea": 0, "at 10: sea": 0}
    )


def test_a_short_answer_is_found_by_the_question_before_it() -> None:
    question, answer = "Did you name your puppy?", "Yes, Rex!"
    others = [memory(f"word{i}", created_at=(i + 10) * DAY_S) for i in range(10)]
    talk = [memory(question, created_at=1.0), memory(answer, created_at=2.0)]
    assert ranked([*others, *talk], "puppy")[:2] == [question, answer]
    assert fused([*others, *talk], "puppy")[answer] > 0
    assert fused([*others, talk[0], memory(answer, created_at=9 * DAY_S)], "puppy")[answer] == 0


def test_a_long_text_borrows_nothing() -> None:
    story = " ".join(f"word{i}" for i in range(LONG_TERMS))
    score = fused([memory("my puppy", created_at=1.0), memory(story, created_at=2.0)], "puppy")
    assert score[story] == 0


def test_only_members_are_ranked_and_measured_against_each_other() -> None:
    index = MemoryIndex([memory("boat boat boat", EAST, id="a"), memory("boat with sails", EAST, id="b")])
    everyone = index.scores("boat", EAST)
    chosen = index.scores("boat", EAST, np.array([False, True]))
    assert [float(row[0]) for row in (chosen.cosine, chosen.keyword, chosen.coverage, chosen.fused)] == [0, 0, 0, 0]
    assert chosen.fused[1] > everyone.fused[1]
    assert chosen.cosine[1] == everyone.cosine[1] == 1
    assert not index.scores("boat", EAST, np.array([False, False])).fused.any()


CONTENTS = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        ["User buys a boat", "Ann: why?", "用户住在北京", "User met Bob in May 2023", "", "\x00\u202e{{", "a" * 900]
    ),
)
MEMORIES = st.lists(
    st.builds(
        lambda content, vector, at, session: (content, vector, at, session),
        CONTENTS,
        st.none() | st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3),
        st.floats(0, 1e5) | st.floats(),
        st.none() | st.sampled_from(["s1", "s2"]),
    ),
    max_size=12,
)


def made(number: int, content: str, vector: list[float] | None, at: float, session: str | None) -> Memory:
    embedding = None if vector is None else np.array(vector, dtype=np.float32)
    return memory(content, embedding, id=f"mem_{number}", created_at=at, session=session)


@settings(deadline=None)
@given(MEMORIES, CONTENTS, st.randoms(use_true_random=False))
@example(
    [("boat", None, float("nan"), None), ("boat", None, 1.0, None), ("sea", None, float("nan"), None)],
    "boat",
    random.Random(1),
)
def test_the_order_in_which_memories_are_given_changes_nothing(
    given_: list[tuple[str, list[float] | None, float, str | None]], query: str, chance: random.Random
) -> None:
    memories = [made(number, *fields) for number, fields in enumerate(given_)]
    index = MemoryIndex(memories)
    chance.shuffle(memories)
    shuffled = MemoryIndex(memories)
    assert index.memories == shuffled.memories
    for vector in (None, EAST):
        scores = index.scores(query, vector)
        assert by_id(index, scores) == by_id(shuffled, shuffled.scores(query, vector))
        assert all(np.isfinite(row).all() for row in (scores.cosine, scores.keyword, scores.coverage, scores.fused))
        assert (np.abs(scores.cosine) <= 1).all()
        assert ((scores.coverage >= 0) & (scores.coverage <= 1.0001)).all()


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_no_vector_spoils_its_own_memory_only(broken: float) -> None:
    spoilt = memory("spoilt", np.array([broken, 0, 0], dtype=np.float32))
    index = MemoryIndex([spoilt, memory("whole", EAST)])
    assert by_id(index, index.scores("", EAST)) == {"mem_spoilt": (0, 0, 0, 0), "mem_whole": (1, 0, 0, 1)}


@pytest.mark.parametrize("question", [[np.nan, 0, 0], [np.inf, 0, 0], [0, 0, 0], [1, 0], []])
def test_a_question_without_a_usable_vector_is_ranked_by_words(question: list[float]) -> None:
    index = MemoryIndex([memory("green tea", EAST), memory("coffee", NORTH)])
    scores = index.scores("tea", np.array(question, dtype=np.float32))
    assert scores.cosine.tolist() == [0, 0]
    assert np.isfinite(scores.fused).all()
    assert scores.fused[1] > scores.fused[0]  # in the order of ids: coffee, green tea


@pytest.mark.parametrize(("start", "end"), [(0.0, 99.0), (100.0, 101.0), (99.0, 100.0), (200.0, 300.0), (500.0, 501.0)])
def test_dated_is_when_it_was_said_or_happened(start: float, end: float) -> None:
    memories = [
        memory("a", created_at=100.0),
        memory("b", created_at=5.0, source=Source(time=100.0)),
        memory("c", created_at=5.0, occurred_at=200.0),
        memory("d", created_at=500.0, occurred_at=0.0),
    ]
    assert MemoryIndex(memories).dated(start, end).tolist() == [is_dated(one, start, end) for one in memories]


def is_dated(one: Memory, start: float, end: float) -> bool:
    happened = one.occurred_at is not None and start <= one.occurred_at < end
    return happened or start <= (one.source.time or one.created_at) < end


# --- which memories lie in a scope: the arrays say what the store's own rule says ------------------------------------


NAMES = st.sampled_from([None, "", "a", "b"])
NOW = 1000.0
PLACED = st.lists(
    st.builds(
        Memory,
        id=st.just("m"),
        version=st.just(1),
        type=st.sampled_from(MEMORY_TYPES),
        content=st.just("tea"),
        user=st.just("ada"),
        project=NAMES,
        agent=NAMES,
        session=NAMES,
        metadata=st.sampled_from([{}, *({STANDING: one.value} for one in Standing)]),
        expires_at=st.sampled_from([None, NOW - 1, NOW, NOW + 1, float("nan"), float("inf")]),
    ),
    max_size=6,
)


@settings(deadline=None)
@given(PLACED, NAMES, NAMES, NAMES, st.lists(st.sampled_from(MEMORY_TYPES), max_size=2))
def test_it_is_the_stores_own_rule(
    memories: list[Memory], project: str | None, agent: str | None, session: str | None, types: list[MemoryType]
) -> None:
    scope = Scope("ada", project=project, agent=agent, session=session)
    expected = [
        contains(scope, memory, types) and (memory.expires_at is None or memory.expires_at > NOW) for memory in memories
    ]
    assert Membership(memories).within(scope, types, NOW).tolist() == expected


@settings(deadline=None)
@given(PLACED, NAMES, NAMES)
def test_a_request_in_a_project_reads_what_belongs_to_none_and_what_the_user_must(
    memories: list[Memory], project: str | None, agent: str | None
) -> None:
    read = Membership(memories).within(Scope("ada", project, agent, reads_common=True), (), NOW)
    for memory, is_read in zip(memories, read.tolist(), strict=True):
        is_here = project is None or (memory.project or "") in (project, "") or memory.standing is Standing.MUST
        is_agents = agent is None or (memory.agent or "") == agent
        is_current = memory.expires_at is None or memory.expires_at > NOW
        assert is_read == (is_here and is_agents and is_current)


def test_five_thousand_memories_cost_a_request_next_to_nothing() -> None:
    membership = Membership([Memory(str(n), 1, MemoryType.SEMANTIC, "tea", "ada", project="p") for n in range(5000)])
    scope = Scope("ada", project="p")
    assert within_cpu_s(0.001, lambda _: membership.within(scope, tuple(MemoryType), NOW), tries=20)


# --- what memories lend to those that were said before and after them ------------------------------------------------


BESIDE, ONE_FURTHER = NEIGHBOUR_WEIGHTS


def said(at: float, **fields: Any) -> Memory:
    return Memory(f"mem_{at}", 1, MemoryType.SEMANTIC, "x", "ada", source=Source(time=at), **fields)


def lent(memories: list[Memory], best: int, members: list[bool] | None = None) -> list[float]:
    """What each is lent when only ``best`` is like the question, and many others of other days are not."""
    memories = [*memories, *(said((number + 10) * DAY_S) for number in range(20))]
    similar = np.zeros(len(memories), dtype=np.float32)
    similar[best] = 1.0
    chosen = np.ones(len(memories), dtype=np.bool_)
    chosen[: len(members or [])] = members or []
    return [float(value) for value in Succession(memories).lent(similar, chosen)][: len(memories) - 20]


def test_the_nearest_get_most_on_both_sides() -> None:
    assert lent([said(1.0 + i) for i in range(7)], 3) == [0, ONE_FURTHER, BESIDE, 0, BESIDE, ONE_FURTHER, 0]


def test_order_is_that_of_time_not_of_the_list() -> None:
    assert lent([said(3), said(1), said(4), said(2)], 0) == [0, ONE_FURTHER, BESIDE, BESIDE]


def test_a_long_silence_parts_talks() -> None:
    assert lent([said(1), said(1 + GAP_S_MAX), said(2 + 2 * GAP_S_MAX)], 1) == [BESIDE, 0, 0]


def test_sessions_at_the_same_time_are_two_talks() -> None:
    talks = [said(1, session="a"), said(2, session="b"), said(3, session="a")]
    assert lent(talks, 0) == [0, 0, BESIDE]


def test_what_was_said_at_one_time_has_no_order_unless_it_was_one_turn() -> None:
    imported = [Memory(f"mem_{i}", 1, MemoryType.SEMANTIC, "x", "ada", source=Source(time=5.0)) for i in range(3)]
    assert lent(imported, 1) == [0, 0, 0]
    one_turn = [replace(memory, source=Source(time=5.0, turn="turn-1")) for memory in imported]
    assert lent(one_turn, 1) == [BESIDE, 0, BESIDE]


def test_what_is_not_to_be_ranked_neither_lends_nor_stands_between() -> None:
    memories = [said(1), said(2), said(3)]
    assert lent(memories, 0, [True, False, True]) == [0, 0, BESIDE]
    assert lent(memories, 1, [True, False, True]) == [0, 0, 0]


def test_what_everybody_has_lends_nothing() -> None:
    succession = Succession([said(1), said(2), said(3)])
    alike = np.full(3, 0.7, dtype=np.float32)
    assert not succession.lent(alike, np.ones(3, dtype=np.bool_)).any()


def test_of_two_memories_one_lends_the_other_little() -> None:
    lends = Succession([said(1), said(2)]).lent(np.array([1, 0], dtype=np.float32), np.ones(2, dtype=np.bool_))
    assert list(lends) == pytest.approx([0, 0.1 * BESIDE])


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_memories_are_no_trouble(count: int) -> None:
    memories = [said(1.0 + i) for i in range(count)]
    similar = np.ones(count, dtype=np.float32)
    assert Succession(memories).lent(similar, np.ones(count, dtype=np.bool_)).shape == (count,)
    assert not Succession(memories).lent(similar, np.zeros(count, dtype=np.bool_)).any()
