"""What an operator or a user may do with memories, without HTTP: the operations behind the REST API."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from semmem.extraction.quota import Quota
from semmem.memory import Controls, Conversation, Memory, MemoryType, Message, Role, Scope, Source
from semmem.ports import Embedder, History, Journal, Store
from semmem.retrieval.recall import Preview, Recall
from semmem.retrieval.search import Strategy


class Records(Journal, History, Protocol):
    """The journal's database: turns, and earlier versions of memories."""


class Memories:
    """Operations on one user's memories. Raises StoreError, EmbedderError and JournalError."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        records: Records,
        quota: Quota,
        recall: Recall,
        *,
        clock: Callable[[], float],
        ttl_s: float | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._records = records
        self._clock = clock
        self._quota = quota
        self._recall = recall
        self._ttl_s = ttl_s

    async def page(
        self, scope: Scope, types: Sequence[MemoryType], limit: int, offset: int
    ) -> tuple[list[Memory], int]:
        """One page, newest first, and how many there are in all."""
        memories = await self._store.list(scope, types=types, limit=limit, offset=offset)
        return memories, await self._store.count(scope, types=types)

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        return await self._store.get(scope, memory_id)

    async def history(self, scope: Scope, memory_id: str) -> list[Memory]:
        """Earlier versions, oldest first."""
        return await self._records.versions(scope, memory_id)

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
    ) -> Memory:
        """Store what the API was told; the same user and key is the same memory in a new version."""
        now = self._clock()
        memory = Memory(
            id="mem_" + secrets.token_hex(13),
            version=1,
            type=type,
            content=content,
            user=scope.user,
            project=scope.project,
            agent=scope.agent,
            session=scope.session,
            source=Source(role="api", session=scope.session or "", time=now),
            key=key,
            metadata=metadata or {},
            importance=importance,
            created_at=now,
            updated_at=now,
            expires_at=expires_at if expires_at is not None or self._ttl_s is None else now + self._ttl_s,
            embedding=await self._embedder.embed(content),
        )
        old = await self._with_key(scope, key) if key is not None else None
        if old is not None:
            await self._records.keep_version(old)
            memory = replace(memory, id=old.id, version=old.version + 1, created_at=old.created_at)
        await self._store.put(scope, memory)
        await self._quota.make_room(scope.user)
        return memory

    async def _with_key(self, scope: Scope, key: str) -> Memory | None:
        user = Scope(scope.user)
        memories = await self._store.list(user, limit=await self._store.count(user))
        return next((m for m in memories if m.key == key and m.project == scope.project), None)

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        """Remove one memory and its history."""
        await self._records.forget_versions(scope, memory_id)
        return await self._store.forget(scope, memory_id)

    async def forget_scope(self, scope: Scope, types: Sequence[MemoryType]) -> int:
        """Remove a scope's memories; without a filter on types also its turns, so that nothing is learnt again."""
        if not types:
            await self._records.forget_turns(scope)
        return await self._store.forget_scope(scope, types=types)

    async def search(
        self, scope: Scope, query: str, controls: Controls, *, strategy: Strategy | None = None
    ) -> Preview:
        """Memories for a query, each with its scores and why it was kept or cut. Raises StoreError."""
        asked = Conversation((Message(Role.USER, query),), controls=controls)
        return await self._recall.preview(asked, scope, self._clock(), strategy=strategy, said=())

    async def preview(self, scope: Scope, conversation: Conversation, *, strategy: Strategy | None = None) -> Preview:
        """What a request with this conversation would be given, and why. Raises StoreError."""
        return await self._recall.preview(conversation, scope, self._clock(), strategy=strategy)

    async def end_session(self, user: str, session: str) -> int:
        """Learn from a session's waiting turns now; how many wait."""
        return await self._records.end_session(user, session, now=self._clock())
