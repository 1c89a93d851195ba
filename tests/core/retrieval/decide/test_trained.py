"""The file of the numbers behind the decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.memory import Memory, MemoryType, Vector
from semmem.retrieval.decide import decision as decide
from semmem.retrieval.decide import request_words
from semmem.retrieval.decide.decision import Decision, Verdict
from semmem.retrieval.decide.trained import (
    CLASSES,
    EVIDENCE,
    SHIPPED,
    SHIPPED_READER,
    Floats,
    Reader,
    Trained,
    UnusableWeights,
)
from semmem.retrieval.index.memory_index import MemoryIndex
from tests.support.decisions import weights

DIMENSION = 8


def random() -> Trained:
    chance, none = np.random.default_rng(3), weights(DIMENSION, signature="some/model/8")
    arrays = {
        field.name: chance.normal(size=getattr(none, field.name).shape).astype(np.float32)
        for field in fields(none)
        if field.name.endswith("_weights")
    }
    return replace(none, memory_cut=-3.5, request_cut=-1.25, **arrays)


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    saved = random()
    saved.save(tmp_path / "w.npz")
    loaded = Trained.load(tmp_path / "w.npz")
    for field in fields(saved):
        value = getattr(saved, field.name)
        if isinstance(value, np.ndarray):
            assert getattr(loaded, field.name) == pytest.approx(value, rel=1e-3, abs=1e-4)
            assert getattr(loaded, field.name).dtype == np.float32
        else:
            assert getattr(loaded, field.name) == value


def test_what_is_shipped_can_be_loaded() -> None:
    shipped = Trained.load(SHIPPED)
    assert (shipped.class_weights.shape, shipped.signature.split("/")[2]) == ((len(CLASSES), 385), "384")


def nothing(file: Path) -> None:
    file.unlink()


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-200])


def damaged(file: Path) -> None:
    whole = bytearray(file.read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    file.write_bytes(whole)


def one_array(file: Path) -> None:
    with file.open("wb") as stream:
        np.save(stream, np.zeros(3))


def other_arrays(file: Path) -> None:
    with file.open("wb") as stream:
        np.savez(stream, vectors=np.zeros(3))


def a_pickle(file: Path) -> None:
    with file.open("wb") as stream:
        np.savez(stream, signature=np.array([{}], dtype=object))


def other_shapes(file: Path) -> None:
    replace(random(), memory_weights=np.zeros(7, dtype=np.float32)).save(file)


def one_dimension_less(file: Path) -> None:
    replace(random(), kind_weights=random().kind_weights[:, :-1]).save(file)


def no_numbers(file: Path) -> None:
    replace(random(), asks_weights=np.full(DIMENSION + 1, np.nan, dtype=np.float32)).save(file)


def no_cut(file: Path) -> None:
    replace(random(), request_cut=np.nan).save(file)


@pytest.mark.parametrize(
    "spoil",
    [
        nothing, lambda file: file.write_bytes(b""), lambda file: file.write_text("memory: {}"), cut_short, damaged,
        one_array, other_arrays, a_pickle, other_shapes, one_dimension_less, no_numbers, no_cut,
    ],
    ids=[
        "nothing", "empty", "text", "cut short", "damaged", "one array", "other arrays", "a pickle", "other shapes",
        "one dimension less", "no numbers", "no cut",
    ],
)  # fmt: skip
def test_any_other_file_is_refused_by_its_name(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    file = tmp_path / "weights.npz"
    random().save(file)
    spoil(file)
    with pytest.raises(UnusableWeights, match=r"weights\.npz: \w+"):
        Trained.load(file)


def test_a_folder_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(UnusableWeights, match=tmp_path.name):
        Trained.load(tmp_path)


# --- what reads a request and a memory together: what it computes, how it is kept, and what it decides ---------------


DIMENSION, NEEDS, HIDDEN = 6, 4, 5
BESIDE = len(EVIDENCE) + request_words.FLAGS


def drawn(seed: int) -> Reader:
    chance = np.random.default_rng(seed)

    def some(*shape: int) -> Floats:
        return chance.normal(size=shape).astype(np.float32)

    return Reader(
        "made/by/lot",
        some(2 * NEEDS, DIMENSION + 1),
        some(2 * NEEDS, DIMENSION + 1),
        some(HIDDEN, 4 * NEEDS + BESIDE + 1),
        some(HIDDEN + 1),
        cut=-1.0,
        share=0.5,
    )


def plainly(reader: Reader, vector: Vector, memory: Vector, evidence: Floats, flags: Floats) -> float:
    """The formula of the class, number by number."""

    def needs(layer: Floats, text: Vector) -> tuple[Floats, Floats]:
        found = layer @ np.append(text, 1.0)
        return np.tanh(found[:NEEDS]), np.maximum(found[NEEDS:], 0.0)

    (a, c), (b, d) = needs(reader.request_weights, vector), needs(reader.memory_weights, memory)
    hidden = np.maximum(reader.hidden_weights @ np.concatenate([a * b, c * d, a, b, evidence, flags, [1.0]]), 0.0)
    return float(reader.out_weights @ np.append(hidden, 1.0))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 5))
def test_it_computes_its_formula(seed: int, count: int) -> None:
    chance, reader = np.random.default_rng(seed), drawn(seed)
    vector = chance.normal(size=DIMENSION).astype(np.float32)
    memories = chance.normal(size=(count, DIMENSION)).astype(np.float32)
    evidence = chance.normal(size=(count, len(EVIDENCE))).astype(np.float32)
    flags = chance.integers(0, 2, request_words.FLAGS).astype(np.float32)
    expected = [plainly(reader, vector, memory, each, flags) for memory, each in zip(memories, evidence, strict=True)]
    assert reader.logits(vector, memories, evidence, flags) == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_it_is_kept_in_a_file(tmp_path: Path) -> None:
    reader = drawn(3)
    reader.save(tmp_path / "reader.npz")
    again = Reader.load(tmp_path / "reader.npz")
    assert (again.signature, again.cut) == ("made/by/lot", -1.0)
    assert again.hidden_weights == pytest.approx(reader.hidden_weights, abs=5e-3)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"anything else"])
def test_what_is_no_such_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "reader.npz").write_bytes(content)
    with pytest.raises(UnusableWeights, match=r"reader\.npz"):
        Reader.load(tmp_path / "reader.npz")


@pytest.mark.parametrize(
    "changed",
    [
        {"hidden_weights": np.zeros((HIDDEN, 3), dtype=np.float32)},
        {"out_weights": np.zeros(HIDDEN + 2, dtype=np.float32)},
        {"memory_weights": np.zeros((2 * NEEDS, DIMENSION), dtype=np.float32)},
        {"request_weights": np.full((2 * NEEDS, DIMENSION + 1), np.nan, dtype=np.float32)},
        {"request_weights": np.zeros(3, dtype=np.float32)},
        {"cut": float("nan")},
    ],
)
def test_a_file_of_another_version_is_refused(tmp_path: Path, changed: dict[str, Floats]) -> None:
    replace(drawn(3), **changed).save(tmp_path / "reader.npz")  # type: ignore[arg-type]
    with pytest.raises(UnusableWeights, match="another version"):
        Reader.load(tmp_path / "reader.npz")


def test_what_is_shipped_is_of_the_shipped_decision() -> None:
    from semmem.retrieval.decide.trained import SHIPPED

    assert Reader.load(SHIPPED_READER).signature == Trained.load(SHIPPED).signature


# --- what it decides -------------------------------------------------------------------------------------------------


def by_cosine(cut: float = 3.0) -> Reader:
    """Its log-odds are twenty times the cosine, and ten times in the mean with a regression that says 0."""
    none = drawn(0)
    hidden = np.zeros_like(none.hidden_weights)
    hidden[0, 4 * NEEDS + EVIDENCE.index("cosine")] = 20.0
    out = np.zeros_like(none.out_weights)
    out[0] = 1.0
    return replace(none, hidden_weights=hidden, out_weights=out, cut=cut)


def served(*, of: str = "advice", wanted: float = 30.0) -> Trained:
    """Every request is one of ``of``, with log-odds ``wanted`` that it wants memories; a memory's are 0, too low."""
    none = weights(DIMENSION)
    classes, request = none.class_weights.copy(), none.request_weights.copy()
    classes[CLASSES.index(of), -1] = 30.0
    request[-1] = wanted
    return replace(none, class_weights=classes, request_weights=request, memory_cut=1.0, request_cut=0.0)


