"""Settings -> parts: every plain value that a backend, a step or a door is built with is looked up here, once."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from semmem.backends import key_file
from semmem.backends.embedding.cached import CachedEmbedder
from semmem.backends.embedding.sentence_transformers import SentenceTransformersEmbedder
from semmem.backends.milvus.collection import WINDOW_MAX
from semmem.backends.milvus.embedded import EmbeddedMilvus
from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.backends.milvus.store import MilvusStore
from semmem.backends.models.openai import OpenAIModel
from semmem.backends.models.rerank import HttpReranker
from semmem.backends.sql.journal import SqlJournal
from semmem.background import JournalWriter, Learner
from semmem.config.milvus_section import MilvusSection
from semmem.config.models_section import ExternalModel
from semmem.config.settings import Settings
from semmem.dialects.reading import ReadingLimits
from semmem.envoy.service import DoorLimits, MessageTimeouts
from semmem.envoy.tls import TlsFiles, server_credentials
from semmem.exchange import Exchange, Offload
from semmem.extraction.contradiction import judge
from semmem.extraction.dedup import Dedup
from semmem.extraction.drift import DriftWatch
from semmem.extraction.llm import LlmExtractor
from semmem.extraction.model_judge import ModelJudge
from semmem.extraction.pipeline import Learning, choose_extractor
from semmem.extraction.reading import Reader
from semmem.extraction.rules import RulesExtractor
from semmem.extraction.screen import Ruling, screen
from semmem.extraction.session_summary import SessionSummariser
from semmem.lifecycle.erasure import Erasure
from semmem.lifecycle.holds import Holds
from semmem.lifecycle.quota import Quota
from semmem.lifecycle.value import Decay
from semmem.management.access import AccessRules
from semmem.management.memories import Memories
from semmem.memory import Vector
from semmem.ports.embedder import Embedder
from semmem.ports.events import Announce, nobody_listens
from semmem.ports.learning import Batch, BatchRules, Extractor
from semmem.ports.models import LanguageModel, Reranker
from semmem.ports.store import Store
from semmem.ports.text_work import TextWork
from semmem.request.identity import IdentityRules
from semmem.request.limits import ExchangeLimits
from semmem.request.permission import PermissionRules
from semmem.request.verdicts import VerdictRules, VerdictSource
from semmem.retrieval.context import FENCE_MARKERS, without_tags
from semmem.retrieval.decide import gate
from semmem.retrieval.fence import Fence
from semmem.retrieval.index.hot_memories import HotMemories, Spawn
from semmem.retrieval.injection_cache import InjectionCache
from semmem.retrieval.query.rewrite import QueryWriter
from semmem.retrieval.recall import Recall, RecallRules
from semmem.retrieval.rerank import Reranking
from semmem.retrieval.search import Strategy
from semmem.telemetry.metering import MeteredModel, MeteredReranker
from semmem.telemetry.metrics import Metrics
from semmem.turns.recovery import Recovery, RecoveryRules
from semmem.turns.seen import SeenMessages
from semmem.turns.sessions import Sessions

log = logging.getLogger(__name__)

DAY_S = 86_400.0
SUMMARY_CHARS_MAX = 500
ROWS_PER_MEMORY = 5
"""Room for versions that are being replaced while a user's rows are read."""
REPLICA_STALENESS_S = 5.0
"""How long what another replica wrote may stay unseen, unless the configuration says otherwise."""
RETRIES = {"memory_rewrite": 0, "memory_extraction": 2}
"""A request has no time for a second try, and another query at hand."""
FENCE_KEY_FILE = "fence.key"
GRPC_OVERHEAD_BYTES = 1024 * 1024
"""Headers and metadata around a body in one gRPC message."""


Recalled = Callable[[str, Sequence[str], float], None]
"""Told whose memories were put into a prompt, which, and when."""


def _not_noted(_user: str, _memory_ids: Sequence[str], _now: float) -> None:
    """Nobody keeps statistics."""


@dataclass(frozen=True, slots=True)
class Backends:
    """The third parties of one semmem, behind their ports, and the key that it has in common with its replicas."""

    store: HotMemories
    embedder: Embedder
    journal: SqlJournal
    models: Mapping[str, LanguageModel]
    reranker: Reranker | None = None
    fence: Fence | None = None
    worker: TextWork | None = None


def journal(settings: Settings) -> SqlJournal:
    path = Path(settings.data_dir) / settings.journal.path
    return SqlJournal(
        path,
        synchronous="FULL" if settings.journal.synchronous == "full" else "NORMAL",
        versions_max=settings.journal.versions_max,
    )


