"""The order in which single memories go, whatever the reason: marked first, then removed."""

from __future__ import annotations

from semmem.memory import Scope
from semmem.ports.memory_records import WriteRecords
from semmem.ports.store import Store


async def remove(store: Store, records: WriteRecords, scope: Scope, memory_id: str) -> bool:
    """Remove a memory with all that is kept beside it; whether the store had it. Raises StoreError and JournalError.

    Whoever writes it at this moment looks for the mark after his write: either he sees it, or the removal sees what he
    wrote.
    """
    await records.forget_memories(Scope(scope.user), [memory_id], shuts_turns=False)
    return await store.forget(scope, memory_id)
