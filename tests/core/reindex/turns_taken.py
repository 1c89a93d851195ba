"""Who goes on next is chosen by the test: every task stops at each ``turn`` until it is let go on.

Records and stores here are in memory, so that nothing but the choice decides the order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from semmem.backends.in_process import InProcessCollections, InProcessStore
from semmem.background import Tasks
from semmem.memory import Memory, Scope, Vector
from semmem.ports.reindexing import Reindex
from semmem.ports.store import Described
from tests.support.fakes import HashEmbedder


class Turns:
    """``choose`` is given how many wait, and says which of them goes on."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self._choose = choose
        self._waiting: list[asyncio.Future[None]] = []
        self.free = False

    async def turn(self) -> None:
        if not self.free:
            mine = asyncio.get_running_loop().create_future()
            self._waiting.append(mine)
            await mine

    def let_go(self) -> None:
        """Everybody who waits."""
        for each in self._waiting:
            if not each.done():
                each.set_result(None)

    async def play(self, *parts: Coroutine[Any, Any, Any], stop_after: int | None = None) -> None:
        """Run them to their ends; the first is killed after so many turns of all."""
        tasks = [Tasks().spawn("part", part) for part in parts]
        steps = 0
        while not all(task.done() for task in tasks):
            for _ in range(5):  # whoever can go on without a turn does
                await asyncio.sleep(0)
            if steps == stop_after:
                tasks[0].cancel()
            self._waiting = [each for each in self._waiting if not each.done()]
            if self._waiting:
                self._waiting.pop(self._choose(len(self._waiting))).set_result(None)
            else:
                await asyncio.sleep(0.001)  # a pause of the code under test
            steps += 1
        for task in tasks:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error


class TakingTurns(InProcessStore):
    """A store with a turn before and after everything that another could come between."""

    turns: Turns

    async def put(self, scope: Scope, *memories: Memory) -> None:
        await self.turns.turn()
        await super().put(scope, *memories)
        await self.turns.turn()

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        await self.turns.turn()
        return await super().forget(scope, memory_id)

    async def list(self, scope: Scope, **narrow: Any) -> list[Memory]:
        await self.turns.turn()
        return await super().list(scope, **narrow)


class TurningCollections(InProcessCollections):
    """Collections that take turns, looked at by name."""

    def __init__(self, turns: Turns) -> None:
        super().__init__()
        self._turns = turns

    def collection(self, described: Described) -> InProcessStore:
        present = self._made.get(described.name)
        if present is None:
            store = TakingTurns(dimension=described.dimension)
            store.turns = self._turns
            self._made[described.name] = described, store
        return self._made[described.name][1]

    def named(self, name: str) -> InProcessStore:
        return self._made[name][1]

    @property
    def live(self) -> InProcessStore:
        return self._made[self._live][1]


class TurningEmbedder(HashEmbedder):
    """A model with a name."""

    def __init__(self, turns: Turns, name: str, dimension: int) -> None:
        super().__init__(dimension)
        self._turns = turns
        self._name = name
        self.embedded = 0

    @property
    def signature(self) -> str:
        return self._name

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        await self._turns.turn()
        self.embedded += 1
        return await super().embed(text)


class Records:
    """Holds, marks and what is known of a reindex, as the journal keeps them."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._held: dict[str, str] = {}
        self._marked: set[tuple[str, str]] = set()
        self._number = 0
        self.known: Reindex | None = None
        self.others_not_writing = 0
        self.claimed_elsewhere = False

    async def hold(self, user: str, *, now: float, lease_s: float) -> str | None:
        if user in self._held:
            return None
        self._number += 1
        self._held[user] = f"hold_{self._number}"
        return self._held[user]

    async def release(self, hold_id: str) -> None:
        self._held = {user: held for user, held in self._held.items() if held != hold_id}

    async def forget_memories(self, scope: Scope, memory_ids: Sequence[str], *, shuts_turns: bool = True) -> int:
        if scope.user in self._held:
            self._marked |= {(self._held[scope.user], memory_id) for memory_id in memory_ids}
        return 0

    async def allows(self, batch_id: str, *memory_ids: str) -> set[str]:
        await self._turns.turn()
        return self._unmarked(batch_id, memory_ids) if batch_id in self._held.values() else set()

    async def may_stay(self, batch_id: str, *memories: Memory) -> set[str]:
        await self._turns.turn()
        return self._unmarked(batch_id, [memory.id for memory in memories])

    def _unmarked(self, batch_id: str, memory_ids: Sequence[str]) -> set[str]:
        return {memory_id for memory_id in memory_ids if (batch_id, memory_id) not in self._marked}

    async def keep_version(self, memory: Memory) -> None:
        pass

    # --- the reindex ---

    async def reindex(self, store: str) -> Reindex | None:
        return self.known

    async def begin_reindex(self, store: str, begun: Reindex) -> Reindex:
        if self.known is None or self.known.target != begun.target:
            self.known = begun
        return self.known

    async def claim_reindex(self, store: str, *, now: float, lease_s: float) -> bool:
        return not self.claimed_elsewhere

    async def note_reindex(self, store: str, noted: Reindex, *, now: float, lease_s: float) -> bool:
        if not self.claimed_elsewhere:
            self.known = replace(noted)
        return not self.claimed_elsewhere

    async def end_reindex(self, store: str) -> None:
        self.known = None

    async def writes_to(self, target: str) -> None:
        pass

    async def not_writing(self, target: str) -> int:
        return self.others_not_writing


def users_of(collections: TurningCollections) -> Callable[[], Coroutine[Any, Any, Sequence[str]]]:
    async def users() -> list[str]:
        return sorted(await collections.live.users())

    return users
