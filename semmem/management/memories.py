"""What an operator or a user may do with memories, without HTTP: the operations behind the REST API."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from semmem.lifecycle.erasure import Erasure, Receipt
from semmem.lifecycle.holds import Busy, Holds
from semmem.lifecycle.quota import Quota
from semmem.lifecycle.writes import Writes
from semmem.memory import TOPIC, Controls, Conversation, Memory, MemoryStatus, MemoryType, Message, Role, Scope, Source
from semmem.ports.embedder import Embedder
from semmem.ports.store import Store
from semmem.ports.writes import ManagementRecords
from semmem.request.question import Question
from semmem.retrieval.recall import Preview, Recall
from semmem.retrieval.search import Strategy
from semmem.text.quoting import unquoted

CREATE_TRIES = 3
"""How often a memory is written anew that an erasure met on its way."""


class Memories:
    """Operations on one user's memories. Raises StoreError, EmbedderError, JournalError, ErasurePending and Busy.

    ``create_wait_s``: how long a memory waits to be written while others of its user are learnt or changed.
    ``after`` gives a time after the user's last erasure, where the clock was set back.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        records: ManagementRecords,
        quota: Quota,
        recall: Recall,
        *,
        clock: Callable[[], float],
        erasure: Erasure,
        holds: Holds,
        after: Callable[[str, float], float] = lambda _user, now: now,
        create_wait_s: float = 30.0,
        ttl_s: float | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._records = records
        self._clock = clock
        self._quota = quota
        self._recall = recall
        self._ttl_s = ttl_s
        self._erasure = erasure
        self._holds = holds
        self._after = after
        self._create_wait_s = create_wait_s

    async def page(
        self,
        scope: Scope,
        types: Sequence[MemoryType],
        limit: int,
        offset: int,
        *,
        status: MemoryStatus | None = None,
        topic: str | None = None,
    ) -> tuple[list[Memory], int]:
        """One page, newest first, and how many there are in all. ``status`` and ``topic`` None mean any."""
        if status is not None or topic is not None:
            everything = await self._everything(scope, types)
            found = [memory for memory in everything if _is_of(memory, status, topic)]
            return found[offset : offset + limit], len(found)
        memories = await self._store.list(scope, types=types, limit=limit, offset=offset)
        return memories, await self._store.count(scope, types=types)

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        """None when the scope has none. The doors know this object, and not the store."""
        return await self._store.get(scope, memory_id)

    async def create(
        self,
        scope: Scope,
        *,
        type: MemoryType,
        content: str,
        key: str | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float = 0.5,
        expires_at: float | None = None,
        status: MemoryStatus = MemoryStatus.ACTIVE,
    ) -> Memory:
        """Store what the API was told; the same user and key is the same memory in a new version.

        One after another for each user; what an erasure meets on its way is written after it.
        """
        told = Memory(
            id="mem_" + secrets.token_hex(13),
            version=1,
            type=type,
            content=content,
            user=scope.user,
            project=scope.project,
            agent=scope.agent,
            session=scope.session,
            key=key,
            metadata=metadata or {},
            importance=importance,
            status=status,
            expires_at=expires_at,
            embedding=await self._embedder.embed(unquoted(content)),
        )
        for _ in range(CREATE_TRIES):
            async with self._holds.held(scope.user, wait_s=self._create_wait_s) as hold_id:
                if (memory := await self._put(told, hold_id)) is not None:
                    await self._quota.make_room(scope.user)
                    return memory
        raise Busy

    async def _put(self, told: Memory, hold_id: str) -> Memory | None:
        """None when an erasure came between."""
        now = self._after(told.user, self._clock())
        memory = replace(
            told,
            source=Source(role="api", session=told.session or "", time=now),
            created_at=now,
            updated_at=now,
            expires_at=told.expires_at if told.expires_at is not None or self._ttl_s is None else now + self._ttl_s,
        )
        writes = Writes(self._store, self._records, hold_id)
        await self._records.register_user(told.user)
        old = await self._with_key(told) if told.key is not None else None
        if old is None:
            return memory if await writes.put(memory) else None
        memory = replace(memory, id=old.id, version=old.version + 1, created_at=old.created_at)
        return memory if await writes.replace(old, memory) else None

    async def _with_key(self, told: Memory) -> Memory | None:
        memories = await self._everything(Scope(told.user), ())
        return next((m for m in memories if m.key == told.key and m.project == told.project), None)

    async def forget(self, scope: Scope, memory_id: str) -> Receipt | None:
        """Remove one memory, its history and its statistics; None when there is none. No summary brings back what was
        said in its session until now."""
        return await self._erasure.forget_memory(scope, memory_id)

    async def forget_scope(self, scope: Scope, types: Sequence[MemoryType]) -> Receipt:
        """Remove a scope's memories; without a filter on types also its turns, so that nothing is learnt again."""
        return await self._erasure.forget_scope(scope, types)

    async def _everything(self, scope: Scope, types: Sequence[MemoryType]) -> list[Memory]:
        number = await self._store.count(scope, types=types)
        return await self._store.list(scope, types=types, limit=number) if number else []

    async def search(
        self, scope: Scope, query: str, controls: Controls, *, strategy: Strategy | None = None
    ) -> Preview:
        """Memories for a query, each with its scores and why it was kept or cut. Raises StoreError."""
        asked = Conversation((Message(Role.USER, query),), controls=controls)
        return await self._recall.preview(Question(asked, scope, self._clock()), strategy=strategy, said=())

    async def preview(self, scope: Scope, conversation: Conversation, *, strategy: Strategy | None = None) -> Preview:
        """What a request with this conversation would be given, and why. Raises StoreError."""
        return await self._recall.preview(Question(conversation, scope, self._clock()), strategy=strategy)

    async def end_session(self, user: str, session: str) -> int:
        """Learn from a session's waiting turns now; how many wait."""
        return await self._records.end_session(user, session, now=self._clock())


def _is_of(memory: Memory, status: MemoryStatus | None, topic: str | None) -> bool:
    is_about = topic is None or memory.metadata.get(TOPIC) == topic.strip().casefold()
    return is_about and (status is None or memory.status is status)
