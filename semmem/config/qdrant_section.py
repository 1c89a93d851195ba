"""The ``memory.qdrant:`` section: the address of a server, or the client's local mode."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from semmem.config.values import Identifier, Line, NonEmptyLine, QdrantAddress, Seconds, Secret, Section


class QdrantTlsSection(Section):
    """``memory.qdrant.tls``: how the connection to a Qdrant server is secured."""

    enabled: bool = Field(default=False, description="encrypt the connection to a Qdrant server")
    ca_file: Line = Field(default="", description="PEM file of the authorities to believe; empty: the system's")
    cert_file: Line = Field(default="", description="PEM file of semmem's own certificate, for mutual TLS")
    key_file: Line = Field(default="", description="PEM file of that certificate's key")


class QdrantSection(Section):
    """``memory.qdrant``: a Qdrant server or cluster (1.16 or later), or the client's local mode for trying out."""

    address: QdrantAddress = Field(
        default="",
        description="host:port or URL of a Qdrant server's REST interface; empty: local mode, to try out (one replica)",
    )
    data_dir: NonEmptyLine = Field(default="qdrant", description="directory of the local mode, relative to data_dir")
    collection: Identifier = Field(default="agentic_memory", description="name of the collection")
    api_key: Secret = Field(default=SecretStr(""), description="API key (servers only)")
    tls: QdrantTlsSection = QdrantTlsSection()
    index: Literal["FLAT", "HNSW"] = Field(
        default="FLAT", description="FLAT is exact; HNSW makes a graph per user and may miss some (servers only)"
    )
    quantisation: Literal["none", "int8", "binary"] = Field(
        default="none",
        description="vectors kept in memory in a quarter (int8) or a 32nd (binary) of the room (servers only)",
    )
    rescore: bool = Field(default=True, description="compare the best again by their whole vectors, read from disk")
    oversampling: float = Field(default=3.0, ge=1, le=64, description="so many times the limit are compared again")
    shards: int = Field(default=1, ge=1, le=1024, description="parts of the collection; fixed when it is made")
    copies: int = Field(default=1, ge=1, le=16, description="replicas of each part, of a cluster")
    call_timeout_s: Seconds = Field(default=10.0, description="limit of one call off the request path")
    purge_timeout_s: Seconds = Field(
        default=60.0, description="limit of rewriting the local mode's file without what was removed"
    )
