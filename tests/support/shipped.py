"""The embedding model as it is shipped, in the process of a test."""

from __future__ import annotations

from semmem.config.backends_section import EmbeddingSection
from semmem.ports.embedder import Embedder
from semmem.wiring.models import local_embedder


def shipped_embedder() -> Embedder:
    """By the library that would serve. Not open yet."""
    return local_embedder(EmbeddingSection(), workers=1, background_batch_max=8, queue_max=10_000)
