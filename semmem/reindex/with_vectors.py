"""A store for whoever keeps vectors, under the name of their model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from semmem.ports.errors import StoreError
from semmem.ports.store import Store, StoreCall, StoreWrapper
from semmem.reindex.movable_store import MovableStore


class WithVectors(StoreWrapper):
    """A view of ``shown``, which shows what ``store`` has, for whoever keeps vectors: StoreError while there are none
    of the model whose name they would be kept under."""

    def __init__(self, shown: Store, store: MovableStore) -> None:
        super().__init__(shown)
        self._movable = store

    @contextmanager
    def around(self, call: StoreCall) -> Iterator[None]:
        if self._movable.lacks_vectors:
            raise StoreError(
                "memories are being reindexed, and have no vectors of their new model yet: try again later"
            )
        yield
