"""The ``memory.milvus:`` section: the embedded store, or the address of a server."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from semmem.config.values import (
    Identifier,
    Line,
    MilvusAddress,
    NonEmptyLine,
    Seconds,
    Secret,
    Section,
)


class MilvusTlsSection(Section):
    """``memory.milvus.tls``: how the connection to a Milvus server is secured."""

    enabled: bool = Field(default=False, description="encrypt the connection to a Milvus server")
    ca_file: Line = Field(default="", description="PEM file of the authorities to believe; empty: the system's")
    cert_file: Line = Field(default="", description="PEM file of semmem's own certificate, for mutual TLS")
    key_file: Line = Field(default="", description="PEM file of that certificate's key")
    server_name: Line = Field(default="", description="name expected in the server's certificate; empty: the host")


class MilvusSection(Section):
    """``memory.milvus``: the embedded Milvus Lite, or a Milvus server or cluster."""

    address: MilvusAddress = Field(
        default="", description="host:port or URL of a Milvus server; empty: embedded Milvus Lite (one replica)"
    )
    data_dir: NonEmptyLine = Field(
        default="milvus", description="directory of the embedded store, relative to data_dir"
    )
    collection: Identifier = Field(default="agentic_memory", description="name of the collection")
    dimension: int = Field(default=384, ge=1, le=32_768, description="vector length; equals memory.embedding.dimension")
    database: Identifier = Field(default="default", description="Milvus database (servers only)")
    token: Secret = Field(default=SecretStr(""), description="Milvus token, or user:password (servers only)")
    tls: MilvusTlsSection = MilvusTlsSection()
    index: Literal["FLAT", "IVF_SQ8", "HNSW", "HNSW_SQ"] = Field(
        default="FLAT",
        description="FLAT is exact; HNSW is faster beyond about 100,000 memories and may miss some; IVF_SQ8 and HNSW_SQ"
        " (servers from 2.5) the same with vectors of a quarter of the size; fixed when the collection is made",
    )
    num_partitions: int = Field(
        default=16,
        ge=1,
        le=1024,
        description="partitions that users are spread over; fixed when the collection is made",
    )
    call_timeout_s: Seconds = Field(default=10.0, description="limit of one call off the request path")
    purge_timeout_s: Seconds = Field(
        default=60.0, description="limit of rewriting the embedded store's files without what was removed"
    )
