"""The ``memory.qdrant:`` section: the address of a server, or the client's local mode."""

from __future__ import annotations

from typing import Literal

from pydantic import SecretStr

from semmem.config.values import STORE, Identifier, Line, NonEmptyLine, QdrantAddress, Seconds, Secret, Section, key


class QdrantTlsSection(Section):
    """``memory.qdrant.tls``: how the connection to a Qdrant server is secured."""

    restart = STORE

    enabled: bool = key(False, "encrypt the connection to a Qdrant server")
    ca_file: Line = key("", "PEM file of the authorities to believe; empty: the system's")
    cert_file: Line = key("", "PEM file of semmem's own certificate, for mutual TLS")
    key_file: Line = key("", "PEM file of that certificate's key")


class QdrantSection(Section):
    """``memory.qdrant``: a Qdrant server or cluster (1.16 or later), or the client's local mode for trying out."""

    restart = STORE

    address: QdrantAddress = key(
        "", "host:port or URL of a Qdrant server's REST interface; empty: local mode, to try out (one replica)"
    )
    data_dir: NonEmptyLine = key("qdrant", "directory of the local mode, relative to data_dir")
    collection: Identifier = key("agentic_memory", "name of the collection")
    api_key: Secret = key(SecretStr(""), "API key (servers only)")
    tls: QdrantTlsSection = QdrantTlsSection()
    index: Literal["FLAT", "HNSW"] = key(
        "FLAT", "FLAT is exact; HNSW makes a graph per user and may miss some (servers only)"
    )
    quantisation: Literal["none", "int8", "binary"] = key(
        "none", "vectors kept in memory in a quarter (int8) or a 32nd (binary) of the room (servers only)"
    )
    rescore: bool = key(True, "compare the best again by their whole vectors, read from disk")
    oversampling: float = key(3.0, "so many times the limit are compared again", ge=1, le=64)
    shards: int = key(1, "parts of the collection; fixed when it is made", ge=1, le=1024)
    copies: int = key(1, "replicas of each part, of a cluster", ge=1, le=16)
    call_timeout_s: Seconds = key(10.0, "limit of one call off the request path")
    purge_timeout_s: Seconds = key(60.0, "limit of rewriting the local mode's file without what was removed")
