"""What a server does not show yet: which reads wait for it, and what is added to those that do not."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from semmem.backends.milvus.own_writes import SHOW_S, USERS_MAX, OwnWrites
from semmem.backends.milvus.rows import Row, is_retrievable, row_of, with_cosine
from semmem.memory import MemoryStatus, MemoryType, Scope
from tests.support.memories import DIMENSION, NOW, memory, towards

SETTLE_S = 10.0


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def written(*ids: str, user: str = "ann", **fields: Any) -> list[Row]:
    return [row_of(each, each.embedding, DIMENSION) for each in (memory(user, id, **fields) for id in ids)]


def own_writes() -> tuple[OwnWrites, Clock]:
    clock = Clock()
    return OwnWrites(settle_s=SETTLE_S, clock=clock), clock


def ids(rows: list[Row]) -> list[str]:
    return [row["memory_id"] for row in rows]


def test_what_was_inserted_is_added_and_what_was_deleted_taken_out() -> None:
    own, clock = own_writes()
    old, new = written("old", "new")
    own.inserted(new)
    own.deleted("ann", [old["id"]])
    assert own.level("ann", clock.time) == "Bounded"
    assert ids(own.rows("ann", clock.time)) == ["new"]
    assert own.alive("ann", [old, new], clock.time) == [new]
    assert own.rows("bob", clock.time) == []
    assert own.alive("bob", [old], clock.time) == [old]


def test_a_row_deleted_and_inserted_again_is_there() -> None:
    own, clock = own_writes()
    (row,) = written("mem_1")
    own.inserted(row)
    own.deleted("ann", [row["id"]])
    assert own.rows("ann", clock.time) == []
    own.inserted(row)
    assert own.rows("ann", clock.time) == own.alive("ann", [row], clock.time) == [row]


def test_a_row_that_somebody_may_have_deleted_since_is_not_added_but_waited_for() -> None:
    own, clock = own_writes()
    own.inserted(*written("mem_1"))
    began = clock.time + SHOW_S
    assert (own.level("ann", began), len(own.rows("ann", began))) == ("Bounded", 1)
    assert (own.level("ann", began + 0.01), own.rows("ann", began + 0.01)) == ("Strong", [])


def test_a_strong_read_settles_what_was_written_before_it_and_only_for_reads_behind_it() -> None:
    own, clock = own_writes()
    early, gone, late = written("early", "gone", "late")
    own.inserted(early)
    own.deleted("ann", [gone["id"]])
    clock.time += 0.1
    before = strong = clock.time
    clock.time += 0.1
    own.inserted(late)
    clock.time += 0.1
    own.settled("ann", strong)
    assert ids(own.rows("ann", before)) == ["early", "late"], "a read that began earlier may lack both"
    assert own.alive("ann", [gone], before) == []
    clock.time += 0.1
    assert ids(own.rows("ann", clock.time)) == ["late"]
    assert own.alive("ann", [gone], clock.time) == [gone], "whatever is there now is somebody else's"
    clock.time += SHOW_S - 0.25
    assert own.level("ann", clock.time) == "Bounded"
    clock.time += 0.1
    assert own.level("ann", clock.time) == "Strong"


def test_others_writes_are_waited_for_once() -> None:
    own, clock = own_writes()
    as_of = clock.time
    assert own.level("ann", clock.time, as_of) == "Strong"
    clock.time += 1
    own.settled("ann", clock.time)
    clock.time += 1
    assert own.level("ann", clock.time, as_of) == "Bounded"
    assert own.level("ann", clock.time, clock.time) == "Strong"
    assert own.level("bob", clock.time, as_of) == "Strong"


def test_after_a_write_that_failed_half_way_a_read_waits() -> None:
    own, clock = own_writes()
    own.settled("ann", clock.time)
    own.unsure("ann")
    assert own.level("ann", clock.time) == "Strong"
    began = clock.time
    clock.time += 0.1
    own.unsure("ann")
    own.settled("ann", began)
    assert own.level("ann", clock.time) == "Strong", "the read began before the second failure"
    own.settled("ann", clock.time + 0.1)
    assert own.level("ann", clock.time + 0.1) == "Bounded"


def test_nothing_is_kept_for_longer_than_a_server_may_lag() -> None:
    own, clock = own_writes()
    for user in ("ann", "bob"):
        own.inserted(*written("mem_1", user=user))
        own.unsure(user)
    clock.time += SETTLE_S + 0.1
    assert own.level("ann", clock.time) == "Bounded"
    assert not own._written
    assert not own._order
    assert not own._unsure


def test_of_however_many_users_little_is_kept() -> None:
    own, clock = own_writes()
    for number in range(USERS_MAX + 100):
        own.settled(f"user-{number}", clock.time)
    assert len(own._caught_up) == USERS_MAX


def test_a_store_that_shows_writes_at_once_needs_nothing() -> None:
    own, clock = own_writes()
    own.lags = False
    own.inserted(*written("mem_1"))
    own.unsure("ann")
    assert own.level("ann", clock.time + 5, clock.time) == "Bounded"
    assert own.rows("ann", clock.time) == []


def test_noting_a_write_costs_the_same_however_many_there_are() -> None:
    own = OwnWrites(settle_s=SETTLE_S)
    rows = written(*(f"mem_{number}" for number in range(20_000)))

    def seconds(part: list[Row]) -> float:
        began = time.process_time()
        for row in part:
            own.inserted(row)
        return time.process_time() - began

    took = [seconds(rows[at : at + 1000]) for at in range(0, 20_000, 1000)]
    assert min(took[-3:]) < 5 * min(took[:3]) + 0.05


def test_an_own_row_is_found_as_the_server_would_find_it() -> None:
    scope = Scope("ann", project="p")
    fields: dict[str, Any] = {"project": "p", "expires_at": NOW + 1, "embedding": towards(1, leaning=0, by=0.6)}
    (row,) = written("mem_1", **fields)
    assert is_retrievable(row, scope, (), NOW)
    assert is_retrievable(row, scope, (MemoryType.SEMANTIC,), NOW)
    assert not is_retrievable(row, scope, (MemoryType.EPISODIC,), NOW)
    assert not is_retrievable(row, scope, (), NOW + 1)
    assert not is_retrievable(row, Scope("ann", project="q"), (), NOW)
    assert not is_retrievable(row, Scope("bob"), (), NOW)
    for other in ({"status": MemoryStatus.SUPERSEDED}, {"embedding": None}, {"expires_at": NOW}):
        assert not is_retrievable(written("mem_1", **{**fields, **other})[0], scope, (), NOW)
    found = with_cosine(row, towards(0))
    np.testing.assert_allclose(found["cosine"], 0.6, atol=1e-6)
