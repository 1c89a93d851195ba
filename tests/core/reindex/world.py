"""A store with memories of the model ``old``, and all that moves them to ``new``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from semmem.lifecycle.holds import Holds
from semmem.lifecycle.writes import Writes, remove
from semmem.memory import Memory, MemoryType, Scope
from semmem.reindex.movable_store import MovableStore
from semmem.reindex.moving import Mover
from semmem.reindex.reindexing import Reindexing
from tests.core.reindex.turns_taken import Records, TurningCollections, TurningEmbedder, Turns
from tests.support.fakes import bag_of_words

OLD, NEW = 8, 16
"""Dimensions: a vector of one model is none of the other's."""


def memory(user: str, id: str, version: int = 1, content: str = "", **fields: Any) -> Memory:
    text = content or f"{user} said {id} for the {version}. time"
    made = bag_of_words(text, NEW)
    return Memory(id, version, MemoryType.SEMANTIC, text, user, **{"embedding": made, **fields})


class World:
    def __init__(self, choose: Callable[[int], int] = lambda _waiting: 0) -> None:
        self.turns = Turns(choose)
        self.turns.free = True
        self.collections = TurningCollections(self.turns)
        self.records = Records(self.turns)
        self.holds = Holds(self.records, clock=lambda: 0.0, wait_s=30.0, poll_s=0.001)
        self.moved: list[str] = []
        self.told: list[str] = []
        self.now = 0.0

    def opened_with(self, model: str, dimension: int, *, may_move: bool = True) -> MovableStore:
        self.embedder = TurningEmbedder(self.turns, model, dimension)
        return MovableStore(self.collections, self.embedder, self.records, may_move=may_move)

    async def told_before(self, *memories: Memory) -> None:
        """What was written while the old model was there."""
        store = self.opened_with("old", OLD)
        await store.open()
        for one in memories:
            vector = bag_of_words(one.content, OLD) if one.embedding is not None else None
            await store.put(
                Scope(one.user), Memory(one.id, one.version, one.type, one.content, one.user, embedding=vector)
            )
        await store.close()

    async def started(self, model: str = "new", dimension: int = NEW, **rules: Any) -> MovableStore:
        """The process, started with a model."""
        self.store = self.opened_with(model, dimension)
        await self.store.open()
        self.mover = Mover(self.store, self.embedder, self.records, self.holds)
        self.reindexing = Reindexing(
            self.store,
            self.mover,
            self.records,
            self.users,
            clock=lambda: self.now,
            moved=self.moved.append,
            tell=self.told.append,
            **rules,
        )
        return self.store

    async def users(self) -> Sequence[str]:
        return sorted(await self.collections.live.users())

    # --- what others do meanwhile ---

    async def write(self, new: Memory) -> bool:
        """As a batch or the API does."""
        async with self.holds.held(new.user) as hold_id:
            return bool(await Writes(self.store, self.records, hold_id).put(new))

    async def erase(self, user: str, id: str) -> None:
        """As whoever removes a memory does: it waits for no hold."""
        await self.turns.turn()
        await remove(self.store, self.records, Scope(user), id)

    async def contents(self, name: str) -> dict[tuple[str, str], tuple[int, str]]:
        """What a collection holds: by user and id, version and text."""
        store = self.collections.named(name)
        found = [one for user in await store.users() for one in await store.list(Scope(user), limit=1000)]
        return {(one.user, one.id): (one.version, one.content) for one in found}

    async def vectors_are_right(self, name: str, dimension: int) -> bool:
        store = self.collections.named(name)
        found = [one for user in await store.users() for one in await store.list(Scope(user), limit=1000)]
        return all(
            one.embedding is not None and (one.embedding == bag_of_words(one.content, dimension)).all() for one in found
        )
