"""What of a message the user says in their own voice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from semmem.extraction.voice.features import shapes, words_of
from semmem.extraction.voice.model import Weights
from semmem.extraction.voice.units import UNITS_MAX, Unit, units

OTHERS_MIN = 0.0
"""From these odds on (their logarithm) a unit is somebody else's: where of pasted messages and of users' own about as
many were taken for the other (docs/learning.md)."""


@dataclass(frozen=True, slots=True)
class Heard:
    """``text``: what the user says in their own voice, each line where it was. ``alone``: nobody else speaks in the
    message, and all of it was read, so that it may end or change what is known of the user."""

    text: str
    alone: bool


def heard(text: str) -> Heard:
    """Linear in the length of the text; never raises."""
    found = units(text)
    if not found:
        return Heard(text, alone=True)
    rows = [words_of(text[unit.start : unit.end]) for unit in found]
    odds = _weights().odds(rows, shapes(text, found))
    own = [unit for unit, odd in zip(found, odds, strict=True) if odd < OTHERS_MIN and not unit.quoted]
    return Heard(_joined(text, own), alone=len(own) == len(found) < UNITS_MAX)


def _joined(text: str, own: list[Unit]) -> str:
    """The units; a line begins where something was left out before one."""
    parts: list[str] = []
    end = 0
    for unit in own:
        between = text[end : unit.start]
        parts += [between if not between.strip() else "\n", text[unit.start : unit.end]]
        end = unit.end
    return "".join(parts).strip("\n")


@cache
def _weights() -> Weights:
    return Weights(Path(__file__).with_name("weights.npz"))
