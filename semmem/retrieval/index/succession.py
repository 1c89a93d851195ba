"""The order in which memories were said. What was said next to a good hit is often the rest of the answer: "Where
did you go?" holds the question's words, "To Rome, with Ann" does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from semmem.memory import Memory

NEIGHBOUR_WEIGHTS = (0.5, 0.25)
"""The share of its excess that a memory lends to those beside it, and to those one further."""
TOP_SHARE = 0.1
"""Only what is among this share of the best lends, and only by how much it exceeds the others."""
GAP_S_MAX = 3600.0
"""A longer silence ends a talk."""

Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]


class Succession:
    """Memories of each talk in the order in which they were said, ties by id."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        in_order = sorted(
            range(len(memories)),
            key=lambda row: (memories[row].session or "", memories[row].said_at, memories[row].id),
        )
        self._order = np.array(in_order, dtype=np.int64)
        self._talk = np.fromiter(_talks([memories[row] for row in in_order]), np.int64, len(memories))
        self._shares = _shares(self._talk)

    def lent(self, similar: Floats, members: Mask) -> Floats:
        """What each memory's neighbours among the members add to it, in the units of ``similar`` (n,)."""
        lent = np.zeros(len(similar), dtype=np.float32)
        order, all_shares = self._order, self._shares
        if not members.all():
            is_ranked = members[order]
            order, all_shares = order[is_ranked], _shares(self._talk[is_ranked])
        if not len(order):
            return lent
        in_order = similar[order]
        excess = np.maximum(in_order - _bar(in_order), np.float32(0))
        received = np.zeros(len(order), dtype=np.float32)
        for distance, shares in enumerate(all_shares, start=1):
            received[distance:] += shares * excess[:-distance]
            received[:-distance] += shares * excess[distance:]
        lent[order] = received
        return lent


def _shares(talk: npt.NDArray[np.int64]) -> list[Floats]:
    """By distance: what of a memory's excess goes to the one so much further, given the talk of each."""
    return [
        np.float32(weight) * (talk[:-distance] == talk[distance:])
        for distance, weight in enumerate(NEIGHBOUR_WEIGHTS, start=1)
    ]


def _talks(in_order: Sequence[Memory]) -> Iterator[int]:
    """A number for each memory, the same for those of one talk."""
    talk, last = 0, None
    for memory in in_order:
        if last is not None and not _follows(memory, last):
            talk += 1
        yield talk
        last = memory


def _follows(memory: Memory, last: Memory) -> bool:
    """Whether it was said after the other, in the same talk. Of what has the same time nobody knows what came first,
    unless it comes of one turn."""
    silence_s = memory.said_at - last.said_at
    if memory.session != last.session or silence_s > GAP_S_MAX:
        return False
    return silence_s > 0 or (memory.source.turn != "" and memory.source.turn == last.source.turn)


def _bar(similar: Floats) -> float:
    """The value that the best TOP_SHARE exceed, between two of the values where it falls between them."""
    place, part = divmod((1.0 - TOP_SHARE) * (len(similar) - 1), 1.0)
    lower, upper = int(place), min(int(place) + 1, len(similar) - 1)
    ordered = np.partition(similar, (lower, upper))
    return float(ordered[lower] + part * (ordered[upper] - ordered[lower]))
