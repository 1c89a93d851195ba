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

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        """The vector of one text. Raises EmbedderError.

        ``within_s``: a request waits, for so long. It goes before those who name no time; where others' texts would
        make it later than that, it is told so at once (EmbedderBusy). Nobody is told later on: who has waited enough
        goes away.
        """
