"""The ``journal:`` section: where turns are recorded, and for how long."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from semmem.config.values import Days, JournalUrl, Milliseconds, NonEmptyLine, Seconds, Secret, Section, VariableName


class PostgresSection(Section):
    """``journal.postgres``: how a server at journal.url is talked to."""

    connections_max: int = Field(
        default=8,
        ge=2,
        le=200,
        description="connections of one process, half of them for what requests ask; one more waits for news",
    )
    connect_timeout_s: Seconds = Field(
        default=3.0, description="limit of connecting to one address; whole seconds, two at least"
    )
    statement_timeout_s: Seconds = Field(
        default=10.0,
        description="limit of one statement, waiting for locks included; also for how long a silent connection is"
        " believed to be alive",
    )
    retry_s: Seconds = Field(
        default=0.5, description="pause before a server is tried again that could not be reached; until then calls fail"
    )
    replica_lost_s: Seconds = Field(
        default=10.0,
        description="how long a replica may be silent before erasures no longer wait for it; more than"
        " memory.hot_cache.staleness_s, or than 5 where that is null",
    )
    start_wait_s: Seconds = Field(
        default=60.0, description="how long the start waits for a server that cannot be reached; then semmem ends"
    )


class JournalSection(Section):
    """``journal``: the durable record of turns that are still to be learnt from."""

    url: JournalUrl = Field(
        default="",
        description="postgresql://user@host/database, which many replicas may share; empty: a SQLite file, for one",
    )
    password: Secret = Field(default=SecretStr(""), description="of the user in url; empty: as libpq finds it")
    password_env: VariableName = Field(default="", description="environment variable that holds password")
    postgres: PostgresSection = PostgresSection()
    path: NonEmptyLine = Field(default="journal.db", description="SQLite file, relative to data_dir; unused with a url")
    commit_interval_ms: Milliseconds = Field(default=50, description="longest wait before a turn is committed")
    queue_max: int = Field(
        default=10_000,
        ge=1,
        le=1_000_000,
        description="halves of turns waiting to be committed; refusals have as much room again",
    )
    retention_days: Days = Field(default=7, description="how long turns are kept after they were learnt from")
    synchronous: Literal["normal", "full"] = Field(
        default="normal",
        description="normal survives a crash of semmem; full also a loss of power, slower (of a SQLite file: a server"
        " has settings of its own)",
    )
    versions_max: int = Field(default=100, ge=1, le=10_000, description="earlier versions kept of each memory")
