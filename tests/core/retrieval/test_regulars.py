"""Who stays in process when there is not room for all: bounds that always hold, and regulars that a scan leaves alone.

``python -m tests.core.retrieval.test_regulars`` prints the trace's hit rates.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest
from cachetools import LRUCache
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.retrieval.index.regulars import AGAIN_S, TRACES_MIN, VISITS_MAX, Regulars, Room
from tests.support.examples import examples

BIG = Room(1_000_000)


def kept(room: Room, *sizes: float) -> Regulars[str]:
    """Users u0, u1, ... of these bytes, put one after another."""
    regulars = Regulars[str](room)
    for number, size in enumerate(sizes):
        regulars.put(f"u{number}", "value", Room(size, 1, 1), float(number))
    return regulars


def present(regulars: Regulars[str], count: int) -> list[int]:
    return [number for number in range(count) if f"u{number}" in regulars]


def test_the_first_to_come_goes_first_among_those_who_came_once() -> None:
    assert present(kept(Room(30), 10, 10, 10, 10, 10), 5) == [2, 3, 4]


def test_who_came_back_stays_whoever_passes_by() -> None:
    regulars = kept(Room(100), *[10] * 10)
    regulars.visit("u0", 100.0)
    for number in range(10, 1000):
        regulars.put(f"u{number}", "value", Room(10, 1, 1), 100.0 + number)
    assert regulars.get("u0") == "value"
    assert len(regulars) == 10


def test_asking_again_within_a_minute_is_no_coming_back() -> None:
    regulars = kept(Room(100), *[10] * 10)
    for _ in range(9):
        regulars.visit("u0", AGAIN_S - 1)
    regulars.put("u10", "value", Room(10, 1, 1), AGAIN_S)
    assert "u0" not in regulars


def test_who_went_and_comes_back_is_a_regular_at_once() -> None:
    regulars = kept(Room(100), *[10] * 11)
    assert "u0" not in regulars
    regulars.put("u0", "value", Room(10, 1, 1), 100.0)
    for number in range(11, 40):
        regulars.put(f"u{number}", "value", Room(10, 1, 1), 100.0)
    assert "u0" in regulars


def test_a_regular_whose_memories_were_dropped_comes_back_as_one() -> None:
    regulars = kept(Room(100), *[10] * 10)
    regulars.visit("u0", 100.0)
    regulars.drop("u0")
    assert "u0" not in regulars
    for number in (0, *range(10, 40)):
        regulars.put(f"u{number}", "value", Room(10, 1, 1), 200.0)
    assert "u0" in regulars


def test_regulars_who_no_longer_come_make_room_in_the_end() -> None:
    regulars = kept(Room(100), *[10] * 10)
    for _ in range(VISITS_MAX + 2):
        for number in range(10):
            regulars.visit(f"u{number}", 100.0 * (1 + _))
    for number in range(10, 40):  # others who come back each
        regulars.put(f"u{number}", "value", Room(10, 1, 1), 1000.0)
        regulars.visit(f"u{number}", 1000.0 + AGAIN_S)
    assert not set(present(regulars, 40)) & set(range(10))


def test_who_takes_more_than_there_is_room_for_is_not_kept_and_throws_nobody_out() -> None:
    regulars = kept(Room(100), 10, 10)
    assert not regulars.put("huge", "value", Room(101, 1, 1), 9.0)
    assert not regulars.put("u0", "value", Room(101, 1, 1), 9.0)  # and what was there before is out of date
    assert present(regulars, 2) == [1]


def test_one_who_takes_nearly_all_the_room_can_still_be_kept() -> None:
    regulars = kept(Room(100), *[10] * 10)
    assert regulars.put("huge", "value", Room(95, 1, 1), 9.0)
    assert (len(regulars), regulars.taken.bytes) == (1, 95)


def test_growing_makes_others_go_and_at_last_oneself() -> None:
    regulars = kept(Room(100), *[20] * 5)
    regulars.grow("u4", 30)
    assert present(regulars, 5) == [2, 3, 4]
    regulars.grow("u4", 60)
    assert regulars.taken.bytes <= 100
    regulars.grow("nobody", 60)


def test_traces_do_not_pile_up_and_name_nobody() -> None:
    regulars = Regulars[str](Room(100))
    for number in range(5 * TRACES_MIN):
        regulars.put(f"u{number}", "value", Room(10, 1, 1), float(number))
    assert len(regulars._traces) == TRACES_MIN
    assert not any(isinstance(trace, str) for trace in regulars._traces)


@pytest.mark.parametrize(("room", "left"), [(Room(1000, 3), 3), (Room(1000, 1000, 2), 2)])
def test_memories_and_users_can_be_bounds_of_their_own(room: Room, left: int) -> None:
    assert len(kept(room, *[1] * 9)) == left


STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "regular", "visit", "grow", "drop"]), st.integers(0, 12), st.integers(0, 60)),
    max_size=60,
)


@settings(max_examples=examples(200))
@given(STEPS)
def test_whatever_happens_what_is_kept_is_within_its_bounds_and_rightly_summed(
    steps: list[tuple[str, int, int]],
) -> None:
    room = Room(100, 20, 6)
    regulars, sizes, now = Regulars[int](room), dict[str, float](), 0.0
    for word, number, size in steps:
        user, now = f"u{number}", now + 40
        if word in ("put", "regular"):
            regulars.put(user, size, Room(size, size % 5, 1), now, is_regular=word == "regular")
            sizes[user] = size
        elif word == "grow" and user in regulars:
            sizes[user] += size
            regulars.grow(user, size)
        elif word == "visit":
            regulars.visit(user, now)
        elif word == "drop":
            regulars.drop(user)
            assert user not in regulars
        present = [name for name in sizes if name in regulars]
        assert room.holds(regulars.taken)
        assert regulars.taken.bytes == sum(sizes[name] for name in present)
        assert len(regulars) == regulars.taken.users == len(present)


# --- a trace ---------------------------------------------------------------------------------------------------------

REGULARS, SCANNED = 400, 20_000


def trace(seed: int, *, scan: bool) -> Iterator[tuple[float, str, int]]:
    """Half a day: (seconds, user, bytes). Regulars come back, some often; beside them others come once or twice; and
    from the third hour on somebody walks over all users, five a second."""
    dice = random.Random(seed)
    size_of = {number: int(dice.lognormvariate(12, 1)) for number in range(REGULARS + SCANNED)}
    visits = [(dice.uniform(0, 43_200), dice.choices(range(REGULARS), _weights())[0]) for _ in range(12_000)]
    for number in range(REGULARS, REGULARS + 2_000):
        visits += [(dice.uniform(0, 43_200), number) for _ in range(dice.choice((1, 1, 1, 2)))]
    if scan:
        visits += [(10_800 + place / 5, number) for place, number in enumerate(range(REGULARS, REGULARS + SCANNED))]
    return ((at, f"u{number}", size_of[number]) for at, number in sorted(visits))


def _weights() -> list[float]:
    return [1 / (10 + rank) for rank in range(REGULARS)]


def is_regular(user: str) -> bool:
    return int(user[1:]) < REGULARS


def hit_rates(visits: Iterable[tuple[float, str, int]], room: float) -> dict[str, float]:
    """Of regulars' visits from the third to the fifth hour, by policy."""
    lru = LRUCache[str, int](room, getsizeof=float)
    regulars = Regulars[int](Room(room))
    hits, asked = {"lru": 0, "regulars": 0}, 0
    for at, user, size in visits:
        counts = is_regular(user) and 10_800 <= at < 18_000
        asked += counts
        hits["lru"] += counts and user in lru
        hits["regulars"] += counts and user in regulars
        lru.get(user)
        lru[user] = size
        regulars.visit(user, at)
        if user not in regulars:
            regulars.put(user, size, Room(size, 1, 1), at)
    return {policy: number / asked for policy, number in hits.items()}


@pytest.mark.parametrize("seed", range(3))
def test_during_a_walk_over_all_users_those_who_come_back_are_found_here(seed: int) -> None:
    found, before = hit_rates(trace(seed, scan=True), 60e6), hit_rates(trace(seed, scan=False), 60e6)
    assert found["regulars"] > found["lru"] + 0.2
    assert found["regulars"] > 0.65 * before["regulars"]  # some come too seldom to be told from those walked over
    assert before["regulars"] > before["lru"]  # and without one nobody loses


if __name__ == "__main__":
    for megabytes in (20, 40, 60, 100):
        for scan in (False, True):
            rates = hit_rates(trace(0, scan=scan), megabytes * 1e6)
            told = ", ".join(f"{policy} {rate:.1%}" for policy, rate in rates.items())
            print(f"{megabytes} MB, {'with' if scan else 'without'} a scan: {told}")
