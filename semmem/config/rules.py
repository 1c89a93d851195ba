"""Rules that tie several keys together. Each is a row in RULES."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from semmem.config.api_rules import api_is_guarded, trusted_callers_are_local, web_tokens_are_for_us
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
from semmem.config.problems import NOTHING, Finding, Loc
from semmem.config.qdrant_rules import qdrant_bits_are_rescored, qdrant_key_needs_a_server, qdrant_tls_is_consistent
from semmem.config.settings import Settings
from semmem.config.tracing_rules import (
    batches_of_spans_fit,
    traces_have_a_whole_address,
    tracing_options_need_a_collector,
    user_secret_is_long,
)
from semmem.config.values import SECRET_CHARS_MIN

THRESHOLD_REACHABLE_MAX = 0.95
"""Even two sentences that differ in one number (10k, 15k) come to 0.951 with MiniLM; a question never does."""


def deadlines_nest(settings: Settings) -> Iterator[Finding]:
    deadlines = settings.deadlines
    order = (
        ("phase_ms", deadlines.phase_ms, "message_timeout_ms", deadlines.message_timeout_ms),
        ("store_ms", deadlines.store_ms, "phase_ms", deadlines.phase_ms),
    )
    for inner, inner_ms, outer, outer_ms in order:
        if inner_ms >= outer_ms:
            yield Finding(
                ("deadlines", inner),
                inner_ms,
                f"is not shorter than deadlines.{outer} ({outer_ms})",
                "keep message_timeout_ms > phase_ms > store_ms, for example 500, 350, 200",
                (("deadlines", outer),),
            )


def envoy_waits_for_models(settings: Settings) -> Iterator[Finding]:
    """What models may take comes on top of the phase: within Envoy's patience, or within what it may become."""
    deadlines, extra_ms = settings.deadlines, settings.rewrite_ms + settings.rerank_ms
    longest_ms = deadlines.phase_ms + extra_ms
    if extra_ms == 0 or longest_ms < deadlines.message_timeout_ms:
        return
    needed_ms = deadlines.message_timeout_ms + extra_ms
    if deadlines.max_message_timeout_ms < needed_ms:
        yield Finding(
            ("deadlines", "max_message_timeout_ms"),
            deadlines.max_message_timeout_ms,
            f"leaves no time for rewriting and reranking, with which a request may take {longest_ms} ms",
            f"set max_message_timeout in envoy.yaml to {needed_ms} ms or more, and repeat it here",
            (("deadlines", "rewrite_ms"), ("memory", "rerank", "timeout_ms"), ("memory", "query", "mode")),
        )


def max_message_timeout_is_longer(settings: Settings) -> Iterator[Finding]:
    deadlines = settings.deadlines
    if 0 < deadlines.max_message_timeout_ms < deadlines.message_timeout_ms:
        yield Finding(
            ("deadlines", "max_message_timeout_ms"),
            deadlines.max_message_timeout_ms,
            f"is shorter than deadlines.message_timeout_ms ({deadlines.message_timeout_ms})",
            "repeat what envoy.yaml says, 0 if it says nothing",
            (("deadlines", "message_timeout_ms"),),
        )


def threshold_is_reachable(settings: Settings) -> Iterator[Finding]:
    threshold = settings.memory.default_similarity_threshold or 0.0
    if threshold > THRESHOLD_REACHABLE_MAX:
        yield Finding(
            ("memory", "default_similarity_threshold"),
            threshold,
            f"is above {THRESHOLD_REACHABLE_MAX}, a cosine that no memory reaches for a question",
            "use 0.25 to 0.40, or null, the default",
        )


def listeners_are_apart(settings: Settings) -> Iterator[Finding]:
    listeners = settings.listeners
    taken: dict[str, str] = {} if listeners.grpc.unix_socket else {listeners.grpc.address: "grpc"}
    for name, listener in (("api", listeners.api), ("health", listeners.health)):
        first = taken.setdefault(listener.address, name)
        if first != name and listener.port != 0:
            yield Finding(
                ("listeners", name, "address"),
                listener.address,
                f"is the address of listeners.{first} already",
                "give each listener its own port",
                (("listeners", first),),
            )


def replicas_share_a_store(settings: Settings) -> Iterator[Finding]:
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
    yield Finding(
        ("deployment", "replicas"),
        replicas,
        f"but {kind} memories inside one process, where other replicas do not see them",
        f"set memory.{family}.address to a {name} server, or keep 1 replica",
        (("memory", "backend"), ("memory", family, "address")),
    )


def replicas_share_a_journal(settings: Settings) -> Iterator[Finding]:
    replicas = settings.deployment.replicas
    if replicas > 1 and not settings.journal.url:
        yield Finding(
            ("deployment", "replicas"),
            replicas,
            "but the journal is a file of one process: answers would not find their turns, and what is erased by one"
            " replica would be learnt from the journal of another",
            "set journal.url to a PostgreSQL server, or keep 1 replica",
            (("journal", "url"),),
        )


def password_needs_a_server(settings: Settings) -> Iterator[Finding]:
    if settings.journal.password.get_secret_value() and not settings.journal.url:
        at: Loc = ("journal", "password")
        yield Finding(at, NOTHING, "is of no use to a SQLite file", "set journal.url", (("journal", "url"),))


def conversations_need_answers(settings: Settings) -> Iterator[Finding]:
    if settings.conversations.enabled and settings.capture.mode in ("history", "off"):
        yield Finding(
            ("conversations", "enabled"),
            True,
            "records nothing, since no answer is observed",
            "set capture.mode to observe",
            (("capture", "mode"),),
        )


