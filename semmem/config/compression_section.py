"""The ``compression:`` section: whether long sessions are sent in short."""

from __future__ import annotations

from pydantic import Field

from semmem.config.values import Milliseconds, Seconds, Section


class CompressionSection(Section):
    """``compression``: of a long session's requests the older messages are replaced by the state of the conversation;
    off unless enabled."""

    enabled: bool = Field(default=False, description="compress; x-semmem-compression: off takes a request out of it")
    from_tokens: int = Field(
        default=8000,
        ge=1000,
        le=10_000_000,
        description="estimated tokens of a request's messages from which it is compressed",
    )
    turns_kept: int = Field(
        default=5, ge=1, le=100, description="messages of the user's that stay as they are, with all behind them"
    )
    renew_turns: int = Field(
        default=10,
        ge=1,
        le=1000,
        description="turns until the next state: so long the beginning of a prompt stays the same, for a provider's"
        " cache",
    )
    state_tokens_max: int = Field(default=650, ge=150, le=4000, description="estimated tokens of a state")
    ttl_days: int = Field(
        default=7, ge=1, le=3650, description="how long a state is kept; no longer than journal.retention_days"
    )
    lookup_ms: Milliseconds = Field(
        default=50, description="how long the journal may take to say which state there is; then the request is whole"
    )
    refresh_s: Seconds = Field(
        default=30.0, description="how long it is believed which states there are, which another replica may change"
    )
    known_sessions_max: int = Field(
        default=1000, ge=1, le=1_000_000, description="sessions whose states are kept in process, about 10 KB each"
    )
    queue_max: int = Field(
        default=100,
        ge=1,
        le=10_000,
        description="sessions whose state is to be made, each with its text in memory; more are tried again later",
    )
    source_chars_max: int = Field(
        default=400_000,
        ge=10_000,
        le=10_000_000,
        description="longest text that a state is made of; of a longer session what was said since the last one",
    )
    budget_s: Seconds = Field(default=5.0, description="processor time for reading a session by rules")
