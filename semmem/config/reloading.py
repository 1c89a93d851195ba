"""Which settings a running semmem takes up, and why it does not take up the others: the one place that says it.

Every key stands in one row of ROWS. A test fails for a key in none, and for a part that lives as long as the process
and was made with a key that is marked as taken up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from semmem.config import schema
from semmem.config.loading import effective
from semmem.config.settings import Settings

DIGEST_CHARS = 16


@dataclass(frozen=True, slots=True)
class Row:
    """Keys of one section. ``restart``: why they need one; empty: they are taken up by a reload."""

    section: str
    names: str
    restart: str = ""


_DATA = "what is kept is bound to it"
_STORE = "the store's client is made with it"
_JOURNAL = "the journal is opened with it"
_MODEL = "the embedding model is loaded with it"
_HOT = "memories in process are kept by it"
_QUEUE = "turns that wait already are kept by it"
_LISTENER = "the listener is bound with it"
_ERASING = "erasures under way keep to it"
_NEWS = "the connection to other replicas is made with it"
_REINDEX = "a reindex under way keeps to it"

ROWS: tuple[Row, ...] = (
    Row("", "data_dir", _DATA),
    Row("", "external_models"),
    Row(
        "memory",
        "enabled opt_in auto_store default_retrieval_limit default_similarity_threshold retrieval_scope"
        " retrieval_strategy fusion extraction_batch_size ttl_days retention_days create_wait_s creates_waiting_max",
    ),
    Row("memory", "backend max_memories_per_user", _STORE),
    Row(
        "memory.milvus",
        "address data_dir collection dimension database token index num_partitions call_timeout_s purge_timeout_s",
        _STORE,
    ),
    Row("memory.milvus.tls", "enabled ca_file cert_file key_file server_name", _STORE),
    Row(
        "memory.qdrant",
        "address data_dir collection api_key index quantisation rescore oversampling shards copies call_timeout_s"
        " purge_timeout_s",
        _STORE,
    ),
    Row("memory.qdrant.tls", "enabled ca_file cert_file key_file", _STORE),
    Row(
        "memory.embedding",
        "model dimension source static_dir backend precision onnx_dir threads workers batch_max background_batch_max"
        " cache_entries_max cache_ttl_s",
        _MODEL,
    ),
    Row("memory.embedding.remote", "url model api_key api_key_env timeout_ms batch_max calls_max", _MODEL),
    Row("memory.hot_cache", "bytes_max users_max memories_max warm_users staleness_s told_staleness_s loads_max", _HOT),
    Row("memory.hot_cache", "tell_after_ms tell_users_max", _NEWS),
    Row("memory.hot_cache.redis", "url password password_env ca_file channel timeout_s", _NEWS),
    Row("memory.switches", "entries_max"),
    Row("memory.switches", "refresh_s", "switches in process are read again by it"),
    Row("memory.feedback", "entries_max"),
    Row("memory.feedback", "refresh_s", "votes in process are read again by it"),
    Row("memory.query", "mode"),
    Row("memory.rerank", "url model api_key api_key_env timeout_ms candidates_max"),
    Row(
        "memory.extraction",
        "engine context_turns session_idle_s drift_threshold drift_turns_min answer_wait_s facts_per_batch_max"
        " batch_budget_s attempts_max custom_instructions categories model episodic_summary contradiction_check"
        " update_threshold lease_s",
    ),
    Row(
        "memory.extraction",
        "at_once at_once_queue_max at_once_concurrency at_once_wait_s at_once_left_s embed_texts_max concurrency"
        " poll_interval_s",
        _QUEUE,
    ),
    Row("memory.extraction", "turn_budget_s", _ERASING),
    Row(
        "memory.injection",
        "position role max_inject_tokens standing_lines_max profile_lines_max user_role_models",
    ),
    Row(
        "memory.injection",
        "shown_hours shown_sessions_max shown_mb_max shown_lookup_ms",
        "what sessions were shown is kept by it",
    ),
    Row("memory.injection", "fence_key fence_key_former", "blocks of requests under way are known by it"),
    Row("memory.write_screen", "secrets instructions fact_chars_min fact_chars_max"),
    Row("memory.decay", "enabled half_life_days floor never_used_days importance_max"),
    Row("memory.consolidation", "enabled interval_hours threshold_memories similarity_threshold"),
    Row("memory.reindex", "start keep_days poll_s", _REINDEX),
    Row(
        "identity",
        "metadata_namespace metadata_claim trusted_headers allow_untrusted_body session_headers project_headers"
        " agent_headers user_chars_max group_claim trusted_group_headers",
    ),
    Row("identity", "session_idle_s", "sessions under way are told apart by it"),
    Row("identity.api_key", "enabled hmac_secret"),
    Row(
        "signals",
        "engine weights fact_header fact_metadata tool_header tool_metadata blocked_header blocked_metadata pii_header"
        " pii_metadata",
    ),
    Row("capture", "recover_history recover_beginnings_s history_turns_max new_turns_max"),
    Row("capture", "mode", "Envoy's filters must be configured for it at the same moment"),
    Row("capture", "seen_messages_max", "messages that are known already are kept by it"),
    Row("external_models.N", "llm_provider model_role llm_model_name llm_timeout_seconds max_tokens temperature"),
    Row("external_models.N", "api_key api_key_env"),
    Row("external_models.N.llm_endpoint", "address port scheme path url"),
    Row(
        "journal",
        "url password password_env path commit_interval_ms queue_max retention_days synchronous versions_max",
        _JOURNAL,
    ),
    Row(
        "journal.postgres",
        "connections_max connect_timeout_s statement_timeout_s retry_s replica_lost_s start_wait_s",
        _JOURNAL,
    ),
    Row("erasure", "wait_s replicas_wait_s answer_s retry_s hidden_s marks_days pending_max", _ERASING),
    Row("listeners.grpc", "address unix_socket", _LISTENER),
    Row(
        "listeners.grpc.tls",
        "cert_file key_file client_ca_file",
        "the listener is bound with it (what stands in the files is read again whenever they change)",
    ),
    Row("listeners.api", "address connections_max head_timeout_s mcp", _LISTENER),
    Row("listeners.api.idempotency", "keep_s lease_s calls_max answer_bytes_max", "calls under way are known by it"),
    Row("listeners.api.audit", "to reading file_bytes_max files_max", "the audit log is written by it"),
    Row("listeners.api.rate_limit", "calls_per_s burst failures_per_minute callers_max"),
    Row(
        "listeners.api",
        "admin_token admin_token_env trusted_headers allowed_hosts allowed_origins body_bytes_max body_values_max"
        " body_timeout_s metadata_bytes_max metadata_depth_max metadata_keys_max studio",
    ),
    Row("listeners.api.jwt", "keys issuer audience user_claim refresh_s"),
    Row("listeners.health", "address connections_max head_timeout_s", _LISTENER),
    Row("deadlines", "message_timeout_ms max_message_timeout_ms phase_ms rewrite_ms"),
    Row("deadlines", "store_ms", _STORE),
    Row(
        "limits",
        "request_messages_max request_values_max inline_body_bytes_max answer_bytes_max decoded_bytes_max"
        " query_chars_max mutate_streams_max observe_streams_max",
    ),
    Row("limits", "request_body_bytes_max response_body_bytes_max", "the listener's longest message is made of it"),
    Row(
        "tracing",
        "endpoint header credential credential_env ca_file service_name sample_ratio content user_hmac_secret"
        " user_hmac_secret_env timeout_s interval_s batch_max queue_max",
        "spans under way are recorded and sent by it",
    ),
    Row(
        "usage",
        "enabled flush_rows flush_s queue_max names_max requests_days hours_days days_days",
        "what waits to be written is kept by it",
    ),
    Row("usage", "prices currency compared_with"),
    Row(
        "conversations",
        "enabled retention_s per_user_max messages_max message_chars_max queue_bytes_max flush_s search_messages_max",
        "what waits to be written is kept by it",
    ),
    Row("conversations", "recall", "what has vectors of conversations made follows from it"),
    Row("conversations", "recall_ms chains begin_unknown chain_messages_max chain_ms"),
    Row("passages", "retention_days per_user_max"),
    Row("usage.prices.N", "model provider input_per_million output_per_million"),
    Row(
        "compression",
        "enabled from_tokens turns_kept state_tokens_max ttl_days lookup_ms source_chars_max budget_s",
    ),
    Row("compression", "renew_turns refresh_s known_sessions_max queue_max", "states of sessions are known by it"),
    Row("log", "level"),
    Row("log", "format", "what else the process prints is wrapped by it"),
    Row("deployment", "drain_s"),
    Row("deployment", "replicas", "how replicas keep out of each other's way follows from it"),
)


def restart_reasons() -> Mapping[str, str]:
    """Every key that stands in a row, dotted: why it needs a restart, or an empty text."""
    return {f"{row.section}.{name}".lstrip("."): row.restart for row in ROWS for name in row.names.split()}


def changed_keys(before: Settings, after: Settings) -> list[str]:
    """The keys that differ, dotted, in the order of the schema; a list of sections as one."""
    paths = [path for path, _ in schema.leaves() if "N" not in path]
    return [".".join(path) for path in paths if _at(before, path) != _at(after, path)]


def digest(settings: Settings) -> str:
    """The same for two processes with the same configuration; of secrets it says only which are set."""
    plain = json.dumps(effective(settings), sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:DIGEST_CHARS]


def _at(settings: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        settings = getattr(settings, name)
    return settings
