"""What of a message the user says in their own voice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from semmem.extraction.voice.features import shapes, words_of
from semmem.extraction.voice.model import Weights
from semmem.extraction.voice.units import UNITS_MAX, Unit, units

DOUBTED_MIN = -1.0
"""From these odds on (their logarithm) a unit is perhaps somebody else's (docs/learning.md)."""
SURE_EACH, SURE_MIN = 1.0, 2.5
"""From so many times the number of the message's other units on it surely is, and in any message from SURE_MIN on: of
many units one is sooner misjudged, and beside a single one stands nothing that tells whose it is."""
OTHERS_MIN = -2.0
"""The least for any other unit of a message in which one surely is: a text has more than one."""


@dataclass(frozen=True, slots=True)
class Heard:
    """``text``: what the user says in their own voice, each line where it was. ``alone``: nobody else speaks in the
    message, not even perhaps, and all of it was read, so that it may end or change what is known of the user.
    ``mixed``: somebody else surely does."""

    text: str
    alone: bool
    mixed: bool = False


def heard(text: str) -> Heard:
    """Linear in the length of the text; never raises."""
    found = units(text)
    if not found:
        return Heard(text, alone=True)
    rows = [words_of(text[unit.start : unit.end]) for unit in found]
    odds = _weights().odds(rows, shapes(text, found))
    highest = float(max(odds))
    mixed = highest >= (min(SURE_MIN, SURE_EACH * (len(found) - 2)) if len(found) > 1 else SURE_MIN)
    own = [unit for unit, odd in zip(found, odds, strict=True) if not (unit.quoted or (mixed and odd >= OTHERS_MIN))]
    alone = len(own) == len(found) < UNITS_MAX and highest < DOUBTED_MIN
    return Heard(_joined(text, own), alone, mixed)


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
