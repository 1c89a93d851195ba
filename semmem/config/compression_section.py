"""The ``compression:`` section: whether long sessions are sent in short."""

from __future__ import annotations

from typing import ClassVar

from semmem.config.values import Milliseconds, Seconds, Section, key


class CompressionSection(Section):
    """``compression``: of a long session's requests the older messages are replaced by the state of the conversation;
    off unless enabled."""

    restart: ClassVar = {"renew_turns refresh_s known_sessions_max queue_max": "states of sessions are known by it"}

    enabled: bool = key(False, "compress; x-semmem-compression: off takes a request out of it")
    from_tokens: int = key(
        8000, "estimated tokens of a request's messages from which it is compressed", ge=1000, le=10_000_000
    )
    turns_kept: int = key(5, "messages of the user's that stay as they are, with all behind them", ge=1, le=100)
    renew_turns: int = key(
        10,
        "turns until the next state: so long the beginning of a prompt stays the same, for a provider's cache",
        ge=1,
        le=1000,
    )
    state_tokens_max: int = key(650, "estimated tokens of a state", ge=150, le=4000)
    ttl_days: int = key(7, "how long a state is kept; no longer than journal.retention_days", ge=1, le=3650)
    lookup_ms: Milliseconds = key(
        50, "how long the journal may take to say which state there is; then the request is whole"
    )
    refresh_s: Seconds = key(30.0, "how long it is believed which states there are, which another replica may change")
    known_sessions_max: int = key(
        1000, "sessions whose states are kept in process, about 10 KB each", ge=1, le=1_000_000
    )
    queue_max: int = key(
        100,
        "sessions whose state is to be made, each with its text in memory; more are tried again later",
        ge=1,
        le=10_000,
    )
    source_chars_max: int = key(
        400_000,
        "longest text that a state is made of; of a longer session what was said since the last one",
        ge=10_000,
        le=10_000_000,
    )
    budget_s: Seconds = key(5.0, "processor time for reading a session by rules")