def redis_options_need_a_server(settings: Settings) -> Iterator[Finding]:
    redis, at = settings.memory.hot_cache.redis, ("memory", "hot_cache", "redis")
    if redis.password.get_secret_value() and not redis.url:
        yield Finding(
            (*at, "password"), NOTHING, "has no server to be told to", f"set {'.'.join(at)}.url", ((*at, "url"),)
        )
    if redis.ca_file and not redis.url.startswith("rediss://"):
        reason = "is of no use without TLS"
        yield Finding(
            (*at, "ca_file"), redis.ca_file, reason, f"write rediss:// in {'.'.join(at)}.url", ((*at, "url"),)
        )


def milvus_tls_is_consistent(settings: Settings) -> Iterator[Finding]:
    milvus, at = settings.memory.milvus, ("memory", "milvus", "tls")
    tls, address = milvus.tls, ("memory", "milvus", "address")
    if tls.enabled and not milvus.address:
        yield Finding((*at, "enabled"), True, "has no server to talk to", "set memory.milvus.address", (address,))
    if tls.enabled and milvus.address.startswith("http://"):
        yield Finding(
            (*at, "enabled"), True, "contradicts the http:// in memory.milvus.address", "write https://", (address,)
        )
    if bool(tls.cert_file) != bool(tls.key_file):
        yield Finding(
            (*at, "cert_file"), tls.cert_file, "and key_file are only useful together", "give both, or neither"
        )


def grpc_tls_is_consistent(settings: Settings) -> Iterator[Finding]:
    tls, at = settings.listeners.grpc.tls, ("listeners", "grpc", "tls")
    if bool(tls.cert_file) != bool(tls.key_file):
        yield Finding(
            (*at, "cert_file"), tls.cert_file, "and key_file are only useful together", "give both, or neither"
        )
    if tls.client_ca_file and not tls.cert_file:
        yield Finding(
            (*at, "client_ca_file"), tls.client_ca_file, "asks for certificates over plain text", "give cert_file too"
        )


def token_needs_a_server(settings: Settings) -> Iterator[Finding]:
    milvus = settings.memory.milvus
    if milvus.token.get_secret_value() and not milvus.address:
        at: Loc = ("memory", "milvus", "token")
        yield Finding(
            at,
            NOTHING,
            "is of no use to the embedded store",
            "set memory.milvus.address",
            (("memory", "milvus", "address"),),
        )


def api_key_identity_has_a_secret(settings: Settings) -> Iterator[Finding]:
    api_key, at = settings.identity.api_key, ("identity", "api_key", "hmac_secret")
    if api_key.enabled and len(api_key.hmac_secret.get_secret_value()) < SECRET_CHARS_MIN:
        reason = f"has fewer than {SECRET_CHARS_MIN} characters while identity.api_key is enabled"
        yield Finding(at, NOTHING, reason, "set a long random secret, for example the output of: openssl rand -hex 32")


def fence_keys_are_long(settings: Settings) -> Iterator[Finding]:
    injection = settings.memory.injection
    for name, key in (("fence_key", injection.fence_key), ("fence_key_former", injection.fence_key_former)):
        if 0 < len(key.get_secret_value()) < SECRET_CHARS_MIN:
            reason = f"has fewer than {SECRET_CHARS_MIN} characters"
            remedy = "set a long random secret, for example the output of: openssl rand -hex 32"
            yield Finding(("memory", "injection", name), NOTHING, reason, remedy)


def metadata_has_a_claim(settings: Settings) -> Iterator[Finding]:
    identity = settings.identity
    if identity.metadata_namespace and not identity.metadata_claim:
        yield Finding(
            ("identity", "metadata_claim"),
            [],
            "is empty while identity.metadata_namespace is not",
            "give the path to the user's id, for example [jwt_payload, sub], or clear metadata_namespace",
        )


def sizes_nest(settings: Settings) -> Iterator[Finding]:
    limits, screen = settings.limits, settings.memory.write_screen
    if limits.answer_bytes_max > limits.response_body_bytes_max:
        yield Finding(
            ("limits", "answer_bytes_max"),
            limits.answer_bytes_max,
            f"is more than limits.response_body_bytes_max ({limits.response_body_bytes_max})",
            "keep no more of an answer than is read of it",
            (("limits", "response_body_bytes_max"),),
        )
    if screen.fact_chars_min >= screen.fact_chars_max:
        yield Finding(
            ("memory", "write_screen", "fact_chars_min"),
            screen.fact_chars_min,
            f"is not below fact_chars_max ({screen.fact_chars_max})",
            "the defaults are 3 and 500",
            (("memory", "write_screen", "fact_chars_max"),),
        )


def chains_have_a_record(settings: Settings) -> Iterator[Finding]:
    if settings.conversations.chains and not settings.conversations.enabled:
        yield Finding(
            ("conversations", "chains"),
            True,
            "has no record to take histories from",
            "set conversations.enabled: true, or chains: false",
            (("conversations", "enabled"),),
        )


def what_begins_is_added_to(settings: Settings) -> Iterator[Finding]:
    if settings.conversations.begin_unknown and not settings.conversations.chains:
        yield Finding(
            ("conversations", "begin_unknown"),
            True,
            "is of no use while no history is added",
            "set conversations.chains: true, or begin_unknown: false",
            (("conversations", "chains"),),
        )


Rule = Callable[[Settings], Iterator[Finding]]
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
    milvus_tls_is_consistent,
    qdrant_tls_is_consistent,
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
