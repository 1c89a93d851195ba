"""The user's side of turns as an extractor may see it: the user's own voice, without semmem's block, bounded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from pathlib import Path

from msgspec import structs

from semmem.extraction.voice.hearing import DETAIL, Heard, heard, units
from semmem.memory import Fact, Turn
from semmem.ports.learning import Batch
from semmem.text.courtesies import behind_courtesies
from semmem.text.grounding import SourceText

SUBJECT_CHARS_MAX = 200
_END = re.compile(
    r"[,;]\s|[，；]| (?:because|since|cause|as i|weil|denn|parce que|car|porque|perché|omdat|want|bo|ponieważ) ", re.I
)
_PIECE = re.compile(r"[,;–—，]")
_AND = re.compile(r"(?:^| )(?:both|and|und|et|y|e|sowie|as well as) |[和と]")
PIECES_MAX, PARTS_MAX = 20, 4


@dataclass(frozen=True, slots=True)
class Asked:
    """What a message asks to be forgotten, and whether it asks to be kept out itself.

    "Forget that I'm vegetarian" is an order about a memory; "forget it", "I forgot" and "don't forget" are none. The
    forms are closed classes of ten languages (forget_requests.json). They say what is meant, not which memory: that is
    looked up (``unlearning.meant``), and where none is meant nothing goes.

    ``forget``: what shall be forgotten, in the user's words. ``rest``: the message without those orders, empty where
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
    lists = json.loads(Path(__file__).with_name("forget_requests.json").read_text("utf-8"))
    return _Forms(
        tuple(re.compile(rf"{form}$", re.IGNORECASE) for form in (_open_end(form) for form in lists["requests"])),
        tuple(re.compile(form, re.IGNORECASE) for form in lists["not_kept"]),
        re.compile(rf"(?:[\s,]+|(?<=[\u3040-\u30ff\u3400-\u9fff]))(?:{'|'.join(lists['tails'])})[\s.!?。！？]*$", re.I),
    )


def _open_end(form: str) -> str:
    return form if form.endswith(".*") else rf"{form}[\s.!?。！？…]*"


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """What a turn asks to forget, in its words."""

    turn: Turn
    subject: str


@dataclass(frozen=True, slots=True)
class Read:
    """``shown``: the batch as an extractor sees it. ``said``: the words in it, which ground facts. ``forget``: what the
    user asks to be forgotten, in messages in which nobody else speaks; these orders are not in ``shown``, and nor is
    what the user asks to keep out."""

    shown: Batch
    said: SourceText
    forget: tuple[ForgetRequest, ...] = ()

    @property
    def own_turns(self) -> list[Turn]:
        """Those in whose messages nobody else speaks, as far as can be told."""
        return [turn for turn in self.shown.turns if turn.id not in self.shown.doubted]

    def weighed(self, facts: Sequence[Fact]) -> list[Fact]:
        """The facts; those of doubted turns end and change nothing and do not stand; none of them says how to pay or
        reach somebody."""
        doubted = self.shown.doubted
        return [
            replace(fact, beside=True, standing=None) if fact.turn_id in doubted else fact
            for fact in facts
            if fact.turn_id not in doubted or not DETAIL.search(fact.content)
        ]


@dataclass(frozen=True, slots=True)
class _Own:
    """What is to be learnt from of what was heard, and what it asks to be forgotten."""

    text: str
    alone: bool
    mixed: bool
    forget: tuple[str, ...]


@dataclass(eq=False, repr=False)
class Reader:
    """Of one user text at most ``turn_chars_max`` characters are read (its beginning and its end).

    ``strip_block`` removes semmem's own injected block from a text, ``hear`` what others say in it.
    """

    _: KW_ONLY
    strip_block: Callable[[str], str] = str
    hear: Callable[[str], Heard] = heard
    turn_chars_max: int = 16_000

    def read(self, batch: Batch) -> Read:
        """The batch as an extractor sees it, and whose words are in it."""
        found, context = self._heard(batch.turns), self._spoken(self._heard(batch.context))
        turns = self._spoken(found)
        mixed = frozenset(turn.id for turn, one in found if one.mixed)
        doubted = frozenset(turn.id for turn, one in found if not one.alone)
        shown = replace(batch, turns=turns, context=context, mixed=mixed, doubted=doubted)
        forget = [ForgetRequest(turn, subject) for turn, one in found for subject in one.forget]
        return Read(shown, SourceText(text_of(turns), text_of(context)), tuple(forget))

    def turns(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        """Those turns in which the user said something, and what they said."""
        return self._spoken(self._heard(turns))

    def _heard(self, turns: Sequence[Turn]) -> list[tuple[Turn, _Own]]:
        return [(turn, self._own(turn)) for turn in turns]

    def _own(self, turn: Turn) -> _Own:
        one = self.hear(self._shorten(self.strip_block(turn.user_text)))
        asked = asked_of(one.text)
        return _Own(asked.rest, one.alone, one.mixed, asked.forget if one.alone or asked.single else ())

    @staticmethod
    def _spoken(found: Sequence[tuple[Turn, _Own]]) -> tuple[Turn, ...]:
        return tuple(structs.replace(turn, user_text=one.text) for turn, one in found if one.text.strip())

    def _shorten(self, text: str) -> str:
        half = self.turn_chars_max // 2
        return text if len(text) <= self.turn_chars_max else f"{text[:half]}\n{text[-half:]}"


def text_of(turns: Iterable[Turn]) -> str:
    """Everything the user said in them."""
    return "\n".join(turn.user_text for turn in turns)
