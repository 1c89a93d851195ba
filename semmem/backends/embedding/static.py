"""Embeddings by a table: a vector for each token, and their mean for a text. Microseconds, and less exact than a model
that reads the text."""

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
    the mean of the whole table. The table's digest is in the signature. Blocking: hashes it. Raises EmbedderError."""

    def __init__(self, folder: Path, *, dimension: int = 384, **limits: Unpack[Limits]) -> None:
        places = [folder / place for place in PLACES if (folder / place / WEIGHTS).exists()]
        if not places:
            raise EmbedderError(f"{folder} holds no {WEIGHTS}")
        self._folder = places[0]
        digest = sha256_of(self._folder / WEIGHTS)[:16]
        super().__init__(f"static/sha256-{digest}/{dimension}/fp32", dimension=dimension, **limits)
        self._tokenizer: Any = None
        self._table: npt.NDArray[np.float32] | None = None
        self._mean: npt.NDArray[np.float32] | None = None

    async def close(self) -> None:
        await super().close()
        self._table = self._tokenizer = None

    def _load(self) -> None:
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
