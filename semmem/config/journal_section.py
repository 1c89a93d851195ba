"""The ``journal:`` section: where turns are recorded, and for how long."""

from __future__ import annotations

from typing import Literal

from pydantic import SecretStr

from semmem.config.values import (
    Days,
    JournalUrl,
    Milliseconds,
    NonEmptyLine,
    Seconds,
    Secret,
    Section,
    VariableName,
    key,
)

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
        "limit of one statement, waiting for locks included; also for how long a silent connection is"
        " believed to be alive",
    )
    retry_s: Seconds = key(0.5, "pause before a server is tried again that could not be reached; until then calls fail")
    replica_lost_s: Seconds = key(
        10.0,
        "how long a replica may be silent before erasures no longer wait for it; more than"
        " memory.hot_cache.staleness_s, or than 5 where that is null",
    )
    start_wait_s: Seconds = key(60.0, "how long the start waits for a server that cannot be reached; then semmem ends")


class JournalSection(Section):
    """``journal``: the durable record of turns that are still to be learnt from."""

    restart = _JOURNAL

    url: JournalUrl = key(
        "", "postgresql://user@host/database, which many replicas may share; empty: a SQLite file, for one"
    )
    password: Secret = key(SecretStr(""), "of the user in url; empty: as libpq finds it")
    password_env: VariableName = key("", "environment variable that holds password")
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
