"""The order in which memories were said. What was said next to a good hit is often the rest of the answer: "Where
did you go?" holds the question's words, "To Rome, with Ann" does not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from semmem.memory import Memory

NEIGHBOUR_WEIGHTS = (0.5, 0.25)
"""The share of its excess that a memory lends to those beside it, and to those one further."""
TOP_SHARE = 0.1
"""Only what is among this share of the best lends, and only by how much it exceeds the others."""
GAP_S_MAX = 3600.0
"""Memories further apart belong to different talks."""

Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]


def said_at(memory: Memory) -> float:
    """When the words behind a memory were said, in seconds since the epoch; when it was made, if that is not known."""
    return memory.source.time or memory.created_at


class Succession:
    """Memories in the order in which they were said, ties by id."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self._said_at = np.array([said_at(memory) for memory in memories], dtype=np.float64)
        sessions = {memory.session: number for number, memory in enumerate(memories)}
        self._session = np.array([sessions[memory.session] for memory in memories], dtype=np.int64)
        in_order = sorted(range(len(memories)), key=lambda row: (said_at(memories[row]), memories[row].id))
        self._order = np.array(in_order, dtype=np.int64)

    def lent(self, similar: Floats, members: Mask) -> Floats:
        """What each memory's neighbours among the members add to it, in the units of ``similar`` (n,)."""
        lent = np.zeros(len(similar), dtype=np.float32)
        order = self._order[members[self._order]]
        if not len(order):
            return lent
        excess = np.maximum(similar[order] - _bar(similar[order]), 0.0)
        received = np.zeros(len(order), dtype=np.float32)
        for distance, weight in enumerate(NEIGHBOUR_WEIGHTS, start=1):
            earlier, later = order[:-distance], order[distance:]
            shares = np.where(self._are_of_one_talk(earlier, later), np.float32(weight), np.float32(0))
            received[distance:] += shares * excess[:-distance]
            received[:-distance] += shares * excess[distance:]
        lent[order] = received
        return lent

    def _are_of_one_talk(self, earlier: npt.NDArray[np.int64], later: npt.NDArray[np.int64]) -> Mask:
        together = self._session[earlier] == self._session[later]
        return together & (self._said_at[later] - self._said_at[earlier] <= GAP_S_MAX)


def _bar(similar: Floats) -> np.float32:
    """The value that only the best TOP_SHARE reach."""
    place = int((1.0 - TOP_SHARE) * (len(similar) - 1))
    return np.partition(similar, place)[place]
