"""The ``memory:`` section: what is kept, where, and how it is found, learnt and injected."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from semmem.config.embedding_section import EmbeddingSection
from semmem.config.learning_section import ExtractionSection, WriteScreenSection
from semmem.config.milvus_section import MilvusSection
from semmem.config.qdrant_section import QdrantSection
from semmem.config.redis_section import RedisSection
from semmem.config.values import (
    Days,
    Fraction,
    HttpUrl,
    Line,
    ListOf,
    Milliseconds,
    NonEmptyLine,
    Seconds,
    Secret,
    Section,
    VariableName,
)


class HotCacheSection(Section):
    """``memory.hot_cache``: active users' memories in process, which is where they are ranked."""

    bytes_max: int = Field(
        default=100_000_000,
        ge=1_000_000,
        le=1_000_000_000_000,
        description="what they take at most, some 3 KB a memory (docs/operations.md); whoever comes back stays longest",
    )
    users_max: int | None = Field(
        default=None, ge=1, le=10_000_000, description="users kept; null: as bytes_max allows"
    )
    memories_max: int | None = Field(
        default=None, ge=1, le=100_000_000, description="memories kept of all users; null: as bytes_max allows"
    )
    warm_users: int = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="users, the latest active first, that are loaded behind the requests after a start; 0: none",
    )
    staleness_s: float | None = Field(
        default=None,
        ge=0,
        le=86_400,
        description="age from which they are read again; null: with several replicas 5, or told_staleness_s, else no"
        " limit; 0: keep none",
    )
    told_staleness_s: float = Field(
        default=60.0,
        ge=5,
        le=86_400,
        description="the same, where staleness_s is null, while replicas tell each other of changes: so late shows what"
        " was lost on the way",
    )
    loads_max: int = Field(default=4, ge=1, le=64, description="users loaded at the same time")
    tell_after_ms: Milliseconds = Field(
        default=100, description="so long changes are gathered before other replicas are told of them"
    )
    tell_users_max: int = Field(
        default=2000, ge=1, le=100_000, description="users told of at a time; of more: that anybody's may have changed"
    )
    redis: RedisSection = RedisSection()


class QuerySection(Section):
    """``memory.query``: what is searched with."""

    mode: Literal["prepend", "rewrite", "hyde"] = Field(
        default="prepend",
        description="for vague questions, key terms of earlier messages are put in front; rewrite: the memory_rewrite"
        " model makes them whole; hyde: it guesses the memory that would answer any question, searched for as well",
    )


class RerankSection(Section):
    """``memory.rerank``: a reranking model behind an OpenAI-, Cohere- or Jina-style endpoint. Off without a url."""

    url: HttpUrl = Field(default="", description="base URL, without /rerank; empty: no reranking")
    model: Line = Field(default="", description="model name sent to the server")
    api_key: Secret = Field(default=SecretStr(""), description="bearer token for the server; empty: none")
    api_key_env: VariableName = Field(default="", description="environment variable that holds api_key")
    timeout_ms: Milliseconds = Field(default=100, description="limit of one call; comes on top of deadlines.phase_ms")
    candidates_max: int = Field(default=20, ge=2, le=200, description="most memories sent, best first")


class InjectionSection(Section):
    """``memory.injection``: how memories enter a prompt."""

    position: Literal["turn", "system", "first", "after_system", "before_last_user"] = Field(
        default="turn",
        description="turn: in the user's message it was found for, and in each later request again, so that the model"
        " server's prompt cache stays warm. system: at the end of the first system message; the others are a message"
        " of their own (first, behind the system messages, before the last user message). All but turn change the"
        " prompt with every turn, which makes the model server read it anew",
    )
    role: Literal["system", "developer", "user"] = Field(default="system", description="as whom")
    max_inject_tokens: int = Field(
        default=2000, ge=0, le=16_000, description="hard cap of the block; 0: inject nothing"
    )
    standing_lines_max: int = Field(
        default=5,
        ge=0,
        le=50,
        description="most standing memories (allergies, who the user is, how to answer) of default_retrieval_limit",
    )
    profile_lines_max: int = Field(
        default=20, ge=1, le=100, description="most memories for a question about the user as a person"
    )
    shown_hours: float = Field(
        default=48.0,
        gt=0,
        le=24 * 365,
        description="how long what a session was shown goes with its later requests, at the same place",
    )
    shown_sessions_max: int = Field(
        default=10_000, ge=1, le=1_000_000, description="sessions of which that is kept in process, the latest"
    )
    shown_mb_max: int = Field(default=64, ge=1, le=10_000, description="memory that it takes there, in MB")
    shown_lookup_ms: Milliseconds = Field(
        default=50, description="how long a request waits for the journal to say what its session was shown elsewhere"
    )
    user_role_models: ListOf[NonEmptyLine] = Field(
        default=("o1", "o1-mini", "o1-preview", "glm", "glmt", "glm-cn", "zai", "qianfan"),
        max_length=200,
        description="models (names, or patterns like */o1-*) that refuse a system message and get role user",
    )
    fence_key: Secret = Field(
        default=SecretStr(""),
        description="key of the mark by which semmem knows its own block, 16 characters or more, the same on all"
        " replicas; empty: the one in data_dir/fence.key, made at the first start",
    )
    fence_key_former: Secret = Field(
        default=SecretStr(""), description="the key before this one, whose blocks are still known"
    )


