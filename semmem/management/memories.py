"""What an operator or a user may do with memories, without HTTP: the operations behind the REST API.

Of what the API is told the write screen judges, as of what is learnt. A change of a memory is a next version, never
another memory.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from pydantic import Field

from semmem.extraction.screen import Ruling, Screened, screen_text
from semmem.lifecycle.erasure import Erasure, Receipt
from semmem.lifecycle.holds import Busy, Holds
from semmem.lifecycle.quota import Quota
from semmem.lifecycle.reflected import bases
from semmem.lifecycle.writes import Writes
from semmem.management.problems import Denied
from semmem.management.routes import (
    Body,
    Kind,
    MetadataLimits,
    Moment,
    NewUser,
    Number,
    ScopeName,
    Switch,
    metadata_problem,
)
from semmem.management.shown import ROWS_MAX
from semmem.memory import (
    CHANGES_STANDING,
    OWN_METADATA,
    PASSAGES,
    PROVISIONAL,
    QUARANTINED,
    RELEASED,
    UNSETTLED,
    Memory,
    MemoryStatus,
    MemoryType,
    Scope,
    Source,
    Vector,
)
from semmem.ports.embedder import Embedder
from semmem.ports.events import Announce, ApiScreened, nobody_listens
from semmem.ports.memory_records import ManagementRecords
from semmem.ports.store import Store
from semmem.retrieval.recall import Recall
from semmem.retrieval.showing import Showing
from semmem.text.quoting import unquoted


@dataclass(frozen=True, slots=True)
class Admitted:
    """What may be stored of a text, and as what. ``metadata`` is semmem's own, to go with the caller's."""

    content: str
    status: MemoryStatus = MemoryStatus.ACTIVE
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class WriteScreen:
    """Judges what the API is told. ``screen``: ``screen_text`` with the operator's settings bound to it. ApiScreened is
    announced for every text that is not simply kept."""

    screen: Callable[[str], Screened] = screen_text
    _: KW_ONLY
    announce: Announce = nobody_listens

    def judge(self, content: str, *, key: str | None, override: bool) -> Admitted:
        """A text that is kept is kept as it came. Raises Denied with the screen's word for one that is not. With a key
        nothing is quarantined: it would take the place of what is known under the key, unseen."""
        verdict = self.screen(content)
        if verdict.outcome is Ruling.KEEP:
            return Admitted(content)
        if override:
            self.announce(ApiScreened("overridden", verdict.reason))
            # Somebody who is allowed to has read it. A secret stays out of prompts all the same.
            return Admitted(content, metadata={RELEASED: True} if verdict.reason == "instruction" else {})
        if verdict.outcome is Ruling.REJECT or (verdict.outcome is Ruling.QUARANTINE and key is not None):
            self.announce(ApiScreened(Ruling.REJECT, verdict.reason))
            raise Denied("SCREENED", f"content: {verdict.reason}")
        self.announce(ApiScreened(verdict.outcome, verdict.reason))
        if verdict.outcome is Ruling.QUARANTINE:
            return Admitted(verdict.content, MemoryStatus.QUARANTINED, {QUARANTINED: verdict.reason})
        return Admitted(verdict.content)


class NewMemory(Body):
    """``override_screen``: store what the write screen would not; an administrator's word."""

    content: str = Field(min_length=3, max_length=500)
    type: Kind = MemoryType.SEMANTIC
    user_id: NewUser = None
    project_id: ScopeName = None
    agent_id: ScopeName = None
    session_id: ScopeName = None
    key: str | None = Field(default=None, min_length=1, max_length=256)
    metadata: dict[str, Any] = Field(default_factory=dict)
    importance: Number = Field(default=0.5, ge=0, le=1)
    expires_at: Moment | None = None
    override_screen: Switch = False
    merge_metadata: Switch = Field(default=True, description="with a key that is known: over the metadata it has")


class ChangedMemory(Body):
    """What is not named stays as it is; ``expires_at`` null: never. ``override_screen`` as in NewMemory."""

    content: str | None = Field(default=None, min_length=3, max_length=500)
    type: Kind | None = None
    key: str | None = Field(default=None, min_length=1, max_length=256)
    metadata: dict[str, Any] | None = None
    merge_metadata: Switch = True
    importance: Number | None = Field(default=None, ge=0, le=1)
    expires_at: Moment | None = None
    override_screen: Switch = False


OF_THE_OLD = (PROVISIONAL, UNSETTLED, RELEASED, CHANGES_STANDING)
"""Notes that a new content does not keep."""


