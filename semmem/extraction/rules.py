"""Extraction by rules: memory without a language model.

Reads only what the user wrote, in their own voice, and asks a small classifier which clauses say something lasting
about them. A plain first-person statement is said in the third person ("User is allergic to nuts"); everything else is
kept as it was written, in quotation marks."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import groupby

from cachetools import LRUCache

from semmem.extraction.lasting.classifier import SIGNATURES, Judgement, judge
from semmem.extraction.lasting.clauses import clauses, raised, squeezed
from semmem.extraction.lasting.features import CHARS_READ, Clause, features
from semmem.extraction.phrasing import event_time, phrased
from semmem.extraction.work import BATCH_TOO_SLOW, IN_THREAD, reason
from semmem.memory import Fact, Memory, MemoryType, Scope, Standing, Turn, Vector
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError, WorkLost, WorkTooSlow
from semmem.ports.events import Announce, TurnsUnread, nobody_listens
from semmem.ports.learning import Batch, Extracted
from semmem.ports.text_work import TextWork
from semmem.text.words import counted

TEXT_CHARS_MAX = 16_000
CLAUSES_PER_TURN_MAX = 40
"""Of one turn so many clauses are looked at; a longer text is hardly told in the user's own voice."""
CLAUSES_PER_BATCH_MAX = 200
"""So many clauses of a batch are embedded; the others are judged without their vectors."""
LASTING_MIN, FORMAL_MIN = 0.43, 0.48
"""The least probability of being lasting that is kept: with the clause's vector, and by its form alone."""
DOUBTED_MIN, MIXED_MIN = 0.6, 0.8
"""The same in a message in which others perhaps, and surely, speak as well: most of what the user says beside a text is
about it."""
NEAR_MIN = 0.05
"""The least probability that belongs to a sentence of which another clause is kept."""
GIVEN_UP_MAX = 10_000
_IMPORTANCE = {Standing.MUST: 0.9, Standing.STYLE: 0.8, Standing.PROFILE: 0.7}
_IMPORTANCE_OTHERWISE = 0.5


@dataclass(frozen=True, slots=True)
class Reading:
    """A turn's clauses, what is seen of each, and the seconds it took to find them."""

    turn: Turn
    text: str
    clauses: tuple[Clause, ...] = ()
    seen: tuple[list[float], ...] = ()
    seconds: float = 0.0


@dataclass(eq=False, repr=False)
class RulesExtractor:
    """Finds facts without a language model.

    ``embedder`` makes the clauses' vectors; without one, or with one that the classifier was not trained on
    (``is_calibrated`` is false), the clauses are judged by their form alone. ``facts_per_batch``: facts kept of one
    batch, the first ones. ``text_chars_max``: characters read of one turn. ``work`` reads; it has ``turn_budget_s``
    seconds for a turn and ``batch_budget_s`` for those of a batch. A turn that takes longer is given up, once and for
    all (the last ``GIVEN_UP_MAX`` are remembered): the others of its batch are read, and TurnsUnread is announced."""

    name = "rules"

    embedder: Embedder | None = None
    _: KW_ONLY
    facts_per_batch: int = 20
    text_chars_max: int = TEXT_CHARS_MAX
    work: TextWork = IN_THREAD
    turn_budget_s: float = 1.0
    batch_budget_s: float = 5.0
    announce: Announce = nobody_listens

    def __post_init__(self) -> None:
        self._given_up: LRUCache[str, str] = LRUCache(GIVEN_UP_MAX)

    @property
    def is_calibrated(self) -> bool:
        """Whether the classifier was trained on this embedder's vectors. Without that it sees less."""
        return self._signature != ""

    @property
    def _signature(self) -> str:
        signature = "" if self.embedder is None else self.embedder.signature
        return signature if signature in SIGNATURES else ""

    async def extract(self, batch: Batch, notes: Sequence[Memory] = ()) -> Extracted:
        """Facts from the user texts of ``batch.turns``, oldest first; answers, context and notes are not read. Raises
        WorkUnavailable."""
        facts: list[Fact] = []
        partly = False
        left_s, vectors_left = self.batch_budget_s, CLAUSES_PER_BATCH_MAX
        for turn in batch.turns:
            found, seconds, why = await self._read(turn, left_s)
            left_s -= seconds
            if not why and found.clauses:
                vectors = await self._vectors(found.clauses) if len(found.clauses) <= vectors_left else None
                vectors_left -= len(vectors or ())
                partly = partly or (vectors is None and self.is_calibrated)
                least = MIXED_MIN if turn.id in batch.mixed else DOUBTED_MIN if turn.id in batch.doubted else 0.0
                chosen, why = await self._chosen(found, vectors, least)
                facts += chosen
            if why:
                partly = True
                self.announce(TurnsUnread(batch.id, why, 1))
        return Extracted(facts[: self.facts_per_batch], partly=partly or len(facts) > self.facts_per_batch)

    async def worth(self, text: str) -> float:
        """The probability that the text says something lasting about who wrote it: its best clause's. 0 for what
        cannot be read. Raises WorkUnavailable."""
        found, _, why = await self._read(Turn("", Scope("nobody"), 0, text, 0.0), self.turn_budget_s)
        if why or not found.clauses:
            return 0.0
        vectors = await self._vectors(found.clauses)
        judged = await asyncio.to_thread(judge, found.seen, vectors, self._signature)
        return max(judgement.lasting for judgement in judged)

    async def _chosen(self, found: Reading, vectors: Sequence[Vector] | None, least: float) -> tuple[list[Fact], str]:
        """The facts of a turn that was read, or why there are none."""
        try:
            told = facts_of, found, vectors, least, self._signature
            return await self.work.run(*told, budget_s=self.turn_budget_s), ""
        except (WorkTooSlow, WorkLost) as error:
            why = self._given_up[found.turn.id] = reason(error)
            return [], why

    async def _read(self, turn: Turn, left_s: float) -> tuple[Reading, float, str]:
        """What is seen in the turn, the seconds it took, and why it was not read."""
        nothing = Reading(turn, "")
        if known := self._given_up.get(turn.id):
            return nothing, 0.0, known
        if left_s <= 0:
            return nothing, 0.0, BATCH_TOO_SLOW
        budget_s = min(self.turn_budget_s, left_s)
        try:
            found = await self.work.run(read_clauses, turn, self.text_chars_max, budget_s=budget_s)
        except (WorkTooSlow, WorkLost) as error:
            why = self._given_up[turn.id] = reason(error)
            return nothing, budget_s, why
        return found, found.seconds, ""

    async def _vectors(self, found: Sequence[Clause]) -> list[Vector] | None:
        """All at once, which an embedder does in batches. None when it cannot: form alone is better than nothing."""
        if self.embedder is None or not self.is_calibrated:
            return None
        try:
            return await asyncio.gather(*(self.embedder.embed(clause.text) for clause in found))
        except EmbedderError:
            return None


