"""Rules of the core are filled with the keys of a section."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from semmem.config.values import Section, key


@dataclass(frozen=True)
class Rules:
    size: int
    wait_s: float
    kept_s: float = 1.0
    rest_s: float = 2.0
    other: str = "as it was"


class Keys(Section):
    size: int = key(3, "of it")
    wait_ms: int = key(350, "in milliseconds")
    kept_days: int = key(2, "in days")
    rest_s: float = key(4.0, "in seconds")
    rest_ms: int = key(5, "not this one")
    shown_size: int = key(6, "of what is shown")
    shown_wait_hours: int = key(7, "in hours")


def test_fields_are_keys_of_the_same_name_or_of_the_same_time_in_another_unit() -> None:
    assert Keys().fill(Rules) == Rules(size=3, wait_s=0.35, kept_s=172_800.0, rest_s=4.0)


def test_what_is_given_comes_before_keys_and_without_a_key_a_field_keeps_its_default() -> None:
    filled = Keys().fill(Rules, prefix="shown_", other="given", kept_s=0.5)
    assert filled == Rules(size=6, wait_s=25_200.0, kept_s=0.5, rest_s=2.0, other="given")


def test_a_field_without_a_default_needs_a_key() -> None:
    with pytest.raises(TypeError, match="size"):
        Section().fill(Rules, wait_s=1.0)
