"""The worth of a memory: it fades, slower the more it is used, and never below its floor."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.lifecycle.value import Decay, value
from semmem.memory import Memory, MemoryType
from semmem.ports.memory_records import Uses

DAY = 86_400.0
BASE = Memory(id="m", version=1, type=MemoryType.SEMANTIC, content="User likes tea", user="ada", updated_at=0.0)
HALVING = Decay(half_life_s=30 * DAY, floor=0.0)


def test_half_of_it_is_left_after_a_half_life() -> None:
    assert value(BASE, Uses(), 0.0, HALVING) == pytest.approx(0.5)
    assert value(BASE, Uses(), 30 * DAY, HALVING) == pytest.approx(0.25)
    assert value(BASE, Uses(), 60 * DAY, HALVING) == pytest.approx(0.125)


def test_the_floor_never_fades() -> None:
    assert value(BASE, Uses(), 1e6 * DAY, Decay(half_life_s=DAY, floor=0.2)) == pytest.approx(0.1)


def test_use_makes_young_again_and_lasting() -> None:
    at = 30 * DAY
    unused = value(BASE, Uses(), at, HALVING)
    used_once_long_ago = value(BASE, Uses(1, 0.0), at, HALVING)
    used_often_long_ago = value(BASE, Uses(100, 0.0), at, HALVING)
    used_today = value(BASE, Uses(1, at), at, HALVING)
    assert unused < used_once_long_ago < used_often_long_ago < used_today
    assert used_once_long_ago == pytest.approx(0.5 * 2 ** (-1 / 1.6931), rel=1e-3)
    assert used_today == pytest.approx(0.5)


@given(
    importance=st.floats(allow_nan=False, allow_infinity=False),
    updated_at=st.floats(0, 4e9),
    uses=st.builds(Uses, st.integers(0, 10**9), st.floats(0, 4e9)),
    now=st.floats(0, 4e9),
)
def test_whatever_is_stored_the_worth_is_a_share_of_one(
    importance: float, updated_at: float, uses: Uses, now: float
) -> None:
    memory = replace(BASE, importance=importance, updated_at=updated_at)
    assert 0.0 <= value(memory, uses, now, Decay()) <= 1.0


@pytest.mark.parametrize(("half_life_s", "floor"), [(0.0, 0.1), (1.0, -0.1), (1.0, 1.1)])
def test_nonsense_is_refused(half_life_s: float, floor: float) -> None:
    with pytest.raises(ValueError, match="half_life_s must"):
        Decay(half_life_s=half_life_s, floor=floor)
