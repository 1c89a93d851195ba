"""What is being erased, as this process knows it, and a store that neither shows nor takes it: the one place where
erased memories are filtered out."""

import math
import time
from collections.abc import Callable, Sequence

from semmem.lifecycle.write_gate import UnderWay
from semmem.memory import SKEW_S, Forgetting, Hit, Memory, Scope, Types, Vector
from semmem.ports.errors import Erased
from semmem.ports.store import Store, StoreWrapper

LAG_S = 10.0
"""So long after an erasure a read of the store, which another replica may have made ready, may still show what went."""


class Marks:
    """``hold`` hides what an erasure covers until ``release``, which may leave it hidden for some more seconds.
    ``clock`` is set by nobody, ``wall`` may be: an erasure that lies ahead of it was dated by a clock that was ahead,
    and covers what was said until this process held it, not until that time comes."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._wall = wall
        self._of_user: dict[str, dict[Forgetting, float]] = {}
        self._held_at: dict[Forgetting, float] = {}
        self._released_at: dict[str, float] = {}

    def hold(self, what: Forgetting) -> None:
        self._of_user.setdefault(what.scope.user, {})[what] = math.inf
        self._held_at.setdefault(what, self._clock())

    def release(self, what: Forgetting, *, after_s: float = 0.0) -> None:
        """Hide it ``after_s`` longer: somebody may be about to write what he read before."""
        marks, now = self._of_user.get(what.scope.user, {}), self._clock()
        if what in marks:
            marks[what] = now + after_s
            self._released_at[what.scope.user] = now
        self._drop_released()
        for user in [user for user, at in self._released_at.items() if at + LAG_S < now]:
            del self._released_at[user]

    def lately(self, user: str) -> bool:
        """Whether something of the user's is being erased, or was a moment ago."""
        return self.any_of(user) or self._released_at.get(user, -math.inf) + LAG_S >= self._clock()

    def any_of(self, user: str) -> bool:
        if user in self._of_user:
            self._drop_released()
        return user in self._of_user

    def cover(self, memory: Memory) -> bool:
        """Whether the memory is erased, whatever the store says."""
        erased = self._of_user.get(memory.user, ())
        return any(what.covers(memory) and not self._is_said_since(what, memory) for what in erased)

    def _is_said_since(self, what: Forgetting, memory: Memory) -> bool:
        now = self._wall()
        if what.memory_id is not None or what.at <= now + SKEW_S:
            return False
        return now - (self._clock() - self._held_at[what]) < memory.said_at <= now + SKEW_S

    def after(self, user: str, now: float) -> float:
        """``now``, or just after the user's newest erasure where the clock was set back behind that."""
        newest = max((what.at for what in self._of_user.get(user, ())), default=-math.inf)
        return now if now > newest else math.nextafter(newest, math.inf)

    def _drop_released(self) -> None:
        now = self._clock()
        for user, marks in list(self._of_user.items()):
            for what in [what for what, until in marks.items() if until <= now]:
                del marks[what], self._held_at[what]
            if not marks:
                del self._of_user[user]


HITS_MAX = 10_000
"""So many hits are asked for at most while hidden ones stand before them; Milvus gives 16,384."""


class HidingStore(StoreWrapper):
    """A Store around ``everything``, which goes on showing that to whoever has to remove it. ``put`` raises Erased for
    what ``marks`` cover. The other users pay a look into a dictionary."""

    def __init__(self, everything: Store, marks: Marks) -> None:
        super().__init__(everything)
        self.everything, self.marks = everything, marks
        self._putting = UnderWay()

    async def put(self, scope: Scope, *memories: Memory) -> None:
        if any(map(self.marks.cover, memories)):
            raise Erased("said before its scope was erased")
        with self._putting.call(scope.user):
            await super().put(scope, *memories)

    async def puts_ended(self, user: str) -> None:
        """Return when the user's writes that are under way now have ended, however they did."""
        await self._putting.ended(user)

    async def search(
        self, scope: Scope, vector: Vector, *, limit: int, now: float, types: Types = (), as_of: float | None = None
    ) -> list[Hit]:
        """As the port says: asks for more while hidden hits take others' places."""
        asked = limit
        while True:
            hits = await super().search(scope, vector, limit=asked, now=now, types=types, as_of=as_of)
            shown = [hit for hit in hits if not self.marks.cover(hit.memory)]
            if len(shown) >= limit or len(hits) < asked or len(shown) == len(hits) or asked == HITS_MAX:
                return shown[:limit]
            asked = min(4 * asked, HITS_MAX)

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        memory = await super().get(scope, memory_id)
        return None if memory is None or self.marks.cover(memory) else memory

    async def count(self, scope: Scope, *, types: Types = ()) -> int:
        if not self.marks.any_of(scope.user):
            return await super().count(scope, types=types)
        return len(await self._shown(scope, types))

    async def _shown(self, scope: Scope, types: Types, *, vectors: bool = False) -> Sequence[Memory]:
        number = await super().count(scope, types=types)
        found = await super().list(scope, types=types, limit=number, vectors=vectors) if number else []
        return [memory for memory in found if not self.marks.cover(memory)]

    async def list(
        self, scope: Scope, *, types: Types = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        if not self.marks.any_of(scope.user):
            found = await super().list(scope, types=types, limit=limit, offset=offset, vectors=vectors)
            return [memory for memory in found if not self.marks.cover(memory)]
        return [*await self._shown(scope, types, vectors=vectors)][max(offset, 0) :][: max(limit, 0)]
