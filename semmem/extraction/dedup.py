"""New, changed or known already? Compare a fact with what is stored, and write it so that a crash cannot double it.

Cosines above ``update_threshold`` mean the same statement with, perhaps, another value ("budget is $10k" and "$15k"
are 0.95 apart from 1, "is" and "is not" 0.98): the newest wins, and the version it replaces is in the history before
the store is touched. What replaces a memory without resembling it ("lives in Boston", "moved to Seattle": 0.61) only
a contradiction check can tell; it plugs in as one function, asked about the grey zone below the threshold.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from semmem.extraction.screen import same_text
from semmem.memory import Fact, Hit, Memory, MemoryStatus, Scope, Source, Turn, Vector
from semmem.ports import History, Store

Contradicts = Callable[[Fact, Memory], Awaitable[bool]]
"""Whether a fact makes a stored memory untrue. Raises ModelUnavailable when that is worth asking again later."""


class Action(StrEnum):
    """What storing a fact did. ``superseded``: it was created, and an older memory is no longer retrieved."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    SUPERSEDED = "superseded"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A screened fact on its way into the store. ``id`` is the memory id it gets if it is created."""

    id: str
    fact: Fact
    turn: Turn
    vector: Vector
    now: float
    expires_at: float | None = None


def memory_id(batch_id: str, index: int) -> str:
    """``mem_`` and 26 base32 characters (130 of SHA-256's bits), the same for every try to store one fact."""
    digest = hashlib.sha256(f"{batch_id}\n{index}".encode()).digest()
    return "mem_" + base64.b32encode(digest).decode().lower()[:26]


class Dedup:
    """Puts facts into the store of a user, one after another.

    ``update_threshold`` and ``grey_threshold`` are cosines; with the grey one above, there is no grey zone.
    ``neighbours_max`` memories of the same user and type are compared; more than the few that matter, because those
    of other projects are sorted out only afterwards.
    """

    def __init__(
        self,
        store: Store,
        history: History,
        *,
        update_threshold: float = 0.9,
        grey_threshold: float = 0.55,
        neighbours_max: int = 20,
        contradicts: Contradicts | None = None,
    ) -> None:
        if not (0 < grey_threshold <= 1 and 0 < update_threshold <= 1):
            raise ValueError("thresholds must be cosines above 0")
        self._store = store
        self._history = history
        self._update_threshold = update_threshold
        self._grey_threshold = grey_threshold
        self._neighbours_max = neighbours_max
        self._contradicts = contradicts

    async def put(self, new: Candidate) -> Action:
        """Store one fact. Safe to repeat after a crash anywhere in it. Raises StoreError, JournalError, ModelError."""
        neighbours = await self._neighbours(new)
        if any(same_text(hit.memory.content) == same_text(new.fact.content) for hit in neighbours):
            return Action.UNCHANGED
        if neighbours and neighbours[0].cosine > self._update_threshold:
            await self._replace(neighbours[0].memory, _updated(neighbours[0].memory, new))
            return Action.UPDATED
        superseded = await self._supersede(new, neighbours)
        await self._store.put(_owner(new), created(new))
        return Action.SUPERSEDED if superseded else Action.CREATED

    async def quarantine(self, new: Candidate) -> Action:
        """Keep a suspicious fact where an operator sees it and no search does."""
        await self._store.put(_owner(new), replace(created(new), status=MemoryStatus.QUARANTINED))
        return Action.QUARANTINED

    async def holds(self, new: Candidate) -> bool:
        """Whether an earlier try created this very memory (it may have been changed since)."""
        return await self._store.get(_owner(new), new.id) is not None

    async def _neighbours(self, new: Candidate) -> list[Hit]:
        """The nearest memories of this user, type and project. A project's fact never meets a global one."""
        scope = Scope(new.turn.scope.user, project=new.turn.scope.project or None)
        hits = await self._store.search(
            scope, new.vector, limit=self._neighbours_max, now=new.now, types=(new.fact.type,), fresh=True
        )
        return [hit for hit in hits if (hit.memory.project or None) == scope.project]

    async def _supersede(self, new: Candidate, neighbours: list[Hit]) -> bool:
        """Retire the nearest memory that the fact makes untrue. Before the fact is created: a second try, finding
        the fact already there, would never come back to it."""
        for hit in neighbours:
            if self._contradicts is None or hit.cosine < self._grey_threshold:
                return False
            if await self._contradicts(new.fact, hit.memory):
                await self._replace(hit.memory, _superseded(hit.memory, new))
                return True
        return False

    async def _replace(self, old: Memory, new: Memory) -> None:
        await self._history.keep_version(old)
        await self._store.put(Scope(old.user), new)


def created(new: Candidate) -> Memory:
    """The first version of the memory a fact becomes."""
    scope = new.turn.scope
    return Memory(
        id=new.id,
        version=1,
        type=new.fact.type,
        content=new.fact.content,
        user=scope.user,
        project=scope.project,
        agent=scope.agent,
        session=scope.session,
        source=_source(new.turn),
        importance=new.fact.importance,
        created_at=new.now,
        updated_at=new.now,
        occurred_at=new.fact.occurred_at,
        expires_at=new.expires_at,
        embedding=new.vector,
    )


def _updated(old: Memory, new: Candidate) -> Memory:
    return replace(
        old,
        version=old.version + 1,
        content=new.fact.content,
        session=new.turn.scope.session,
        source=_source(new.turn),
        importance=max(old.importance, new.fact.importance),
        updated_at=new.now,
        occurred_at=new.fact.occurred_at,
        expires_at=new.expires_at,
        embedding=new.vector,
    )


def _superseded(old: Memory, new: Candidate) -> Memory:
    return replace(
        old,
        version=old.version + 1,
        status=MemoryStatus.SUPERSEDED,
        updated_at=new.now,
        metadata={**old.metadata, "superseded_by": new.id},
    )


def _owner(new: Candidate) -> Scope:
    return Scope(new.turn.scope.user)


def _source(turn: Turn) -> Source:
    return Source("user", turn.scope.session or "", turn.id, turn.request_id, turn.opened_at)
