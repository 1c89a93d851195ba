"""Rules that tie several keys together; in what words they are told of is in rules.toml, as far as those are fixed."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from semmem.config.backends_section import RemoteEmbeddingSection, RerankSection
from semmem.config.problems import Conflicts
from semmem.config.settings import Settings
from semmem.config.values import SECRET_CHARS_MIN, is_loopback

THRESHOLD_REACHABLE_MAX = 0.95
"""Even two sentences that differ in one number (10k, 15k) come to 0.951 with MiniLM; a question never does."""
WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

Rule = Callable[[Settings], Conflicts]


def worded(name: str, is_wrong: Callable[[Settings], object]) -> Rule:
    """What rules.toml says under this name, where that is so."""
    words = WORDS[name]

    def rule(settings: Settings) -> Conflicts:
        if is_wrong(settings):
            reason, remedy = (words[part].format(s=settings) for part in ("reason", "remedy"))
            yield words["key"], reason, remedy, *words.get("others", ())

    return rule


def is_too_short(secret: SecretStr) -> bool:
    """A secret that is given and may be guessed."""
    return 0 < len(secret.get_secret_value()) < SECRET_CHARS_MIN


def is_set(secret: SecretStr) -> bool:
    return bool(secret.get_secret_value())


def envoy_waits_for_models(settings: Settings) -> Conflicts:
    """What models may take comes on top of the phase: within Envoy's patience, or within what it may become."""
    deadlines, extra_ms = settings.deadlines, settings.rewrite_ms + settings.rerank_ms
    longest_ms, needed_ms = deadlines.phase_ms + extra_ms, deadlines.message_timeout_ms + extra_ms
    if extra_ms and longest_ms >= deadlines.message_timeout_ms and deadlines.max_message_timeout_ms < needed_ms:
        yield (
            "deadlines.max_message_timeout_ms",
            f"leaves no time for rewriting and reranking, with which a request may take {longest_ms} ms",
            f"set max_message_timeout in envoy.yaml to {needed_ms} ms or more, and repeat it here",
            "deadlines.rewrite_ms",
            "memory.rerank.timeout_ms",
            "memory.query.mode",
        )


def with_a_model(at: str, server_of: Callable[[Settings], RerankSection | RemoteEmbeddingSection]) -> Rule:
    """Url and model of a server are both given, or neither."""

    def rule(settings: Settings) -> Conflicts:
        server = server_of(settings)
        if bool(server.url) != bool(server.model):
            given, missing = ("url", "model") if server.url else ("model", "url")
            yield f"{at}.{given}", f"is of no use without {missing}", "give both, or none"

    return rule


def one_model_per_role(settings: Settings) -> Conflicts:
    seen: dict[str, int] = {}
    for index, model in enumerate(settings.external_models):
        first = seen.setdefault(model.model_role, index)
        if first != index:
            reason = f"is the role of external_models.{first} already"
            yield f"external_models.{index}.model_role", reason, "keep one model for each role", "external_models"


def endpoints_are_complete(settings: Settings) -> Conflicts:
    for index, model in enumerate(settings.external_models):
        at, endpoint = f"external_models.{index}.llm_endpoint", model.llm_endpoint
        if not endpoint.url and not endpoint.address:
            yield (at, "names no server", "give address (and port), or url")
        others = {"address", "port", "scheme", "path"} & endpoint.model_fields_set
        if endpoint.url and others:
            yield f"{at}.url", f"is given beside {', '.join(sorted(others))}", "keep url alone, or drop it"


def paths_are_apart(settings: Settings) -> Conflicts:
    seen: dict[str, str] = {}
    for name, paths in settings.paths.by_name.items():
        for path in paths:
            if seen.setdefault(path, name) != name:
                yield f"paths.{name}", f"has {path}, which paths.{seen[path]} has too", "a path is of one API alone"


