"""Learning the decision's numbers: a small world, and vectors in which a text is the sum of its words."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np
import pytest

from semmem.retrieval.decide import fitting, scenes
from semmem.retrieval.decide.decision import Decision, Verdict
from semmem.retrieval.decide.fitting import Material, fit, index_of
from semmem.retrieval.decide.trained import CLASSES, KINDS, Floats, Trained

DIMENSION = 48
TOPICS = ("food", "boats", "music", "garden")
WORDS = "must called brief likes daily yesterday building knows thinks owns".split()
"""Of each of KINDS."""


@cache
def direction(word: str) -> Floats:
    chance = np.random.default_rng(list(word.encode()))
    return chance.normal(size=DIMENSION).astype(np.float32)


def embed(texts: Sequence[str]) -> Floats:
    """A random direction for each word; a text is the sum of them."""
    rows = np.stack([np.sum([direction(word) for word in text.split()], axis=0) for text in texts])
    vectors: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return vectors


def scene(number: int) -> dict[str, Any]:
    """Somebody with a memory of each kind. Advice on a topic wants the "must" of it; knowledge wants nothing."""
    topic = TOPICS[number % len(TOPICS)]
    memories = [
        {"text": f"{word} {topic if kind == 'must' else TOPICS[place % 4]} n{number}", "kind": kind}
        for place, (kind, word) in enumerate(zip(KINDS, WORDS, strict=True))
    ]
    requests = [
        {"text": f"{name} about {topic}", "class": name, "wanted": [0] if name in ("advice", "recall") else []}
        for name in CLASSES
    ]
    return {"about": f"scene {number}", "memories": memories, "requests": requests}


def material() -> Material:
    return Material(
        [scene(number) for number in range(12)],
        classes=[("capital city", "knowledge", 1.0)],
        asking=[("capital city", False, 1.0)],
        loose=["capital city of nowhere", "hello there", "deepest lake"],
        answered=[(["the boat is red", "the cat is old"], [("recall about boats boat", {0})])],
    )


def learnt() -> Trained:
    known = set(fitting.texts_of(material()))

    def only_known(texts: Sequence[str]) -> Floats:
        assert set(texts) <= known
        return embed(texts)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a solver that stops early
        return fit(material(), only_known, "random/48", cuts=(-1.0, -0.5))


@pytest.fixture(scope="module")
def trained() -> Trained:
    return learnt()


def judged(trained: Trained, request: str) -> Verdict:
    held = index_of([memory["text"] for memory in scene(0)["memories"]], embed)
    vector = embed([request])[0]
    everything = np.ones(len(KINDS), dtype=np.bool_)
    return Decision(trained).verdict(request, vector, held, held.scores(request, vector), everything)


def test_a_memory_that_such_requests_want_has_higher_log_odds_than_any_other(trained: Trained) -> None:
    logits = judged(trained, "advice about food").logits
    assert logits is not None
    assert logits[0] > logits[1:].max() + 1
    assert judged(trained, "advice about food").shown[0]


def test_a_request_that_wants_nothing_has_lower_log_odds_than_one_that_does(trained: Trained) -> None:
    wants, wants_not = (judged(trained, f"{name} about food").request for name in ("advice", "knowledge"))
    assert wants is not None
    assert wants_not is not None
    assert wants.logit > 0 > wants_not.logit
    assert (wants.purpose, wants_not.purpose) == ("advice", "knowledge")


def test_the_kind_of_a_memory_is_learnt(trained: Trained) -> None:
    assert judged(trained, "advice about food").standing.tolist() == [True] * 3 + [False] * 7


def test_what_is_learnt_is_of_the_embedder_and_the_cuts_that_were_given(trained: Trained) -> None:
    assert (trained.signature, trained.memory_cut, trained.request_cut) == ("random/48", -1.0, -0.5)


def test_learning_twice_gives_the_same_numbers(trained: Trained) -> None:
    again = learnt()
    for field in fields(trained):
        assert np.array_equal(getattr(trained, field.name), getattr(again, field.name)), field.name


def test_memories_stand_in_the_order_in_which_they_were_told() -> None:
    texts = [f"thing {number}" for number in range(12)]
    held = index_of(texts, embed)
    assert [memory.content for memory in held.memories] == texts
    assert held.vectors == pytest.approx(embed(texts))


# --- our own ---------------------------------------------------------------------------------------------------------


def test_our_own_scenes_hold_what_can_be_learnt_from() -> None:
    ours = scenes.material()
    assert len(ours.scenes) > 300
    for one in ours.scenes:
        assert {memory["kind"] for memory in one["memories"]} <= set(KINDS), one["about"]
        for request in one["requests"]:
            assert request["class"] in CLASSES, request
            assert all(0 <= place < len(one["memories"]) for place in request["wanted"]), request
    assert {request["class"] for one in ours.scenes for request in one["requests"]} == set(CLASSES)
    assert {memory["kind"] for one in ours.scenes for memory in one["memories"]} == set(KINDS)
    assert {name for _, name, _ in ours.classes} == {"recall", "knowledge", "courtesy", "creation", "task"}
    assert {asks for _, asks, _ in ours.asking} == {True, False}
