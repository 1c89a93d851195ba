"""Which passages of a message are kept: runs of clauses that say something lasting, as the user wrote them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from semmem.extraction.lasting.classifier import Judgement
from semmem.extraction.lasting.clauses import Clause, raised
from semmem.memory import MemoryType
from semmem.text.words import counted

PASSAGE_CHARS_MAX = 198
"""With its quotation marks a passage is a memory of at most 200 characters."""
PASSAGE_CHARS_MIN = 3
WORDS_ALONE_MIN = 4
"""Fewer words, or Chinese or Japanese characters by half, are not understood alone: "14, not 12"."""
_OPENING = re.compile(
    r"(?:[\s,;:.!?()–—-]|(?:and|but|so|because|since|also|plus|oh|well|und|aber|y|et|mais|pero)\b)+", re.I
)
_OWN = re.compile(r"(?:i|we|my|our|ich|wir|mein\w*|unser\w*|je|nous|mon|ma|yo|mis?|eu|meu|minha)\b|j['’]|[我私]", re.I)
_CLOSING = " ,;:–—-("

Judged = tuple[Clause, Judgement]


@dataclass(frozen=True, slots=True)
class Passage:
    """``text`` as written. ``clauses`` are those that made it worth keeping."""

    text: str
    clauses: tuple[Judged, ...]

    @property
    def best(self) -> Judgement:
        """Of the surest clause; a decision is an event whatever it is about."""
        best = max((judgement for _, judgement in self.clauses), key=lambda judgement: judgement.lasting)
        return replace(best, type=MemoryType.EPISODIC) if is_decision(self.text) else best


def passages(
    text: str, found: Sequence[Clause], judged: Sequence[Judgement], *, cut: float, near: float
) -> list[Passage]:
    """What is kept of a message: in each sentence where one reaches ``cut``, from the first clause that reaches
    ``near`` to the last one. What is too short to be understood is kept with what stands before it; what only asks for
    something of the user's own is not; what the user asks to remember is."""
    places = {clause.start: place for place, clause in enumerate(found)}
    told = [(clause, _told(clause, judgement, cut)) for clause, judgement in zip(found, judged, strict=True)]
    kept = [
        _widened(text, run, found, places[run[0][0].start])
        for _, sentence in groupby(told, key=lambda pair: pair[0].sentence)
        for run in _runs_of(text, list(sentence), cut, near)
    ]
    return [passage for passage in kept if len(passage.text) >= PASSAGE_CHARS_MIN and _says_something(passage)]


def _says_something(passage: Passage) -> bool:
    """Figures alone say nothing about anybody, unless somebody asks to keep them."""
    return _has_letters(passage.text) or any(clause.to_keep or clause.requested for clause, _ in passage.clauses)


def _told(clause: Clause, judgement: Judgement, cut: float) -> Judgement:
    if clause.to_keep:
        return replace(judgement, lasting=1.0)
    if clause.requests or asks_for_own(clause.text):
        return replace(judgement, lasting=0.0)
    if clause.requested and (lasting := raised(judgement.lasting, plainly=clause.plainly)) >= cut:
        return replace(judgement, lasting=lasting)
    return judgement


def _runs_of(text: str, sentence: list[Judged], cut: float, near: float) -> Iterator[list[Judged]]:
    """The clauses of one sentence that are kept together."""
    if all(judgement.lasting < cut for _, judgement in sentence):
        return
    kept = [index for index, (_, judgement) in enumerate(sentence) if judgement.lasting >= near]
    whole = sentence[kept[0] : kept[-1] + 1]
    if len(_written(text, whole[0][0].start, whole[-1][0].end)) <= PASSAGE_CHARS_MAX:
        yield whole
        return
    run: list[Judged] = []
    for index in kept:
        if run and len(_written(text, run[0][0].start, sentence[index][0].end)) > PASSAGE_CHARS_MAX:
            yield run
            run = []
        run.append(sentence[index])
    yield run


def _widened(text: str, run: list[Judged], found: Sequence[Clause], place: int) -> Passage:
    """The run, which begins at that place, as a passage; with clauses before it while it is too short."""
    start, end, sentence = run[0][0].start, run[-1][0].end, run[0][0].sentence
    while place and (
        _is_short(written := _written(text, start, end))
        or (not _has_letters(written) and found[place - 1].sentence == sentence)
    ):
        place -= 1
        if len(_written(text, found[place].start, end)) > PASSAGE_CHARS_MAX:
            break
        start = found[place].start
    return Passage(_trimmed(_written(text, start, end)), tuple(run))


def _has_letters(written: str) -> bool:
    return any(map(str.isalpha, written))


def _is_short(written: str) -> bool:
    """Whether it is neither long enough to be understood nor says of whom it speaks."""
    return _OWN.match(written) is None and counted(written) < WORDS_ALONE_MIN


def _written(text: str, start: int, end: int) -> str:
    """Those characters on one line, without a conjunction before them and punctuation that goes on behind."""
    written = " ".join(text[start:end].split())
    opening = _OPENING.match(written)
    written = written[opening.end() :] if opening and opening.end() < len(written) else written
    return written.rstrip(_CLOSING)


def _trimmed(written: str) -> str:
    """At most so many characters as a memory has room for, whole words where there are any."""
    if len(written) <= PASSAGE_CHARS_MAX:
        return written
    cut = written[: PASSAGE_CHARS_MAX + 1]
    return cut.rpartition(" ")[0] or cut[:PASSAGE_CHARS_MAX]


CHARS_READ = 400
"""Of a clause; nobody writes longer ones."""

_BE = "is|are|was|were|ist|sind|war|waren|est|sont|es|son|é|são"
_MY = r"my|our|mein\w{0,2}|unser\w{0,2}|mon|ma|mes|notre|nos|mis?|nuestr[oa]s?|(?:[oa]s? )?(?:meus?|minhas?|noss[oa]s?)"
_INTERROGATIVE = (
    r"what|which|who|when|where|how|was|wie|wo|wer|wann|welche\w?|qu[ée]|cuál|cuándo|dónde|quién|quel\w{0,3}|où|quand"
    r"|qui|qual|quando|onde|quem"
)
_ASKS_FOR_OWN = re.compile(
    rf"\W*(?:[^:?!.]{{1,40}}: )?(?:(?:and|but|so|und|y|et|e) )?(?:{_INTERROGATIVE})"
    rf"(?:'s|s|(?: \w+){{0,2}} (?:{_BE})) (?:{_MY})\b",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:I|we)(?:'ve| have)?(?: (?:just|finally|now|all|both|already|eventually))? "
    r"(?:decided|agreed|chose|chosen|settled on|opted|picked)\b"
    r"|\b(?:hemos|he) decidido\b|\b(?:nous avons|j'ai) décidé\b"
    r"|\b(?:ich habe|wir haben)\b[^.!?]{0,60}\b(?:entschieden|beschlossen)\b",
    re.IGNORECASE,
)


def asks_for_own(clause: str) -> bool:
    """Whether a clause asks what something of the user's own is ("what's my budget for the trip?")."""
    text = clause[:CHARS_READ].replace("’", "'")
    return clause.rstrip("\"'”’)） ").endswith(("?", "？")) and _ASKS_FOR_OWN.match(text) is not None


def is_decision(passage: str) -> bool:
    """Whether somebody tells that they decided something."""
    return _DECISION.search(passage[:CHARS_READ].replace("’", "'")) is not None
