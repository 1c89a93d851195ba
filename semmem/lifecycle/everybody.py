"""Forgetting everybody: one erasure after another, each as anybody's, for whoever store and journal know."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import KW_ONLY, dataclass

from semmem.lifecycle.erasure import Erasure, ErasurePending, Receipt
from semmem.memory import MemoryType, Scope
from semmem.ports.housekeeping import KnownUsers
from semmem.ports.store import Enumerable

SLICE = 500
"""Names that are read from the journal at a time."""
LOOKS = 2
"""How often the journal is read: what waited in memory at the first look is there at the second."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """``users``: of how many something went."""

    users: int
    receipt: Receipt


@dataclass(eq=False, repr=False)
class ErasureOfAll:
    """Raises StoreError and JournalError where nobody knows who there is."""

    erasure: Erasure
    store: Enumerable
    known: KnownUsers
    _: KW_ONLY
    clock: Callable[[], float]

    async def forget(
        self, *, project: str | None = None, types: Sequence[MemoryType] = (), older_than_s: float | None = None
    ) -> Forgotten:
        """Erase what a scope of each user holds, as ``Erasure.forget_scope`` does; with ``older_than_s`` only what was
        said so long ago. Where one is pending the others are erased all the same; ErasurePending is raised after the
        last, with what went of all of them. Who begins to talk meanwhile may be erased or not."""
        until = None if older_than_s is None else self.clock() - older_than_s
        receipt, users, pending = Receipt(), 0, list[bool]()
        async for user in self._everybody():
            try:
                gone = await self.erasure.forget_scope(Scope(user, project=project), types, until=until)
            except ErasurePending as unfinished:
                gone = unfinished.receipt
                pending.append(unfinished.remembered)
            receipt += gone
            users += gone != Receipt()
        if pending:
            raise ErasurePending(receipt, remembered=all(pending))
        return Forgotten(users, receipt)

    async def _everybody(self) -> AsyncIterator[str]:
        """Each once. The next names are read when those before them are erased."""
        seen = await self.store.users()
        for user in sorted(seen):
            yield user
        for _ in range(LOOKS):
            after = ""
            while names := await self.known.users_after(after, limit=SLICE):
                after = names[-1]
                for user in names:
                    if user not in seen:
                        seen.add(user)
                        yield user
