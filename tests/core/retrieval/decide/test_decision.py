"""The decision with weights that were made by hand: what its numbers do, and what it does without any."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.config import Settings
from semmem.memory import Memory, MemoryType, Standing, Vector
from semmem.retrieval.decide.decision import (
    COVERAGE_LEAST,
    COVERAGE_WEIGHT,
    EVIDENCE_OTHER,
    EVIDENCE_OWN,
    GENERAL_STRICTNESS,
    PROFILE_CUT,
    RECALL_LENIENCY,
    SHARE_OF_BEST,
    Decision,
    Verdict,
    held,
    near,
)
from semmem.retrieval.decide.trained import CLASSES, EVIDENCE, KINDS, SHIPPED, Trained, UnusableWeights
from semmem.retrieval.index.memory_index import MemoryIndex, Scores
from semmem.wiring.request import decision
from tests.support.decisions import weights

DIMENSION = 16
SURE = 30.0
"""Log-odds that leave no doubt."""
CLASS_AXIS, KIND_AXIS, TOPIC = 0, 1, 2
"""What the dimensions of these vectors stand for: a request's class, a memory's kind, and from here on the topics."""
COSINE_WEIGHT = 10.0


def made(*, wanted: float = SURE, memory_cut: float = 3.0, request_cut: float = 0.0, of: str = "advice") -> Trained:
    """A request whose first number is 1 is one of ``of``, and a memory whose second number is 1 is a "must". A memory's
    log-odds are ten times its cosine, a request's are ``wanted``."""
    none = weights(DIMENSION)
    classes, kinds = none.class_weights.copy(), none.kind_weights.copy()
    classes[CLASSES.index(of), CLASS_AXIS] = SURE
    kinds[KINDS.index("must"), KIND_AXIS] = SURE
    kinds[KINDS.index("habit"), -1] = SURE / 2
    memory, request = none.memory_weights.copy(), none.request_weights.copy()
    memory[EVIDENCE.index("cosine")] = COSINE_WEIGHT
    request[-1] = wanted
    return replace(
        none,
        class_weights=classes,
        kind_weights=kinds,
        memory_weights=memory,
        request_weights=request,
        memory_cut=memory_cut,
        request_cut=request_cut,
    )


def vector(**numbers: float) -> Vector:
    found = np.zeros(DIMENSION, dtype=np.float32)
    for name, number in numbers.items():
        found[{"purpose": CLASS_AXIS, "kind": KIND_AXIS, "topic": TOPIC, "else_": TOPIC + 1}[name]] = number
    return found


ASKED = vector(purpose=1.0, topic=1.0)
"""Its cosine with a memory is the memory's topic."""


def memory(place: int, embedding: Vector | None, standing: Standing | None = None) -> Memory:
    metadata = {} if standing is None else {"standing": standing.value}
    return Memory(
        f"mem_{place}", 1, MemoryType.SEMANTIC, f"thing {place}", "ada", embedding=embedding, metadata=metadata
    )


def judged(
    trained: Trained | None,
    memories: Sequence[Memory],
    *,
    asked: Vector = ASKED,
    text: str = "so what",
    wants: bool = False,
    members: Sequence[bool] | None = None,
) -> Verdict:
    index = MemoryIndex(memories)
    mask = np.ones(len(memories), dtype=np.bool_) if members is None else np.array(members, dtype=np.bool_)
    scores = index.scores(text, asked, mask)
    return Decision(trained).verdict(text, asked, index, scores, mask, wants=wants)


def topics(*numbers: float) -> list[Memory]:
    return [memory(place, vector(topic=number)) for place, number in enumerate(numbers)]


# --- cuts ------------------------------------------------------------------------------------------------------------


def test_what_reaches_the_cut_is_shown_and_nothing_below() -> None:
    found = judged(made(), topics(0.31, 0.29, 0.9))
    assert found.shown.tolist() == [True, False, True]
    assert found.logits == pytest.approx([3.1, 2.9, 9.0], abs=0.01)
    assert found.request is not None
    assert (found.request.purpose, found.request.is_served, found.request.logit) == ("advice", True, SURE)


def test_a_request_below_its_cut_is_shown_nothing() -> None:
    assert judged(made(wanted=-0.1), topics(0.9)).shown.tolist() == [False]
    assert judged(made(wanted=0.1), topics(0.9)).shown.tolist() == [True]


