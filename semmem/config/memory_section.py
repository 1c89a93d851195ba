"""The ``memory:`` section: what is kept, where, and how it is found, learnt and injected."""

from typing import ClassVar, Literal

from semmem.config.backends_section import EmbeddingSection, MilvusSection, QdrantSection, RerankSection
from semmem.config.values import (
    ERASING,
    NEWS,
    STORE,
    Days,
    Fraction,
    Line,
    ListOf,
    Milliseconds,
    NonEmptyLine,
    Prose,
    RedisUrl,
    Seconds,
    Secret,
    Section,
    VariableName,
    in_variable,
    key,
    secret,
)


class RedisSection(Section):
    """``memory.hot_cache.redis``: a Redis or Valkey server by which replicas tell each other whose memories changed."""

    restart = NEWS

    url: RedisUrl = key("")
    """redis://host:port, rediss:// for TLS, or unix:///path; empty: PostgreSQL at journal.url tells"""
    password: Secret = secret("of the server, or of the user in url")
    password_env: VariableName = in_variable("password")
    ca_file: Line = key("", "PEM file of the authorities to believe (rediss://); empty: system's")
    channel: NonEmptyLine = key("semmem", "what is published on; the same on all replicas")
    timeout_s: Seconds = key(1.0, "limit of connecting, and of each answer")


class HotCacheSection(Section):
    """``memory.hot_cache``: active users' memories in process, which is where they are ranked."""

    restart: ClassVar = {
        "bytes_max users_max memories_max warm_users staleness_s told_staleness_s loads_max": "memories in process are"
        " kept by it",
        "tell_after_ms tell_users_max": NEWS,
    }

    bytes_max: int = key(100_000_000, ge=1_000_000, le=1_000_000_000_000)
    """what they take at most, some 3 KB a memory (docs/running.md); whoever comes back stays longest"""
    users_max: int | None = key(None, "users kept; null: as bytes_max allows", ge=1, le=10_000_000)
    memories_max: int | None = key(None, "memories kept of all users; null: as bytes_max allows", ge=1, le=100_000_000)
    warm_users: int = key(0, ge=0, le=1_000_000)
    """users, the latest active first, that are loaded behind the requests after a start; 0: none"""
    staleness_s: float | None = key(None, ge=0, le=86_400)
    """age from which they are read again; null: with several replicas 5, or told_staleness_s, else no limit; 0: keep
    none"""
    told_staleness_s: float = key(60.0, ge=5, le=86_400)
    """the same, where staleness_s is null, while replicas tell each other of changes"""
    loads_max: int = key(4, "users loaded at the same time", ge=1, le=64)
    tell_after_ms: Milliseconds = key(100, "so long changes are gathered before other replicas are told of them")
    tell_users_max: int = key(2000, ge=1, le=100_000)
    """users told of at a time; of more: that anybody's may have changed"""
    redis: RedisSection = RedisSection()


class QuerySection(Section):
    """``memory.query``: what is searched with."""

    mode: Literal["prepend", "rewrite", "hyde"] = key("prepend")
    """vague questions: prepend: key terms of earlier messages in front; rewrite: the memory_rewrite model completes
    them; hyde: it guesses the memory that answers any question, which is searched for too"""


class InjectionSection(Section):
    """``memory.injection``: how memories enter a prompt."""

    restart: ClassVar = {
        "shown_hours shown_sessions_max shown_mb_max shown_lookup_ms": "what sessions were shown is kept by it",
        "fence_key fence_key_former": "blocks of requests under way are known by it",
    }

    position: Literal["turn", "system", "first", "after_system", "before_last_user"] = key("turn")
    """turn: in the user's message it was found for, in each later request again; system: at the end of the first system
    message; the others: a message of its own (first, behind the system messages, before the last user message). All but
    turn change the prompt with every turn, so the model server's prompt cache is lost"""
    role: Literal["system", "developer", "user"] = key("system", "as whom")
    max_inject_tokens: int = key(2000, "hard cap of the block; 0: inject nothing", ge=0, le=16_000)
    standing_lines_max: int = key(5, ge=0, le=50)
    """most standing memories (allergies, who the user is, how to answer) of default_retrieval_limit"""
    profile_lines_max: int = key(20, "most memories for a question about the user as a person", ge=1, le=100)
    shown_hours: float = key(48.0, gt=0, le=24 * 365)
    """how long what a session was shown goes with its later requests, at the same place"""
    shown_sessions_max: int = key(10_000, "sessions of which that is kept in process, the latest", ge=1, le=1_000_000)
    shown_mb_max: int = key(64, "memory that it takes there, in MB", ge=1, le=10_000)
    shown_lookup_ms: Milliseconds = key(50)
    """how long a request waits for the journal to say what its session was shown elsewhere"""
    explain: bool = key(False)
    """a client that sends x-semmem-explain: ids is told the ids of the memories in its prompt (by Envoy)"""
    user_role_models: ListOf[NonEmptyLine] = key(
        ("o1", "o1-mini", "o1-preview", "glm", "glmt", "glm-cn", "zai", "qianfan"), max_length=200
    )
    """models (names, or patterns like */o1-*) that refuse a system message and get role user"""
    fence_key: Secret = secret()
    """key of the mark by which semmem knows its own block: 16 characters or more, the same on all replicas; empty:
    data_dir/fence.key, made at the first start"""
    fence_key_former: Secret = secret("the key before this one, whose blocks are still known")


