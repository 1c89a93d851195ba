"""What an operator or a user may do with memories, without HTTP: the operations behind the REST API."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from semmem.extraction.quota import Quota
from semmem.memory import Controls, Conversation, Memory, MemoryStatus, MemoryType, Message, Role, Scope, Source
from semmem.ports import Embedder, History, Journal, Store, UserList
from semmem.retrieval.recall import Preview, Recall
from semmem.retrieval.search import Strategy


class Records(Journal, History, UserList, Protocol):
    """The journal's database: turns, earlier versions of memories, who has any."""

    async def forget_memories(self, scope: Scope, memory_ids: Sequence[str]) -> int: ...

    async def forget_past(self, user: str, sessions: Iterable[str], *, now: float) -> None: ...


class Memories:
    """Operations on one user's memories. Raises StoreError, EmbedderError and JournalError.

    ``on_forgotten`` is told whose memories were forgotten, and which (None: all).
    """

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
        on_forgotten: Callable[[str, Sequence[str] | None], None] = lambda _user, _ids: None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._records = records
        self._clock = clock
        self._quota = quota
        self._recall = recall
        self._ttl_s = ttl_s
        self._on_forgotten = on_forgotten

    async def page(
        self, scope: Scope, types: Sequence[MemoryType], limit: int, offset: int, status: MemoryStatus | None = None
    ) -> tuple[list[Memory], int]:
        """One page, newest first, and how many there are in all. ``status`` None means any."""
        if status is not None:
            found = [memory for memory in await self._everything(scope, types) if memory.status is status]
            return found[offset : offset + limit], len(found)
        memories = await self._store.list(scope, types=types, limit=limit, offset=offset)
        return memories, await self._store.count(scope, types=types)

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
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
            status=status,
            created_at=now,
            updated_at=now,
            expires_at=expires_at if expires_at is not None or self._ttl_s is None else now + self._ttl_s,
            embedding=await self._embedder.embed(content),
        )
        old = await self._with_key(scope, key) if key is not None else None
        if old is not None:
            await self._records.keep_version(old)
            memory = replace(memory, id=old.id, version=old.version + 1, created_at=old.created_at)
        await self._records.know_user(scope.user)
        await self._store.put(scope, memory)
        await self._quota.make_room(scope.user)
        return memory

    async def _with_key(self, scope: Scope, key: str) -> Memory | None:
        memories = await self._everything(Scope(scope.user), ())
        return next((m for m in memories if m.key == key and m.project == scope.project), None)

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        """Remove one memory, its history and its statistics. No summary brings back what was said in its session
        until now."""
        memory = await self._store.get(scope, memory_id)
        if memory is None:
            return False
        told = [memory, *await self._records.versions(Scope(scope.user), memory_id)]
        await self._forget_past(scope.user, told)
        await self._records.forget_memories(Scope(scope.user), [memory_id])
        self._on_forgotten(scope.user, [memory_id])
        return await self._store.forget(scope, memory_id)

    async def forget_scope(self, scope: Scope, types: Sequence[MemoryType]) -> int:
        """Remove a scope's memories; without a filter on types also its turns, so that nothing is learnt again."""
        if not types:
            await self._records.forget_turns(scope)
        memories = await self._everything(scope, types)
        ids = [memory.id for memory in memories]
        await self._forget_past(scope.user, memories)
        await self._records.forget_memories(Scope(scope.user), ids)
        everything = not types and scope == Scope(scope.user)
        self._on_forgotten(scope.user, None if everything else ids)
        return await self._store.forget_scope(scope, types=types)

    async def _forget_past(self, user: str, told: Iterable[Memory]) -> None:
        await self._records.forget_past(user, (memory.session or "" for memory in told), now=self._clock())

    async def _everything(self, scope: Scope, types: Sequence[MemoryType]) -> list[Memory]:
        number = await self._store.count(scope, types=types)
        return await self._store.list(scope, types=types, limit=number) if number else []

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