def judged(trained: Trained, reader: Reader | None, *cosines: float) -> Verdict:
    asked = np.eye(DIMENSION, dtype=np.float32)[0]
    memories = []
    for place, cosine in enumerate(cosines):
        vector = np.zeros(DIMENSION, dtype=np.float32)
        vector[:2] = cosine, (1 - cosine**2) ** 0.5
        memories.append(Memory(f"mem_{place:05d}", 1, MemoryType.SEMANTIC, f"thing {place}", "ada", embedding=vector))
    index = MemoryIndex(memories)
    mask = np.ones(len(memories), dtype=np.bool_)
    return Decision(trained, reader=reader).verdict("so what", asked, index, index.scores("so what", asked), mask)


def test_its_log_odds_and_the_regressions_are_weighed_alike() -> None:
    assert judged(served(), None, 0.9).shown.tolist() == [False]
    found = judged(served(), by_cosine(), 0.31, 0.29)
    assert found.shown.tolist() == [True, False]
    assert found.logits == pytest.approx([3.1, 2.9], abs=0.01)
    surer = served().memory_weights.copy()
    surer[-1] = 4.0
    assert judged(replace(served(), memory_weights=surer), by_cosine(), 0.29).logits == pytest.approx([4.9], abs=0.01)


def test_a_request_that_wants_nothing_is_shown_nothing_all_the_same() -> None:
    assert judged(served(wanted=-1.0), by_cosine(), 0.9).shown.tolist() == [False]


def test_a_profile_is_listed_by_the_regressions() -> None:
    assert judged(served(of="profile"), by_cosine(), 0.1, 0.1).shown.tolist() == [True, True]


def test_of_many_memories_the_best_by_the_regressions_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide, "READ_MAX", 2)
    trained = served()
    memory = trained.memory_weights.copy()
    memory[EVIDENCE.index("cosine")] = 10.0
    found = judged(replace(trained, memory_weights=memory), by_cosine(), 0.6, 0.9, 0.55, 0.95)
    assert found.shown.tolist() == [False, True, False, True]
    assert found.logits is not None
    assert np.isneginf(found.logits).tolist() == [True, False, True, False]
