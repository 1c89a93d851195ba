"""What other systems call things: every configuration key, environment variable and header that their users bring.

NAMES is the one table. aliases.py and environment.py make settings of it, reference.py makes docs/names.md of it, and
a test tries every row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from semmem.config.problems import Loc

ROUTER, OMNIROUTE, LOCAL = "vLLM Semantic Router", "OmniRoute", "local AI router"


class Kind(StrEnum):
    """Where a name is written."""

    KEY = "key"
    VARIABLE = "environment variable"
    HEADER = "request header"


def as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Name:
    """A name as another system spells it, dotted for a key inside a section.

    ``becomes`` is the key of ours that it sets, or of a header what governs it; empty: it is refused, since ``reason``,
    and ``instead`` says what does the same here. ``value`` makes ours of its values; what it does not know stays as it
    is, and is refused as any value of that key. ``note`` goes into the page.
    """

    kind: Kind
    origin: str
    name: str
    becomes: str = ""
    note: str = ""
    value: Callable[[Any], Any] = as_it_is
    reason: str = ""
    instead: str = ""

    @property
    def loc(self) -> Loc:
        return tuple(self.name.split("."))

    @property
    def target(self) -> Loc:
        return tuple(self.becomes.split("."))


def _words(**known: Any) -> Callable[[Any], Any]:
    """A value of theirs to one of ours, word by word."""
    return lambda value: known.get(value, value) if isinstance(value, str) else value


def _model(value: Any) -> Any:
    """The one model that all of them name, each in its own way."""
    same = ("bert", "sentence-transformers/all-MiniLM-L6-v2", "Xenova/all-MiniLM-L6-v2")
    return "all-MiniLM-L6-v2" if value in same else value


def _flag(value: Any) -> Any:
    return {0: False, 1: True}[value] if type(value) is int and value in (0, 1) else value


def _seconds(value: Any) -> Any:
    return value / 1000 if type(value) in (int, float) else value


def _key(origin: str, name: str, becomes: str, note: str = "", value: Callable[[Any], Any] = as_it_is) -> Name:
    return Name(Kind.KEY, origin, name, becomes, note, value)


def _variable(origin: str, name: str, becomes: str, note: str = "", value: Callable[[Any], Any] = as_it_is) -> Name:
    return Name(Kind.VARIABLE, origin, name, becomes, note, value)


def _header(origin: str, name: str, becomes: str, note: str) -> Name:
    return Name(Kind.HEADER, origin, name, becomes, note)


def _no_key(origin: str, name: str, reason: str, instead: str) -> Name:
    return Name(Kind.KEY, origin, name, reason=reason, instead=instead)


def _no_variable(origin: str, name: str, reason: str, instead: str) -> Name:
    return Name(Kind.VARIABLE, origin, name, reason=reason, instead=instead)


_SAME = "the same"
_MODEL = "external_models.N."
_NOT_FETCHED = "no model is fetched at run time"
_BY_URL = "a model is asked when it has an address"
_BY_SOURCE = "one key says where vectors come from"

NAMES: tuple[Name, ...] = (
    _key(ROUTER, "memory.enabled", "memory.enabled", _SAME),
    _key(ROUTER, "memory.auto_store", "memory.auto_store", _SAME),
    _key(ROUTER, "memory.milvus.address", "memory.milvus.address", _SAME),
    _key(ROUTER, "memory.milvus.collection", "memory.milvus.collection", _SAME),
    _key(ROUTER, "memory.milvus.dimension", "memory.milvus.dimension", _SAME),
    _key(ROUTER, "memory.embedding.model", "memory.embedding.model", _SAME),
    _key(ROUTER, "memory.embedding.dimension", "memory.embedding.dimension", _SAME),
    _key(ROUTER, "memory.embedding_model", "memory.embedding.model", "`bert` is all-MiniLM-L6-v2", _model),
    _key(ROUTER, "memory.default_retrieval_limit", "memory.default_retrieval_limit", _SAME),
    _key(
        ROUTER,
        "memory.default_similarity_threshold",
        "memory.default_similarity_threshold",
        "the same; 0.6 hides most of what answers a question, left out it is judged (docs/decision.md)",
    ),
    _key(ROUTER, "memory.extraction_batch_size", "memory.extraction_batch_size", _SAME),
    *(
        _key(ROUTER, _MODEL + name, _MODEL + name, _SAME)
        for name in (
            "llm_provider",
            "model_role",
            "llm_endpoint.address",
            "llm_endpoint.port",
            "llm_model_name",
            "llm_timeout_seconds",
            "max_tokens",
            "temperature",
        )
    ),
    _key(OMNIROUTE, "memoryEnabled", "memory.enabled", "there off unless set, here on (see `memory.opt_in`)"),
    _key(OMNIROUTE, "memoryMaxTokens", "memory.injection.max_inject_tokens"),
    _key(OMNIROUTE, "memoryRetentionDays", "memory.retention_days"),
    _key(
        OMNIROUTE,
        "memoryStrategy",
        "memory.retrieval_strategy",
        "`exact`, another word of theirs for `recent`, is taken as that",
        _words(exact="recent"),
    ),
    _key(
        OMNIROUTE,
        "memoryEmbeddingSource",
        "memory.embedding.source",
        "`transformers` is `local`",
        _words(transformers="local"),
    ),
    _key(
        OMNIROUTE,
        "memoryVectorStore",
        "memory.backend",
        "`sqlite-vec` and `auto` are `milvus`, which without an address is the embedded store",
        _words(**{"sqlite-vec": "milvus", "auto": "milvus"}),
    ),
    _key(OMNIROUTE, "memoryRerankModel", "memory.rerank.model", "its server in `memory.rerank.url`"),
    _key(OMNIROUTE, "qdrantHost", "memory.qdrant.address", "with the port: `host:6333`"),
    _key(OMNIROUTE, "qdrantApiKey", "memory.qdrant.api_key"),
    _key(OMNIROUTE, "qdrantCollection", "memory.qdrant.collection", "one of semmem's own; theirs is not read"),
    _key(OMNIROUTE, "qdrantQuantization", "memory.qdrant.quantisation"),
    _no_key(OMNIROUTE, "qdrantPort", "the port is a part of the address", "write memory.qdrant.address: host:port"),
    _no_key(OMNIROUTE, "qdrantEnabled", "the store is chosen by one key", "write memory.backend: qdrant"),
    _no_key(
        OMNIROUTE,
        "qdrantEmbeddingModel",
        "all stores hold vectors of the one embedding model",
        "write memory.embedding.remote.model and url",
    ),
    _no_key(
        OMNIROUTE,
        "memoryEmbeddingModel",
        "a provider/model pair means nothing without a table of providers",
        "write memory.embedding.remote.model and url, or memory.embedding.model",
    ),
    _no_key(
        OMNIROUTE,
        "memoryEmbeddingProviderModel",
        "a provider/model pair means nothing without a table of providers",
        "write memory.embedding.remote.model and url, or memory.embedding.model",
    ),
    _no_key(OMNIROUTE, "memoryTransformersEnabled", _BY_SOURCE, "write memory.embedding.source: local"),
    _no_key(OMNIROUTE, "memoryStaticEnabled", _BY_SOURCE, "write memory.embedding.source: static, and static_dir"),
    _no_key(OMNIROUTE, "memoryRerankEnabled", _BY_URL, "write memory.rerank.url, or leave it out"),
    _no_key(OMNIROUTE, "skillsEnabled", "skills are not injected: semmem knows memories alone", "remove it"),
    _no_key(
        OMNIROUTE,
        "autoSummarize",
        "what was said is never overwritten by a summary without somebody's word",
        "see memory.consolidation, and POST /v1/memory/summarize",
    ),
    _variable(
        OMNIROUTE,
        "MEMORY_EMBEDDING_CACHE_TTL_MS",
        "memory.embedding.cache_ttl_s",
        "milliseconds there, seconds here",
        _seconds,
    ),
    _variable(OMNIROUTE, "MEMORY_EMBEDDING_CACHE_MAX", "memory.embedding.cache_entries_max"),
    _variable(
        OMNIROUTE,
        "MEMORY_TRANSFORMERS_MODEL",
        "memory.embedding.model",
        "`Xenova/all-MiniLM-L6-v2` is all-MiniLM-L6-v2",
        _model,
    ),
    _no_variable(OMNIROUTE, "MEMORY_STATIC_MODEL", _NOT_FETCHED, "put it into a folder, memory.embedding.static_dir"),
    _no_variable(OMNIROUTE, "MEMORY_STATIC_CACHE_DIR", _NOT_FETCHED, "name its folder in memory.embedding.static_dir"),
    _no_variable(
        OMNIROUTE,
        "MEMORY_VEC_TOP_K",
        "all of a user's memories are ranked, not the nearest few",
        "set memory.default_retrieval_limit for how many are shown",
    ),
    _no_variable(
        OMNIROUTE, "MEMORY_RRF_K", "the constant of reciprocal ranks is 60 and no setting", "see memory.fusion"
    ),
    _no_variable(OMNIROUTE, "MEMORY_RRF_VECTOR_WEIGHT", "it has no effect there either", "see memory.fusion"),
    _no_variable(OMNIROUTE, "MEMORY_RRF_FTS_WEIGHT", "it has no effect there either", "see memory.fusion"),
    _no_variable(
        OMNIROUTE,
        "MEMORY_VEC_QUANTIZATION",
        "how vectors are kept belongs to the store",
        "set memory.qdrant.quantisation, or memory.milvus.index",
    ),
    _no_variable(
        OMNIROUTE,
        "OMNIROUTE_MEMORY_MB",
        "it sizes the heap of another runtime",
        "set memory.hot_cache.bytes_max for what users' memories take in process",
    ),
    _variable(LOCAL, "ENABLE_MEMORY", "memory.enabled", "`1` and `0` as well", _flag),
    _variable(LOCAL, "RAG_CONTEXT_LIMIT", "memory.default_retrieval_limit", "memories, where it counted conversations"),
    _variable(LOCAL, "RAG_SIMILARITY_THRESHOLD", "memory.default_similarity_threshold"),
    _variable(
        LOCAL,
        "EMBEDDING_MODEL",
        "memory.embedding.model",
        "`sentence-transformers/all-MiniLM-L6-v2` is all-MiniLM-L6-v2",
        _model,
    ),
    _no_variable(
        LOCAL,
        "DATABASE_PATH",
        "semmem keeps several files, and must not open another program's database",
        "set data_dir to their folder, or journal.path for the journal alone",
    ),
    _variable(LOCAL, "ENABLE_METRICS", "usage.enabled", "`1` and `0` as well; counters are always served", _flag),
    _variable(LOCAL, "METRICS_BATCH_SIZE", "usage.flush_rows", "requests written together"),
    _variable(LOCAL, "DAILY_STATS_UPDATE_INTERVAL", "usage.flush_s", "seconds; sums are written with the requests"),
    _no_variable(
        LOCAL,
        "ENABLE_RAG",
        "to remember and to recall is one thing here",
        "set memory.enabled; a request that shall only be remembered says x-semmem-memory: write",
    ),
    _header(
        ROUTER,
        "x-authz-user-id",
        "identity.trusted_headers",
        "the user, believed only where it stands in that list: a gateway in front must set it and strip the clients'",
    ),
    _header(ROUTER, "x-jwt-sub", "identity.trusted_headers", "likewise"),
    _header(LOCAL, "X-User-ID", "identity.trusted_headers", "likewise"),
    _header(LOCAL, "X-Conversation-ID", "identity.session_headers", "the session; in that list unless it is changed"),
    _header(
        LOCAL,
        "X-Enable-Memory",
        "memory.opt_in",
        "`true` asks for memory, where only requests that ask have it; it never overrules the configuration",
    ),
    _header(OMNIROUTE, "x-omniroute-no-memory", "memory.enabled", "`true`, `1`, `yes`: off for this request"),
    _header(ROUTER, "x-disable-router-memory", "memory.enabled", "`true`: off for this request"),
)


def keys() -> Iterator[Name]:
    """Keys that are spelled otherwise here, or refused."""
    return (name for name in NAMES if name.kind is Kind.KEY and name.name != name.becomes)


def variables() -> dict[str, Name]:
    """Environment variables by name."""
    return {name.name: name for name in NAMES if name.kind is Kind.VARIABLE}
