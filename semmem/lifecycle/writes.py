"""Writing memories for a batch or a hold, so that what the user forgets meanwhile does not come back.

Whoever forgets marks the memory in the journal's database first and removes it from the store then. So a write that
came before the removal is removed with the rest, and one that came after it finds the mark. What a crash between a
write and that look leaves in the store, upkeep removes: the mark outlives the batch. A batch or hold that was cut off,
since something else of the user was erased, writes no more; what it has written stays."""

from dataclasses import dataclass

from semmem.memory import Memory, Scope
from semmem.ports.errors import Erased
from semmem.ports.memory_records import WriteRecords
from semmem.ports.store import Store


@dataclass(eq=False, repr=False)
class Writes:
    """Puts one user's memories. Without a batch or hold (``batch_id`` empty) everything may be written: nothing else
    runs beside it. ``allowed`` and ``may_stay``: as WriteRecords says."""

    store: Store
    records: WriteRecords
    batch_id: str

    async def put(self, *memories: Memory) -> set[str]:
        """The ids of those that are written and may stay. Raises StoreError and JournalError."""
        allowed = await self.allowed(*memories)
        asked = [memory for memory in memories if memory.id in allowed]
        if not asked:
            return set()
        try:
            await self.store.put(Scope(asked[0].user), *asked)
        except Erased:  # one of them is
            return set[str]().union(*[await self.put(memory) for memory in asked]) if len(asked) > 1 else set()
        staying = await self.may_stay(*asked)
        for memory in asked:
            if memory.id not in staying:
                await self.retract(memory)
        return staying

    async def retract(self, memory: Memory) -> None:
        """Remove what must not stay, with all that is kept beside it."""
        scope = Scope(memory.user)
        await self.store.forget(scope, memory.id)
        await self.records.forget_memories(scope, [memory.id], shuts_turns=False)

    async def withdraw(self, memory: Memory) -> bool:
        """Remove a memory and keep what it said as a version; whether it may be, and is. Safe to repeat."""
        if not await self.allowed(memory):
            return False
        await self.records.keep_version(memory)
        await self.store.forget(Scope(memory.user), memory.id)
        return True

    async def replace(self, old: Memory, new: Memory) -> bool:
        """``put`` of the next version; the one before is history."""
        if not await self.allowed(new):
            return False
        await self.records.keep_version(old)
        return bool(await self.put(new))

    async def allowed(self, *memories: Memory) -> set[str]:
        ids = [memory.id for memory in memories]
        return await self.records.allows(self.batch_id, *ids) if self.batch_id else {*ids}

    async def may_stay(self, *memories: Memory) -> set[str]:
        ids = {memory.id for memory in memories}
        return await self.records.may_stay(self.batch_id, *memories) if self.batch_id else ids


async def remove(store: Store, records: WriteRecords, scope: Scope, memory_id: str) -> bool:
    """Remove a memory with all that is kept beside it; whether the store had it. Raises StoreError and JournalError.
    Whoever writes it at this moment looks for the mark after his write: either he sees it, or the removal sees what he
    wrote."""
    await records.forget_memories(Scope(scope.user), [memory_id], shuts_turns=False)
    return await store.forget(scope, memory_id)
