"""Rules that tie keys of the listeners, of the servers that semmem talks to, and of their encryption together."""

from __future__ import annotations

from urllib.parse import urlsplit

from semmem.config.listeners_section import GrpcTlsSection
from semmem.config.milvus_section import MilvusTlsSection
from semmem.config.problems import Conflicts
from semmem.config.qdrant_section import QdrantTlsSection
from semmem.config.settings import Settings
from semmem.config.values import SECRET_CHARS_MIN, is_loopback


def redis_options_need_a_server(settings: Settings) -> Conflicts:
    redis, at = settings.memory.hot_cache.redis, "memory.hot_cache.redis"
    if redis.password.get_secret_value() and not redis.url:
        yield (
            "memory.hot_cache.redis.password",
            "has no server to be told to",
            f"set {at}.url",
            "memory.hot_cache.redis.url",
        )
    if redis.ca_file and not redis.url.startswith("rediss://"):
        reason = "is of no use without TLS"
        yield ("memory.hot_cache.redis.ca_file", reason, f"write rediss:// in {at}.url", "memory.hot_cache.redis.url")


def tls_of_stores_is_consistent(settings: Settings) -> Conflicts:
    for name, store in (("milvus", settings.memory.milvus), ("qdrant", settings.memory.qdrant)):
        at, address = f"memory.{name}.tls", f"memory.{name}.address"
        if store.tls.enabled and not store.address:
            yield f"{at}.enabled", "has no server to talk to", f"set {address}", address
        if store.tls.enabled and store.address.startswith("http://"):
            yield f"{at}.enabled", f"contradicts the http:// in {address}", "write https://", address
        yield from _whole_pair(at, store.tls)


def _whole_pair(at: str, tls: MilvusTlsSection | QdrantTlsSection | GrpcTlsSection) -> Conflicts:
    if bool(tls.cert_file) != bool(tls.key_file):
        yield f"{at}.cert_file", "and key_file are only useful together", "give both, or neither"


def grpc_tls_is_consistent(settings: Settings) -> Conflicts:
    tls, at = settings.listeners.grpc.tls, "listeners.grpc.tls"
    yield from _whole_pair(at, tls)
    if tls.client_ca_file and not tls.cert_file:
        yield f"{at}.client_ca_file", "asks for certificates over plain text", "give cert_file too"


def token_needs_a_server(settings: Settings) -> Conflicts:
    milvus = settings.memory.milvus
    if milvus.token.get_secret_value() and not milvus.address:
        yield (
            "memory.milvus.token",
            "is of no use to the embedded store",
            "set memory.milvus.address",
            "memory.milvus.address",
        )


def qdrant_bits_are_rescored(settings: Settings) -> Conflicts:
    """The engine's scores of single bits are no cosines."""
    qdrant = settings.memory.qdrant
    if qdrant.quantisation == "binary" and not qdrant.rescore:
        yield (
            "memory.qdrant.rescore",
            "leaves scores that are no cosines, since quantisation is binary",
            "set it to true, or use int8",
            "memory.qdrant.quantisation",
        )


def qdrant_key_needs_a_server(settings: Settings) -> Conflicts:
    qdrant = settings.memory.qdrant
    if qdrant.api_key.get_secret_value() and not qdrant.address:
        reason = "is of no use to the local mode"
        yield ("memory.qdrant.api_key", reason, "set memory.qdrant.address", "memory.qdrant.address")


def password_needs_a_server(settings: Settings) -> Conflicts:
    if settings.journal.password.get_secret_value() and not settings.journal.url:
        yield ("journal.password", "is of no use to a SQLite file", "set journal.url", "journal.url")


def api_is_guarded(settings: Settings) -> Conflicts:
    api = settings.listeners.api
    size = len(api.admin_token.get_secret_value())
    if is_loopback(api.host) or size >= SECRET_CHARS_MIN or (api.jwt.keys and not size):
        return
    if size:
        reason = f"is shorter than {SECRET_CHARS_MIN} characters while {api.address} is reachable from other machines"
        yield ("listeners.api.admin_token", reason, "use a longer random token")
    else:
        yield (
            "listeners.api.address",
            "is reachable from other machines, and there is no admin_token",
            "set listeners.api.admin_token_env (or listeners.api.jwt, for users alone), or listen on 127.0.0.1",
            "listeners.api.admin_token",
            "listeners.api.admin_token_env",
        )


def web_tokens_are_for_us(settings: Settings) -> Conflicts:
    """Otherwise every token of the provider's opens this door, whatever it was made for."""
    jwt = settings.listeners.api.jwt
    if not jwt.keys:
        return
    if not (jwt.issuer or jwt.audience):
        reason = "verifies tokens, while neither issuer nor audience says which of them are meant for semmem"
        yield ("listeners.api.jwt.keys", reason, "set listeners.api.jwt.audience, or at least issuer")
    if jwt.keys.startswith("http://") and not is_loopback(urlsplit(jwt.keys).hostname or ""):
        reason = "fetches keys over plain HTTP from another machine: whoever answers makes the keys"
        yield ("listeners.api.jwt.keys", reason, "use https://, or a file")


def trusted_callers_are_local(settings: Settings) -> Conflicts:
    """This listener has no client certificates: who reaches it, is whoever he says."""
    api = settings.listeners.api
    if api.trusted_headers and not is_loopback(api.host):
        yield (
            "listeners.api.trusted_headers",
            f"would be believed from anybody who reaches {api.address}, which has no mTLS",
            "listen on 127.0.0.1, behind a proxy on this machine that authenticates callers, sets these headers and "
            "strips those of clients; or leave them out and use the admin token",
            "listeners.api.address",
        )
