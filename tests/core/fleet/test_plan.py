"""The plan of conversations: the same for a seed, whole, and with erasures among its turns."""

from __future__ import annotations

import pytest

from tests.fleet.faults import FAULTS
from tests.fleet.plan import FORGET_EVERY, FORGETS, TALKS, TURNS, Kind, deeds
from tests.fleet.run import by_turns

LENGTH = 30


def test_a_seed_and_a_user_give_the_same_deeds_again_and_others_give_others() -> None:
    assert deeds(1, 2, LENGTH) == deeds(1, 2, LENGTH)
    assert deeds(1, 2, LENGTH) != deeds(2, 2, LENGTH)
    assert deeds(1, 2, LENGTH) != deeds(1, 3, LENGTH)


@pytest.mark.parametrize("user", range(FORGET_EVERY))
def test_each_conversation_has_all_its_turns_and_begins_with_something_told(user: int) -> None:
    planned = deeds(7, user, LENGTH)
    turns = [deed for deed in planned if deed.kind in TURNS]
    assert [sum(deed.talk == talk for deed in turns) for talk in range(TALKS)] == [LENGTH] * TALKS
    assert planned[0].kind is Kind.TELL
    assert sorted(d.kind for d in planned if d.kind not in TURNS) == sorted(FORGETS.get(user % FORGET_EVERY, ()))


@pytest.mark.parametrize("user", range(FORGET_EVERY))
def test_nothing_is_told_twice_between_two_erasures_of_everything(user: int) -> None:
    told: list[int] = []
    for deed in deeds(7, user, LENGTH):
        if deed.kind in (Kind.FORGET_ALL, Kind.FORGET_RACING):
            told.clear()
        if deed.kind in (Kind.TELL, Kind.FORGET_RACING):
            assert deed.sentence not in told
            told.append(deed.sentence)


def test_everybody_comes_before_anybody_goes_on() -> None:
    plans = [deeds(7, 0, 2), deeds(7, 3, 1)]
    places = [[place for place, _ in row] for row in by_turns(plans)]
    assert places[:2] == [[0, 1], [0, 1]]
    assert sum(map(len, places)) == sum(map(len, plans))


def test_a_replica_is_lost_half_way() -> None:
    assert 0.5 in [share for share, _ in FAULTS]
