"""Which passages of a message are kept: runs of clauses that say something lasting, as the user wrote them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from semmem.extraction.lasting.classifier import Judgement
from semmem.extraction.lasting.clauses import Clause

PASSAGE_CHARS_MAX = 198
"""With its quotation marks a passage is a memory of at most 200 characters."""
_OPENING = re.compile(
    r"(?:[\s,;:.!?()–—-]+|(?:and|but|so|because|since|also|plus|oh|well|und|aber|y|et|mais|pero)\b)+", re.I
)
_CLOSING = " ,;:–—-("

Judged = tuple[Clause, Judgement]


@dataclass(frozen=True, slots=True)
class Passage:
    """``text`` as written. ``clauses`` are those that made it worth keeping."""

    text: str
    clauses: tuple[Judged, ...]

    @property
    def best(self) -> Judgement:
        return max((judgement for _, judgement in self.clauses), key=lambda judgement: judgement.lasting)


def passages(
    text: str, found: Sequence[Clause], judged: Sequence[Judgement], *, cut: float, near: float
) -> list[Passage]:
    """What is kept of a message: in each sentence where one reaches ``cut``, from the first clause that reaches
    ``near`` to the last one."""
    return [
        passage
        for _, sentence in groupby(zip(found, judged, strict=True), key=lambda pair: pair[0].sentence)
        for passage in _of_sentence(text, list(sentence), cut, near)
    ]


def _of_sentence(text: str, sentence: list[Judged], cut: float, near: float) -> Iterator[Passage]:
    if all(judgement.lasting < cut for _, judgement in sentence):
        return
    kept = [index for index, (_, judgement) in enumerate(sentence) if judgement.lasting >= near]
    whole = _passage(text, sentence[kept[0] : kept[-1] + 1])
    if len(whole.text) <= PASSAGE_CHARS_MAX:
        yield whole
        return
    yield from _short_runs(text, [sentence[index] for index in kept])


def _short_runs(text: str, kept: list[Judged]) -> Iterator[Passage]:
    """Neighbouring clauses, as many together as there is room for."""
    run: list[Judged] = []
    for pair in kept:
        longer = _passage(text, [*run, pair])
        if run and len(longer.text) > PASSAGE_CHARS_MAX:
            yield _passage(text, run)
            run = []
        run.append(pair)
    yield _passage(text, run)


def _passage(text: str, run: list[Judged]) -> Passage:
    written = " ".join(text[run[0][0].start : run[-1][0].end].split())
    opening = _OPENING.match(written)
    written = written[opening.end() :] if opening and opening.end() < len(written) else written
    return Passage(written.rstrip(_CLOSING), tuple(run))
