"""Extraction by rules: memory without a language model.

Reads only what the user wrote, cuts out what is not their own voice, and turns plain first-person statements into
third-person facts. When in doubt it takes nothing: a missed fact can be said again, a false one is believed.
"""

from __future__ import annotations

from semmem.extraction.rules import guards
from semmem.extraction.rules.buried import buried_in, meant_for
from semmem.extraction.rules.completion import corrected
from semmem.extraction.rules.describe import Finding, described
from semmem.extraction.rules.event_time import event_time
from semmem.extraction.rules.languages import foreign_fact
from semmem.extraction.rules.openings import opened
from semmem.extraction.rules.procedures import procedure_in
from semmem.extraction.rules.recognise import recognise
from semmem.extraction.rules.sentences import CUT, Clause, Sentence, own_words, sentences_in, squeezed
from semmem.memory import Fact, MemoryType
from semmem.ports import Batch

__all__ = ["Finding", "RulesExtractor", "facts_in"]

TEXT_CHARS_MAX = 16_000
CONTENT_CHARS = range(3, 201)


def facts_in(text: str, *, chars_max: int = TEXT_CHARS_MAX) -> list[Finding]:
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


def _findings(text: str) -> list[Finding]:
    return [finding for sentence in sentences_in(own_words(text)) for finding in _read(sentence)]


def _read(sentence: Sentence) -> list[Finding]:
    whole = opened(sentence.text).text
    if steps := procedure_in(whole):
        return [Finding(MemoryType.PROCEDURAL, steps)]
    if update := corrected(whole):
        return [described(update)]
    found, remember = [], False
    for clause in sentence.clauses:
        opening = opened(clause.text)
        remember = remember or opening.remember
        if CUT not in clause.text and (finding := _read_clause(clause, opening.text, explicit=remember)):
            found.append(finding)
    return found


def _read_clause(clause: Clause, text: str, *, explicit: bool) -> Finding | None:
    if guards.is_attributed(clause.text):
        return None
    if not clause.asked:
        if statement := recognise(text, explicit=explicit):
            return described(statement)
        if foreign := foreign_fact(text):
            return Finding(MemoryType.EPISODIC if foreign[1] else MemoryType.SEMANTIC, foreign[0])
        if purpose := meant_for(text):
            return Finding(MemoryType.SEMANTIC, purpose)
    slipped = buried_in(text)
    return Finding(MemoryType.SEMANTIC, slipped) if slipped else None


class RulesExtractor:
    """Finds facts by rule; needs nothing and never fails.

    ``facts_per_batch``: facts kept of one batch, the first ones. ``text_chars_max``: characters read of one turn.
    """

    name = "rules"

    def __init__(self, *, facts_per_batch: int = 20, text_chars_max: int = TEXT_CHARS_MAX) -> None:
        self._facts_per_batch = facts_per_batch
        self._text_chars_max = text_chars_max

    async def extract(self, batch: Batch) -> list[Fact]:
        """Facts from the user texts of ``batch.turns``, oldest first; answers and context are not read."""
        facts = [
            Fact(
                type=finding.type,
                content=finding.content,
                turn_id=turn.id,
                importance=finding.importance,
                occurred_at=event_time(finding.content, turn.opened_at),
            )
            for turn in batch.turns
            for finding in facts_in(turn.user_text, chars_max=self._text_chars_max)
        ]
        return facts[: self._facts_per_batch]
