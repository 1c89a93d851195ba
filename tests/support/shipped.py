"""The embedding model as it is shipped, in the process of a test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from semmem.config.backends_section import EmbeddingSection
from semmem.ports.embedder import Embedder
from semmem.wiring.models import local_embedder


def shipped_embedder() -> Embedder:
    """By the library that would serve. Not open yet."""
    return local_embedder(EmbeddingSection(), workers=1, background_batch_max=8, queue_max=10_000)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedder() -> AsyncIterator[Embedder]:
    made = shipped_embedder()
    await made.open()
    yield made
    await made.close()
