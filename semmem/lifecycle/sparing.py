"""What an erasure does not mean is written before it takes anything: a crash then leaves doubles, and no hole.

All of it is done under a hold of the user, and is safe to repeat: what was written by an earlier try is there, and what
was erased since is not written again. See semmem.lifecycle.spared."""

import asyncio
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, replace

from semmem.lifecycle.holds import Busy, hold
from semmem.lifecycle.spared import (
    Heirs,
    Said,
    Spared,
    Successor,
    as_own,
    is_spared,
    reinstated,
    replaced_before,
    replaced_by,
    said_elsewhere,
    successor_of,
)
from semmem.lifecycle.writes import Writes
from semmem.memory import CONTRADICTED, Forgetting, Memory, MemoryStatus, Scope
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError, SemmemError
from semmem.ports.learning import ProvisionalRecords, TurnState
from semmem.ports.store import Store, list_all
from semmem.text.quoting import unquoted


class NotSpared(SemmemError):
    """What is not meant could not be written: somebody else is at work on the user's memories, or erases more."""


class VectorsMissing(SemmemError):
    """What was spared is written, and is found by its words alone: no vectors could be made."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be written: ``spared``; memories that were replaced, each with what replaces it when others are gone;
    and those that an earlier try wrote without a vector."""

    spared: tuple[Spared, ...] = ()
    replaced: tuple[tuple[Memory, Successor | None], ...] = ()
    bare: tuple[Memory, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.spared or self.replaced or self.bare)


