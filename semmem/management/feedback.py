"""A user's word on memories that were shown: helpful or not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from semmem.memory import Scope
from semmem.ports.events import Announce, FeedbackGiven, nobody_listens
from semmem.ports.feedback import FeedbackRecords
from semmem.ports.store import Store


@dataclass(frozen=True, slots=True)
class Heard:
    """The ids of the memories that the word is kept for, and of those that the scope does not have."""

    recorded: Sequence[str]
    unknown: Sequence[str]


class FeedbackDesk:
    """``refresh``: what was kept is obeyed here at once. ``entries_max``: memories with votes, of all users together.

    Raises StoreError and JournalError. FeedbackGiven is announced.
    """

    def __init__(
        self,
        store: Store,
        records: FeedbackRecords,
        refresh: Callable[[], Awaitable[None]],
        *,
        entries_max: int,
        clock: Callable[[], float],
        announce: Announce = nobody_listens,
    ) -> None:
        self._store = store
        self._records = records
        self._refresh = refresh
        self._entries_max = entries_max
        self._clock = clock
        self._announce = announce

    async def hear(self, scope: Scope, memory_ids: Sequence[str], *, helpful: bool) -> Heard:
        """A memory that is named twice has one vote."""
        asked = list(dict.fromkeys(memory_ids))
        found = [memory for each in asked if (memory := await self._store.get(scope, each)) is not None]
        said_at = {memory.id: memory.updated_at for memory in found}
        if said_at:
            limit = self._entries_max
            await self._records.add_votes(scope.user, said_at, helpful=helpful, now=self._clock(), entries_max=limit)
            await self._refresh()
            self._announce(FeedbackGiven("helpful" if helpful else "unhelpful", len(said_at)))
        return Heard(list(said_at), [each for each in asked if each not in said_at])