def test_whoever_asks_to_be_reminded_and_would_find_nothing_is_shown_a_little_more() -> None:
    least = 0.3 - RECALL_LENIENCY / COSINE_WEIGHT
    assert judged(made(of="recall"), topics(least + 0.01, least - 0.01)).shown.tolist() == [True, False]
    assert judged(made(of="recall"), topics(0.9, least + 0.01)).shown.tolist() == [True, False]
    assert judged(made(of="advice"), topics(least + 0.01)).shown.tolist() == [False]


@pytest.mark.parametrize("purpose", ["knowledge", "task", "courtesy"])
def test_what_looks_general_has_to_be_surer(purpose: str) -> None:
    assert judged(made(of=purpose, wanted=GENERAL_STRICTNESS - 0.1), topics(0.9)).shown.tolist() == [False]
    assert judged(made(of=purpose, wanted=GENERAL_STRICTNESS + 0.1), topics(0.9)).shown.tolist() == [True]


@pytest.mark.parametrize(
    ("purpose", "text", "general"),
    [
        ("knowledge", "How deep is the sea?", True),
        ("courtesy", "Ahoy hoy", True),
        ("knowledge", "How deep is my well?", False),
        ("recall", "How deep is the sea?", False),
    ],
)
def test_a_refusal_is_plain_when_the_request_is_general_and_does_not_speak_of_the_user(
    purpose: str, text: str, general: bool
) -> None:
    request = judged(made(of=purpose, wanted=-SURE), topics(0.9), text=text).request
    assert request is not None
    assert (request.is_served, request.is_general, request.purpose) == (False, general, purpose)


@pytest.mark.parametrize(
    ("purpose", "text", "wants", "general"),
    [
        ("knowledge", "How deep is the sea?", False, True),
        ("knowledge", "How deep is the sea?", True, False),
        ("knowledge", "How deep is my well?", False, False),
        ("recall", "How deep is the sea?", False, False),
    ],
)
def test_where_there_is_no_memory_the_class_of_the_request_says_whether_it_is_general(
    purpose: str, text: str, wants: bool, general: bool
) -> None:
    request = Decision(made(of=purpose, wanted=SURE)).request_alone(text, ASKED, wants=wants)
    assert request is not None
    assert (request.is_served, request.is_general, request.purpose) == (False, general, purpose)
    assert Decision().request_alone(text, ASKED) is None


def test_a_request_that_is_served_is_not_refused_however_general() -> None:
    request = judged(made(of="knowledge", wanted=SURE), topics(0.9)).request
    assert request is not None
    assert (request.is_served, request.is_general) == (True, False)


def test_an_earlier_filter_that_wants_memories_overrules_the_requests_log_odds_and_not_the_memories() -> None:
    found = judged(made(of="knowledge", wanted=-SURE), topics(0.9, 0.1), wants=True)
    assert found.shown.tolist() == [True, False]
    assert found.request is not None
    assert not found.request.is_general


def test_a_question_about_the_user_as_a_person_lists_all_but_what_is_unfit() -> None:
    trained = made(of="profile", wanted=-SURE)
    trained.memory_weights[-1] = PROFILE_CUT
    found = judged(trained, topics(0.9, 0.01, -0.01))
    assert found.shown.tolist() == [True, True, False]
    assert found.request is not None
    assert (found.request.lists_profile, found.request.is_served) == (True, True)


def test_the_evidence_of_the_best_memories_speaks_for_the_request() -> None:
    trained = made(wanted=-5.0)
    trained.request_weights[0] = 1.0  # of the best memory's log-odds
    assert judged(trained, topics(0.6)).shown.tolist() == [True]
    assert judged(trained, topics(0.4)).shown.tolist() == [False]


# --- standing --------------------------------------------------------------------------------------------------------


def test_the_kind_that_a_vector_tells_makes_a_memory_stand() -> None:
    memories = [memory(0, vector(kind=1.0, topic=0.5)), memory(1, vector(topic=0.5))]
    assert judged(made(), memories).standing.tolist() == [True, False]


@pytest.mark.parametrize("standing", Standing)
def test_what_was_said_of_a_memorys_standing_counts_more_than_its_vector(standing: Standing) -> None:
    memories = [memory(0, vector(topic=0.5), standing), memory(1, vector(topic=0.5))]
    assert judged(made(), memories).standing.tolist() == [True, False]


def test_the_kind_that_was_told_is_what_the_weights_see() -> None:
    trained = made()
    trained.memory_weights[len(EVIDENCE) + KINDS.index("style")] = 8.0
    found = judged(trained, [memory(0, vector(topic=0.0), Standing.STYLE), memory(1, vector(topic=0.0), Standing.MUST)])
    assert found.shown.tolist() == [True, False]