@dataclass(eq=False, repr=False)
class Sparing:
    """``store`` is what everybody reads and writes through, ``everything`` the same without hiding; ``hides``: whether
    an erasure that has begun takes a memory. ``wait_s``: longest wait for a hold, and for one vector."""

    store: Store
    everything: Store
    records: ProvisionalRecords
    embedder: Embedder
    _: KW_ONLY
    hides: Callable[[Memory], bool]
    clock: Callable[[], float]
    wait_s: float = 2.0
    poll_s: float = 0.05
    lease_s: float = 60.0

    async def spare(self, what: Forgetting, hold_id: str) -> bool:
        """Write what would go with what is erased, and is not meant. ``hold_id``: of the user, empty where the erasure
        has none. Whether all of it has vectors. Raises NotSpared, StoreError and JournalError. What is erased by its id
        takes all that it said with it, and what it had replaced stays history."""
        if what.memory_id is not None or not (plan := await self._plan(what)):
            return True
        if hold_id:
            return await self._write(plan, hold_id)
        deadline = asyncio.get_running_loop().time() + self.wait_s
        user, lease_s = what.scope.user, self.lease_s
        try:
            own = await hold(self.records, user, self.clock, deadline, poll_s=self.poll_s, lease_s=lease_s)
        except Busy:
            raise NotSpared from None
        try:  # somebody else may have been at work until now
            return await self._write(await self._plan(what), own)
        finally:
            await self.records.release(own)

    async def _plan(self, what: Forgetting) -> _Plan:
        memories = await list_all(self.everything, Scope(what.scope.user), vectors=False)
        going = {memory.id: memory for memory in memories if what.covers(memory)}
        staying = [memory for memory in memories if memory.id not in going]
        left = await self._left(what, going.values())
        heirs, replaced = Heirs(going, left), _replaced(what, staying, going)
        said = await asyncio.to_thread(Said, staying if left or replaced else ())
        known = {memory.id for memory in staying}
        spared = [_shaded(each, heirs, said, going[id]) for id, each in left.items() if each.memory.id not in known]
        back = [memory for memory in replaced if not (self.hides(memory) or await self.records.is_erased(memory))]
        return _Plan(
            tuple(spared),
            tuple([(memory, heirs.of(by, memory.updated_at) or said.again(memory)) for memory, by in _told(back)]),
            tuple([memory for memory in staying if await self._is_bare(memory)]),
        )

    async def _is_bare(self, listed: Memory) -> bool:
        if listed.status is not MemoryStatus.ACTIVE or listed.embedding is not None or not is_spared(listed):
            return False
        memory = await self.everything.get(Scope(listed.user), listed.id)
        return memory is not None and memory.embedding is None

    async def _left(self, what: Forgetting, going: Iterable[Memory]) -> dict[str, Spared]:
        """By the id of the memory that goes. All that a memory ever said was said in one project, and what it said
        before was said earlier."""
        if what.scope.agent is None and what.scope.session is None:
            return {}
        older = [memory for memory in going if memory.version > 1]
        found = {memory.id: await self._left_of(what, memory) for memory in older}
        return {memory_id: spared for memory_id, spared in found.items() if spared is not None}

    async def _left_of(self, what: Forgetting, memory: Memory) -> Spared | None:
        versions = await self.records.versions(Scope(memory.user), memory.id)
        told = said_elsewhere(what, memory, versions)
        for place, version in enumerate(told):
            own = as_own(version)
            if self.hides(own) or await self._was_refused(version):
                continue
            if await self.records.is_erased(own):  # an earlier try spared it, and somebody erased it since
                return None
            return Spared(own, tuple(told[place + 1 :]), replaced_before(version, [*versions, memory]))
        return None

    async def _was_refused(self, version: Memory) -> bool:
        if not version.source.turn:
            return False
        state, _ = await self.records.turn_state(version.source.turn)
        return state is TurnState.REFUSED

    async def _write(self, plan: _Plan, hold_id: str) -> bool:
        writes, embeds = Writes(self.store, self.records, hold_id), True
        for spared in plan.spared:
            for version in spared.history:
                await self.records.keep_version(replace(version, id=spared.memory.id))
            own = await self._embedded(spared.memory) if embeds else spared.memory
            embeds = own.embedding is not None
            await self._put(writes, own)
        for memory, successor in plan.replaced:
            await self._replace(writes, memory, successor)
        for memory in plan.bare:
            own = await self._embedded(memory) if embeds else memory
            embeds = own.embedding is not None
            if embeds:
                await self._put(writes, replace(own, version=memory.version + 1))
        return embeds

    async def _replace(self, writes: Writes, listed: Memory, successor: Successor | None) -> None:
        memory = await self.everything.get(Scope(listed.user), listed.id)  # with its vector
        if memory is None:
            return
        if successor is None:
            await self.records.keep_version(memory)
            await self._put(writes, reinstated(memory, self.clock()))
        else:
            await self._put(writes, replace(replaced_by(memory, successor), version=memory.version + 1))

    async def _put(self, writes: Writes, memory: Memory) -> None:
        """Where another erasure takes it meanwhile, the next try looks what is to be spared then."""
        if not await writes.put(memory):
            raise NotSpared

    async def _embedded(self, memory: Memory) -> Memory:
        """With its vector, unless none can be made now."""
        try:
            async with asyncio.timeout(self.wait_s):
                return replace(memory, embedding=await self.embedder.embed(unquoted(memory.content)))
        except (EmbedderError, TimeoutError):
            return memory


def _shaded(spared: Spared, heirs: Heirs, said: Said, gone: Memory) -> Spared:
    own = spared.memory
    if own.status is MemoryStatus.QUARANTINED:
        return spared
    successor = heirs.of_left(spared, gone) or said.again(own)
    return replace(spared, memory=replaced_by(own, successor))


def _replaced(what: Forgetting, staying: Iterable[Memory], going: Container[str]) -> list[Memory]:
    """What memories that go had replaced, said last first. An erasure of a type means the words wherever they are: what
    said the same stays history."""
    told = _told(sorted(staying, key=lambda memory: -memory.said_at))
    return [memory for memory, (by, why) in told if by in going and (what.takes_turns or why == CONTRADICTED)]


def _told(memories: Iterable[Memory]) -> Iterator[tuple[Memory, Successor]]:
    """Those that were replaced, each with what replaced it."""
    for memory in memories:
        if (successor := successor_of(memory)) is not None:
            yield memory, successor
