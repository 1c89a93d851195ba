"""The user's side of turns as an extractor may see it: without semmem's own block, bounded, nothing empty."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from msgspec import structs

from semmem.memory import Turn
from semmem.ports.learning import Batch
from semmem.text.grounding import SourceText

TURN_CHARS_MIN = 16


class Reader:
    """Of one user text at most ``turn_chars_max`` characters are read (its beginning and its end).

    ``strip_block`` removes semmem's own injected block from a text.
    """

    def __init__(self, *, strip_block: Callable[[str], str] = str, turn_chars_max: int = 16_000) -> None:
        if turn_chars_max < TURN_CHARS_MIN:
            raise ValueError(f"turn_chars_max must be at least {TURN_CHARS_MIN}")
        self._strip_block = strip_block
        self._turn_chars_max = turn_chars_max

    def read(self, batch: Batch) -> tuple[Batch, SourceText]:
        """The batch as an extractor sees it, and the words in it."""
        shown = replace(batch, turns=self.turns(batch.turns), context=self.turns(batch.context))
        return shown, SourceText(text_of(shown.turns), text_of(shown.context))

    def turns(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        """Those turns in which the user said something."""
        read = (structs.replace(turn, user_text=self._shorten(self._strip_block(turn.user_text))) for turn in turns)
        return tuple(turn for turn in read if turn.user_text.strip())

    def _shorten(self, text: str) -> str:
        half = self._turn_chars_max // 2
        return text if len(text) <= self._turn_chars_max else f"{text[:half]}\n{text[-half:]}"


def text_of(turns: Iterable[Turn]) -> str:
    """Everything the user said in them."""
    return "\n".join(turn.user_text for turn in turns)
