"""What a message asks to be forgotten, and whether it asks to be kept out itself.

"Forget that I'm vegetarian" is an order about a memory; "forget it", "I forgot" and "don't forget" are none. The forms
are closed classes of ten languages (forget_requests.json). They say what is meant, not which memory: that is looked up
(semmem.extraction.forgetting), and where none is meant nothing goes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from semmem.extraction.voice.units import units
from semmem.text.courtesies import behind_courtesies

SUBJECT_CHARS_MAX = 200
_END = re.compile(
    r"[,;]\s|[，；]| (?:because|since|cause|as i|weil|denn|parce que|car|porque|perché|omdat|want|bo|ponieważ) ", re.I
)
_PIECE = re.compile(r"[,;–—，]")
_AND = re.compile(r"(?:^| )(?:both|and|und|et|y|e|sowie|as well as) |[和と]")
PIECES_MAX, PARTS_MAX = 20, 4


@dataclass(frozen=True, slots=True)
class Asked:
    """``forget``: what shall be forgotten, in the user's words. ``rest``: the message without those orders, empty where
    it asks to be kept out. ``single``: it is one sentence, so that nobody else can speak in it."""

    rest: str
    forget: tuple[str, ...] = ()
    single: bool = False


def asked_of(text: str) -> Asked:
    """Linear in the length of the text; never raises."""
    forget: list[str] = []
    kept: list[str] = []
    end = 0
    found_units = units(text)
    for unit in found_units:
        said = text[unit.start : unit.end]
        if unit.quoted:
            continue
        pieces = [piece.strip() for piece in _PIECE.split(said)[:PIECES_MAX]]
        if any(_first(_forms().not_kept, piece) for piece in pieces):
            return Asked("")
        found = next(filter(None, (_first(_forms().requests, each) for each in (said, *pieces))), None)
        subject, cut = ("", 0) if found is None else _cut(found["s"])
        if found is not None and subject:
            forget += [part for part in _AND.split(subject) if part][:PARTS_MAX]
            kept.append(text[end : unit.start])
            end = unit.start + said.rfind(found.string) + (found.start("s") + cut if cut else len(found.string))
    if not forget:
        return Asked(text)
    return Asked("\n".join([*kept, text[end:].lstrip(" ,;.!?")]).strip(), tuple(forget), len(found_units) == 1)


def _first(forms: tuple[re.Pattern[str], ...], said: str) -> re.Match[str] | None:
    """The first form that the text has, behind as many words of courtesy as can be."""
    stages = [said[place:] for place in behind_courtesies(said)]
    return next((found for stage in stages for form in forms if (found := form.match(stage))), None)


def _cut(said: str) -> tuple[str, int]:
    """What is meant, and where the sentence goes on to say something else, 0 where it does not."""
    end = _END.search(_without_tails(said))
    if end is None:
        return _without_tails(said)[:SUBJECT_CHARS_MAX], 0
    return _without_tails(said[: end.start()])[:SUBJECT_CHARS_MAX], end.end()


def _without_tails(said: str) -> str:
    while (shorter := _forms().tails.sub("", said).rstrip(" .!?,;。！？，…'\"")) != said:
        said = shorter
    return said


@dataclass(frozen=True, slots=True)
class _Forms:
    requests: tuple[re.Pattern[str], ...]
    not_kept: tuple[re.Pattern[str], ...]
    tails: re.Pattern[str]


@cache
def _forms() -> _Forms:
    lists = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    return _Forms(
        tuple(re.compile(rf"{form}$", re.IGNORECASE) for form in (_open_end(form) for form in lists["requests"])),
        tuple(re.compile(form, re.IGNORECASE) for form in lists["not_kept"]),
        re.compile(rf"(?:[\s,]+|(?<=[\u3040-\u30ff\u3400-\u9fff]))(?:{'|'.join(lists['tails'])})[\s.!?。！？]*$", re.I),
    )


def _open_end(form: str) -> str:
    return form if form.endswith(".*") else rf"{form}[\s.!?。！？…]*"
