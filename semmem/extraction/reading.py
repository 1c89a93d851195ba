"""The user's side of turns as an extractor may see it: the user's own voice, without semmem's block, bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from semmem.extraction.voice.hearing import Heard, heard
from semmem.memory import Fact, Turn
from semmem.ports.learning import Batch
from semmem.text.grounding import SourceText

TURN_CHARS_MIN = 16


@dataclass(frozen=True, slots=True)
class Read:
    """``shown``: the batch as an extractor sees it. ``said``: the words in it, which ground facts."""

    shown: Batch
    said: SourceText

    def weighed(self, facts: Sequence[Fact]) -> list[Fact]:
        """The facts; those of mixed turns end and change nothing."""
        return [replace(fact, beside=True) if fact.turn_id in self.shown.mixed else fact for fact in facts]


class Reader:
    """Of one user text at most ``turn_chars_max`` characters are read (its beginning and its end).

    ``strip_block`` removes semmem's own injected block from a text, ``hear`` what others say in it.
    """

    def __init__(
        self,
        *,
        strip_block: Callable[[str], str] = str,
        hear: Callable[[str], Heard] = heard,
        turn_chars_max: int = 16_000,
    ) -> None:
        if turn_chars_max < TURN_CHARS_MIN:
            raise ValueError(f"turn_chars_max must be at least {TURN_CHARS_MIN}")
        self._strip_block = strip_block
        self._hear = hear
        self._turn_chars_max = turn_chars_max

    def read(self, batch: Batch) -> Read:
        """The batch as an extractor sees it, and whose words are in it."""
        turns, mixed = self._heard(batch.turns)
        context, _ = self._heard(batch.context)
        shown = replace(batch, turns=turns, context=context, mixed=mixed)
        return Read(shown, SourceText(text_of(turns), text_of(context)))

    def turns(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        """Those turns in which the user said something, and what they said."""
        return self._heard(turns)[0]

    def _heard(self, turns: Sequence[Turn]) -> tuple[tuple[Turn, ...], frozenset[str]]:
        found = [(turn, self._hear(self._shorten(self._strip_block(turn.user_text)))) for turn in turns]
        own = tuple(structs.replace(turn, user_text=one.text) for turn, one in found if one.text.strip())
        return own, frozenset(turn.id for turn, one in found if not one.alone)

    def _shorten(self, text: str) -> str:
        half = self._turn_chars_max // 2
        return text if len(text) <= self._turn_chars_max else f"{text[:half]}\n{text[-half:]}"


def text_of(turns: Iterable[Turn]) -> str:
    """Everything the user said in them."""
    return "\n".join(turn.user_text for turn in turns)
