"""The numbers that the decision looks at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.retrieval.decide import features, request_words
from semmem.retrieval.decide.features import Evidence
from semmem.retrieval.decide.trained import (
    CLASSES,
    EVIDENCE,
    KINDS,
    MEMORY_SIZE,
    REQUEST_SIZE,
    TOP_SIZE,
    Floats,
    Trained,
)
from semmem.retrieval.index.memory_index import Scores
from tests.support.decisions import weights

DIMENSION = 6


def scores(cosine: Sequence[float], fused: Sequence[float], coverage: Sequence[float] | None = None) -> Scores:
    rows = (cosine, np.zeros(len(cosine)), coverage or np.zeros(len(cosine)), fused)
    return Scores(*(np.array(row, dtype=np.float32) for row in rows))


def heads(chance: np.random.Generator) -> Trained:
    shapes = (len(CLASSES), DIMENSION + 1), (len(KINDS), DIMENSION + 1), (DIMENSION + 1,), (request_words.BUCKETS,)
    classes, kinds, asks, words = (chance.normal(size=shape).astype(np.float32) for shape in shapes)
    none = weights(DIMENSION)
    return replace(none, class_weights=classes, kind_weights=kinds, asks_weights=asks, word_weights=words)


def unit(chance: np.random.Generator, *shape: int) -> Floats:
    rows = chance.normal(size=shape).astype(np.float32)
    units: Floats = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return units


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.text(max_size=20))
def test_log_odds_without_the_features_are_those_with_them(seed: int, count: int, text: str) -> None:
    chance = np.random.default_rng(seed)
    made = heads(chance)
    request = features.request_features(made, text, unit(chance, DIMENSION))
    kinds = features.kinds(made, unit(chance, count, DIMENSION))
    found = features.evidence(scores(*chance.uniform(-1, 1, size=(2, count)).tolist()))
    weights = chance.normal(size=MEMORY_SIZE + 1).astype(np.float32)
    rows = features.memory_features(request, found, kinds)
    assert rows.shape == (count, MEMORY_SIZE)
    expected = rows @ weights[:-1] + weights[-1]
    assert features.memory_logits(weights, request, found, kinds) == pytest.approx(expected, abs=1e-4)


def test_of_each_memory_it_is_known_how_far_it_is_behind_the_best() -> None:
    found = features.evidence(scores([0.5, 0.2, 0.3], [0.6, 0.9, 0.3], [0.0, 1.0, 0.5]))
    named = dict(zip(EVIDENCE, found.each.T.tolist(), strict=True))
    assert found.nearest == pytest.approx(0.5)
    assert named["cosine"] == pytest.approx([0.5, 0.2, 0.3])
    assert named["coverage"] == pytest.approx([0.0, 1.0, 0.5])
    assert named["words"] == pytest.approx([0.1, 0.7, 0.0], abs=1e-6)
    assert named["behind_nearest"] == pytest.approx([0.0, 0.3, 0.2])
    assert named["behind_best"] == pytest.approx([0.3, 0.0, 0.6])
    assert named["rank"] == pytest.approx([1 / 2, 1, 1 / 3])


def test_equal_scores_take_their_ranks_in_the_order_of_the_memories() -> None:
    found = features.evidence(scores([0.5, 0.5, 0.7], [0.4, 0.4, 0.4]))
    assert found.each[:, EVIDENCE.index("rank")] == pytest.approx([1, 1 / 2, 1 / 3])


def test_of_no_memories_there_is_no_evidence() -> None:
    found = features.evidence(scores([], []))
    assert (found.each.shape, found.nearest) == ((0, len(EVIDENCE)), 0.0)


def test_a_requests_classes_are_probabilities_and_its_pronouns_are_seen() -> None:
    chance = np.random.default_rng(1)
    about = features.request_features(heads(chance), "Where do I live?", unit(chance, DIMENSION))
    assert about.shape == (REQUEST_SIZE,)
    assert about[: len(CLASSES)].sum() == pytest.approx(1)
    assert about[-5:].tolist() == [1, 0, 0, 0, 0]


def test_the_best_memories_speak_for_a_request_and_many_more_than_one() -> None:
    request = np.zeros(REQUEST_SIZE, dtype=np.float32)

    def top(*logits: float) -> list[float]:
        found = Evidence(np.zeros((len(logits), len(EVIDENCE)), dtype=np.float32), 0.4)
        made = features.top_features(request, found, np.array(logits, dtype=np.float32))
        assert made.shape == (TOP_SIZE + REQUEST_SIZE * (1 + TOP_SIZE),)
        return [float(number) for number in made[:TOP_SIZE]]

    first, second, nearest, _, expected = top(-1.0, 2.0, 1.0)
    assert [first, second, nearest] == pytest.approx([2.0, 1.0, 0.4])
    assert expected > top(2.0)[4]
    assert top(2.0)[:2] == [2.0, 2.0]
    assert all(map(np.isfinite, top(-1e4, 1e4)))


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=9))
def test_shares_sum_to_one_however_large_the_numbers(logits: list[float]) -> None:
    shares = features.softmax(np.array(logits, dtype=np.float32))
    assert shares.sum() == pytest.approx(1, abs=1e-5)
    assert (shares >= 0).all()
