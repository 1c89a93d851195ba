"""Rules that tie several keys together. In what words they are told of is in rules.toml, but for two that say it in
several ways."""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from semmem.config.backends_section import RemoteEmbeddingSection, RerankSection
from semmem.config.problems import Conflicts
from semmem.config.settings import Settings
from semmem.config.values import SECRET_CHARS_MIN, is_loopback

THRESHOLD_REACHABLE_MAX = 0.95
"""Even two sentences that differ in one number (10k, 15k) come to 0.951 with MiniLM; a question never does."""
WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

Cases = Iterator[Mapping[str, object]]
"""For each time that a rule is broken, what belongs into its words."""


def conflicts(settings: Settings) -> Conflicts:
    """Of every rule that is broken, what rules.toml says under its name."""
    for name, rule in RULES.items():
        broken = rule(settings)
        if name not in WORDS:
            yield from broken
            continue
        for case in broken if isinstance(broken, Iterator) else [{}] if broken else []:
            words = WORDS[name]
            told = (words["key"], words["reason"], words["remedy"], *words.get("others", ()))
            yield tuple(each.format(s=settings, **case) for each in told)


def is_too_short(secret: SecretStr) -> bool:
    """A secret that is given and may be guessed."""
    return 0 < len(secret) < SECRET_CHARS_MIN


def envoy_waits_for_models(settings: Settings) -> Cases:
    """What models may take comes on top of the phase: within Envoy's patience, or within what it may become."""
    deadlines, memory = settings.deadlines, settings.memory
    extra_ms = 0 if memory.query.mode == "prepend" else deadlines.rewrite_ms
    extra_ms += memory.rerank.timeout_ms if memory.rerank.url else 0
    longest_ms, needed_ms = deadlines.phase_ms + extra_ms, deadlines.message_timeout_ms + extra_ms
    if extra_ms and longest_ms >= deadlines.message_timeout_ms and deadlines.max_message_timeout_ms < needed_ms:
        yield {"longest_ms": longest_ms, "needed_ms": needed_ms}


def without_its_pair(server: RerankSection | RemoteEmbeddingSection) -> Cases:
    """Url and model of a server are both given, or neither."""
    if bool(server.url) != bool(server.model):
        given, missing = ("url", "model") if server.url else ("model", "url")
        yield {"given": given, "missing": missing}


def one_model_per_role(settings: Settings) -> Cases:
    seen: dict[str, int] = {}
    for index, model in enumerate(settings.external_models):
        first = seen.setdefault(model.model_role, index)
        if first != index:
            yield {"index": index, "first": first}


def endpoints_are_complete(settings: Settings) -> Conflicts:
    for index, model in enumerate(settings.external_models):
        at, endpoint = f"external_models.{index}.llm_endpoint", model.llm_endpoint
        if not endpoint.url and not endpoint.address:
            yield (at, "names no server", "give address (and port), or url")
        others = {"address", "port", "scheme", "path"} & endpoint.model_fields_set
        if endpoint.url and others:
            yield f"{at}.url", f"is given beside {', '.join(sorted(others))}", "keep url alone, or drop it"


def paths_are_apart(settings: Settings) -> Cases:
    seen: dict[str, str] = {}
    for name, paths in settings.paths.by_name.items():
        for path in paths:
            if seen.setdefault(path, name) != name:
                yield {"name": name, "path": path, "first": seen[path]}


def leases_outlast_calls(settings: Settings) -> Cases:
    model, extraction = settings.external_model("memory_extraction"), settings.memory.extraction
    if model is None or extraction.engine == "rules":
        return
    calls = 1 + extraction.episodic_summary + extraction.contradiction_check
    if extraction.lease_s <= calls * model.llm_timeout_seconds:
        yield {"calls": calls, "call_s": model.llm_timeout_seconds, "calls_s": calls * model.llm_timeout_seconds}


def listeners_are_apart(settings: Settings) -> Cases:
    listeners = settings.listeners
    taken: dict[str, str] = {} if listeners.grpc.unix_socket else {listeners.grpc.address: "grpc"}
    for name, listener in (("api", listeners.api), ("health", listeners.health)):
        first = taken.setdefault(listener.address, name)
        if first != name and listener.port != 0:
            yield {"name": name, "first": first}


def replicas_share_a_store(settings: Settings) -> Cases:
    memory = settings.memory
    milvus, qdrant = {"family": "milvus", "name": "Milvus"}, {"family": "qdrant", "name": "Qdrant"}
    kinds = {
        "milvus": (memory.milvus.address, milvus | {"kind": "the embedded Milvus Lite keeps"}),
        "qdrant": (memory.qdrant.address, qdrant | {"kind": "Qdrant's local mode keeps"}),
        "in_process": ("", milvus | {"kind": "in_process keeps"}),
    }
    server, words = kinds[memory.backend]
    if settings.deployment.replicas > 1 and not server:
        yield words


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
    size = len(api.admin_token)
    return not (is_loopback(api.host) or size >= SECRET_CHARS_MIN or (api.jwt.keys and not size))


def is_fetched_openly(url: str) -> bool:
    return url.startswith("http://") and not is_loopback(urlsplit(url).hostname or "")


def traces_have_a_whole_address(settings: Settings) -> Cases:
    endpoint = settings.tracing.endpoint
    if endpoint and urlsplit(endpoint).path in ("", "/"):
        yield {"whole": f"{endpoint.rstrip('/')}/v1/traces"}