def changed(old: Memory, new: ChangedMemory, told: Admitted | None, vector: Vector | None, *, now: float) -> Memory:
    """The next version; ``old`` itself when nothing is different. ``told``: what the write screen says of a content. A
    new content is the API's word: no batch has to confirm it, it is in doubt beside no other memory, it is no change
    that could be undone, and what was allowed of the old one is not allowed of it. What is quarantined or superseded
    stays so, and so does what semmem itself noted."""
    metadata = merged(old.metadata, new.metadata, keep=new.merge_metadata)
    content = old.content if told is None else told.content
    is_new = content != old.content
    if told is not None and is_new:
        metadata = {name: value for name, value in metadata.items() if name not in OF_THE_OLD} | told.metadata
    expires_at = old.expires_at if new.expires_at is None else new.expires_at.timestamp()
    never_expires = "expires_at" in new.model_fields_set and new.expires_at is None
    next_one = replace(
        old,
        content=content,
        type=new.type or old.type,
        key=old.key if new.key is None else new.key,
        metadata=metadata,
        source=replace(old.source, role="api") if is_new else old.source,
        importance=old.importance if new.importance is None else new.importance,
        expires_at=None if never_expires else expires_at,
        embedding=vector if is_new else old.embedding,
    )
    return old if next_one == old else replace(next_one, version=old.version + 1, updated_at=now)


def merged(old: Mapping[str, Any], told: Mapping[str, Any] | None, *, keep: bool) -> dict[str, Any]:
    """A caller's metadata in place of what callers told before, or over it."""
    if told is None:
        return dict(old)
    kept = {name: value for name, value in old.items() if keep or name in OWN_METADATA}
    return kept | dict(told)


def callers(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What callers told, without semmem's own notes."""
    return {name: value for name, value in metadata.items() if name not in OWN_METADATA}


# --- operations -----------------------------------------------------------------------------------------------------

CREATE_TRIES = 3
"""How often a memory is written anew that an erasure met on its way."""


@dataclass(eq=False)
class Memories:
    """Operations on one user's memories. Raises StoreError, EmbedderError, JournalError, ErasurePending and Busy.
    ``create_wait_s``: how long a memory waits to be written while others of its user are learnt or changed. ``after``
    gives a time after the user's last erasure, where the clock was set back. ``showing`` knows what sessions were
    shown; None: nobody does. ``limits``: of what a caller notes at a memory."""

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
    limits: MetadataLimits = field(default_factory=MetadataLimits)

    async def create(self, scope: Scope, new: NewMemory, admitted: Admitted | None = None) -> Memory:
        """Store what the API was told; the same user and key is the same memory in a new version, with the metadata it
        had where ``merge_metadata`` says so. Raises Denied where both together are beyond the limits.
        ``admitted``: what the write screen says of the content. One after another for each user; what an erasure meets
        on its way is written after it."""
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
                if (memory := await self._put(told, hold_id, new.merge_metadata)) is not None:
                    await self.quota.make_room(scope.user)
                    return memory
        raise Busy

    async def _put(self, told: Memory, hold_id: str, merge_metadata: bool) -> Memory | None:
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
        self._check(metadata)
        memory = replace(memory, id=old.id, version=old.version + 1, created_at=old.created_at, metadata=metadata)
        return memory if await writes.replace(old, memory) else None

    async def _with_key(self, told: Memory) -> Memory | None:
        memories = await self.store.list(Scope(told.user), limit=ROWS_MAX)
        return next((m for m in memories if m.key == told.key and m.project == told.project), None)

    async def update(self, scope: Scope, memory_id: str, new: ChangedMemory, told: Admitted | None) -> Memory | None:
        """The memory in a new version, or as it was where nothing changes; None when the scope has none. What was said
        stays as it was said: a passage is none. ``told``: what the write screen says of a new content. One after
        another with whatever else changes this user's memories. Raises Denied where the key is another's, and where
        what is there and what is new are beyond the limits."""
        vector = None if told is None else await self.embedder.embed(unquoted(told.content))
        for _ in range(CREATE_TRIES):
            async with self.holds.held(scope.user, wait_s=self.create_wait_s) as hold_id:
                old = await self.store.get(scope, memory_id)
                if old is None or old.type in PASSAGES:
                    return None
                if new.key not in (None, old.key) and await self._with_key(replace(old, key=new.key)):
                    raise Denied("KEY_IN_USE", "another memory of this user has that key")
                memory = changed(old, new, told, vector, now=self.after(scope.user, self.clock()))
                if new.metadata is not None:
                    self._check(memory.metadata)
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
        reflections = await self.store.list(whole, types=[MemoryType.REFLECTIVE], limit=ROWS_MAX)
        left = {memory.id for memory in await self.store.list(whole, limit=ROWS_MAX)} if reflections else set()
        for reflection in reflections:
            if not left.issuperset(bases(reflection)):
                receipt += await self.erasure.forget_memory(whole, reflection.id) or Receipt()
        return receipt

    async def forget_scope(
        self, scope: Scope, types: Sequence[MemoryType], *, older_than_s: float | None = None
    ) -> Receipt:
        """Remove a scope's memories; without a filter on types also its turns, so that nothing is learnt again.
        ``older_than_s``: only what was said so long ago."""
        until = None if older_than_s is None else self.clock() - older_than_s
        receipt = await self.erasure.forget_scope(scope, types, until=until)
        return receipt + await self._forget_what_rested_on_it(scope.user)

    def _check(self, metadata: Mapping[str, Any]) -> None:
        if problem := metadata_problem(callers(metadata), self.limits):
            raise Denied("INVALID_REQUEST", f"body.metadata: with what is there already it {problem}")
