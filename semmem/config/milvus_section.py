"""The ``memory.milvus:`` section: the embedded store, or the address of a server."""

from __future__ import annotations

from typing import Literal

from pydantic import SecretStr

from semmem.config.values import STORE, Identifier, Line, MilvusAddress, NonEmptyLine, Seconds, Secret, Section, key


class MilvusTlsSection(Section):
    """``memory.milvus.tls``: how the connection to a Milvus server is secured."""

    restart = STORE

    enabled: bool = key(False, "encrypt the connection to a Milvus server")
    ca_file: Line = key("", "PEM file of the authorities to believe; empty: the system's")
    cert_file: Line = key("", "PEM file of semmem's own certificate, for mutual TLS")
    key_file: Line = key("", "PEM file of that certificate's key")
    server_name: Line = key("", "name expected in the server's certificate; empty: the host")


class MilvusSection(Section):
    """``memory.milvus``: the embedded Milvus Lite, or a Milvus server or cluster."""

    restart = STORE

    address: MilvusAddress = key("", "host:port or URL of a Milvus server; empty: embedded Milvus Lite (one replica)")
    data_dir: NonEmptyLine = key("milvus", "directory of the embedded store, relative to data_dir")
    collection: Identifier = key("agentic_memory", "name of the collection")
    dimension: int = key(384, "vector length; equals memory.embedding.dimension", ge=1, le=32_768)
    database: Identifier = key("default", "Milvus database (servers only)")
    token: Secret = key(SecretStr(""), "Milvus token, or user:password (servers only)")
    tls: MilvusTlsSection = MilvusTlsSection()
    index: Literal["FLAT", "IVF_SQ8", "HNSW", "HNSW_SQ"] = key(
        "FLAT",
        "FLAT is exact; HNSW is faster beyond about 100,000 memories and may miss some; IVF_SQ8 and HNSW_SQ"
        " (servers from 2.5) the same with vectors of a quarter of the size; fixed when the collection is made",
    )
    num_partitions: int = key(
        16, "partitions that users are spread over; fixed when the collection is made", ge=1, le=1024
    )
    call_timeout_s: Seconds = key(10.0, "limit of one call off the request path")
    purge_timeout_s: Seconds = key(60.0, "limit of rewriting the embedded store's files without what was removed")
