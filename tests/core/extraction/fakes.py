"""An extractor with given facts, and ears for which all is the user's own voice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from semmem.extraction.voice.hearing import NOTHING_EMBEDDED, Embedded, Heard
from semmem.memory import Fact, Memory
from semmem.ports.learning import Batch, Extracted


class GivenFacts:
    """An extractor that gives what a function makes of the batch, and names notes with these texts as wrong."""

    def __init__(self, name: str, facts: Callable[[Batch], list[Fact]], wrong: Collection[str] = ()) -> None:
        self.name = name
        self.wrong = wrong
        self.notes: list[str] = []
        self._facts = facts
        self.batches: list[Batch] = []

    async def extract(self, batch: Batch, notes: Sequence[Memory] = ()) -> Extracted:
        self.batches.append(batch)
        self.notes = [note.content for note in notes]
        wrong = frozenset(place for place, note in enumerate(self.notes) if note in self.wrong)
        return Extracted(self._facts(batch), wrong)


def all_own(text: str, embedded: Embedded = NOTHING_EMBEDDED) -> Heard:
    """For tests of what becomes of facts: whose voice it is, is the business of test_voice."""
    return Heard(text, alone=True)
