"""Rules that tie several keys together. Each is a row in RULES."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from semmem.config.model_rules import (
    dimensions_agree,
    endpoints_are_complete,
    engine_has_its_model,
    leases_outlast_calls,
    one_model_per_role,
    precision_has_its_library,
    remote_embeddings_are_complete,
    rerank_has_its_model,
    rewriting_has_its_model,
    upstream_has_its_listener,
)
from semmem.config.problems import Conflicts
from semmem.config.server_rules import (
    api_is_guarded,
    grpc_tls_is_consistent,
    password_needs_a_server,
    qdrant_bits_are_rescored,
    qdrant_key_needs_a_server,
    redis_options_need_a_server,
    tls_of_stores_is_consistent,
    token_needs_a_server,
    trusted_callers_are_local,
    web_tokens_are_for_us,
)
from semmem.config.settings import Settings
from semmem.config.values import SECRET_CHARS_MIN

LONG_SECRET = "set a long random secret, for example the output of: openssl rand -hex 32"
"""A remedy."""
THRESHOLD_REACHABLE_MAX = 0.95
"""Even two sentences that differ in one number (10k, 15k) come to 0.951 with MiniLM; a question never does."""


def deadlines_nest(settings: Settings) -> Conflicts:
    deadlines = settings.deadlines
    order = (
        ("phase_ms", deadlines.phase_ms, "message_timeout_ms", deadlines.message_timeout_ms),
        ("store_ms", deadlines.store_ms, "phase_ms", deadlines.phase_ms),
    )
    for inner, inner_ms, outer, outer_ms in order:
        if inner_ms >= outer_ms:
            yield (
                f"deadlines.{inner}",
                f"is not shorter than deadlines.{outer} ({outer_ms})",
                "keep message_timeout_ms > phase_ms > store_ms, for example 500, 350, 200",
                f"deadlines.{outer}",
            )


def envoy_waits_for_models(settings: Settings) -> Conflicts:
    """What models may take comes on top of the phase: within Envoy's patience, or within what it may become."""
    deadlines, extra_ms = settings.deadlines, settings.rewrite_ms + settings.rerank_ms
    longest_ms = deadlines.phase_ms + extra_ms
    if extra_ms == 0 or longest_ms < deadlines.message_timeout_ms:
        return
    needed_ms = deadlines.message_timeout_ms + extra_ms
    if deadlines.max_message_timeout_ms < needed_ms:
        yield (
            "deadlines.max_message_timeout_ms",
            f"leaves no time for rewriting and reranking, with which a request may take {longest_ms} ms",
            f"set max_message_timeout in envoy.yaml to {needed_ms} ms or more, and repeat it here",
            "deadlines.rewrite_ms",
            "memory.rerank.timeout_ms",
            "memory.query.mode",
        )


def max_message_timeout_is_longer(settings: Settings) -> Conflicts:
    deadlines = settings.deadlines
    if 0 < deadlines.max_message_timeout_ms < deadlines.message_timeout_ms:
        yield (
            "deadlines.max_message_timeout_ms",
            f"is shorter than deadlines.message_timeout_ms ({deadlines.message_timeout_ms})",
            "repeat what envoy.yaml says, 0 if it says nothing",
            "deadlines.message_timeout_ms",
        )


def threshold_is_reachable(settings: Settings) -> Conflicts:
    threshold = settings.memory.default_similarity_threshold or 0.0
    if threshold > THRESHOLD_REACHABLE_MAX:
        yield (
            "memory.default_similarity_threshold",
            f"is above {THRESHOLD_REACHABLE_MAX}, a cosine that no memory reaches for a question",
            "use 0.25 to 0.40, or null, the default",
        )


def listeners_are_apart(settings: Settings) -> Conflicts:
    listeners = settings.listeners
    taken: dict[str, str] = {} if listeners.grpc.unix_socket else {listeners.grpc.address: "grpc"}
    for name, listener in (("api", listeners.api), ("health", listeners.health)):
        first = taken.setdefault(listener.address, name)
        if first != name and listener.port != 0:
            reason = f"is the address of listeners.{first} already"
            yield f"listeners.{name}.address", reason, "give each listener its own port", f"listeners.{first}"


def replicas_share_a_store(settings: Settings) -> Conflicts:
    replicas, memory = settings.deployment.replicas, settings.memory
    kinds = {
        "milvus": ("the embedded Milvus Lite keeps", memory.milvus.address),
        "qdrant": ("Qdrant's local mode keeps", memory.qdrant.address),
        "in_process": ("in_process keeps", ""),
    }
    kind, server = kinds[memory.backend]
    if replicas == 1 or server:
        return
    family, name = ("qdrant", "Qdrant") if memory.backend == "qdrant" else ("milvus", "Milvus")
    yield (
        "deployment.replicas",
        f"but {kind} memories inside one process, where other replicas do not see them",
        f"set memory.{family}.address to a {name} server, or keep 1 replica",
        "memory.backend",
        f"memory.{family}.address",
    )


def replicas_share_a_journal(settings: Settings) -> Conflicts:
    replicas = settings.deployment.replicas
    if replicas > 1 and not settings.journal.url:
        yield (
            "deployment.replicas",
            "but the journal is a file of one process: answers would not find their turns, and what is erased by one"
            " replica would be learnt from the journal of another",
            "set journal.url to a PostgreSQL server, or keep 1 replica",
            "journal.url",
        )


