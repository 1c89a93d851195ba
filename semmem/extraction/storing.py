"""From facts to memories: screened, made ready, and put into the store within the user's limit.

What batches and single turns have in common. Whether a fact is compared, confirms a provisional memory or stands alone
is decided by whoever brings it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import KW_ONLY, dataclass, replace

from semmem.extraction.candidate import Action, Candidate, Placed, created, expiry
from semmem.extraction.dedup import Dedup
from semmem.extraction.result import Tally
from semmem.extraction.screen import Ruling, Screened, screen
from semmem.extraction.work import IN_THREAD, reason
from semmem.lifecycle.quota import Quota
from semmem.memory import Fact, Memory, Turn
from semmem.ports import spans
from semmem.ports.embedder import Embedder
from semmem.ports.errors import StoreRefused, WorkLost, WorkTooSlow
from semmem.ports.learning import Batch, Extractor, Reviewed, Reviewer
from semmem.ports.storable import check_storable
from semmem.ports.text_work import TextWork
from semmem.text.grounding import SourceText
from semmem.text.quoting import unquoted

UNSTORABLE = "unstorable"
"""Reason word of a fact that no store will ever take: its content, or the name of its session, is too long."""

_GROWN = (Action.CREATED, Action.SUPERSEDED, Action.QUARANTINED, Action.OUTDATED)


Screening = Callable[[Fact, SourceText], Screened]
"""``screen`` with the operator's settings bound to it."""


@dataclass(eq=False, repr=False)
class Storing:
    """``quota`` keeps a user's memories within their limit. ``ttl_s`` is how long a memory lives after it was last said
    (None: for ever). ``work`` screens facts, within ``screen_budget_s`` seconds; else they are rejected. ``facts_max``
    are kept of one batch or turn."""

    embedder: Embedder
    dedup: Dedup
    _: KW_ONLY
    quota: Quota | None = None
    screening: Screening = screen
    work: TextWork = IN_THREAD
    screen_budget_s: float = 5.0
    facts_max: int = 20
    ttl_s: float | None = None
    clock: Callable[[], float] = time.time

    async def screened(
        self, found: Sequence[Fact], turn_ids: Collection[str], said: SourceText, tally: Tally
    ) -> list[Fact]:
        """What may go on, redacted where needed. Nothing else reaches the journal."""
        passed: list[Fact] = []
        for fact, verdict in zip(found, await self.verdicts(found, said), strict=True):
            if fact.turn_id not in turn_ids:
                tally.rejected["unknown_turn"] += 1
            elif verdict.outcome is Ruling.REJECT:
                tally.rejected[verdict.reason] += 1
            elif len(passed) == self.facts_max:
                tally.rejected["over_limit"] += 1
            else:
                passed.append(replace(fact, content=verdict.content))
        return passed

    async def verdicts(self, facts: Sequence[Fact], said: SourceText) -> list[Screened]:
        """The screen's, in order."""
        if not facts:
            return []
        try:
            return await self.work.run(_screen_all, self.screening, facts, said, budget_s=self.screen_budget_s)
        except (WorkTooSlow, WorkLost) as error:
            return [Screened(Ruling.REJECT, reason(error))] * len(facts)

    async def embedded(self, memory: Memory) -> Memory:
        """A version out of the journal, with its vector. Raises EmbedderError."""
        return replace(memory, embedding=await self.embedder.embed(unquoted(memory.content)))

    async def candidate(
        self, fact: Fact, turn: Turn, memory_id: str, batch_id: str, *, provisional: bool = False
    ) -> Candidate:
        """The fact as it is compared and stored. Raises EmbedderError."""
        now = self.clock()
        return Candidate(
            id=memory_id,
            fact=fact,
            turn=turn,
            vector=await self.embedder.embed(unquoted(fact.content)),
            now=now,
            expires_at=expiry(fact, now, self.ttl_s),
            batch=batch_id,
            provisional=provisional,
        )

    async def put(
        self, new: Candidate, verdict: Screened, place: Callable[[], Awaitable[Placed]], tally: Tally
    ) -> Placed | None:
        """Place one fact, count what that did, and make room for it. What the store will never take is dropped and
        counted, and costs the others nothing: None."""
        try:
            check_storable(created(new))  # here already: nothing is superseded by what cannot be kept
            with spans.step(spans.UPSERT_MEMORY) as span:
                placed = await place()
                span.note("semmem.action", placed.action.value)
                if placed.id:
                    span.note(spans.RECORD_ID, placed.id)
        except StoreRefused:
            tally.rejected[UNSTORABLE] += 1
            return None
        tally.count(placed, new.fact, verdict)
        quota = self.quota if placed.action in _GROWN else None
        if quota is not None and (evicted := await quota.make_room(new.turn.scope.user)):
            tally.actions["evicted"] += evicted
        return placed


def _screen_all(screening: Screening, facts: Sequence[Fact], said: SourceText) -> list[Screened]:
    """The screen's ruling for each fact. A fact with a key is a summary: it was held against the texts of its whole
    session already, and not against this batch."""
    return [screening(fact, said if fact.key is None else SourceText(fact.content)) for fact in facts]


async def extracted(extractor: Extractor, shown: Batch, notes: Sequence[Memory] = ()) -> Reviewed:
    """The extractor's facts, and its judgement of the notes where it gives one. Raises what it raises."""
    with spans.step("semmem.extract") as span:
        span.note("semmem.engine", extractor.name)
        if notes and isinstance(extractor, Reviewer):
            found = await extractor.review(shown, notes)
        else:
            found = Reviewed(await extractor.extract(shown))
        span.note("semmem.facts", len(found.facts))
    return found