def embedder(settings: Settings) -> Embedder:
    """The local model behind its cache, when one is wanted. Blocking: may read 90 MB. Raises EmbedderError."""
    rules = settings.memory.embedding
    model = SentenceTransformersEmbedder(
        rules.model,
        dimension=rules.dimension,
        threads=rules.threads,
        workers=rules.workers,
        batch_max=rules.batch_max,
    )
    model.identify()
    if not rules.cache_entries_max:
        return model
    return CachedEmbedder(model, entries_max=rules.cache_entries_max, ttl_s=rules.cache_ttl_s)


def milvus(settings: Settings, signature: str) -> MilvusStore:
    """A store at the address of a server, or the embedded one with its child process."""
    rules = settings.memory.milvus
    if not rules.address:
        process = MilvusLiteProcess(Path(settings.data_dir) / rules.data_dir)
        return EmbeddedMilvus(
            process, purge_timeout_s=rules.purge_timeout_s, **_milvus_options(settings, rules, signature)
        )
    return MilvusStore(
        _uri(rules.address, rules),
        token=rules.token.get_secret_value(),
        database=rules.database,
        secure=rules.tls.enabled,
        ca_pem_path=rules.tls.ca_file,
        client_pem_path=rules.tls.cert_file,
        client_key_path=rules.tls.key_file,
        server_name=rules.tls.server_name,
        **_milvus_options(settings, rules, signature),
    )


def _milvus_options(settings: Settings, rules: MilvusSection, signature: str) -> dict[str, Any]:
    return {
        "collection": rules.collection,
        "dimension": rules.dimension,
        "signature": signature,
        "index": rules.index,
        "num_partitions": rules.num_partitions,
        "search_timeout_s": settings.deadlines.store_ms / 1000,
        "read_timeout_s": rules.call_timeout_s,
        "write_timeout_s": rules.call_timeout_s,
        "rows_per_user_max": min(WINDOW_MAX - 1, ROWS_PER_MEMORY * settings.memory.max_memories_per_user),
    }


def hot_memories(settings: Settings, store: Store, spawn: Spawn) -> HotMemories:
    """The store with active users' memories in front of it."""
    rules, milvus = settings.memory.hot_cache, settings.memory.milvus
    staleness_s = rules.staleness_s
    if staleness_s is None:
        staleness_s = REPLICA_STALENESS_S if settings.deployment.replicas > 1 else math.inf
    return HotMemories(
        store,
        spawn=spawn,
        users_max=rules.users_max,
        memories_max=rules.memories_max,
        rows_max=ROWS_PER_MEMORY * settings.memory.max_memories_per_user,
        staleness_s=staleness_s,
        loads_max=rules.loads_max,
        load_timeout_s=milvus.call_timeout_s,
    )


def _uri(address: str, rules: MilvusSection) -> str:
    if "://" in address:
        return address
    return f"{'https' if rules.tls.enabled else 'http'}://{address}"


def models(settings: Settings, metrics: Metrics) -> dict[str, LanguageModel]:
    """The configured language models by role."""
    found: dict[str, LanguageModel] = {}
    for model in settings.external_models:
        client = OpenAIModel(
            model.llm_endpoint.base_url,
            model.llm_model_name,
            api_key=model.api_key.get_secret_value() or None,
            max_tokens=model.output_tokens_max,
            temperature=model.temperature,
            retries=RETRIES[model.model_role],
        )
        found[model.model_role] = MeteredModel(client, metrics, model.model_role)
    return found


def reranker(settings: Settings, metrics: Metrics) -> Reranker | None:
    """The configured reranking model, or None."""
    rules = settings.memory.rerank
    if not rules.url:
        return None
    client = HttpReranker(rules.url, rules.model, api_key=rules.api_key.get_secret_value() or None)
    return MeteredReranker(client, metrics)


def query_writer(settings: Settings, backends: Backends, announce: Announce) -> QueryWriter | None:
    """What writes queries with the memory_rewrite model, where that is wanted."""
    mode, model = settings.memory.query.mode, backends.models.get("memory_rewrite")
    if mode == "prepend" or model is None:
        return None
    return QueryWriter(model, mode=mode, timeout_s=settings.deadlines.rewrite_ms / 1000, announce=announce)


def reranking(settings: Settings, backends: Backends, announce: Announce) -> Reranking | None:
    rules = settings.memory.rerank
    if backends.reranker is None:
        return None
    return Reranking(backends.reranker, rules.timeout_ms / 1000, rules.candidates_max, announce)


