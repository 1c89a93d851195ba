"""semmem's own parts at their default settings, wired by ``semmem.wiring``; store and journal vanish afterwards."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from msgspec import structs

from quality.vectors import PrefetchedEmbedder
from semmem.backends.in_process import InProcessStore
from semmem.backends.sql.journal import SqlJournal
from semmem.background import Tasks
from semmem.config import Settings
from semmem.extraction.pipeline import Learning
from semmem.extraction.result import BatchResult
from semmem.extraction.voice.hearing import Embedded, Heard
from semmem.memory import (
    Controls,
    Conversation,
    Fact,
    Hit,
    Memory,
    MemoryStatus,
    MemoryType,
    Message,
    Role,
    Scope,
    Turn,
    TurnEnding,
)
from semmem.passages.shelves import Shelves
from semmem.ports.embedder import Embedder
from semmem.ports.learning import BatchRules
from semmem.ports.recording import TurnClosed
from semmem.ports.store import Store
from semmem.request.outcome import Outcome
from semmem.request.question import Question
from semmem.retrieval.index.hot_memories import HotMemories
from semmem.retrieval.query.build import build_query
from semmem.retrieval.recall import Recall, Recalled
from semmem.telemetry.metrics import Metrics
from semmem.text.quoting import unquoted
from semmem.wiring import backends as backend_parts
from semmem.wiring import request
from semmem.wiring.backends import Backends
from semmem.wiring.learning import learning
from semmem.wiring.models import ModelClients, chosen

NOW = 1_800_000_000.0
"""When everything is asked and learnt, so that two runs give the same figures."""
DAY_S = 86_400.0
RANKING_LIMIT = 50
BATCH_MAX = 64
QUEUE_MAX = 100_000
NOBODY = "nobody"
"""A user without memories, for asking the gate alone."""
NOT_SEARCHED = (Outcome.GREETING, Outcome.GENERAL_FACT)
"""What the gate on the question's vector may say."""
ALL_MAX = 10_000
"""More memories than any user here has."""
AT_ONCE = BatchRules(size=1, answer_wait_s=0.0, lease_s=DAY_S)
"""A turn is learnt from as soon as it is there."""
LEARNT_AT: ContextVar[float] = ContextVar("LEARNT_AT", default=NOW)
"""What the learning takes for the present: that of whoever is learnt from."""
NOTE = "- "
"""How each line of a block begins that is a note."""