def conversations_need_answers(settings: Settings) -> Conflicts:
    if settings.conversations.enabled and settings.capture.mode in ("history", "off"):
        yield (
            "conversations.enabled",
            "records nothing, since no answer is observed",
            "set capture.mode to observe",
            "capture.mode",
        )


def api_key_identity_has_a_secret(settings: Settings) -> Conflicts:
    api_key = settings.identity.api_key
    if api_key.enabled and len(api_key.hmac_secret.get_secret_value()) < SECRET_CHARS_MIN:
        reason = f"has fewer than {SECRET_CHARS_MIN} characters while identity.api_key is enabled"
        yield ("identity.api_key.hmac_secret", reason, LONG_SECRET)


def fence_keys_are_long(settings: Settings) -> Conflicts:
    injection = settings.memory.injection
    for name, key in (("fence_key", injection.fence_key), ("fence_key_former", injection.fence_key_former)):
        if 0 < len(key.get_secret_value()) < SECRET_CHARS_MIN:
            yield f"memory.injection.{name}", f"has fewer than {SECRET_CHARS_MIN} characters", LONG_SECRET


def metadata_has_a_claim(settings: Settings) -> Conflicts:
    identity = settings.identity
    if identity.metadata_namespace and not identity.metadata_claim:
        yield (
            "identity.metadata_claim",
            "is empty while identity.metadata_namespace is not",
            "give the path to the user's id, for example [jwt_payload, sub], or clear metadata_namespace",
        )


def sizes_nest(settings: Settings) -> Conflicts:
    limits, screen = settings.limits, settings.memory.write_screen
    if limits.answer_bytes_max > limits.response_body_bytes_max:
        yield (
            "limits.answer_bytes_max",
            f"is more than limits.response_body_bytes_max ({limits.response_body_bytes_max})",
            "keep no more of an answer than is read of it",
            "limits.response_body_bytes_max",
        )
    if screen.fact_chars_min >= screen.fact_chars_max:
        yield (
            "memory.write_screen.fact_chars_min",
            f"is not below fact_chars_max ({screen.fact_chars_max})",
            "the defaults are 3 and 500",
            "memory.write_screen.fact_chars_max",
        )


def chains_have_a_record(settings: Settings) -> Conflicts:
    if settings.conversations.chains and not settings.conversations.enabled:
        yield (
            "conversations.chains",
            "has no record to take histories from",
            "set conversations.enabled: true, or chains: false",
            "conversations.enabled",
        )


def what_begins_is_added_to(settings: Settings) -> Conflicts:
    if settings.conversations.begin_unknown and not settings.conversations.chains:
        yield (
            "conversations.begin_unknown",
            "is of no use while no history is added",
            "set conversations.chains: true, or begin_unknown: false",
            "conversations.chains",
        )


def traces_have_a_whole_address(settings: Settings) -> Conflicts:
    endpoint = settings.tracing.endpoint
    if endpoint and urlsplit(endpoint).path in ("", "/"):
        yield ("tracing.endpoint", "has no path", f"write {endpoint.rstrip('/')}/v1/traces")


def tracing_options_need_a_collector(settings: Settings) -> Conflicts:
    rules = settings.tracing
    if rules.endpoint:
        return
    if rules.credential.get_secret_value():
        yield ("tracing.credential", "is sent nowhere", "set tracing.endpoint", "tracing.endpoint")
    if rules.content:
        yield ("tracing.content", "records nothing", "set tracing.endpoint", "tracing.endpoint")


def user_secret_is_long(settings: Settings) -> Conflicts:
    if 0 < len(settings.tracing.user_hmac_secret.get_secret_value()) < SECRET_CHARS_MIN:
        reason = f"has fewer than {SECRET_CHARS_MIN} characters"
        yield ("tracing.user_hmac_secret", reason, LONG_SECRET)


def batches_of_spans_fit(settings: Settings) -> Conflicts:
    rules = settings.tracing
    if rules.batch_max > rules.queue_max:
        yield (
            "tracing.batch_max",
            f"is more than tracing.queue_max ({rules.queue_max})",
            "send no more at a time than may wait",
            "tracing.queue_max",
        )


Rule = Callable[[Settings], Conflicts]
RULES: tuple[Rule, ...] = (
    deadlines_nest,
    envoy_waits_for_models,
    max_message_timeout_is_longer,
    rewriting_has_its_model,
    rerank_has_its_model,
    precision_has_its_library,
    remote_embeddings_are_complete,
    dimensions_agree,
    threshold_is_reachable,
    engine_has_its_model,
    upstream_has_its_listener,
    one_model_per_role,
    endpoints_are_complete,
    leases_outlast_calls,
    api_is_guarded,
    trusted_callers_are_local,
    web_tokens_are_for_us,
    listeners_are_apart,
    replicas_share_a_store,
    replicas_share_a_journal,
    password_needs_a_server,
    conversations_need_answers,
    redis_options_need_a_server,
    tls_of_stores_is_consistent,
    qdrant_key_needs_a_server,
    qdrant_bits_are_rescored,
    grpc_tls_is_consistent,
    token_needs_a_server,
    api_key_identity_has_a_secret,
    fence_keys_are_long,
    metadata_has_a_claim,
    sizes_nest,
    traces_have_a_whole_address,
    tracing_options_need_a_collector,
    user_secret_is_long,
    batches_of_spans_fit,
    chains_have_a_record,
    what_begins_is_added_to,
)
