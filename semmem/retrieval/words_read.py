"""What can be said of a query without its vector, so that it is worked out while that is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from semmem.memory import MemoryType, Scope
from semmem.retrieval.decide.decision import Decision
from semmem.retrieval.decide.features import RequestWords
from semmem.retrieval.index.memory_index import Heard, MemoryIndex


@dataclass(frozen=True, slots=True)
class WordsRead:
    """Of the memories in ``index``: ``heard``, with the members of a scope; of the request itself, ``said``. ``text``:
    the query's."""

    text: str
    index: MemoryIndex
    heard: Heard
    said: RequestWords | None


def read_words(
    index: MemoryIndex, query: str, decision: Decision, *, scope: Scope, types: Sequence[MemoryType] = (), now: float
) -> WordsRead:
    """All that ranking and the decision need of a query's words."""
    return WordsRead(query, index, index.heard(query, index.members(scope, types, now)), decision.heard(query))
