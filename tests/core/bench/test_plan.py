"""How much is measured."""

from __future__ import annotations

import pytest

from bench.parts import PARTS
from bench.plan import FULL, QUICK, Plan, changed
from semmem.backends.milvus.store import BOUNDED_STALENESS_S
from semmem.config import Settings


def test_settings_take_the_place_of_what_the_plan_has() -> None:
    plan = changed(FULL, ["rounds=2", "levels=1,4", "step_s=0.5", "milvus=127.0.0.1:19530"])
    assert (plan.rounds, plan.levels, plan.step_s, plan.milvus) == (2, (1, 4), 0.5, "127.0.0.1:19530")
    assert plan.tokens == FULL.tokens


@pytest.mark.parametrize("setting", ["rounds", "rounds=", "rounds=0", "rounds=2.5", "levels=1,-4", "tempo=3"])
def test_a_setting_that_means_nothing_is_refused_by_name(setting: str) -> None:
    with pytest.raises(ValueError, match=setting.partition("=")[0]):
        changed(FULL, [setting])


def test_many_connections_have_at_least_two_requests_each_and_all_the_same_number() -> None:
    plan = Plan(block=24, cheap_factor=4)
    assert [plan.requests_in(level, cheap=False) for level in (1, 8, 32)] == [24, 24, 64]
    assert [plan.requests_in(level, cheap=True) for level in (1, 8, 32)] == [96, 96, 96]
    assert Plan(block=1, cheap_factor=1).requests_in(5, cheap=True) == 10


def test_a_server_is_given_longer_to_settle_than_semmem_remembers_its_writes() -> None:
    assert Plan(settle_s=1.0).pause_s == 1.0
    remembered_s = BOUNDED_STALENESS_S + Settings().memory.milvus.call_timeout_s
    assert Plan(settle_s=1.0, milvus="127.0.0.1:19530").pause_s > remembered_s


def test_the_quick_plan_is_a_shorter_one_of_the_same_things() -> None:
    assert QUICK.levels == FULL.levels
    assert QUICK.users * QUICK.memories == FULL.users * FULL.memories == 1000
    assert QUICK.requests == FULL.requests == 1000
    assert set(QUICK.stream_levels) < set(FULL.stream_levels)
    assert {part.name for part in PARTS if part.quick} == {"requests", "streams", "process"}
