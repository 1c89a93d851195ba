"""From facts to memories: screened, made ready, and put into the store within the user's limit.

What batches and single turns have in common. Whether a fact is compared, confirms a provisional memory or stands alone
is decided by whoever brings it."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Protocol

from cachetools import LRUCache

from semmem.extraction.candidate import Action, Candidate, Placed, created, expiry
from semmem.extraction.dedup import Dedup
from semmem.extraction.result import Tally
from semmem.extraction.screen import Ruling, Screened, screen
from semmem.extraction.work import IN_THREAD, reason
from semmem.lifecycle.quota import PassageQuota, Quota
from semmem.lifecycle.writes import Writes
from semmem.memory import Fact, Memory, MemoryType, Turn
from semmem.passages.pieces import passages_of
from semmem.ports import spans
from semmem.ports.embedder import Embedder
from semmem.ports.errors import StoreRefused, WorkLost, WorkTooSlow
from semmem.ports.learning import Batch, Extracted, Extractor
from semmem.ports.memory_records import WriteRecords
from semmem.ports.storable import check_storable
from semmem.ports.store import Store
from semmem.ports.text_work import TextWork
from semmem.text.grounding import SourceText
from semmem.text.quoting import unquoted
from semmem.text.screening import readable

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
        vector, ends = await self.embedder.embed(unquoted(fact.content)), expiry(fact, now, self.ttl_s)
        return Candidate(memory_id, fact, turn, vector, now, ends, batch=batch_id, provisional=provisional)

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
        if quota is not None and (evicted := await quota.grown(new.turn.scope.user)):
            tally.actions["evicted"] += evicted
        return placed


def _screen_all(screening: Screening, facts: Sequence[Fact], said: SourceText) -> list[Screened]:
    """The screen's ruling for each fact. A fact with a key is a summary: it was held against the texts of its whole
    session already, and not against this batch."""
    return [screening(fact, said if fact.key is None else SourceText(fact.content)) for fact in facts]


async def extracted(extractor: Extractor, shown: Batch, notes: Sequence[Memory] = ()) -> Extracted:
    """The extractor's facts, and its judgement of the notes where it gives one. Raises what it raises."""
    with spans.step("semmem.extract") as span:
        span.note("semmem.engine", extractor.name)
        found = await extractor.extract(shown, notes)
        span.note("semmem.facts", len(found.facts))
    return found


LOOK_AFTER = 500
"""Less than the store's room for what is over the limit (wiring.backends.PASSAGES_SPARE), for two replicas each."""
USERS_MAX = 10_000
"""Whose new passages are counted; upkeep makes room for the others once a day."""


class PassageRecords(WriteRecords, Protocol):
    """What is asked when passages are kept. Raises JournalError."""

    async def last_erased(self, user: str) -> float | None:
        """When something of the user's was erased last, as far as it is known, in seconds since the epoch (0: never);
        None while something is."""


@dataclass(eq=False, repr=False)
class Keeping:
    """What a batch's turns said becomes passages, behind everything else. ``quota`` makes room after every LOOK_AFTER
    passages of a user. ``worth``: how probable it is that a text says something lasting about its author, which becomes
    the passage's importance. ``retention_s``: how long a passage is kept; None: none is."""

    store: Store
    records: PassageRecords
    embedder: Embedder
    retention_s: float | None
    _: KW_ONLY
    quota: PassageQuota
    worth: Callable[[str], Awaitable[float]]
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self._new: LRUCache[str, int] = LRUCache(USERS_MAX)

    async def keep(self, turns: Sequence[Turn], batch_id: str, *, no_gist_until: float = 0.0) -> Counter[str]:
        """Keep what these turns say, in the user's own words alone; how many passages were kept and left out, by word.
        ``no_gist_until``: when the user asked to forget something, which an answer of before may repeat. Safe to
        repeat. Raises StoreError, JournalError and EmbedderError."""
        done = Counter[str]()
        if self.retention_s is None or not turns:
            return done
        user, now = turns[0].scope.user, self.clock()
        expires_at = now + self.retention_s
        asked: list[Memory] = []
        for passage in (each for turn in turns for each in passages_of(turn, now=now, expires_at=expires_at)):
            if reason := readable(passage):  # what may not stand in a prompt: a secret, an order to a model
                done[reason] += 1
            elif passage.type is MemoryType.GIST and passage.said_at <= no_gist_until:
                done["forgotten"] += 1
            else:
                asked.append(passage)
        kept = await self._put(user, asked, Writes(self.store, self.records, batch_id)) if asked else 0
        done.update(kept=kept, forgotten=len(asked) - kept)
        self._new[user] = self._new.get(user, 0) + kept
        if self._new[user] >= LOOK_AFTER:
            del self._new[user]
            await self.quota.make_room(user)
        return +done

    async def _put(self, user: str, passages: Sequence[Memory], writes: Writes) -> int:
        """How many of them were written and may stay."""
        told = await self._without_the_erased(user, passages)
        written = await writes.put(*await asyncio.gather(*map(self._weighed, told)))
        staying = {passage.id for passage in await self._without_the_erased(user, told)} if written else written
        for passage in told:
            if passage.id in written - staying:  # erased since: that may have missed this one
                await writes.retract(passage)
        return len(written & staying)

    async def _without_the_erased(self, user: str, passages: Sequence[Memory]) -> list[Memory]:
        """Those that repeat nothing that was erased: an answer to a request of before may, whatever its turn says."""
        gists = any(passage.type is MemoryType.GIST for passage in passages)
        erased = await self.records.last_erased(user) if gists else 0.0
        until = math.inf if erased is None else erased
        return [each for each in passages if each.type is not MemoryType.GIST or until < each.said_at]

    async def _weighed(self, passage: Memory) -> Memory:
        said = unquoted(passage.content)
        worth = 0.0 if passage.type is MemoryType.GIST else await self.worth(said)
        return replace(passage, importance=round(worth, 3), embedding=await self.embedder.embed(said))