# --- the request path ------------------------------------------------------------------------------------------------


def exchange(
    settings: Settings,
    backends: Backends,
    writer: JournalWriter,
    announce: Announce,
    tool_loops: InjectionCache,
    sessions: Sessions,
    after: Callable[[str, float], float],
    on_recalled: Recalled = _not_noted,
    offload: Offload = asyncio.to_thread,
    offload_large: Offload | None = None,
) -> Exchange:
    memory, limits = settings.memory, settings.limits

    return Exchange(
        identity=identity(settings),
        permissions=PermissionRules(enabled=memory.enabled, opt_in=memory.opt_in, auto_store=memory.auto_store),
        sessions=sessions,
        recall=recall(settings, backends, announce),
        journal=writer,
        limits=ExchangeLimits(
            request_body_bytes_max=limits.request_body_bytes_max,
            answer_bytes_max=limits.answer_bytes_max,
            response_body_bytes_max=limits.response_body_bytes_max,
            decoded_bytes_max=limits.decoded_bytes_max,
            phase_s=settings.deadlines.phase_ms / 1000,
            inline_body_bytes_max=limits.inline_body_bytes_max,
            reading=ReadingLimits(messages_max=limits.request_messages_max, values_max=limits.request_values_max),
        ),
        clock=time.time,
        capture=settings.capture.mode,
        upstream=verdict_rules(settings),
        blocks=tool_loops,
        recovery=recovery(settings, backends, announce),
        offload=offload,
        offload_large=offload_large,
        on_recalled=on_recalled,
        after=after,
    )


def sessions(settings: Settings, backends: Backends) -> Sessions:
    return Sessions(backends.journal, idle_s=settings.identity.session_idle_s)


def recovery(settings: Settings, backends: Backends, announce: Announce) -> Recovery:
    seen = SeenMessages(backends.journal, messages_max=settings.capture.seen_messages_max)
    return Recovery(seen, recovery_rules(settings), announce=announce)


def recovery_rules(settings: Settings) -> RecoveryRules:
    """Words are believed no longer than what was declined, or erased, after them is known."""
    rules = settings.capture
    return RecoveryRules(
        mode=rules.recover_history,
        away_until=time.time() + rules.recover_beginnings_s,
        history_turns_max=rules.history_turns_max,
        new_turns_max=rules.new_turns_max,
        kept_s=min(settings.journal.retention_days, settings.erasure.marks_days) * DAY_S,
    )


def recall(settings: Settings, backends: Backends, announce: Announce = nobody_listens) -> Recall:
    return Recall(
        backends.store,
        backends.embedder,
        recall_rules(settings),
        gate=vector_gate(settings, backends.embedder.signature),
        announce=announce,
        writer=query_writer(settings, backends, announce),
        reranking=reranking(settings, backends, announce),
        fence=backends.fence,
    )


def fence(settings: Settings) -> Fence:
    """Blocking: may make the key file. Raises OSError naming it."""
    rules = settings.memory.injection
    key, former = rules.fence_key.get_secret_value().encode(), rules.fence_key_former.get_secret_value().encode()
    if not key and settings.deployment.replicas > 1:
        log.warning(
            "memory.injection.fence_key is not set: each replica has a key of its own, and a request that passes two"
            " of them gets its memories twice"
        )
    if not key:  # as it is spelled in the file, so that it can be copied into a configuration
        key = key_file.read_or_make(Path(settings.data_dir) / FENCE_KEY_FILE).hex().encode()
    return Fence(key, former) if former else Fence(key)


def blocks(settings: Settings) -> InjectionCache:
    """None are kept beside other replicas: nobody would tell of what is forgotten there."""
    injection = settings.memory.injection
    alone = settings.deployment.replicas == 1
    return InjectionCache(entries_max=injection.repeat_entries_max if alone else 0, ttl_s=injection.repeat_ttl_s)


def vector_gate(settings: Settings, signature: str) -> Callable[[str, Vector], str] | None:
    """The gate on the question's vector; None for the rules alone: when configured, and for a model it was not
    trained for."""
    if settings.signals.engine == "rules":
        return None
    if signature != gate.SIGNATURE:
        log.warning(
            "signals.engine: rules alone, since the classifier knows %s only, not %s", gate.SIGNATURE, signature
        )
        return None
    return gate.gate