@dataclass(slots=True)
class Semmem:
    """``recall`` as a request has it. ``ranking`` is the same without the gate, the cut and the budget, and
    ``reading`` the same for another store, every search of which reads all of the user's memories first. ``judging``:
    learning for which all is the user's own voice, as facts that are given are told. ``batches``: when turns are learnt
    from. With a language model learning ``may_fail``; ``failures`` counts how often, by
    cause."""

    embedder: PrefetchedEmbedder
    store: HotMemories
    journal: SqlJournal
    recall: Recall
    ranking: Recall
    learning: Learning
    judging: Learning
    batches: BatchRules
    query_chars_max: int
    may_fail: bool
    reading: Callable[[Store], Recall]
    failures: Counter[str] = field(default_factory=Counter)
    turn_numbers: count[int] = field(default_factory=count)

    def skips_unread(self, text: str) -> bool:
        """Whether the message's words alone are enough for the gate, so that it is never embedded."""
        return self.recall.skips(Question(asked(text), Scope(NOBODY), NOW)) is not None

    def query(self, text: str) -> str:
        """The text that would be embedded for this message."""
        return build_query(asked(text), chars_max=self.query_chars_max)

    async def request(
        self, text: str, user: str, now: float = NOW, *, recall: Recall | None = None
    ) -> tuple[str | None, list[Hit]]:
        """The whole request path: the gate's reason not to search, or None and what would be injected."""
        found = await self.recalled(text, user, now, recall=recall)
        return (found.outcome, []) if found.outcome in NOT_SEARCHED else (None, _hits(found))

    async def recalled(self, text: str, user: str, now: float = NOW, *, recall: Recall | None = None) -> Recalled:
        """What a request's exchange is given: outcome, block, hits."""
        recall = recall or self.recall
        question = Question(asked(text), Scope(user), now)
        if reason := recall.skips(question):
            return Recalled(reason)
        return await recall.search(question)

    async def notes(self, text: str, user: str, now: float = NOW) -> list[str]:
        """The lines that a model would read about the user if this were asked: the block's, without its header."""
        found = await self.recalled(text, user, now)
        return [] if found.block is None else notes_in(found.block.injection.text)

    async def ranked(self, text: str, user: str, now: float = NOW) -> list[Hit]:
        """The user's memories, best first, whatever the gate and the cut say."""
        return await self.rank(asked(text), user, now)

    async def rank(self, conversation: Conversation, user: str, now: float = NOW) -> list[Hit]:
        """``ranked`` for a question with messages before it."""
        conversation = structs.replace(conversation, controls=Controls(limit=RANKING_LIMIT, threshold=-1.0))
        seen = await self.ranking.preview(Question(conversation, Scope(user), now))
        return [one.hit for one in seen.ranked if one.kept]

    async def remember(
        self, user: str, memory_id: str, text: str, *, at: float, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Put a memory straight into the store, as if it had been learnt at that time."""
        vector = await self.embedder.embed(unquoted(text))
        told = dict(metadata or {})
        memory = Memory(
            memory_id, 1, MemoryType.SEMANTIC, text, user, created_at=at, updated_at=at, embedding=vector, metadata=told
        )
        await self.store.put(Scope(user), memory)

    async def learn(
        self, user: str, text: str, facts: Sequence[str] | None = None, *, days_ago: float = 0.0
    ) -> BatchResult:
        """Let a user say something and learn from it: by the rules, or as if these facts had been extracted."""
        number = next(self.turn_numbers)
        said_at = NOW + number - days_ago * DAY_S
        LEARNT_AT.set(said_at)
        turn = Turn(f"turn-{number}", Scope(user, session=f"session-{user}"), number, text, said_at)
        await self.journal.record([turn], [TurnClosed(turn.id, TurnEnding.ANSWERED, said_at, "")])
        batch = await self.journal.claim(AT_ONCE, now=said_at)
        while self.may_fail and batch is not None and batch.scope.user != user:  # one that failed: once is enough
            await self.journal.finish(batch.id, "gave_up", now=NOW + number)
            batch = await self.journal.claim(AT_ONCE, now=NOW + number)
        if batch is None or batch.scope.user != user:
            raise RuntimeError("the journal did not give the turn that was just recorded")
        if facts is not None:
            batch = replace(batch, facts=tuple(Fact(MemoryType.SEMANTIC, fact, turn.id) for fact in facts))
        result = await (self.learning if facts is None else self.judging).learn(batch)
        self.note(result)
        return result

    def note(self, result: BatchResult) -> None:
        """Count a failure to learn. Raises RuntimeError where there is none that may fail."""
        if result.cause and not self.may_fail:
            raise RuntimeError(f"learning failed: {result.cause}")
        self.failures.update([result.cause] if result.cause else [])

    async def retrievable(self, user: str) -> list[Memory]:
        """Every memory of the user that a search may find."""
        memories = await self.store.list(Scope(user), limit=ALL_MAX)
        return [memory for memory in memories if memory.status is MemoryStatus.ACTIVE]


def _own(text: str, _: Embedded) -> Heard:
    return Heard(text, alone=True)


def notes_in(block: str) -> list[str]:
    """The notes of a rendered block, without the sign that begins each."""
    return [line.removeprefix(NOTE) for line in block.splitlines() if line.startswith(NOTE)]


def asked(text: str) -> Conversation:
    """A conversation that begins with this message."""
    return Conversation((Message(Role.USER, text),))


@asynccontextmanager
async def semmem(
    folder: Path, *, cache: Path | None, model: Embedder | None = None, settings: Settings | None = None
) -> AsyncIterator[Semmem]:
    """semmem with its journal in ``folder``, at default ``settings`` if none are given.

    ``model`` instead of the default embedder is for tests.
    """
    settings = patient(settings or Settings())
    embedder = PrefetchedEmbedder(model or own_embedder(settings), cache=cache)
    store, journal = Shelves(InProcessStore(), InProcessStore()), SqlJournal(folder / "journal.db")
    tasks = Tasks()
    models, _ = ModelClients(Metrics()).of(settings)
    memories = backend_parts.hot_memories(settings, store, tasks.spawn, asyncio.to_thread)
    backends = Backends(memories, embedder, journal, models)
    for part in (embedder, store, journal):
        await part.open()
    try:
        yield Semmem(
            embedder,
            backends.store,
            journal,
            recall=_recall(settings, backends),
            ranking=_recall(uncut(settings), backends),
            learning=learning(settings, backends, clock=LEARNT_AT.get),
            judging=learning(settings, backends, clock=LEARNT_AT.get, hear=_own),
            batches=batch_rules(settings),
            may_fail=bool(models),
            query_chars_max=settings.limits.query_chars_max,
            reading=lambda other: _recall(
                settings, replace(backends, store=HotMemories(other, spawn=tasks.spawn, staleness_s=0.0))
            ),
        )
    finally:
        await tasks.cancel()
        for model_client in models.values():
            await model_client.close()
        for closing in (journal, store, embedder):
            await closing.close()


def patient(settings: Settings) -> Settings:
    """Without deadlines: how fast this machine is shall not change a figure."""
    deadlines = settings.deadlines.model_copy(update={"phase_ms": 1_200_000, "store_ms": 600_000})
    return settings.model_copy(update={"deadlines": deadlines})


def batch_rules(settings: Settings) -> BatchRules:
    """When turns become a batch, as configured; a batch belongs to its worker however slow this machine is."""
    extraction = settings.memory.extraction
    return BatchRules(
        size=settings.memory.extraction_batch_size,
        context_turns=extraction.context_turns,
        idle_s=extraction.session_idle_s,
        answer_wait_s=extraction.answer_wait_s,
        lease_s=DAY_S,
    )


def uncut(settings: Settings) -> Settings:
    """Only the words of a message decide whether it is searched for, which the ranking does not ask; and everything
    that is found has room."""
    signals = settings.signals.model_copy(update={"engine": "rules"})
    injection = settings.memory.injection.model_copy(update={"max_inject_tokens": 1_000_000})
    memory = settings.memory.model_copy(update={"injection": injection})
    return settings.model_copy(update={"signals": signals, "memory": memory})


def _recall(settings: Settings, backends: Backends) -> Recall:
    """As an exchange is given it: whatever it is made of, nothing is left out here."""
    return request.recall(settings, backends)


def own_embedder(settings: Settings) -> Embedder:
    """As configured, with every core."""
    cores, rules = len(os.sched_getaffinity(0)), settings.memory.embedding
    return chosen(rules, workers=cores, batch_max=BATCH_MAX, queue_max=QUEUE_MAX)


def _hits(found: Recalled) -> list[Hit]:
    """Raises RuntimeError where the search went another way than the one that is measured."""
    if found.outcome not in (Outcome.INJECTED, Outcome.NO_HITS):
        raise RuntimeError(f"a search ended with {found.outcome}")
    return list(found.hits)
