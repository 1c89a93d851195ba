"""Embeddings by a table: a vector for each token, and their mean for a text. Microseconds, and less exact than a model
that reads the text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from semmem.backends.embedding.local import Limits, LocalEmbedder
from semmem.backends.embedding.weights import WEIGHTS, sha256_of
from semmem.ports.errors import EmbedderError

TOKENIZER = "tokenizer.json"
PLACES = (".", "0_StaticEmbedding")
"""Where model2vec, and sentence-transformers, put the table in a model's folder."""


class StaticEmbedder(LocalEmbedder):
    """``folder`` holds ``model.safetensors`` with one table, shape (tokens, dimension), and ``tokenizer.json``: as
    model2vec and the StaticEmbedding of sentence-transformers save a model. A text without a known token is embedded as
    the mean of the whole table.
    """

    def __init__(self, folder: Path, *, dimension: int = 384, **limits: Unpack[Limits]) -> None:
        super().__init__(dimension=dimension, **limits)
        self._folder = next((folder / place for place in PLACES if (folder / place / WEIGHTS).exists()), folder)
        self._digest = ""
        self._tokenizer: Any = None
        self._table: npt.NDArray[np.float32] | None = None
        self._mean: npt.NDArray[np.float32] | None = None

    @property
    def signature(self) -> str:
        """``static/sha256-<digest of the table>/<dimension>/fp32``; known after ``identify`` (EmbedderError before)."""
        if not self._digest:
            raise EmbedderError("the signature of a static model is known after identify()")
        return f"static/sha256-{self._digest}/{self._dimension}/fp32"

    def identify(self) -> None:
        """Find out the signature. Blocking: hashes the table. Raises EmbedderError."""
        table = self._folder / WEIGHTS
        if not table.exists():
            raise EmbedderError(f"{self._folder} holds no {WEIGHTS}")
        self._digest = sha256_of(table)[:16]

    async def close(self) -> None:
        await super().close()
        self._table = self._tokenizer = None

    def _load(self) -> None:
        self.identify()
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer

            (table,) = (each for each in load_file(self._folder / WEIGHTS).values() if each.ndim == 2)
            self._tokenizer = Tokenizer.from_file(str(self._folder / TOKENIZER))
        except Exception as error:  # both libraries raise what they like
            raise EmbedderError(f"cannot load the static model in {self._folder}: {error}") from error
        self._require_dimension(str(self._folder), table.shape[1])
        self._tokenizer.no_padding()
        self._table = table.astype(np.float32)
        self._mean = self._table.mean(axis=0)

    def _encode(self, texts: list[str]) -> npt.NDArray[np.float32]:
        table, mean = self._table, self._mean
        assert table is not None
        assert mean is not None
        read = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        return np.stack([table[each.ids].mean(axis=0) if each.ids else mean for each in read])