def recall_rules(settings: Settings) -> RecallRules:
    memory = settings.memory
    return RecallRules(
        limit=memory.default_retrieval_limit,
        threshold=memory.default_similarity_threshold,
        strategy=Strategy(memory.retrieval_strategy),
        scope=memory.retrieval_scope,
        tokens_max=memory.injection.max_inject_tokens,
        query_chars_max=settings.limits.query_chars_max,
        embed_timeout_s=(settings.deadlines.phase_ms - settings.deadlines.store_ms) / 1000,
        store_timeout_s=settings.deadlines.store_ms / 1000,
        role=memory.injection.role,
        position=memory.injection.position,
        user_role_models=memory.injection.user_role_models,
    )


def verdict_rules(settings: Settings) -> VerdictRules:
    signals = settings.signals
    return VerdictRules(
        fact=VerdictSource(signals.fact_header, signals.fact_metadata),
        tool=VerdictSource(signals.tool_header, signals.tool_metadata),
        blocked=VerdictSource(signals.blocked_header, signals.blocked_metadata),
        pii=VerdictSource(signals.pii_header, signals.pii_metadata),
    )


def identity(settings: Settings) -> IdentityRules:
    rules = settings.identity
    return IdentityRules(
        metadata_namespace=rules.metadata_namespace,
        metadata_claim=rules.metadata_claim,
        trusted_headers=rules.trusted_headers,
        api_key_secret=rules.api_key.hmac_secret.get_secret_value().encode() if rules.api_key.enabled else None,
        allow_untrusted_body=rules.allow_untrusted_body,
        session_headers=rules.session_headers,
        project_headers=rules.project_headers,
        agent_headers=rules.agent_headers,
        name_chars_max=rules.user_chars_max,
    )


# --- learning --------------------------------------------------------------------------------------------------------


def learner(settings: Settings, backends: Backends, learn: Callable[[Batch], Awaitable[object]]) -> Learner:
    extraction = settings.memory.extraction
    rules = BatchRules(
        size=settings.memory.extraction_batch_size,
        context_turns=extraction.context_turns,
        idle_s=extraction.session_idle_s,
        answer_wait_s=0.0 if settings.capture.mode == "off" else extraction.answer_wait_s,
        lease_s=extraction.lease_s,
    )
    return Learner(
        backends.journal,
        learn,
        rules=rules,
        concurrency=extraction.concurrency,
        poll_interval_s=extraction.poll_interval_s,
    )


def drift_watch(settings: Settings, backends: Backends) -> DriftWatch | None:
    """None when changes of topic are not looked for."""
    extraction = settings.memory.extraction
    if not extraction.drift_threshold:
        return None
    return DriftWatch(
        backends.journal,
        backends.embedder,
        threshold=extraction.drift_threshold,
        turns_min=extraction.drift_turns_min,
        look_back_s=extraction.session_idle_s,
        strip_block=without_tags,
    )


def learning(settings: Settings, backends: Backends, announce: Announce = nobody_listens) -> Learning:
    memory = settings.memory
    by_rules = RulesExtractor(
        facts_per_batch=memory.extraction.facts_per_batch_max,
        work=backends.worker,
        turn_budget_s=memory.extraction.turn_budget_s,
        batch_budget_s=memory.extraction.batch_budget_s,
        announce=announce,
    )
    extractor, fallback = choose_extractor(
        memory.extraction.engine, llm=_llm_extractor(settings, backends), rules=by_rules
    )
    return Learning(
        backends.journal,
        backends.embedder,
        dedup(settings, backends),
        extractor,
        quota=quota(settings, backends, announce),
        fallback=fallback,
        screening=partial(
            screen,
            chars_min=memory.write_screen.fact_chars_min,
            chars_max=memory.write_screen.fact_chars_max,
            on_secret=Ruling(memory.write_screen.secrets),
            on_instruction=Ruling(memory.write_screen.instructions),
            own_markers=FENCE_MARKERS,
        ),
        reader=Reader(strip_block=without_tags),
        model_judge=_model_judge(settings, backends),
        summariser=_summariser(settings, backends),
        work=backends.worker,
        screen_budget_s=memory.extraction.batch_budget_s,
        facts_max=memory.extraction.facts_per_batch_max,
        attempts_max=memory.extraction.attempts_max,
        ttl_s=lifetime_s(settings),
    )


def dedup(settings: Settings, backends: Backends) -> Dedup:
    return Dedup(
        backends.store,
        backends.journal,
        update_threshold=settings.memory.extraction.update_threshold,
        judge=judge,
        work=backends.journal,
        text_work=backends.worker,
        judge_budget_s=settings.memory.extraction.turn_budget_s,
    )


