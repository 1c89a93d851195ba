"""A shape of an answer is filled from what it is for: members by name, times written out, shapes inside of it too."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import TypedDict

from semmem.management.shown import Time, as_shown


class PartShown(TypedDict):
    name: str
    seen_at: Time | None


class WholeShown(TypedDict):
    since: Time
    first: PartShown
    parts: list[PartShown]
    more: int


@dataclass
class Part:
    name: str
    seen_at: float | None = None


@dataclass
class Whole:
    since: float
    first: Part
    parts: tuple[Part, ...]


def test_members_are_taken_by_name_and_what_is_given_beside_wins() -> None:
    shown = as_shown(WholeShown, Whole(0.0, Part("a", 1.5), (Part("b"),)), more=3, since="long ago")
    assert shown == {
        "since": "long ago",
        "first": {"name": "a", "seen_at": "1970-01-01T00:00:01.500Z"},
        "parts": [{"name": "b", "seen_at": None}],
        "more": 3,
    }
