"""``python -m tests.support.serve serve --config FILE``: the ``semmem`` command, its embedder the tests' bag of words.

It starts in a second and needs no model. Texts are alike as far as they share words, so it serves every test that does
not ask what a text means.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from semmem.cli import main as semmem
from semmem.config.settings import Settings
from semmem.ports.embedder import Embedder
from semmem.wiring import models
from tests.support.fakes import HashEmbedder


def use_embedder(make: Callable[[Settings], Embedder]) -> None:
    """In this process semmem's embedder is made by ``make``. The one place that knows where wiring makes it."""
    models.embedder = make  # type: ignore[assignment]  # mypy wants a function's own name


def bag_of_words(settings: Settings) -> Embedder:
    return HashEmbedder(settings.memory.embedding.dimension)


def main() -> int:
    use_embedder(bag_of_words)
    return semmem(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
