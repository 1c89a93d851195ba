"""BM25, relatives and pairs."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from bm25s import BM25
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.retrieval.index.word_index import (
    KINDS,
    LENGTH_PENALTY,
    QUERY_TERMS_MAX,
    RELATED_WEIGHT,
    SATURATION,
    WordIndex,
    offered,
    wanted,
)
from semmem.text.words import words

TERMS = st.lists(st.sampled_from("ab cd ef gh buy bought pet dog 茶".split()), max_size=12)


def test_keyword_scores_are_bm25_as_it_is_written_down() -> None:
    documents = [["red", "cat", "red"], ["blue", "cat"], ["sun"], ["sun", "sea"]]
    match = WordIndex(documents).match(["red", "cat"])
    mean = sum(map(len, documents)) / 4

    def bm25(frequency: int, holders: int, length: int) -> float:
        idf = math.log(1 + (4 - holders + 0.5) / (holders + 0.5))
        return idf * frequency / (frequency + SATURATION * (1 - LENGTH_PENALTY + LENGTH_PENALTY * length / mean))

    assert match.keyword == pytest.approx([bm25(2, 1, 3) + bm25(1, 2, 3), bm25(1, 2, 2), 0, 0])


@settings(deadline=None)
@given(st.lists(TERMS, min_size=1, max_size=8).filter(any))
def test_keyword_scores_are_those_of_bm25s_to_the_last_digit(documents: list[list[str]]) -> None:
    columns: dict[str, int] = {}
    numbered = [[columns.setdefault(term, len(columns)) for term in document] for document in documents]
    library = BM25(k1=SATURATION, b=LENGTH_PENALTY, method="lucene", csc_backend="numpy")
    library.index((numbered, columns), create_empty_token=False, show_progress=False)
    index = WordIndex(documents)
    for term, column in columns.items():
        span = slice(*library.scores["indptr"][column : column + 2])
        expected = np.zeros(len(documents), dtype=np.float32)
        expected[library.scores["indices"][span]] = library.scores["data"][span]
        assert index.match([term]).keyword.tobytes() == expected.tobytes()


def test_coverage_is_the_share_of_the_rarity_that_is_held() -> None:
    match = WordIndex([["cat", "red"], ["cat"], ["dog"]]).match(["cat", "red", "sea"])
    cat, red, sea = (math.log(1 + (3 - n + 0.5) / (n + 0.5)) for n in (2, 1, 0))
    whole = cat + red + sea
    assert match.coverage == pytest.approx([(cat + red) / whole, cat / whole, 0])


def test_a_pair_counts_where_its_words_are_neighbours_in_either_order() -> None:
    match = WordIndex([["steam", "wand"], ["wand", "steam"], ["steam", "old", "wand"], ["steam"], ["wand"]]).match(
        ["steam", "wand"]
    )
    assert list(match.pairs) == [1, 1, 0, 0, 0]


def test_the_last_word_of_one_text_and_the_first_of_the_next_are_no_pair() -> None:
    assert not WordIndex([["steam"], ["wand"]]).match(["steam", "wand"]).pairs.any()


def test_a_relative_counts_less_than_the_word_and_only_where_the_word_is_not() -> None:
    match = WordIndex([["buy", "bought", "car"], ["bought", "car"], ["sun", "sea"]]).match(["buy"])
    alone = WordIndex([["buy", "bought", "car"], ["bought", "car"], ["sun", "sea"]]).match(["bought"])
    assert match.related[0] == match.related[2] == 0
    assert match.related[1] == pytest.approx(RELATED_WEIGHT * alone.keyword[1])
    assert not match.keyword[1]


def test_a_rare_relative_of_a_common_word_is_worth_no_more_than_the_word() -> None:
    documents = [["buy", "sun"]] * 8 + [["bought", "sun"], ["sea", "sun"]]
    match = WordIndex(documents).match(["buy"])
    assert 0 < match.related[8] <= RELATED_WEIGHT * match.keyword[0] * 1.001


def test_of_a_long_question_beginning_and_end_count() -> None:
    filler = [f"filler{i}" for i in range(10 * QUERY_TERMS_MAX)]
    match = WordIndex([["first"], ["middle"], ["last"]]).match(["first", *filler, "middle", *filler, "last"])
    assert list(match.keyword > 0) == [True, False, True]


@settings(deadline=None)
@given(st.lists(TERMS, max_size=6), TERMS)
def test_shares_are_shares_and_nothing_is_negative(documents: list[list[str]], query: list[str]) -> None:
    match = WordIndex(documents).match(query)
    for row in (match.keyword, match.related, match.coverage, match.pairs):
        assert row.shape == (len(documents),)
        assert (row >= 0).all()
    assert (match.coverage <= 1.0001).all()
    assert (match.pairs <= 1.0001).all()
    assert [bool(value) for value in match.keyword] == [bool(set(query) & set(document)) for document in documents]


@settings(deadline=None)
@given(st.lists(TERMS, max_size=6), TERMS)
def test_pairs_are_those_that_a_reader_would_find(documents: list[list[str]], query: list[str]) -> None:
    asked = {frozenset(pair) for pair in pairwise(query)}
    held = [bool(asked & {frozenset(pair) for pair in pairwise(text)}) for text in documents]
    assert [bool(value) for value in WordIndex(documents).match(query).pairs] == held


# --- what kind of answer a question wants, and what a text offers ----------------------------------------------------


def wants(question: str) -> set[str]:
    return {KINDS[at] for at in wanted(question)}


def offers(text: str) -> set[str]:
    return {kind for kind, held in zip(KINDS, offered(text, words(text)), strict=True) if held}


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("When did I move?", {"time"}),
        ("how long have I lived here", {"time", "number"}),
        ("How many cats do I have?", {"number"}),
        ("Where do I work?", {"place"}),
        ("Which city did I visit?", {"place"}),
        ("Who is my dentist?", {"person"}),
        ("What is my cat called?", {"name"}),
        ("What do I like?", set()),
    ],
)
def test_a_question_says_what_it_wants(question: str, kinds: set[str]) -> None:
    assert wants(question) == kinds


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("User moved last week", {"time"}),
        ("User met them on the 3rd", {"time", "number"}),
        ("User has two cats", {"number"}),
        ("User walks in the park", {"place"}),
        ("User flew to Rome", {"place", "person", "name"}),
        ("User's dentist is Ann", {"person", "name"}),
        ('User reads "the little one"', {"name"} | {"number"}),
        ("User likes tea", set()),
    ],
)
def test_a_text_says_what_it_offers(text: str, kinds: set[str]) -> None:
    assert offers(text) == kinds


@settings(deadline=None)
@given(st.text())
def test_any_text_can_be_asked_and_can_answer(text: str) -> None:
    assert wants(text) <= set(KINDS)
    assert offers(text) <= set(KINDS)
