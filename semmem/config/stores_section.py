"""Where memories and turns are kept: ``memory.milvus``, ``memory.qdrant`` and ``journal``."""

from __future__ import annotations

from typing import Literal

from semmem.config.values import (
    STORE,
    Days,
    Identifier,
    JournalUrl,
    Line,
    Milliseconds,
    MilvusAddress,
    NonEmptyLine,
    QdrantAddress,
    Seconds,
    Secret,
    Section,
    VariableName,
    in_variable,
    key,
    secret,
)


class StoreTlsSection(Section):
    """How the connection to a store's server is secured."""

    restart = STORE

    enabled: bool = False
    ca_file: Line = key("", "PEM file of the authorities to believe; empty: the system's")
    cert_file: Line = key("", "PEM file of semmem's own certificate, for mutual TLS")
    key_file: Line = key("", "PEM file of that certificate's key")


class QdrantTlsSection(StoreTlsSection):
    """``memory.qdrant.tls``: how the connection to a Qdrant server is secured."""

    enabled: bool = key(False, "encrypt the connection to a Qdrant server")


class MilvusTlsSection(StoreTlsSection):
    """``memory.milvus.tls``: how the connection to a Milvus server is secured."""

    enabled: bool = key(False, "encrypt the connection to a Milvus server")
    server_name: Line = key("", "name expected in the server's certificate; empty: the host")


class MilvusSection(Section):
    """``memory.milvus``: the embedded Milvus Lite, or a Milvus server or cluster."""

    restart = STORE

    address: MilvusAddress = key("", "host:port or URL of a Milvus server; empty: embedded Milvus Lite (one replica)")
    data_dir: NonEmptyLine = key("milvus", "directory of the embedded store, relative to data_dir")
    collection: Identifier = key("agentic_memory", "name of the collection")
    dimension: int = key(384, "vector length; equals memory.embedding.dimension", ge=1, le=32_768)
    database: Identifier = key("default", "Milvus database (servers only)")
    token: Secret = secret("Milvus token, or user:password (servers only)")
    tls: MilvusTlsSection = MilvusTlsSection()
    index: Literal["FLAT", "IVF_SQ8", "HNSW", "HNSW_SQ"] = key(
        "FLAT",
        "FLAT is exact; HNSW may miss some; IVF_SQ8 and HNSW_SQ (servers from 2.5) as well, with vectors of a"
        " quarter of the size; fixed when the collection is made",
    )
    num_partitions: int = key(
        16, "partitions that users are spread over; fixed when the collection is made", ge=1, le=1024
    )
    call_timeout_s: Seconds = key(10.0, "limit of one call off the request path")
    purge_timeout_s: Seconds = key(60.0, "limit of rewriting the embedded store's files without what was removed")


class QdrantSection(Section):
    """``memory.qdrant``: a Qdrant server or cluster (1.16 or later), or the client's local mode for trying out."""

    restart = STORE

    address: QdrantAddress = key(
        "", "host:port or URL of a Qdrant server's REST interface; empty: local mode, to try out (one replica)"
    )
    data_dir: NonEmptyLine = key("qdrant", "directory of the local mode, relative to data_dir")
    collection: Identifier = key("agentic_memory", "name of the collection")
    api_key: Secret = secret("API key (servers only)")
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


_JOURNAL = "the journal is opened with it"


class PostgresSection(Section):
    """``journal.postgres``: how a server at journal.url is talked to."""

    restart = _JOURNAL

    connections_max: int = key(
        8, "connections of one process, half of them for what requests ask; one more waits for news", ge=2, le=200
    )
    connect_timeout_s: Seconds = key(3.0, "limit of connecting to one address; whole seconds, two at least")
    statement_timeout_s: Seconds = key(
        10.0,
        "limit of one statement, with waiting for locks; also how long a silent connection counts as alive",
    )
    retry_s: Seconds = key(0.5, "pause before a server is tried again that could not be reached; until then calls fail")
    replica_lost_s: Seconds = key(
        10.0,
        "how long erasures wait for a silent replica; more than memory.hot_cache.staleness_s, or than 5 where that"
        " is null",
    )
    start_wait_s: Seconds = key(60.0, "how long the start waits for a server that cannot be reached; then semmem ends")


class JournalSection(Section):
    """``journal``: the durable record of turns that are still to be learnt from."""

    restart = _JOURNAL

    url: JournalUrl = key(
        "", "postgresql://user@host/database, which many replicas may share; empty: a SQLite file, for one"
    )
    password: Secret = secret("of the user in url; empty: as libpq finds it")
    password_env: VariableName = in_variable("password")
    postgres: PostgresSection = PostgresSection()
    path: NonEmptyLine = key("journal.db", "SQLite file, relative to data_dir; unused with a url")
    commit_interval_ms: Milliseconds = key(50, "longest wait before a turn is committed")
    queue_max: int = key(
        10_000, "halves of turns waiting to be committed; refusals have as much room again", ge=1, le=1_000_000
    )
    retention_days: Days = key(7, "how long turns are kept after they were learnt from")
    synchronous: Literal["normal", "full"] = key(
        "normal",
        "normal survives a crash of semmem; full also a loss of power, slower (of a SQLite file: a server"
        " has settings of its own)",
    )
    versions_max: int = key(100, "earlier versions kept of each memory", ge=1, le=10_000)
