"""Vectors without a model: near is what shares words, and nothing else."""

from __future__ import annotations

import re

import numpy as np
import pytest

from semmem.backends.embedding.bag_of_words import BagOfWords
from semmem.memory import Vector


def terms(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


async def vectors(*texts: str, dimension: int = 384) -> list[Vector]:
    embedder = BagOfWords(terms, dimension=dimension)
    await embedder.open()
    found = [await embedder.embed(text) for text in texts]
    await embedder.close()
    return found


async def test_the_cosine_is_the_share_of_words_in_common() -> None:
    one, other, neither = await vectors("green tea please", "Tea, green and cold", "a long train")
    assert float(one @ other) == pytest.approx(2 / (3 * 4) ** 0.5, abs=1e-6)
    assert float(one @ neither) == 0


async def test_a_word_has_the_same_place_in_every_process() -> None:
    (tea,) = await vectors("tea")
    assert (int(tea.nonzero()[0][0]), float(tea.sum())) == (345, -1.0)


async def test_a_text_without_words_is_near_to_its_like_alone() -> None:
    one, same, other, empty = await vectors("123!", "123!", "456!", "")
    assert float(one @ same) == pytest.approx(1.0)
    assert float(one @ other) == float(one @ empty) == 0


async def test_words_that_take_each_other_back_still_make_a_vector() -> None:
    """In one place every word adds or takes 1 there, so that some pair cancels out."""
    found = await vectors(*(f"{one} {other}" for one in "abcdef" for other in "abcdef"), dimension=1)
    assert np.abs(np.stack(found)).min() == 1.0


async def test_its_signature_says_that_there_is_no_model() -> None:
    assert BagOfWords(terms, dimension=64).signature == "none/words/64"
