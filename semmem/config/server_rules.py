"""Rules that tie keys of the servers that semmem talks to, and of their encryption, together."""

from __future__ import annotations

from semmem.config.listeners_section import GrpcTlsSection
from semmem.config.milvus_section import MilvusTlsSection
from semmem.config.problems import Conflicts
from semmem.config.qdrant_section import QdrantTlsSection
from semmem.config.settings import Settings


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
