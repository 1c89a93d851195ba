"""Milvus Lite with the child process that serves it, as one thing to open and close."""

from __future__ import annotations

from typing import Any

from semmem.backends.milvus.collections import LiteStore
from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.ports.errors import StoreMismatch


class EmbeddedMilvus(LiteStore):
    """Starts ``process`` when it opens and stops it when it closes, as semmem does; after a failure it begins anew."""

    def __init__(self, process: MilvusLiteProcess, **options: Any) -> None:
        super().__init__(process, **options)
        self._process = process

    async def open(self) -> None:
        await self._process.start()
        try:
            await super().open()
        except StoreMismatch:
            raise
        except BaseException:
            await self._process.stop()
            raise

    async def close(self) -> None:
        await super().close()
        await self._process.stop()