RULES: Mapping[str, Callable[[Settings], Any]] = {
    "phase_nests": lambda s: s.deadlines.phase_ms >= s.deadlines.message_timeout_ms,
    "store_nests": lambda s: s.deadlines.store_ms >= s.deadlines.phase_ms,
    "envoy_waits_for_models": envoy_waits_for_models,
    "max_message_timeout_is_longer": lambda s: 0 < s.deadlines.max_message_timeout_ms < s.deadlines.message_timeout_ms,
    "rewriting_has_its_model": lambda s: (
        s.memory.query.mode != "prepend" and s.external_model("memory_rewrite") is None
    ),
    "rerank_has_its_pair": lambda s: without_its_pair(s.memory.rerank),
    "precision_has_its_library": lambda s: (
        s.memory.embedding.precision != "fp32" and s.memory.embedding.backend == "torch"
    ),
    "remote_has_its_pair": lambda s: without_its_pair(s.memory.embedding.remote),
    "remote_has_its_server": lambda s: s.memory.embedding.source == "remote" and not s.memory.embedding.remote.url,
    "static_has_its_folder": lambda s: s.memory.embedding.source == "static" and not s.memory.embedding.static_dir,
    "dimensions_agree": lambda s: (
        s.memory.milvus.dimension != s.memory.embedding.dimension and s.memory.backend != "qdrant"
    ),
    "threshold_is_reachable": lambda s: (s.memory.default_similarity_threshold or 0.0) > THRESHOLD_REACHABLE_MAX,
    "engine_has_its_model": lambda s: (
        s.memory.extraction.engine == "llm" and s.external_model("memory_extraction") is None
    ),
    "upstream_has_its_listener": lambda s: (
        s.memory.extraction.model == "upstream" and s.external_model("memory_extraction") is None
    ),
    "upstream_is_asked": lambda s: (
        s.memory.extraction.model == "upstream"
        and s.memory.extraction.engine == "rules"
        and s.external_model("memory_extraction")
    ),
    "one_model_per_role": one_model_per_role,
    "endpoints_are_complete": endpoints_are_complete,
    "leases_outlast_calls": leases_outlast_calls,
    "paths_are_apart": paths_are_apart,
    "token_is_long": lambda s: is_unguarded(s) and s.listeners.api.admin_token,
    "api_has_a_token": lambda s: is_unguarded(s) and not s.listeners.api.admin_token,
    # this listener has no client certificates: who reaches it, is whoever he says
    "trusted_callers_are_local": lambda s: s.listeners.api.trusted_headers and not is_loopback(s.listeners.api.host),
    # otherwise every token of the provider's opens this door, whatever it was made for
    "web_tokens_are_for_us": lambda s: (
        s.listeners.api.jwt.keys and not (s.listeners.api.jwt.issuer or s.listeners.api.jwt.audience)
    ),
    "web_keys_are_the_providers": lambda s: is_fetched_openly(s.listeners.api.jwt.keys),
    "listeners_are_apart": listeners_are_apart,
    "replicas_share_a_store": replicas_share_a_store,
    "replicas_share_a_journal": lambda s: s.deployment.replicas > 1 and not s.journal.url,
    "password_has_a_server": lambda s: s.journal.password and not s.journal.url,
    "conversations_have_answers": lambda s: s.conversations.enabled and s.capture.mode in ("history", "off"),
    "redis_password_has_a_server": lambda s: s.memory.hot_cache.redis.password and not s.memory.hot_cache.redis.url,
    "redis_authorities_have_tls": lambda s: (
        s.memory.hot_cache.redis.ca_file and not s.memory.hot_cache.redis.url.startswith("rediss://")
    ),
    "tls_of_stores_is_consistent": tls_of_stores_is_consistent,
    "qdrant_key_has_a_server": lambda s: s.memory.qdrant.api_key and not s.memory.qdrant.address,
    "qdrant_bits_are_rescored": lambda s: s.memory.qdrant.quantisation == "binary" and not s.memory.qdrant.rescore,
    "grpc_certificate_has_its_key": lambda s: (
        bool(s.listeners.grpc.tls.cert_file) != bool(s.listeners.grpc.tls.key_file)
    ),
    "grpc_clients_meet_tls": lambda s: s.listeners.grpc.tls.client_ca_file and not s.listeners.grpc.tls.cert_file,
    "milvus_token_has_a_server": lambda s: s.memory.milvus.token and not s.memory.milvus.address,
    "api_keys_have_a_secret": lambda s: (
        s.identity.api_key.enabled and len(s.identity.api_key.hmac_secret) < SECRET_CHARS_MIN
    ),
    "fence_key_is_long": lambda s: is_too_short(s.memory.injection.fence_key),
    "former_fence_key_is_long": lambda s: is_too_short(s.memory.injection.fence_key_former),
    "metadata_has_a_claim": lambda s: s.identity.metadata_namespace and not s.identity.metadata_claim,
    "answers_are_read": lambda s: s.limits.answer_bytes_max > s.limits.response_body_bytes_max,
    "facts_have_room": lambda s: s.memory.write_screen.fact_chars_min >= s.memory.write_screen.fact_chars_max,
    "traces_have_a_whole_address": traces_have_a_whole_address,
    "credential_has_a_collector": lambda s: s.tracing.credential and not s.tracing.endpoint,
    "content_has_a_collector": lambda s: s.tracing.content and not s.tracing.endpoint,
    "user_secret_is_long": lambda s: is_too_short(s.tracing.user_hmac_secret),
    "batches_of_spans_fit": lambda s: s.tracing.batch_max > s.tracing.queue_max,
    "chains_have_a_record": lambda s: s.conversations.chains and not s.conversations.enabled,
    "what_begins_is_added_to": lambda s: s.conversations.begin_unknown and not s.conversations.chains,
}
"""Each by its name: whether it is broken, or Cases; of one that is not in rules.toml, the Conflicts themselves."""
