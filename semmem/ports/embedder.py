"""What turns texts into vectors."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from semmem.memory import Vector
from semmem.ports.errors import EmbedderError


class Embedder(Protocol):
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
        """The vector of one text. Raises EmbedderError. ``within_s``: a request waits, for so long. It goes before
        those who name no time; where others' texts would make it later than that, it is told so at once (EmbedderBusy).
        Nobody is told later on: who has waited enough goes away."""

    def at_hand(self, text: str) -> Vector | None:
        """The text's vector where it was made before and is kept; None says nothing."""


DEFAULT_MODEL = "multilingual-e5-small"
"""What is learnt for it lies in files without a model's name."""


def learnt_for(file: Path, signature: str) -> Path:
    """Where that lies which was learnt for the vectors of this signature: ``file``, or one beside it with the name of
    another model in its own."""
    model = signature.split("/")[1] if signature.count("/") > 1 else DEFAULT_MODEL
    return file if model == DEFAULT_MODEL else file.with_stem(f"{file.stem}.{model}")


def shipped_for(file: Path, signature: str) -> Path:
    """``learnt_for``, or ``file`` where nothing was, which says for whom it was."""
    own = learnt_for(file, signature)
    return own if own.exists() else file


def unit(row: npt.NDArray[np.float32]) -> Vector:
    """The row at length 1, read-only. In float64, so that large finite values do not overflow. Raises EmbedderError."""
    wide = row.astype(np.float64)
    norm = float(np.linalg.norm(wide))
    if not (np.isfinite(norm) and norm > 0.0):
        raise EmbedderError("the model made a vector that is not finite or has no direction")
    vector: Vector = (wide / norm).astype(np.float32)
    vector.setflags(write=False)
    return vector


@dataclass
class CacheUse:
    """Of the vectors that are kept: texts that were among them, texts that were not, and how many there are."""

    hits: int = 0
    misses: int = 0
    entries: int = 0


class EmbedderWrapper:
    """An Embedder that passes every call on to the one inside. The only class that does nothing but that, so that a
    subclass says only what it does differently."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    @property
    def signature(self) -> str:
        return self._embedder.signature

    async def open(self) -> None:
        await self._embedder.open()

    async def close(self) -> None:
        await self._embedder.close()

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        return await self._embedder.embed(text, within_s=within_s)

    def at_hand(self, text: str) -> Vector | None:
        return self._embedder.at_hand(text)

    @property
    def cache_use(self) -> CacheUse | None:
        """Of the cache further in; None: there is none."""
        return cache_use(self._embedder)


def cache_use(embedder: Embedder) -> CacheUse | None:
    """Of its cache; None: it has none."""
    return embedder.cache_use if isinstance(embedder, EmbedderWrapper) else None
