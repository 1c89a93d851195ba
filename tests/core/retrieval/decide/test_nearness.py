"""Which memories belong to a question, where nothing was learnt of the vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.retrieval.decide.nearness import (
    COVERAGE_LEAST,
    COVERAGE_WEIGHT,
    EVIDENCE_OTHER,
    EVIDENCE_OWN,
    SHARE_OF_BEST,
    held,
    near,
)
from semmem.retrieval.index.memory_index import Scores

OWN = "Where do I live?"
OTHER = "What is the date?"


def scores(cosine: list[float], coverage: list[float] | None = None, fused: list[float] | None = None) -> Scores:
    rows = (cosine, [0.0] * len(cosine), coverage or [0.0] * len(cosine), fused or cosine)
    return Scores(*(np.array(row, dtype=np.float32) for row in rows))


def kept(query: str, some: Scores) -> list[bool]:
    return [bool(value) for value in near(query, some)]


@pytest.mark.parametrize(("question", "least"), [(OWN, EVIDENCE_OWN), (OTHER, EVIDENCE_OTHER)])
def test_nothing_is_relevant_when_the_best_is_too_far(question: str, least: float) -> None:
    assert kept(question, scores([least - 0.01, 0.1])) == [False, False]
    assert kept(question, scores([least + 0.01, 0.1])) == [True, False]


def test_the_users_own_questions_need_less() -> None:
    between = scores([(EVIDENCE_OWN + EVIDENCE_OTHER) / 2])
    assert kept(OWN, between) == [True]
    assert kept(OTHER, between) == [False]


def test_shared_words_are_evidence() -> None:
    just_below = EVIDENCE_OTHER - COVERAGE_WEIGHT / 2
    assert kept(OTHER, scores([just_below], [0.4])) == [False]
    assert kept(OTHER, scores([just_below], [0.6])) == [True]


def test_what_is_not_far_behind_the_best_comes_along() -> None:
    assert kept(OWN, scores([0.5, 0.1, 0.1], fused=[1.0, SHARE_OF_BEST, SHARE_OF_BEST - 0.01])) == [True, True, False]


def test_what_is_unlike_the_question_does_not_come_along() -> None:
    assert kept(OWN, scores([0.5, -0.1], fused=[1.0, 0.9])) == [True, False]


def test_what_was_not_ranked_is_not_relevant() -> None:
    assert kept(OWN, scores([0.5, 0.0], fused=[0.5, 0.0])) == [True, False]


def test_without_vectors_half_of_the_question_has_to_be_there() -> None:
    assert kept(OTHER, scores([0, 0], [COVERAGE_LEAST, COVERAGE_LEAST - 0.01], [0.5, 0.5])) == [True, False]


def test_what_was_compared_by_vector_is_not_held_by_its_words_alone() -> None:
    some = scores([0.0, 0.01, 0.0], [COVERAGE_LEAST, 1.0, COVERAGE_LEAST - 0.01])
    assert [bool(value) for value in held(some)] == [True, False, False]


def test_of_no_memories_none_is_relevant() -> None:
    assert kept(OWN, scores([])) == []


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1), st.floats(-1, 3)), max_size=8), st.sampled_from([OWN, OTHER])
)
def test_what_is_kept_has_evidence(rows: list[tuple[float, float, float]], question: str) -> None:
    cosine, coverage, fused = (
        [float(value) for value in row] for row in (zip(*rows, strict=True) if rows else ([],) * 3)
    )
    some = scores(cosine, coverage, fused)
    mask = near(question, some)
    assert mask.shape == (len(rows),)
    assert not (mask & (some.cosine + some.coverage <= 0)).any()