class ExtractionSection(Section):
    """``memory.extraction``: how facts are learnt from finished turns."""

    restart: ClassVar = {
        "at_once at_once_queue_max at_once_concurrency at_once_wait_s at_once_left_s embed_texts_max concurrency"
        " poll_interval_s": "turns that wait already are kept by it",
        "turn_budget_s": ERASING,
    }

    engine: Literal["auto", "llm", "rules"] = key("auto")
    """auto: the memory_extraction model when there is one, else rules"""
    at_once: bool = key(True)
    """learn from a turn when its answer has ended, until a batch confirms, rewrites or drops that; false: only batches
    learn"""
    at_once_queue_max: int = key(1000, ge=1, le=100_000)
    """most turns that wait to be learnt from at once; batches learn more"""
    at_once_concurrency: int = key(8, "turns learnt from at once at the same time, of different users", ge=1, le=64)
    at_once_wait_s: Seconds = key(60.0)
    """how long a turn waits while its user's memories are changed, or a store or embedder is away"""
    at_once_left_s: Seconds = key(10.0)
    """how long after its answer a turn that was left (its process ended, a server was away) is taken by any replica"""
    embed_texts_max: int = key(2, ge=1, le=64)
    """texts of turns and facts embedded at the same time; requests do not wait"""
    context_turns: int = key(5, "turns before a batch that are shown for context, never learnt from", ge=0, le=50)
    session_idle_s: Seconds = key(300.0, "silence after which what waits is learnt from")
    drift_threshold: Fraction = key(0.2)
    """cosine with the waiting messages below which a message begins another topic, and those before become a batch; 0:
    off"""
    drift_turns_min: int = key(3, "waiting messages that make up a topic", ge=1, le=50)
    answer_wait_s: Seconds = key(60.0, "how long a turn may wait for its answer")
    concurrency: int = key(4, "batches worked on at the same time", ge=1, le=64)
    facts_per_batch_max: int = key(20, "most facts kept of one batch", ge=1, le=100)
    turn_budget_s: Seconds = key(1.0)
    """processor time for reading one turn by rules, or comparing one fact; a slower turn is counted and not learnt
    from"""
    batch_budget_s: Seconds = key(5.0)
    """processor time for reading all turns of a batch by rules, and for screening its facts"""
    attempts_max: int = key(5, "tries before a batch is given up", ge=1, le=100)
    custom_instructions: Prose = key("", "added to the prompts for facts and summaries (when a model extracts)")
    categories: ListOf[NonEmptyLine] = key((), max_length=50)
    """only facts of these kinds (when a model extracts); empty: all"""
    model: Literal["configured", "upstream"] = key("configured")
    """configured: the llm_model_name of the memory_extraction model; upstream: the model that the turns' own requests
    named, asked at its llm_endpoint, which is then Envoy's listener"""
    episodic_summary: bool = key(True)
    """when a session ends, a summary of it becomes a memory (engine llm, auto with a model)"""
    contradiction_check: bool = key(True)
    """the model that extracts judges what replaces what, one call per batch; false: the rules do"""
    update_threshold: Fraction = key(0.9, "cosine from which a fact updates a memory instead of adding one")
    poll_interval_s: Seconds = key(1.0, "how often the journal is asked for work")
    lease_s: Seconds = key(120.0, "how long a batch belongs to one worker")


class WriteScreenSection(Section):
    """``memory.write_screen``: what may become a memory."""

    secrets: Literal["reject", "redact", "quarantine"] = key("reject")
    """facts with keys, tokens, card numbers or passwords; what is kept of them is redacted"""
    instructions: Literal["reject", "quarantine"] = key("reject")
    """facts that are orders to a model; quarantine hides them, and what only may be one, until released"""
    fact_chars_min: int = key(3, "shorter facts are rejected", ge=1, le=100)
    fact_chars_max: int = key(500, "longer facts are rejected", ge=10, le=8000)


