"""What memories lend to those that were said before and after them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from semmem.memory import Memory, MemoryType, Source
from semmem.retrieval.index.succession import GAP_S_MAX, NEIGHBOUR_WEIGHTS, Succession

DAY_S = 86_400.0
BESIDE, ONE_FURTHER = NEIGHBOUR_WEIGHTS


def said(at: float, **fields: Any) -> Memory:
    return Memory(f"mem_{at}", 1, MemoryType.SEMANTIC, "x", "ada", source=Source(time=at), **fields)


def lent(memories: list[Memory], best: int, members: list[bool] | None = None) -> list[float]:
    """What each is lent when only ``best`` is like the question, and many others of other days are not."""
    memories = [*memories, *(said((number + 10) * DAY_S) for number in range(20))]
    similar = np.zeros(len(memories), dtype=np.float32)
    similar[best] = 1.0
    chosen = np.ones(len(memories), dtype=np.bool_)
    chosen[: len(members or [])] = members or []
    return [float(value) for value in Succession(memories).lent(similar, chosen)][: len(memories) - 20]


def test_the_nearest_get_most_on_both_sides() -> None:
    assert lent([said(1.0 + i) for i in range(7)], 3) == [0, ONE_FURTHER, BESIDE, 0, BESIDE, ONE_FURTHER, 0]


def test_order_is_that_of_time_not_of_the_list() -> None:
    assert lent([said(3), said(1), said(4), said(2)], 0) == [0, ONE_FURTHER, BESIDE, BESIDE]


def test_a_long_silence_parts_talks() -> None:
    assert lent([said(1), said(1 + GAP_S_MAX), said(2 + 2 * GAP_S_MAX)], 1) == [BESIDE, 0, 0]


def test_sessions_at_the_same_time_are_two_talks() -> None:
    talks = [said(1, session="a"), said(2, session="b"), said(3, session="a")]
    assert lent(talks, 0) == [0, 0, BESIDE]


def test_what_was_said_at_one_time_has_no_order_unless_it_was_one_turn() -> None:
    imported = [Memory(f"mem_{i}", 1, MemoryType.SEMANTIC, "x", "ada", source=Source(time=5.0)) for i in range(3)]
    assert lent(imported, 1) == [0, 0, 0]
    one_turn = [replace(memory, source=Source(time=5.0, turn="turn-1")) for memory in imported]
    assert lent(one_turn, 1) == [BESIDE, 0, BESIDE]


def test_what_is_not_to_be_ranked_neither_lends_nor_stands_between() -> None:
    memories = [said(1), said(2), said(3)]
    assert lent(memories, 0, [True, False, True]) == [0, 0, BESIDE]
    assert lent(memories, 1, [True, False, True]) == [0, 0, 0]


def test_what_everybody_has_lends_nothing() -> None:
    succession = Succession([said(1), said(2), said(3)])
    alike = np.full(3, 0.7, dtype=np.float32)
    assert not succession.lent(alike, np.ones(3, dtype=np.bool_)).any()


def test_of_two_memories_one_lends_the_other_little() -> None:
    lends = Succession([said(1), said(2)]).lent(np.array([1, 0], dtype=np.float32), np.ones(2, dtype=np.bool_))
    assert list(lends) == pytest.approx([0, 0.1 * BESIDE])


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_memories_are_no_trouble(count: int) -> None:
    memories = [said(1.0 + i) for i in range(count)]
    similar = np.ones(count, dtype=np.float32)
    assert Succession(memories).lent(similar, np.ones(count, dtype=np.bool_)).shape == (count,)
    assert not Succession(memories).lent(similar, np.zeros(count, dtype=np.bool_)).any()