def test_kinds_are_read_once_for_an_index() -> None:
    index, trained = MemoryIndex(topics(0.5, 0.4)), made()
    one, mask = Decision(trained), np.ones(2, dtype=np.bool_)
    first = one.verdict("a", ASKED, index, index.scores("a", ASKED), mask)
    trained.kind_weights[:] = np.nan
    again = one.verdict("a", ASKED, index, index.scores("a", ASKED), mask)
    assert again.logits == pytest.approx(first.logits)


# --- whose memories, and odd ones ------------------------------------------------------------------------------------


def test_what_is_not_to_be_searched_is_neither_shown_nor_evidence() -> None:
    found = judged(made(), topics(0.9, 0.5, 0.4), members=[False, True, False])
    assert found.shown.tolist() == [False, True, False]
    assert found.standing.tolist() == [False, False, False]
    assert found.logits is not None
    assert np.isneginf(found.logits).tolist() == [True, False, True]


@pytest.mark.parametrize("count", [0, 3])
def test_where_nothing_is_to_be_searched_nothing_is_shown(count: int) -> None:
    found = judged(made(), topics(*[0.9] * count), members=[False] * count)
    assert found.shown.tolist() == [False] * count
    assert found.request is None


@pytest.mark.parametrize("embedding", [np.full(DIMENSION, np.nan, dtype=np.float32), np.zeros(DIMENSION), None])
def test_a_memory_without_a_usable_vector_spoils_no_other(embedding: Vector | None) -> None:
    found = judged(made(), [memory(0, embedding), *[memory(1, vector(topic=0.9))]])
    assert found.shown.tolist() == [False, True]
    assert found.logits is not None
    assert np.isfinite(found.logits).all()


def test_a_memory_without_a_vector_is_shown_for_its_words_alone() -> None:
    memories = [memory(0, None), memory(1, vector(topic=0.9))]
    assert judged(made(wanted=-SURE), memories, text="thing 0").shown.tolist() == [True, False]


@pytest.mark.parametrize("number", [np.nan, np.inf, 0.0])
def test_a_request_whose_vector_says_nothing_is_judged_by_its_words(number: float) -> None:
    asked = np.full(DIMENSION, number, dtype=np.float32)
    found = judged(made(), topics(0.9, 0.9), asked=asked, text="thing 1")
    assert found.shown.tolist() == [False, True]
    assert found.request is None


def test_vectors_of_another_dimension_are_judged_by_nearness() -> None:
    other = replace(made(), asks_weights=np.zeros(5, dtype=np.float32))
    assert judged(other, topics(0.9, 0.1)).request is None
    assert judged(other, topics(0.9, 0.1)).shown.tolist() == [True, False]


# --- uncalibrated ----------------------------------------------------------------------------------------------------


def test_without_weights_nearness_decides_and_standing_is_what_was_told() -> None:
    memories = [memory(0, vector(topic=0.9), Standing.MUST), memory(1, vector(topic=0.8)), memory(2, vector(topic=0.1))]
    found = judged(None, memories)
    assert found.shown.tolist() == [True, True, False]
    assert found.standing.tolist() == [True, False, False]
    assert (found.logits, found.request) == (None, None)
    assert judged(None, topics(EVIDENCE_OWN - 0.01), text="What do I do?").shown.tolist() == [False]


def test_the_decision_is_that_of_the_configured_engine() -> None:
    shipped = Trained.load(SHIPPED)
    assert decision(Settings(), shipped.signature).cut > -math.inf
    rules = Settings.model_validate({"signals": {"engine": "rules"}})
    assert decision(rules, shipped.signature).cut == -math.inf


def test_another_models_vectors_are_judged_by_nearness_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        assert decision(Settings(), "sentence-transformers/another/384/fp32").cut == -math.inf
    [record] = caplog.records
    assert "sentence-transformers/another/384/fp32" in record.getMessage()


def test_weights_of_ones_own_are_used_and_those_of_another_model_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "own.npz"
    weights(DIMENSION, signature="own/model/16").save(file)
    settings = Settings.model_validate({"signals": {"weights": str(file)}})
    assert decision(settings, "own/model/16").cut > -math.inf
    with pytest.raises(UnusableWeights, match=r"own\.npz: written for own/model/16, not for other/model"):
        decision(settings, "other/model")


# --- which memories belong to a question, where nothing was learnt of the vectors ------------------------------------


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
