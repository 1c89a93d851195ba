"""A store, a journal's database and short cuts, for the tests of what happens to memories later."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from semmem.backends.in_process import InProcessStore
from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Memory, MemoryType, Scope
from semmem.ports.events import Event, MemoriesRemoved
from semmem.upkeep.consolidation import Consolidator
from semmem.upkeep.maintenance import Maintenance, MaintenanceRules
from tests.support.empty_journal import empty_journal
from tests.support.fakes import HashEmbedder

NOW = 1_800_000_000.0
DAY = 86_400.0
EMBEDDER = HashEmbedder()


class LifeWorld:
    """``removed`` counts what went by itself, by reason."""

    def __init__(self, folder: Path) -> None:
        self.store: Any = InProcessStore()
        self.journal = SqlJournal(empty_journal(folder / "journal.db"))
        self.removed: Counter[str] = Counter()

    async def open(self) -> LifeWorld:
        await self.store.open()
        await self.journal.open()
        return self

    async def close(self) -> None:
        await self.journal.close()

    async def add(self, memory_id: str, content: str, *, user: str = "ada", age_days: float = 0, **rest: Any) -> Memory:
        """A memory that was said so many days ago, with its first version in history when it is not the first."""
        at = NOW - age_days * DAY
        fields: dict[str, Any] = {"type": MemoryType.SEMANTIC, "version": 1, "created_at": at, "updated_at": at} | rest
        memory = Memory(id=memory_id, content=content, user=user, embedding=await EMBEDDER.embed(content), **fields)
        await self.journal.register_user(user)
        await self.store.put(Scope(user), memory)
        return memory

    async def active(self, user: str = "ada") -> dict[str, Memory]:
        return {m.id: m for m in await self.store.list(Scope(user)) if m.status.value == "active"}

    async def every(self, user: str = "ada") -> dict[str, Memory]:
        return {memory.id: memory for memory in await self.store.list(Scope(user))}

    def consolidator(self, **rules: Any) -> Consolidator:
        return Consolidator(self.store, self.journal, **{"cosine_min": 0.7, **rules})

    def upkeep(self, **rules: Any) -> Maintenance:
        return Maintenance(
            self.store,
            self.store,
            self.journal,
            self.consolidator(),
            MaintenanceRules(**{"settle_s": 0.0, **rules}),
            announce=self.count,
        )

    def count(self, event: Event) -> None:
        assert isinstance(event, MemoriesRemoved)
        self.removed[event.reason] += event.number

    async def hold(self, user: str = "ada") -> str:
        held = await self.journal.hold(user, now=NOW, lease_s=60.0)
        assert held is not None
        return held
