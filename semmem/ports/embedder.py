"""What turns texts into vectors."""

from __future__ import annotations

from typing import Protocol

from semmem.memory import Vector


class Embedder(Protocol):
    """Turns texts into vectors, off the event loop."""

    @property
    def dimension(self) -> int:
        """Length of every vector."""

    @property
    def signature(self) -> str:
        """Source, model and dimension; vectors of different signatures are not comparable."""

    async def open(self) -> None:
        """Load the model. Raises EmbedderError."""

    async def close(self) -> None:
        """Release the model. Idempotent."""

    async def embed(self, text: str) -> Vector:
        """The vector of one text. Raises EmbedderError."""
