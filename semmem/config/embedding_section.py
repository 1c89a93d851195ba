"""The ``memory.embedding:`` section."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr

from semmem.config.values import HttpUrl, Line, Milliseconds, NonEmptyLine, Seconds, Secret, Section, VariableName

EXPORTED_MODELS = Path("share", "semmem", "models")
"""Below the Python environment, so that it is made and removed with it."""


class RemoteEmbeddingSection(Section):
    """``memory.embedding.remote``: an embedding model behind an OpenAI-style endpoint. Off without a url."""

    url: HttpUrl = Field(default="", description="base URL, without /embeddings; empty: none")
    model: Line = Field(default="", description="model name sent to the server")
    api_key: Secret = Field(default=SecretStr(""), description="bearer token for the server; empty: none")
    api_key_env: VariableName = Field(default="", description="environment variable that holds api_key")
    timeout_ms: Milliseconds = Field(
        default=5000, description="limit of one call; a request waits no longer than its own deadline"
    )
    batch_max: int = Field(default=32, ge=1, le=256, description="most texts in one call")
    calls_max: int = Field(default=4, ge=1, le=64, description="most calls at the same time")


class EmbeddingSection(Section):
    """``memory.embedding``: how texts become vectors."""

    model: NonEmptyLine = Field(
        default="all-MiniLM-L6-v2", description="sentence-transformers model: a name, or a directory"
    )
    dimension: int = Field(default=384, ge=1, le=32_768, description="length of the model's vectors")
    source: Literal["auto", "remote", "local", "static", "none"] = Field(
        default="auto",
        description="where vectors come from: a server, a model in this process that must load, a table of tokens, or"
        " none: no model, and memories are found by the words they share with a question; auto: the first of them that"
        " is configured or there",
    )
    remote: RemoteEmbeddingSection = RemoteEmbeddingSection()
    static_dir: Line = Field(
        default="",
        description="folder with a static model (model.safetensors, tokenizer.json), of `dimension`; empty: none",
    )
    backend: Literal["auto", "onnx", "torch"] = Field(
        default="auto",
        description="library that computes the model: onnx: ONNX Runtime, with what `semmem model export` wrote; torch:"
        " PyTorch, slower and larger; auto: onnx if the model was exported",
    )
    precision: Literal["fp32", "int8"] = Field(
        default="fp32",
        description="int8: several times as fast, only exported (`semmem model export --int8`), and vectors of its own,"
        " somewhat less exact: what is stored in one precision is not searched in the other",
    )
    onnx_dir: Line = Field(
        default="", description="folder of exported models; empty: share/semmem/models of the Python environment"
    )
    threads: int = Field(default=1, ge=1, le=64, description="compute threads of each worker")
    workers: int = Field(default=2, ge=1, le=16, description="batches embedded at the same time")
    batch_max: int = Field(default=8, ge=1, le=256, description="most texts of requests embedded in one batch")
    background_batch_max: int = Field(
        default=2, ge=1, le=256, description="the same of what is learnt: a request waits for one such batch at most"
    )
    cache_entries_max: int = Field(default=1000, ge=1, le=1_000_000, description="vectors kept for reuse")
    cache_ttl_s: Seconds = Field(default=300.0, description="how long a vector is kept")

    @property
    def onnx_folder(self) -> Path:
        return Path(self.onnx_dir) if self.onnx_dir else Path(sys.prefix) / EXPORTED_MODELS
