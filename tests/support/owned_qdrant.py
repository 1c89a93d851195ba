"""A Qdrant store with the engine that keeps it, as one thing to open and close."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from semmem.backends.qdrant.collection import Collection
from semmem.backends.qdrant.local import LocalQdrant
from semmem.backends.qdrant.server import QdrantServer
from semmem.backends.qdrant.store import QdrantStore


class OwnedQdrant(QdrantStore):
    """Opens its engine when it opens, and closes it when it closes or cannot open, as semmem does."""

    def __init__(self, engine: QdrantServer | LocalQdrant | Path, collection: Collection, **options: Any) -> None:
        super().__init__(LocalQdrant(engine) if isinstance(engine, Path) else engine, collection, **options)

    async def open(self) -> None:
        await self.engine.open()
        try:
            await super().open()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        await self.engine.close()
