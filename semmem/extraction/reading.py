"""The user's side of turns as an extractor may see it: the user's own voice, without semmem's block, bounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace

from msgspec import structs

from semmem.extraction.forget_requests import asked_of
from semmem.extraction.voice.hearing import Heard, heard
from semmem.memory import Fact, Turn
from semmem.ports.learning import Batch
from semmem.text.grounding import SourceText

TURN_CHARS_MIN = 16
_LONG_NUMBER = re.compile(r"\d(?:[ ./-]?\d){8}")
"""A date has fewer digits."""


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
        """The facts; those of doubted turns end and change nothing and do not stand. One with the number of an account
        or a telephone is left out."""
        doubted = self.shown.doubted
        return [
            replace(fact, beside=True, standing=None) if fact.turn_id in doubted else fact
            for fact in facts
            if fact.turn_id not in doubted or not _LONG_NUMBER.search(fact.content)
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

    def __post_init__(self) -> None:
        if self.turn_chars_max < TURN_CHARS_MIN:
            raise ValueError(f"turn_chars_max must be at least {TURN_CHARS_MIN}")

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