class DecaySection(Section):
    """``memory.decay``: what a memory is worth as time goes by, and whether what nobody needs goes."""

    enabled: bool = key(False, "remove memories that were never used; their worth decays in any case")
    half_life_days: int = key(30, ge=1, le=36_500)
    """time in which a memory that is never used loses half of what can fade"""
    floor: Fraction = key(0.1, "share of a memory's importance that never fades")
    never_used_days: int = key(180, "age at which a memory goes that never was in a prompt (enabled)", ge=1, le=36_500)
    importance_max: Fraction = key(0.5)
    """only memories of this importance or less go; facts about health and the like have more"""


class ConsolidationSection(Section):
    """``memory.consolidation``: memories that say the same become one; the others are kept as history."""

    enabled: bool = key(False, "do it by itself; the API can ask for it in any case")
    interval_hours: int = key(24, "how often each user's memories are gone through, by decay as well", ge=1, le=8760)
    threshold_memories: int = key(100, "active memories of a user from which it is worth while", ge=2, le=16_384)
    similarity_threshold: float = key(0.9, ge=0.5, le=1)
    """cosine from which two memories are compared at all; the rules then decide"""


class ReindexSection(Section):
    """``memory.reindex``: when the embedding model is another than that of the memories' vectors."""

    restart = "a reindex under way keeps to it"

    start: Literal["manual", "auto"] = key("auto")
    """auto: semmem makes new vectors while it serves; manual: it does not start, and says what to run"""
    keep_days: Days = key(7, "how long the former collection is kept to go back to; 0: until somebody drops it")
    poll_s: Seconds = key(5.0, "pause between two looks at what there is to do, and at what another replica has done")


class SwitchesSection(Section):
    """``memory.switches``: users and groups for whom an administrator switched reading or storing off."""

    restart: ClassVar = {"refresh_s": "switches in process are read again by it"}

    refresh_s: Seconds = key(5.0, "pause between two looks at what changed; with a journal.url it is told at once")
    entries_max: int = key(100_000, "users and groups with a switch, about 400 bytes each", ge=1, le=1_000_000)


class FeedbackSection(Section):
    """``memory.feedback``: what users say of memories, helpful or not."""

    restart: ClassVar = {"refresh_s": "votes in process are read again by it"}

    refresh_s: Seconds = key(5.0, "pause between two looks at what other replicas were told")
    entries_max: int = key(20_000, "memories with votes, of all users; about 400 bytes each", ge=1, le=200_000)


class MemorySection(Section):
    """``memory``: the section most deployments touch."""

    restart: ClassVar = {"backend max_memories_per_user": STORE}

    enabled: bool = key(True, "false: neither read nor store, whatever a request asks")
    opt_in: bool = key(False, "true: only requests that ask for memory have it")
    auto_store: bool = key(True, "learn from turns; false: read only")
    backend: Literal["milvus", "qdrant", "in_process"] = key("milvus")
    """what keeps the memories; in_process forgets everything when it stops: tests and demos"""
    milvus: MilvusSection = MilvusSection()
    qdrant: QdrantSection = QdrantSection()
    embedding: EmbeddingSection = EmbeddingSection()
    default_retrieval_limit: int = key(5, "most memories injected per request", ge=1, le=50)
    default_similarity_threshold: float | None = key(None, ge=0, le=1)
    """least cosine of a memory that is injected; null: judged by meaning and words together"""
    retrieval_scope: Literal["user", "project", "session"] = key("project")
    """which of the user's memories are read: all; those of the named project, of none, and what the user must or must
    not (all when no project is named); or those of the session"""
    retrieval_strategy: Literal["hybrid", "semantic", "keyword", "recent"] = key("hybrid")
    """what memories are ordered by: meaning and words, one of the two, or time"""
    fusion: Literal["weighted", "rrf"] = key("weighted")
    """how hybrid puts meaning and words together; rrf: by reciprocal ranks, k 60"""
    hot_cache: HotCacheSection = HotCacheSection()
    extraction_batch_size: int = key(10, "new turns of a session that make a batch", ge=1, le=100)
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
    ttl_days: Days = key(0, "lifetime given to each new memory; 0: no end")
    retention_days: Days = key(0, "memories not updated for this long are removed; 0: never")
    max_memories_per_user: int = key(1000, "at the limit the least valuable memory goes", ge=1, le=16_384)
    create_wait_s: Seconds = key(30.0)
    """how long a memory told through the API waits while others of its user are changed"""
    creates_waiting_max: int = key(200, "so many of one user wait at most; more are answered 409", ge=1, le=10_000)