def leases_outlast_calls(settings: Settings) -> Conflicts:
    model, extraction = settings.external_model("memory_extraction"), settings.memory.extraction
    if model is None or extraction.engine == "rules":
        return
    calls = 1 + extraction.episodic_summary + extraction.contradiction_check
    if extraction.lease_s <= calls * model.llm_timeout_seconds:
        yield (
            "memory.extraction.lease_s",
            f"is not longer than the calls of the extraction model for one batch ({calls} of up to "
            f"{model.llm_timeout_seconds:g} s), so another worker would begin the same batch",
            f"make it more than {calls * model.llm_timeout_seconds:g}",
            "external_models",
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
    memory = settings.memory
    kinds = {
        "milvus": ("the embedded Milvus Lite keeps", memory.milvus.address),
        "qdrant": ("Qdrant's local mode keeps", memory.qdrant.address),
        "in_process": ("in_process keeps", ""),
    }
    kind, server = kinds[memory.backend]
    if settings.deployment.replicas == 1 or server:
        return
    family, name = ("qdrant", "Qdrant") if memory.backend == "qdrant" else ("milvus", "Milvus")
    yield (
        "deployment.replicas",
        f"but {kind} memories inside one process, where other replicas do not see them",
        f"set memory.{family}.address to a {name} server, or keep 1 replica",
        "memory.backend",
        f"memory.{family}.address",
    )


def tls_of_stores_is_consistent(settings: Settings) -> Conflicts:
    for name, store in (("milvus", settings.memory.milvus), ("qdrant", settings.memory.qdrant)):
        at, address = f"memory.{name}.tls", f"memory.{name}.address"
        if store.tls.enabled and not store.address:
            yield f"{at}.enabled", "has no server to talk to", f"set {address}", address
        if store.tls.enabled and store.address.startswith("http://"):
            yield f"{at}.enabled", f"contradicts the http:// in {address}", "write https://", address
        if bool(store.tls.cert_file) != bool(store.tls.key_file):
            yield f"{at}.cert_file", "and key_file are only useful together", "give both, or neither"


def is_unguarded(settings: Settings) -> bool:
    """Whether other machines reach the API, and nothing that cannot be guessed keeps them out."""
    api = settings.listeners.api
    size = len(api.admin_token.get_secret_value())
    return not (is_loopback(api.host) or size >= SECRET_CHARS_MIN or (api.jwt.keys and not size))


def is_fetched_openly(url: str) -> bool:
    return url.startswith("http://") and not is_loopback(urlsplit(url).hostname or "")


def traces_have_a_whole_address(settings: Settings) -> Conflicts:
    endpoint = settings.tracing.endpoint
    if endpoint and urlsplit(endpoint).path in ("", "/"):
        yield ("tracing.endpoint", "has no path", f"write {endpoint.rstrip('/')}/v1/traces")


RULES: tuple[Rule, ...] = (
    worded("phase_nests", lambda s: s.deadlines.phase_ms >= s.deadlines.message_timeout_ms),
    worded("store_nests", lambda s: s.deadlines.store_ms >= s.deadlines.phase_ms),
    envoy_waits_for_models,
    worded(
        "max_message_timeout_is_longer",
        lambda s: 0 < s.deadlines.max_message_timeout_ms < s.deadlines.message_timeout_ms,
    ),
    worded(
        "rewriting_has_its_model",
        lambda s: s.memory.query.mode != "prepend" and s.external_model("memory_rewrite") is None,
    ),
    with_a_model("memory.rerank", lambda s: s.memory.rerank),
    worded(
        "precision_has_its_library",
        lambda s: s.memory.embedding.precision != "fp32" and s.memory.embedding.backend == "torch",
    ),
    with_a_model("memory.embedding.remote", lambda s: s.memory.embedding.remote),
    worded(
        "remote_has_its_server", lambda s: s.memory.embedding.source == "remote" and not s.memory.embedding.remote.url
    ),
    worded(
        "static_has_its_folder", lambda s: s.memory.embedding.source == "static" and not s.memory.embedding.static_dir
    ),
    worded(
        "dimensions_agree",
        lambda s: s.memory.milvus.dimension != s.memory.embedding.dimension and s.memory.backend != "qdrant",
    ),
    worded(
        "threshold_is_reachable", lambda s: (s.memory.default_similarity_threshold or 0.0) > THRESHOLD_REACHABLE_MAX
    ),
    worded(
        "engine_has_its_model",
        lambda s: s.memory.extraction.engine == "llm" and s.external_model("memory_extraction") is None,
    ),
    worded(
        "upstream_has_its_listener",
        lambda s: s.memory.extraction.model == "upstream" and s.external_model("memory_extraction") is None,
    ),
    worded(
        "upstream_is_asked",
        lambda s: (
            s.memory.extraction.model == "upstream"
            and s.memory.extraction.engine == "rules"
            and s.external_model("memory_extraction")
        ),
    ),
    one_model_per_role,
    endpoints_are_complete,
    leases_outlast_calls,
    paths_are_apart,
    worded("token_is_long", lambda s: is_unguarded(s) and is_set(s.listeners.api.admin_token)),
    worded("api_has_a_token", lambda s: is_unguarded(s) and not is_set(s.listeners.api.admin_token)),
    worded(  # this listener has no client certificates: who reaches it, is whoever he says
        "trusted_callers_are_local", lambda s: s.listeners.api.trusted_headers and not is_loopback(s.listeners.api.host)
    ),
    worded(  # otherwise every token of the provider's opens this door, whatever it was made for
        "web_tokens_are_for_us",
        lambda s: s.listeners.api.jwt.keys and not (s.listeners.api.jwt.issuer or s.listeners.api.jwt.audience),
    ),
    worded("web_keys_are_the_providers", lambda s: is_fetched_openly(s.listeners.api.jwt.keys)),
    listeners_are_apart,
    replicas_share_a_store,
    worded("replicas_share_a_journal", lambda s: s.deployment.replicas > 1 and not s.journal.url),
    worded("password_has_a_server", lambda s: is_set(s.journal.password) and not s.journal.url),
    worded("conversations_have_answers", lambda s: s.conversations.enabled and s.capture.mode in ("history", "off")),
    worded(
        "redis_password_has_a_server",
        lambda s: is_set(s.memory.hot_cache.redis.password) and not s.memory.hot_cache.redis.url,
    ),
    worded(
        "redis_authorities_have_tls",
        lambda s: s.memory.hot_cache.redis.ca_file and not s.memory.hot_cache.redis.url.startswith("rediss://"),
    ),
    tls_of_stores_is_consistent,
    worded("qdrant_key_has_a_server", lambda s: is_set(s.memory.qdrant.api_key) and not s.memory.qdrant.address),
    worded(
        "qdrant_bits_are_rescored", lambda s: s.memory.qdrant.quantisation == "binary" and not s.memory.qdrant.rescore
    ),
    worded(
        "grpc_certificate_has_its_key",
        lambda s: bool(s.listeners.grpc.tls.cert_file) != bool(s.listeners.grpc.tls.key_file),
    ),
    worded(
        "grpc_clients_meet_tls", lambda s: s.listeners.grpc.tls.client_ca_file and not s.listeners.grpc.tls.cert_file
    ),
    worded("milvus_token_has_a_server", lambda s: is_set(s.memory.milvus.token) and not s.memory.milvus.address),
    worded(
        "api_keys_have_a_secret",
        lambda s: (
            s.identity.api_key.enabled and len(s.identity.api_key.hmac_secret.get_secret_value()) < SECRET_CHARS_MIN
        ),
    ),
    worded("fence_key_is_long", lambda s: is_too_short(s.memory.injection.fence_key)),
    worded("former_fence_key_is_long", lambda s: is_too_short(s.memory.injection.fence_key_former)),
    worded("metadata_has_a_claim", lambda s: s.identity.metadata_namespace and not s.identity.metadata_claim),
    worded("answers_are_read", lambda s: s.limits.answer_bytes_max > s.limits.response_body_bytes_max),
    worded("facts_have_room", lambda s: s.memory.write_screen.fact_chars_min >= s.memory.write_screen.fact_chars_max),
    traces_have_a_whole_address,
    worded("credential_has_a_collector", lambda s: is_set(s.tracing.credential) and not s.tracing.endpoint),
    worded("content_has_a_collector", lambda s: s.tracing.content and not s.tracing.endpoint),
    worded("user_secret_is_long", lambda s: is_too_short(s.tracing.user_hmac_secret)),
    worded("batches_of_spans_fit", lambda s: s.tracing.batch_max > s.tracing.queue_max),
    worded("chains_have_a_record", lambda s: s.conversations.chains and not s.conversations.enabled),
    worded("what_begins_is_added_to", lambda s: s.conversations.begin_unknown and not s.conversations.chains),
)
