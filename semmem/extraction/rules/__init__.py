"""Extraction by rules: memory without a language model.

Reads only what the user wrote, cuts out what is not their own voice, and turns plain first-person statements into
third-person facts. When in doubt it takes nothing: a missed fact can be said again, a false one is believed.
"""

from __future__ import annotations

import time

from cachetools import LRUCache

from semmem.extraction.rules import guards
from semmem.extraction.rules.buried import buried_in, meant_for
from semmem.extraction.rules.completion import corrected
from semmem.extraction.rules.describe import Described, described
from semmem.extraction.rules.event_time import event_time
from semmem.extraction.rules.languages import foreign_fact
from semmem.extraction.rules.openings import opened
from semmem.extraction.rules.procedures import procedure_in
from semmem.extraction.rules.recognise import recognise
from semmem.extraction.rules.sentences import CUT, Clause, Sentence, own_words, sentences_in, squeezed
from semmem.extraction.work import BATCH_TOO_SLOW, InThread, reason
from semmem.memory import Fact, MemoryType, Turn
from semmem.ports.errors import WorkLost, WorkTooSlow
from semmem.ports.events import Announce, TurnsUnread, nobody_listens
from semmem.ports.learning import Batch
from semmem.ports.text_work import TextWork

__all__ = ["Finding", "RulesExtractor", "facts_in"]

TEXT_CHARS_MAX = 16_000
CONTENT_CHARS = range(3, 201)
GIVEN_UP_MAX = 10_000


def facts_in(text: str, *, chars_max: int = TEXT_CHARS_MAX) -> list[Described]:
    """The facts that a user's message states about them, in the order of the text, without repetition.

    Pure, linear in the length of the text, never raises. Only the first ``chars_max`` characters are read.
    """
    message = squeezed(text[:chars_max])
    found = _findings(message)
    # The guards look at the whole message and cost most, so they are asked only where something was found.
    if found and (own := guards.own_part(message)) != message:
        found = _findings(own)
    unique = {finding.content: finding for finding in found if finding.content != message}
    return [finding for finding in unique.values() if len(finding.content) in CONTENT_CHARS]


def _findings(text: str) -> list[Described]:
    return [finding for sentence in sentences_in(own_words(text)) for finding in _read(sentence)]


def _read(sentence: Sentence) -> list[Described]:
    whole = opened(sentence.text).text
    if steps := procedure_in(whole):
        return [Described(MemoryType.PROCEDURAL, steps)]
    if update := corrected(whole):
        return [described(update)]
    found, remember = [], False
    for clause in sentence.clauses:
        opening = opened(clause.text)
        remember = remember or opening.remember
        if CUT not in clause.text and (finding := _read_clause(clause, opening.text, explicit=remember)):
            found.append(finding)
    return found


def _read_clause(clause: Clause, text: str, *, explicit: bool) -> Described | None:
    if guards.is_attributed(clause.text):
        return None
    if not clause.asked:
        if statement := recognise(text, explicit=explicit):
            return described(statement)
        if foreign := foreign_fact(text):
            return Described(MemoryType.EPISODIC if foreign[1] else MemoryType.SEMANTIC, foreign[0])
        if purpose := meant_for(text):
            return Described(MemoryType.SEMANTIC, purpose)
    slipped = buried_in(text)
    return Described(MemoryType.SEMANTIC, slipped) if slipped else None


class RulesExtractor:
    """Finds facts by rule; needs no model.

    ``facts_per_batch``: facts kept of one batch, the first ones. ``text_chars_max``: characters read of one turn.
    ``work`` reads; it has ``turn_budget_s`` seconds for a turn and ``batch_budget_s`` for those of a batch. A turn that
    takes longer is given up, once and for all (the last ``GIVEN_UP_MAX`` are remembered): the others of its batch are
    read, and TurnsUnread is announced.
    """

    name = "rules"

    def __init__(
        self,
        *,
        facts_per_batch: int = 20,
        text_chars_max: int = TEXT_CHARS_MAX,
        work: TextWork | None = None,
        turn_budget_s: float = 1.0,
        batch_budget_s: float = 5.0,
        announce: Announce = nobody_listens,
    ) -> None:
        self._facts_per_batch = facts_per_batch
        self._text_chars_max = text_chars_max
        self._work = work or InThread()
        self._turn_budget_s = turn_budget_s
        self._batch_budget_s = batch_budget_s
        self._announce = announce
        self._given_up: LRUCache[str, str] = LRUCache(GIVEN_UP_MAX)

    async def extract(self, batch: Batch) -> list[Fact]:
        """Facts from the user texts of ``batch.turns``, oldest first; answers and context are not read.

        Raises WorkUnavailable.
        """
        facts: list[Fact] = []
        left_s = self._batch_budget_s
        for turn in batch.turns:
            found, seconds, why = await self._read(turn, left_s)
            facts += found
            left_s -= seconds
            if why:
                self._announce(TurnsUnread(batch.id, why, 1))
        return facts[: self._facts_per_batch]

    async def _read(self, turn: Turn, left_s: float) -> tuple[list[Fact], float, str]:
        """The facts, the seconds it took, and why it was not read."""
        if known := self._given_up.get(turn.id):
            return [], 0.0, known
        if left_s <= 0:
            return [], 0.0, BATCH_TOO_SLOW
        budget_s = min(self._turn_budget_s, left_s)
        try:
            found, seconds = await self._work.run(facts_of, turn, self._text_chars_max, budget_s=budget_s)
        except (WorkTooSlow, WorkLost) as error:
            why = reason(error)
            self._given_up[turn.id] = why
            return [], budget_s, why
        return found, seconds, ""


def facts_of(turn: Turn, chars_max: int) -> tuple[list[Fact], float]:
    """The facts in a turn's user text, and the seconds it took to find them."""
    started = time.thread_time()
    facts = [
        Fact(
            type=finding.type,
            content=finding.content,
            turn_id=turn.id,
            importance=finding.importance,
            occurred_at=event_time(finding.content, turn.opened_at),
        )
        for finding in facts_in(turn.user_text, chars_max=chars_max)
    ]
    return facts, time.thread_time() - started