def read_clauses(turn: Turn, chars_max: int = TEXT_CHARS_MAX) -> Reading:
    """The clauses of a turn's user text and what is seen of each. Linear in the length of the text; never raises."""
    started = time.thread_time()
    text = squeezed(turn.user_text[:chars_max])
    found = clauses(text, clauses_max=CLAUSES_PER_TURN_MAX)
    return Reading(turn, text, tuple(found), tuple(features(found)), time.thread_time() - started)


def facts_of(found: Reading, vectors: Sequence[Vector] | None, least: float = 0.0, signature: str = "") -> list[Fact]:
    """The facts in what was read, in the order of the text, without repetition, at least as probable as ``least``.
    ``signature``: what the vectors are of."""
    judged = judge(found.seen, vectors, signature)
    cut = max(least, FORMAL_MIN if vectors is None else LASTING_MIN)
    kept = passages(found.text, found.clauses, judged, cut=cut, near=NEAR_MIN)
    return list({fact.content: fact for fact in (_fact(passage, found.turn) for passage in kept)}.values())


def _fact(passage: Passage, turn: Turn) -> Fact:
    best, content, at = passage.best, phrased(passage.text), event_time(passage.text, turn.opened_at)
    importance = _IMPORTANCE[best.standing] if best.standing else _IMPORTANCE_OTHERWISE
    return Fact(best.type, content, turn.id, importance=importance, occurred_at=at, standing=best.standing)


def facts_in(text: str, *, chars_max: int = TEXT_CHARS_MAX) -> list[Fact]:
    """The facts that one message states about its author, judged by form alone."""
    return facts_of(read_clauses(Turn("", Scope("nobody"), 0, text, 0.0), chars_max), None)


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
    long = [passage for passage in kept if len(passage.text) >= PASSAGE_CHARS_MIN]
    # figures alone say nothing about anybody, unless somebody asks to keep them
    asked = [any(clause.to_keep or clause.requested for clause, _ in passage.clauses) for passage in long]
    return [passage for passage, is_asked in zip(long, asked, strict=True) if is_asked or _has_letters(passage.text)]


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
    """The run, which begins at that place, as a passage; with clauses before it while it is too short: neither long
    enough to be understood nor says of whom it speaks. Whole words of it, as many as a memory has room for."""
    start, end, sentence = run[0][0].start, run[-1][0].end, run[0][0].sentence
    written = _written(text, start, end)
    while place:
        is_short = _OWN.match(written) is None and counted(written) < WORDS_ALONE_MIN
        if not is_short and (_has_letters(written) or found[place - 1].sentence != sentence):
            break
        place -= 1
        longer = _written(text, found[place].start, end)
        if len(longer) > PASSAGE_CHARS_MAX:
            break
        written = longer
    if len(written) > PASSAGE_CHARS_MAX:
        cut = written[: PASSAGE_CHARS_MAX + 1]
        written = cut.rpartition(" ")[0] or cut[:PASSAGE_CHARS_MAX]
    return Passage(written, tuple(run))


def _has_letters(written: str) -> bool:
    return any(map(str.isalpha, written))


def _written(text: str, start: int, end: int) -> str:
    """Those characters on one line, without a conjunction before them and punctuation that goes on behind."""
    written = " ".join(text[start:end].split())
    opening = _OPENING.match(written)
    written = written[opening.end() :] if opening and opening.end() < len(written) else written
    return written.rstrip(_CLOSING)


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
