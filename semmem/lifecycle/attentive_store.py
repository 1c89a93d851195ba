"""A store that shows what other processes have just written."""

from __future__ import annotations

from collections.abc import Sequence

from semmem.lifecycle.change_news import ChangeNews, Reading
from semmem.memory import Memory, MemoryType, Scope
from semmem.ports.store import Lagging, Store, StoreWrapper


class AttentiveStore(StoreWrapper):
    """A Store around ``store``. Whose memories others have changed just now is read as of now, where the store would
    lag, or again when it does not lag any more; and whoever is read is known to ``news`` from here on."""

    def __init__(self, store: Store, news: ChangeNews) -> None:
        super().__init__(store)
        self._news = news
        self._lagging = store if isinstance(store, Lagging) else None

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        self._as_of_now(self._news.reading(scope.user), scope.user)
        return await super().get(scope, memory_id)

    async def list(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        how = self._news.reading(scope.user)
        if how is not Reading.TWICE:
            self._as_of_now(how, scope.user)
            return await super().list(scope, types=types, limit=limit, offset=offset, vectors=vectors)
        try:
            return await super().list(scope, types=types, limit=limit, offset=offset, vectors=vectors)
        finally:
            self._as_of_now(how, scope.user)
            self._news.read_again(scope.user)

    async def count(self, scope: Scope, *, types: Sequence[MemoryType] = ()) -> int:
        self._as_of_now(self._news.reading(scope.user), scope.user)
        return await super().count(scope, types=types)

    def _as_of_now(self, how: Reading, user: str) -> None:
        """From here on, where there are news of the user."""
        if self._lagging is not None and how is not Reading.ANYHOW:
            self._lagging.written_elsewhere(user)
