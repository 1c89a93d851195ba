"""Which memories belong to a question."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.retrieval.index.memory_index import Scores
from semmem.retrieval.relevance import (
    COVERAGE_LEAST,
    COVERAGE_WEIGHT,
    EVIDENCE_OTHER,
    EVIDENCE_OWN,
    SHARE_OF_BEST,
    is_own,
    relevant,
)

OWN = "Where do I live?"
OTHER = "What is the date?"


def scores(cosine: list[float], coverage: list[float] | None = None, fused: list[float] | None = None) -> Scores:
    rows = (cosine, [0.0] * len(cosine), coverage or [0.0] * len(cosine), fused or cosine)
    return Scores(*(np.array(row, dtype=np.float32) for row in rows))


def kept(query: str, some: Scores) -> list[bool]:
    return [bool(value) for value in relevant(query, some)]


@pytest.mark.parametrize(
    "question",
    [
        "¿Dónde vivo?", "¿Qué me gusta?", "Was esse ich nicht?", "Où est-ce que j’habite ?", "What should I order?",
        "What are my hobbies?", "Where do I live?", "what have i told you", "I'm allergic to what?", "Is it ours?",
        "Wo wohne ich? Mein Haus", "¿Cuál es mi color?", "Quel est mon chat ?", "我住在哪里", "私の猫",
    ],
)  # fmt: skip
def test_a_question_about_the_user_is_known(question: str) -> None:
    assert is_own(question)


@pytest.mark.parametrize("question", ["What is the date?", "set a timer", "who won in 1998", "can you roll a die", ""])
def test_a_question_about_anything_else_is_none(question: str) -> None:
    assert not is_own(question)


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
    mask = relevant(question, some)
    assert mask.shape == (len(rows),)
    assert not (mask & (some.cosine + some.coverage <= 0)).any()