def quota(settings: Settings, backends: Backends, announce: Announce) -> Quota:
    rules = settings.memory.decay
    return Quota(
        backends.store,
        backends.journal,
        statistics=backends.journal,
        memories_max=settings.memory.max_memories_per_user,
        decay=Decay(half_life_s=rules.half_life_days * DAY_S, floor=rules.floor),
        announce=announce,
    )


def lifetime_s(settings: Settings) -> float | None:
    """How long a memory lives after it was last said: the shorter of ttl_days and retention_days, None for ever."""
    days = [days for days in (settings.memory.ttl_days, settings.memory.retention_days) if days]
    return min(days) * DAY_S if days else None


def _extraction_model(settings: Settings) -> ExternalModel | None:
    """The model that learns, unless the configured engine has no use for one."""
    return None if settings.memory.extraction.engine == "rules" else settings.external_model("memory_extraction")


def _llm_extractor(settings: Settings, backends: Backends) -> Extractor | None:
    extraction, model = settings.memory.extraction, _extraction_model(settings)
    if model is None:
        return None
    return LlmExtractor(
        backends.models[model.model_role],
        timeout_s=model.llm_timeout_seconds,
        facts_max=extraction.facts_per_batch_max,
        custom_instructions=extraction.custom_instructions,
        categories=extraction.categories,
    )


def _model_judge(settings: Settings, backends: Backends) -> ModelJudge | None:
    model = _extraction_model(settings)
    if model is None or not settings.memory.extraction.contradiction_check:
        return None
    return ModelJudge(backends.models[model.model_role], timeout_s=model.llm_timeout_seconds)


def _summariser(settings: Settings, backends: Backends) -> SessionSummariser | None:
    model = _extraction_model(settings)
    if model is None or not settings.memory.extraction.episodic_summary:
        return None
    return SessionSummariser(
        backends.models[model.model_role],
        timeout_s=model.llm_timeout_seconds,
        chars_max=min(SUMMARY_CHARS_MAX, settings.memory.write_screen.fact_chars_max),
        custom_instructions=settings.memory.extraction.custom_instructions,
        categories=settings.memory.extraction.categories,
    )


# --- the doors -------------------------------------------------------------------------------------------------------


def door_limits(settings: Settings) -> DoorLimits:
    limits = settings.limits
    return DoorLimits(
        mutate_streams_max=limits.mutate_streams_max,
        observe_streams_max=limits.observe_streams_max,
        message_bytes_max=max(limits.request_body_bytes_max, limits.response_body_bytes_max) + GRPC_OVERHEAD_BYTES,
        inline_bytes_max=limits.inline_body_bytes_max,
    )


def message_timeouts(settings: Settings) -> MessageTimeouts:
    deadlines = settings.deadlines
    return MessageTimeouts(
        phase_s=deadlines.phase_ms / 1000,
        message_timeout_s=deadlines.message_timeout_ms / 1000,
        max_message_timeout_s=deadlines.max_message_timeout_ms / 1000,
    )


def grpc_address(settings: Settings) -> str:
    grpc = settings.listeners.grpc
    return f"unix:{grpc.unix_socket}" if grpc.unix_socket else grpc.address


def grpc_credentials(settings: Settings) -> Any:
    """None for plain text. Raises OSError naming a file that cannot be read."""
    tls = settings.listeners.grpc.tls
    if not tls.cert_file:
        return None
    client_ca = Path(tls.client_ca_file) if tls.client_ca_file else None
    return server_credentials(TlsFiles(Path(tls.cert_file), Path(tls.key_file), client_ca))


def memories(
    settings: Settings,
    backends: Backends,
    announce: Announce,
    erasure: Erasure,
    holds: Holds,
    after: Callable[[str, float], float],
) -> Memories:
    return Memories(
        backends.store,
        backends.embedder,
        backends.journal,
        quota(settings, backends, announce),
        recall(settings, backends),
        clock=time.time,
        erasure=erasure,
        holds=holds,
        after=after,
        create_wait_s=settings.memory.create_wait_s,
        ttl_s=lifetime_s(settings),
    )


def access(settings: Settings) -> AccessRules:
    return AccessRules(
        admin_token=settings.listeners.api.admin_token.get_secret_value(),
        trusted_headers=settings.listeners.api.trusted_headers,
        user_chars_max=settings.identity.user_chars_max,
    )
