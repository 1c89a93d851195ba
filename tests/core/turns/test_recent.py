"""The most recently used entries: what stays, and what goes first."""

from __future__ import annotations

from semmem.turns.recent import Recent


def kept(recent: Recent[str, int], *names: str) -> list[str]:
    return [name for name in names if recent.get(name) is not None]


def test_the_entry_that_was_used_longest_ago_goes_first() -> None:
    recent = Recent[str, int](2)
    recent.put("a", 1)
    recent.put("b", 2)
    assert recent.get("a") == 1
    recent.put("c", 3)
    assert kept(recent, "a", "b", "c") == ["a", "c"]
    assert len(recent) == 2


def test_an_entry_that_is_put_again_is_replaced_and_counts_as_used() -> None:
    recent = Recent[str, int](2)
    recent.put("a", 1)
    recent.put("b", 2)
    recent.put("a", 3)
    recent.put("c", 4)
    assert recent.get("a") == 3
    assert kept(recent, "b") == []


def test_what_is_not_dropped_stays_as_recent_as_it_was() -> None:
    recent = Recent[str, int](3)
    for number, name in enumerate(("a", "b", "c")):
        recent.put(name, number)
    recent.drop(lambda value: value == 1)
    recent.put("d", 4)
    recent.put("e", 5)
    assert kept(recent, "a", "b", "c", "d", "e") == ["c", "d", "e"]
