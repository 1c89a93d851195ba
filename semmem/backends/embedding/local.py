"""What embedders with a model in this process have in common: threads, batches, and texts that a tokenizer accepts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from semmem.backends.embedding.micro_batcher import MicroBatcher
from semmem.memory import Vector
from semmem.ports.errors import EmbedderError


class Limits(TypedDict, total=False):
    """What MicroBatcher is limited by."""

    workers: int
    batch_max: int
    background_batch_max: int
    queue_max: int


class LocalEmbedder(ABC):
    """Texts are cut to ``text_chars_max`` characters before they are tokenized; the model itself reads fewer
    (all-MiniLM-L6-v2: 256 tokens). A subclass says how the model is loaded and what it makes of texts.
    """

    def __init__(self, *, dimension: int = 384, text_chars_max: int = 4000, **limits: Unpack[Limits]) -> None:
        if text_chars_max < 1:
            raise ValueError("text_chars_max is at least 1")
        self._dimension = dimension
        self._text_chars_max = text_chars_max
        self._loaded = False
        self._batcher = MicroBatcher(self._encode, dimension=dimension, **limits)

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    @abstractmethod
    def signature(self) -> str:
        """``sentence-transformers/<model>/<dimension>/<precision>``, whichever library does the work."""

    async def open(self) -> None:
        """Load the model. Raises EmbedderError: it is not there, was altered, or makes another dimension."""
        if not self._loaded:
            await self._batcher.run(self._load)
            self._loaded = True

    async def close(self) -> None:
        """Idempotent. Callers that still wait get EmbedderError; a closed embedder is not opened again."""
        await self._batcher.close()
        self._loaded = False

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        if not self._loaded:
            raise EmbedderError("the embedder is not open")
        return await self._batcher.embed(_encodable(text[: self._text_chars_max]), within_s=within_s)

    def at_hand(self, text: str) -> Vector | None:
        return None

    def vectors(self, texts: list[str]) -> npt.NDArray[np.float32]:
        """One batch at once, as the model makes it: shape (len(texts), dimension), not of length 1. Blocking, in the
        caller's thread; loads the model if need be. For measuring, and for comparing one library with another.
        """
        if not self._loaded:
            self._load()
            self._loaded = True
        return self._encode(texts)

    @abstractmethod
    def _load(self) -> None:
        """Blocking. Raises EmbedderError."""

    @abstractmethod
    def _encode(self, texts: list[str]) -> npt.NDArray[np.float32]:
        """Blocking; shape (len(texts), dimension). Called from several threads at once."""

    def _require_dimension(self, model: str, found: int | None) -> None:
        if found != self._dimension:
            raise EmbedderError(
                f"{model} makes vectors of dimension {found}, but dimension {self._dimension} is configured"
            )


def _encodable(text: str) -> str:
    """Text a tokenizer accepts: lone surrogates are not UTF-8, and NUL ends a string in some libraries."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
