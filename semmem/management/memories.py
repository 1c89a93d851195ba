"""What an operator or a user may do with memories, without HTTP: the operations behind the REST API."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from semmem.lifecycle.erasure import Erasure, Receipt
from semmem.lifecycle.holds import Busy, Holds
from semmem.lifecycle.quota import Quota
from semmem.lifecycle.reflected import bases
from semmem.lifecycle.writes import Writes
from semmem.management.listing import ROWS_MAX, Page, Stats, Wanted, cut, stats
from semmem.management.problems import Denied
from semmem.management.routes import MetadataLimits, metadata_problem
from semmem.management.writing import Admitted, ChangedMemory, NewMemory, callers, changed
from semmem.memory import (
    PASSAGES,
    Controls,
    Conversation,
    Memory,
    MemoryStatus,
    MemoryType,
    Message,
    Role,
    Scope,
    Source,
)
from semmem.ports.embedder import Embedder
from semmem.ports.memory_records import ManagementRecords, Uses
from semmem.ports.names import bounded
from semmem.ports.store import Store
from semmem.request.question import Question
from semmem.retrieval.block import NOTHING, Before
from semmem.retrieval.recall import Preview, Recall
from semmem.retrieval.search import Strategy
from semmem.retrieval.showing import Showing
from semmem.text.quoting import unquoted
from semmem.turns.ids import session_without_start

CREATE_TRIES = 3
"""How often a memory is written anew that an erasure met on its way."""


@dataclass(eq=False)
class Memories:
    """Operations on one user's memories. Raises StoreError, EmbedderError, JournalError, ErasurePending and Busy.

    ``create_wait_s``: how long a memory waits to be written while others of its user are learnt or changed.
    ``after`` gives a time after the user's last erasure, where the clock was set back. ``showing`` knows what sessions
    were shown; None: nobody does.
    """

    store: Store
    embedder: Embedder
    records: ManagementRecords
    quota: Quota
    recall: Recall
    _: KW_ONLY
    clock: Callable[[], float]
    erasure: Erasure
    holds: Holds
    after: Callable[[str, float], float] = lambda _user, now: now
    create_wait_s: float = 30.0
    ttl_s: float | None = None
    showing: Showing | None = None

    async def page(
        self, scope: Scope, types: Sequence[MemoryType], wanted: Wanted, *, uses: Mapping[str, Uses] | None = None
    ) -> tuple[Page, Stats | None]:
        """One page, newest first, and figures over everything in the scope. Raises Denied.

        All of it is read, once: stores have no order of their own, and do so for any page. ``uses``: then with figures.
        """
        memories = await self.store.list(scope, types=types, limit=ROWS_MAX, vectors=False)
        return cut(memories, wanted), None if uses is None else stats(memories, uses)

    async def of_turn(self, scope: Scope, turn: str) -> list[Memory]:
        """What this turn said that is remembered, newest first."""
        found = await self.store.list(scope, limit=ROWS_MAX, vectors=False)
        return [memory for memory in found if memory.source.turn == turn and memory.status is MemoryStatus.ACTIVE]

    async def create(
        self, scope: Scope, new: NewMemory, admitted: Admitted | None = None, *, within: MetadataLimits | None = None
    ) -> Memory:
        """Store what the API was told; the same user and key is the same memory in a new version, with the metadata it
        had where ``merge_metadata`` and nothing else is told. Raises Denied where both together are not
        ``within`` limits. ``admitted``: what the write screen says of the content.

        One after another for each user; what an erasure meets on its way is written after it.
        """
        admitted = admitted or Admitted(new.content)
        told = Memory(
            id="",
            version=1,
            type=new.type,
            content=admitted.content,
            user=scope.user,
            project=scope.project,
            agent=scope.agent,
            session=scope.session,
            key=new.key,
            metadata=new.metadata | admitted.metadata,
            importance=new.importance,
            status=admitted.status,
            expires_at=new.expires_at.timestamp() if new.expires_at else None,
            embedding=await self.embedder.embed(unquoted(admitted.content)),
        )
        for _ in range(CREATE_TRIES):
            async with self.holds.held(scope.user, wait_s=self.create_wait_s) as hold_id:
                if (memory := await self._put(told, hold_id, new.merge_metadata, within)) is not None:
                    await self.quota.make_room(scope.user)
                    return memory
        raise Busy

    async def _put(
        self, told: Memory, hold_id: str, merge_metadata: bool, within: MetadataLimits | None
    ) -> Memory | None:
        """None when an erasure came between."""
        now = self.after(told.user, self.clock())
        memory = replace(
            told,
            id="mem_" + secrets.token_hex(13),  # another one in each try: what took the last one away may not be done
            source=Source(role="api", session=told.session or "", time=now),
            created_at=now,
            updated_at=now,
            expires_at=told.expires_at if told.expires_at is not None or self.ttl_s is None else now + self.ttl_s,
        )
        writes = Writes(self.store, self.records, hold_id)
        await self.records.register_user(told.user)
        old = await self._with_key(told) if told.key is not None else None
        if old is None:
            return memory if await writes.put(memory) else None
        metadata = callers(old.metadata) | memory.metadata if merge_metadata else memory.metadata
        _check(metadata, within)
        memory = replace(memory, id=old.id, version=old.version + 1, created_at=old.created_at, metadata=metadata)
        return memory if await writes.replace(old, memory) else None

    async def _with_key(self, told: Memory) -> Memory | None:
        memories = await self._everything(Scope(told.user), ())
        return next((m for m in memories if m.key == told.key and m.project == told.project), None)

    async def update(
        self,
        scope: Scope,
        memory_id: str,
        new: ChangedMemory,
        told: Admitted | None,
        *,
        within: MetadataLimits | None = None,
    ) -> Memory | None:
        """The memory in a new version, or as it was where nothing changes; None when the scope has none. What was said
        stays as it was said: a passage is none. ``told``: what the write screen says of a new content.

        One after another with whatever else changes this user's memories. Raises Denied where the key is another's, and
        where what is there and what is new are not ``within`` limits.
        """
        vector = None if told is None else await self.embedder.embed(unquoted(told.content))
        for _ in range(CREATE_TRIES):
            async with self.holds.held(scope.user, wait_s=self.create_wait_s) as hold_id:
                old = await self.store.get(scope, memory_id)
                if old is None or old.type in PASSAGES:
                    return None
                if new.key not in (None, old.key) and await self._with_key(replace(old, key=new.key)):
                    raise Denied("KEY_IN_USE", "another memory of this user has that key")
                memory = changed(old, new, told, vector, now=self.after(scope.user, self.clock()))
                _check(memory.metadata, None if new.metadata is None else within)
                if memory is old or await Writes(self.store, self.records, hold_id).replace(old, memory):
                    return memory
        raise Busy

    async def forget(self, scope: Scope, memory_id: str) -> Receipt | None:
        """Remove one memory, its history and its statistics; None when there is none. No summary brings back what was
        said in its session until now."""
        receipt = await self.erasure.forget_memory(scope, memory_id)
        return None if receipt is None else receipt + await self._forget_what_rested_on_it(scope.user)

    async def _forget_what_rested_on_it(self, user: str) -> Receipt:
        """Reflections of which a memory is gone: they may say what it said."""
        receipt, whole = Receipt(), Scope(user)
        reflections = await self._everything(whole, [MemoryType.REFLECTIVE])
        left = {memory.id for memory in await self._everything(whole, ())} if reflections else set()
        for reflection in reflections:
            if not left.issuperset(bases(reflection)):
                receipt += await self.erasure.forget_memory(whole, reflection.id) or Receipt()
        return receipt

    async def matching(
        self, scope: Scope, *, query: str | None, text: str | None, similarity_min: float, limit: int
    ) -> list[Memory]:
        """What ``forget`` by a query would take: active memories whose cosine with ``query`` is high enough, the
        nearest first, or memories of any status whose content contains ``text``, the newest first."""
        if query is None:
            wanted = (text or "").casefold()
            return [m for m in await self._everything(scope, ()) if wanted in m.content.casefold()][:limit]
        vector = await self.embedder.embed(query)
        hits = await self.store.search(scope, vector, limit=limit, now=self.clock(), as_of=self.clock())
        return [hit.memory for hit in hits if hit.cosine >= similarity_min]

    async def forget_scope(
        self, scope: Scope, types: Sequence[MemoryType], *, older_than_s: float | None = None
    ) -> Receipt:
        """Remove a scope's memories; without a filter on types also its turns, so that nothing is learnt again.
        ``older_than_s``: only what was said so long ago."""
        until = None if older_than_s is None else self.clock() - older_than_s
        receipt = await self.erasure.forget_scope(scope, types, until=until)
        return receipt + await self._forget_what_rested_on_it(scope.user)

    async def _everything(self, scope: Scope, types: Sequence[MemoryType]) -> list[Memory]:
        return await self.store.list(scope, types=types, limit=ROWS_MAX)

    async def search(
        self, scope: Scope, query: str, controls: Controls, *, strategy: Strategy | None = None
    ) -> Preview:
        """Memories for a query, each with its scores and why it was kept or cut. Raises StoreError."""
        asked = Conversation((Message(Role.USER, query),), controls=controls)
        return await self.recall.preview(Question(asked, scope, self.clock()), strategy=strategy, is_lookup=True)

    async def preview(
        self,
        scope: Scope,
        conversation: Conversation,
        *,
        strategy: Strategy | None = None,
        tokens_max: int | None = None,
    ) -> Preview:
        """What a request with this conversation would be given, and why, beside what its session was shown. Raises
        StoreError."""
        asked = Question(conversation, scope, self.clock())
        before = await self._before(asked, bounded(scope.session))
        return await self.recall.preview(asked, strategy=strategy, tokens_max=tokens_max, before=before)

    async def _before(self, asked: Question, session: str | None) -> Before:
        if self.showing is None or session is None:
            return NOTHING
        return await self.showing.before(asked, session_without_start(session))


def _check(metadata: Mapping[str, Any], within: MetadataLimits | None) -> None:
    if within is not None and (problem := metadata_problem(callers(metadata), within)):
        raise Denied("INVALID_REQUEST", f"body.metadata: with what is there already it {problem}")
