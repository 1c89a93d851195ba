"""All that a store keeps of a user: for whoever copies it."""

from __future__ import annotations

from semmem.memory import PASSAGES, Memory, Scope
from semmem.ports.store import Store


async def everything(store: Store, user: str) -> list[Memory]:
    """Memories of any status, then passages, with their vectors. Raises StoreError."""
    found = list[Memory]()
    for types in ((), PASSAGES):
        number = await store.count(Scope(user), types=types)
        found += await store.list(Scope(user), types=types, limit=number) if number else []
    return found
