"""The corpus, replayed without atheris; and the checks themselves, which must be able to fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.__main__ import NAMES
from tests.fuzz.targets import CORPUS, TARGETS

SEEDS = sorted(CORPUS.glob("*/*"))


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"{seed.parent.name}/{seed.name}")
def test_an_input_of_the_corpus_breaks_no_promise(seed: Path) -> None:
    TARGETS[seed.parent.name].check(seed.read_bytes())


def test_every_target_is_searched_and_has_seeds() -> None:
    assert list(NAMES) == list(TARGETS)
    assert {seed.parent.name for seed in SEEDS} == set(NAMES)
