"""The file of the numbers behind the decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from semmem.retrieval.decide.trained import CLASSES, SHIPPED, Trained, UnusableWeights
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
