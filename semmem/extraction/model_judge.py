"""A language model's opinion on what the rules can only guess: does a new statement replace or repeat an old one?

All doubtful pairs of a batch are one question. Whatever goes wrong with it, the rules' judgement stands, so an answer
is taken apart with suspicion: numbers of no pair, pairs with two verdicts and things that are no numbers count for
nothing, and no opinion is kept by which something said would be lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from semmem.extraction.answers import json_values
from semmem.extraction.asked_model import AskingModel, as_line, within
from semmem.extraction.contradiction.verdict import Verdict, may
from semmem.memory import Turn
from semmem.ports.errors import ModelRefused
from semmem.ports.models import exactly

Opinions = Mapping[tuple[str, str], Verdict]
"""Verdicts by (old text, new text). A pair that is not in it was not judged."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Two statements about one user that may exclude each other; ``cosine`` is that of their embeddings."""

    old: str
    new: str
    cosine: float


_RULES = Path(__file__).with_suffix(".txt").read_text("utf-8").rstrip("\n")
_NUMBERS = {"type": "array", "items": {"type": "integer"}}
SCHEMA = exactly(replaces=_NUMBERS, repeats=_NUMBERS)


@dataclass(eq=False, repr=False)
class ModelJudge(AskingModel):
    """Asks about at most ``pairs_max`` pairs, in one call."""

    _: KW_ONLY
    pairs_max: int = 40

    async def opinions(self, doubts: Sequence[Doubt], turns: Sequence[Turn] = ()) -> Opinions:
        """What the model makes of the doubts, the most alike first where there are too many; ``turns`` are those that
        the new statements come from. Raises ModelError."""
        shown = sorted(doubts, key=lambda doubt: -doubt.cosine)[: self.pairs_max]
        if not shown:
            return {}
        pairs = enumerate(shown, start=1)
        lines = (as_line({"pair": number, "old": each.old, "new": each.new}) for number, each in pairs)
        answer = await self._answer(_RULES, within("pairs", lines), SCHEMA, turns)
        verdicts = parse_verdicts(answer, len(shown))
        return {
            (doubt.old, doubt.new): verdict
            for number, doubt in enumerate(shown, start=1)
            if (verdict := verdicts.get(number)) and may(verdict, doubt.old, doubt.new)
        }


def parse_verdicts(answer: str, pairs: int) -> dict[int, Verdict]:
    """Verdicts by pair number, 1 to ``pairs``; a pair that is listed twice has none.

    Raises ModelRefused when the answer holds no such JSON.
    """
    for value in json_values(answer):
        listed = [value.get(word) for word in ("replaces", "repeats")] if isinstance(value, dict) else []
        if not any(isinstance(some, list) for some in listed):
            continue
        replaced, repeated = map(_numbers, listed)
        found = dict.fromkeys(range(1, pairs + 1), Verdict.DIFFERENT)
        found |= dict.fromkeys(found.keys() & replaced, Verdict.CONTRADICTION)
        found |= dict.fromkeys(found.keys() & repeated, Verdict.SAME)
        return {number: verdict for number, verdict in found.items() if number not in replaced & repeated}
    raise ModelRefused("no verdicts in the answer")


def _numbers(value: object) -> set[int]:
    items = value if isinstance(value, list) else []
    return {item for item in items if isinstance(item, int) and not isinstance(item, bool)}
