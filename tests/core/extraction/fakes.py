"""An extractor with given facts."""

from __future__ import annotations

from collections.abc import Callable

from semmem.memory import Fact
from semmem.ports.learning import Batch


class GivenFacts:
    """An extractor that gives what a function makes of the batch."""

    def __init__(self, name: str, facts: Callable[[Batch], list[Fact]]) -> None:
        self.name = name
        self._facts = facts
        self.batches: list[Batch] = []

    async def extract(self, batch: Batch) -> list[Fact]:
        self.batches.append(batch)
        return self._facts(batch)
