"""Learn from one batch: extract, screen, deduplicate, store, and say what became of it.

Every step may fail or be cut off by a crash, and the batch then comes back with what the journal knows of it. So:
facts are saved before the first one is stored, each is marked once it is stored, and storing one again changes
nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from semmem.extraction.dedup import Action, Candidate, Dedup, memory_id
from semmem.extraction.grounding import Said
from semmem.extraction.quota import Quota
from semmem.extraction.screen import Outcome, Verdict, screen
from semmem.memory import Fact, Turn
from semmem.ports import (
    Batch,
    Embedder,
    Extractor,
    Journal,
    JournalError,
    ModelRefused,
    ModelUnavailable,
)

BACKOFF_FACTOR = 4
"""Each wait between two tries is this much longer: with the defaults five tries span 81 minutes of an outage."""


class Screening(Protocol):
    """``screen`` with the operator's settings bound to it."""

    def __call__(self, fact: Fact, said: Said, /) -> Verdict: ...


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What became of a batch.

    ``status`` is terminal (``stored``, ``nothing``, ``rejected``, ``unchanged``, ``extraction_failed``, ``gave_up``)
    or ``postponed``. ``stored`` counts memories created or changed, by type; ``actions`` counts facts by what storing
    them did; ``rejected`` and ``quarantined`` count facts by reason. Only this try's work is counted. ``cause`` is the
    name of the error class of a failure, ``engine`` the extractor that was asked, empty when facts of an earlier try
    were used.
    """

    status: str
    stored: Mapping[str, int] = field(default_factory=dict)
    actions: Mapping[str, int] = field(default_factory=dict)
    rejected: Mapping[str, int] = field(default_factory=dict)
    engine: str = ""
    cause: str = ""
    quarantined: Mapping[str, int] = field(default_factory=dict)


class Learning:
    """Learns from leased batches. Holds no state of its own: any number of batches of different users at a time.

    ``quota`` keeps a user's memories within their limit. ``fallback`` takes over when the extractor refuses, and on
    the last of ``attempts_max`` tries. A try that failed is repeated after ``backoff_s``, four times as long after
    each further one, up to ``backoff_max_s``. ``ttl_s`` is how long a memory lives after it was last said (None: for
    ever). Of one user text at most ``turn_chars_max`` characters are read (its beginning and its end).
    ``strip_block`` removes semmem's own injected block from a user's text.
    """

    def __init__(
        self,
        journal: Journal,
        embedder: Embedder,
        dedup: Dedup,
        extractor: Extractor,
        *,
        quota: Quota | None = None,
        fallback: Extractor | None = None,
        screening: Screening = screen,
        strip_block: Callable[[str], str] = str,
        facts_max: int = 20,
        turn_chars_max: int = 16_000,
        attempts_max: int = 5,
        backoff_s: float = 60.0,
        backoff_max_s: float = 3600.0,
        ttl_s: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if facts_max < 1 or attempts_max < 1 or turn_chars_max < 16:
            raise ValueError("facts_max and attempts_max must be at least 1, turn_chars_max at least 16")
        self._journal = journal
        self._embedder = embedder
        self._dedup = dedup
        self._quota = quota
        self._extractor = extractor
        self._fallback = fallback
        self._screening = screening
        self._strip_block = strip_block
        self._facts_max = facts_max
        self._turn_chars_max = turn_chars_max
        self._attempts_max = attempts_max
        self._backoff_s = backoff_s
        self._backoff_max_s = backoff_max_s
        self._ttl_s = ttl_s
        self._clock = clock

    async def learn(self, batch: Batch) -> BatchResult:
        """Work off one leased batch, and finish or postpone it. Raises nothing but cancellation."""
        try:
            return await self._learn(batch)
        except Exception as error:  # a mistake of ours as well: a batch must come to an end, and be counted
            return await self._try_later(batch, type(error).__name__)

    async def _learn(self, batch: Batch) -> BatchResult:
        if batch.attempt > self._attempts_max:
            return await self._finish(batch, BatchResult("gave_up", cause="attempts"))
        tally = _Tally()
        shown, said = await asyncio.to_thread(self._read, batch)
        try:
            facts = batch.facts if batch.facts is not None else await self._new_facts(shown, said, tally)
        except ModelRefused as error:
            failed = BatchResult("extraction_failed", engine=tally.engine, cause=type(error).__name__)
            return await self._finish(batch, failed)
        for index in range(batch.applied, len(facts)):
            await self._store(batch, index, facts[index], said, tally)
            await self._journal.mark_applied(batch.id, index + 1)
        return await self._finish(batch, tally.result(earlier=batch.applied))

    async def _new_facts(self, shown: Batch, said: Said, tally: _Tally) -> Sequence[Fact]:
        found = await self._extract(shown, tally)
        facts = await asyncio.to_thread(self._screened, found, shown, said, tally)
        await self._journal.save_facts(shown.id, facts)
        return facts

    async def _extract(self, shown: Batch, tally: _Tally) -> list[Fact]:
        """The facts of the extractor, or of the fallback where there is one and the extractor will not do."""
        if not shown.turns:
            return []
        tally.engine = self._extractor.name
        try:
            return await self._extractor.extract(shown)
        except (ModelRefused, ModelUnavailable) as error:
            last = shown.attempt >= self._attempts_max
            if self._fallback is None or (isinstance(error, ModelUnavailable) and not last):
                raise
        tally.engine = self._fallback.name
        return await self._fallback.extract(shown)

    def _screened(self, found: Iterable[Fact], shown: Batch, said: Said, tally: _Tally) -> list[Fact]:
        """What may go on, redacted where needed. Nothing else reaches the journal."""
        turns = {turn.id for turn in shown.turns}
        passed: list[Fact] = []
        for fact in found:
            verdict = self._screening(fact, said)
            if fact.turn_id not in turns:
                tally.rejected["unknown_turn"] += 1
            elif verdict.outcome is Outcome.REJECT:
                tally.rejected[verdict.reason] += 1
            elif len(passed) == self._facts_max:
                tally.rejected["over_limit"] += 1
            else:
                passed.append(replace(fact, content=verdict.content))
        return passed

    async def _store(self, batch: Batch, index: int, fact: Fact, said: Said, tally: _Tally) -> None:
        """Store one fact. It is screened again, since an earlier try may have saved it under other settings."""
        turn = next((turn for turn in batch.turns if turn.id == fact.turn_id), None)
        verdict = await asyncio.to_thread(self._screening, fact, said)
        if turn is None or verdict.outcome is Outcome.REJECT:
            tally.rejected[verdict.reason or "unknown_turn"] += 1
            return
        now = self._clock()
        new = Candidate(
            id=memory_id(batch.id, index),
            fact=replace(fact, content=verdict.content),
            turn=turn,
            vector=await self._embedder.embed(verdict.content),
            now=now,
            expires_at=None if self._ttl_s is None else now + self._ttl_s,
            batch=batch.id,
        )
        action = await self._put(batch, new, verdict)
        tally.count(action, fact, verdict)
        await self._make_room(batch, action, tally)

    async def _put(self, batch: Batch, new: Candidate, verdict: Verdict) -> Action:
        if verdict.outcome is Outcome.QUARANTINE:
            return await self._dedup.quarantine(new, verdict.reason)
        if batch.attempt > 1 and await self._dedup.holds(new):
            return Action.CREATED
        return await self._dedup.put(new)

    async def _make_room(self, batch: Batch, action: Action, tally: _Tally) -> None:
        if self._quota is None or action in (Action.UNCHANGED, Action.UPDATED, Action.FORGOTTEN):
            return
        if evicted := await self._quota.make_room(batch.scope.user):
            tally.actions["evicted"] += evicted

    async def _try_later(self, batch: Batch, cause: str) -> BatchResult:
        """Postpone or give up. When the journal cannot even note that, the lease runs out and the batch comes back."""
        try:
            if batch.attempt >= self._attempts_max:
                return await self._finish(batch, BatchResult("gave_up", cause=cause))
            wait_s = min(self._backoff_s * BACKOFF_FACTOR ** (batch.attempt - 1), self._backoff_max_s)
            await self._journal.postpone(batch.id, until=self._clock() + wait_s)
        except JournalError:
            pass
        return BatchResult("postponed", cause=cause)

    async def _finish(self, batch: Batch, result: BatchResult) -> BatchResult:
        await self._journal.finish(batch.id, result.status, now=self._clock())
        return result

    def _read(self, batch: Batch) -> tuple[Batch, Said]:
        """The batch as an extractor sees it (without our own block and turns that say nothing), and its words."""
        shown = replace(batch, turns=self._readable(batch.turns), context=self._readable(batch.context))
        return shown, Said(_text(shown.turns), _text(shown.context))

    def _readable(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        read = (replace(turn, user_text=self._shorten(self._strip_block(turn.user_text))) for turn in turns)
        return tuple(turn for turn in read if turn.user_text.strip())

    def _shorten(self, text: str) -> str:
        half = self._turn_chars_max // 2
        return text if len(text) <= self._turn_chars_max else f"{text[:half]}\n{text[-half:]}"


class _Tally:
    """Counts of one try."""

    def __init__(self) -> None:
        self.engine = ""
        self.stored: Counter[str] = Counter()
        self.actions: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.quarantined: Counter[str] = Counter()

    def count(self, action: Action, fact: Fact, verdict: Verdict) -> None:
        self.actions[action.value] += 1
        if action is Action.QUARANTINED:
            self.quarantined[verdict.reason] += 1
        elif action not in (Action.UNCHANGED, Action.FORGOTTEN):
            self.stored[fact.type.value] += 1

    def result(self, *, earlier: int) -> BatchResult:
        """``earlier``: how many facts were stored by tries before this one."""
        return BatchResult(
            self._status(earlier),
            dict(self.stored),
            dict(self.actions),
            dict(self.rejected),
            engine=self.engine,
            quarantined=dict(self.quarantined),
        )

    def _status(self, earlier: int) -> str:
        if self.stored or earlier:
            return "stored"
        if self.actions[Action.UNCHANGED.value]:
            return "unchanged"
        return "rejected" if self.rejected or self.quarantined else "nothing"


def choose_extractor(engine: str, *, llm: Extractor | None, rules: Extractor) -> tuple[Extractor, Extractor | None]:
    """The extractor and its fallback for an engine word: ``llm``, ``rules``, or ``auto`` (llm when there is one, with
    the rules behind it). Raises ValueError for another word, and for ``llm`` without one."""
    if engine == "rules" or (engine == "auto" and llm is None):
        return rules, None
    if engine not in ("llm", "auto"):
        raise ValueError("engine must be llm, rules or auto")
    if llm is None:
        raise ValueError("engine llm needs a model with the role memory_extraction")
    return llm, rules if engine == "auto" else None


def _text(turns: Iterable[Turn]) -> str:
    return "\n".join(turn.user_text for turn in turns)
