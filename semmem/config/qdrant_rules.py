"""Rules that tie the keys of ``memory.qdrant`` together."""

from __future__ import annotations

from collections.abc import Iterator

from semmem.config.problems import NOTHING, Finding
from semmem.config.settings import Settings

AT = ("memory", "qdrant")
ADDRESS = (*AT, "address")


def qdrant_tls_is_consistent(settings: Settings) -> Iterator[Finding]:
    qdrant = settings.memory.qdrant
    tls, at = qdrant.tls, (*AT, "tls")
    if tls.enabled and not qdrant.address:
        yield Finding((*at, "enabled"), True, "has no server to talk to", "set memory.qdrant.address", (ADDRESS,))
    if tls.enabled and qdrant.address.startswith("http://"):
        yield Finding(
            (*at, "enabled"), True, "contradicts the http:// in memory.qdrant.address", "write https://", (ADDRESS,)
        )
    if bool(tls.cert_file) != bool(tls.key_file):
        yield Finding(
            (*at, "cert_file"), tls.cert_file, "and key_file are only useful together", "give both, or neither"
        )


def qdrant_bits_are_rescored(settings: Settings) -> Iterator[Finding]:
    """The engine's scores of single bits are no cosines."""
    qdrant = settings.memory.qdrant
    if qdrant.quantisation == "binary" and not qdrant.rescore:
        yield Finding(
            (*AT, "rescore"),
            False,
            "leaves scores that are no cosines, since quantisation is binary",
            "set it to true, or use int8",
            ((*AT, "quantisation"),),
        )


def qdrant_key_needs_a_server(settings: Settings) -> Iterator[Finding]:
    qdrant = settings.memory.qdrant
    if qdrant.api_key.get_secret_value() and not qdrant.address:
        reason = "is of no use to the local mode"
        yield Finding((*AT, "api_key"), NOTHING, reason, "set memory.qdrant.address", (ADDRESS,))