class DecaySection(Section):
    """``memory.decay``: what a memory is worth as time goes by, and whether what nobody needs goes."""

    enabled: bool = Field(
        default=False, description="remove memories that were never used; their worth decays in any case"
    )
    half_life_days: int = Field(
        default=30, ge=1, le=36_500, description="time in which a memory that is never used loses half of what can fade"
    )
    floor: Fraction = Field(default=0.1, description="share of a memory's importance that never fades")
    never_used_days: int = Field(
        default=180, ge=1, le=36_500, description="age at which a memory goes that never was in a prompt (enabled)"
    )
    importance_max: Fraction = Field(
        default=0.5,
        description="only memories of this importance or less go; facts about health and the like have more",
    )


class ConsolidationSection(Section):
    """``memory.consolidation``: memories that say the same become one; the others are kept as history."""

    enabled: bool = Field(default=False, description="do it by itself; the API can ask for it in any case")
    interval_hours: int = Field(
        default=24, ge=1, le=8760, description="how often each user's memories are gone through, by decay as well"
    )
    threshold_memories: int = Field(
        default=100, ge=2, le=16_384, description="active memories of a user from which it is worth while"
    )
    similarity_threshold: float = Field(
        default=0.9,
        ge=0.5,
        le=1,
        description="cosine from which two memories are compared at all; the rules then decide",
    )


class ReindexSection(Section):
    """``memory.reindex``: when the embedding model is another than that of the memories' vectors."""

    start: Literal["manual", "auto"] = Field(
        default="manual",
        description="manual: semmem does not start, and says what to run; auto: it makes new vectors while it serves,"
        " and finds by words whom it has not come to yet",
    )
    keep_days: Days = Field(
        default=7, description="how long the former collection is kept to go back to; 0: until somebody drops it"
    )
    poll_s: Seconds = Field(
        default=5.0, description="pause between two looks at what there is to do, and at what another replica has done"
    )


class SwitchesSection(Section):
    """``memory.switches``: users and groups for whom an administrator switched reading or storing off."""

    refresh_s: Seconds = Field(
        default=5.0, description="pause between two looks at what changed; with a journal.url it is told at once"
    )
    entries_max: int = Field(
        default=100_000, ge=1, le=1_000_000, description="users and groups with a switch, about 400 bytes each"
    )


class FeedbackSection(Section):
    """``memory.feedback``: what users say of memories, helpful or not."""

    refresh_s: Seconds = Field(default=5.0, description="pause between two looks at what other replicas were told")
    entries_max: int = Field(
        default=20_000, ge=1, le=200_000, description="memories with votes, of all users; about 400 bytes each"
    )


class MemorySection(Section):
    """``memory``: the section most deployments touch."""

    enabled: bool = Field(default=True, description="false: neither read nor store, whatever a request asks")
    opt_in: bool = Field(default=False, description="true: only requests that ask for memory have it")
    auto_store: bool = Field(default=True, description="learn from turns; false: read only")
    backend: Literal["milvus", "qdrant", "in_process"] = Field(
        default="milvus",
        description="what keeps the memories; in_process forgets everything when it stops: tests and demos",
    )
    milvus: MilvusSection = MilvusSection()
    qdrant: QdrantSection = QdrantSection()
    embedding: EmbeddingSection = EmbeddingSection()
    default_retrieval_limit: int = Field(default=5, ge=1, le=50, description="most memories injected per request")
    default_similarity_threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="least cosine of a memory that is injected; null: judged by meaning and words together",
    )
    retrieval_scope: Literal["user", "project", "session"] = Field(
        default="project",
        description="whose memories are read: all of the user's; those of the named project, of none, and what the user"
        " must or must not wherever it was told (all when none is named); or those of the session; never other users'",
    )
    retrieval_strategy: Literal["hybrid", "semantic", "keyword", "recent"] = Field(
        default="hybrid", description="what memories are ordered by: meaning and words, one of the two, or time"
    )
    fusion: Literal["weighted", "rrf"] = Field(
        default="weighted", description="how hybrid puts meaning and words together; rrf: by reciprocal ranks, k 60"
    )
    hot_cache: HotCacheSection = HotCacheSection()
    extraction_batch_size: int = Field(default=10, ge=1, le=100, description="new turns of a session that make a batch")
    query: QuerySection = QuerySection()
    rerank: RerankSection = RerankSection()
    extraction: ExtractionSection = ExtractionSection()
    injection: InjectionSection = InjectionSection()
    write_screen: WriteScreenSection = WriteScreenSection()
    decay: DecaySection = DecaySection()
    consolidation: ConsolidationSection = ConsolidationSection()
    reindex: ReindexSection = ReindexSection()
    switches: SwitchesSection = SwitchesSection()
    feedback: FeedbackSection = FeedbackSection()
    ttl_days: Days = Field(default=0, description="lifetime given to each new memory; 0: no end")
    retention_days: Days = Field(default=0, description="memories not updated for this long are removed; 0: never")
    max_memories_per_user: int = Field(
        default=1000, ge=1, le=16_384, description="at the limit the least valuable memory goes"
    )
    create_wait_s: Seconds = Field(
        default=30.0, description="how long a memory told through the API waits while others of its user are changed"
    )
    creates_waiting_max: int = Field(
        default=200, ge=1, le=10_000, description="so many of one user wait at most; more are answered 409"
    )
