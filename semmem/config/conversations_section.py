"""The ``conversations:`` section: whether it is recorded what is said in conversations, how much of it and how long."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from semmem.config.values import Seconds, Section

YEARS_10_S = 315_360_000


class ConversationsSection(Section):
    """``conversations``: what users, models and tools said, word for word; off unless enabled."""

    enabled: bool = Field(default=False, description="record the conversations of users whose words may be stored")
    retention_s: Annotated[float, Field(gt=0, le=YEARS_10_S)] = Field(
        default=2_592_000.0, description="how long messages are kept, in seconds (30 days)"
    )
    per_user_max: int = Field(
        default=1000, ge=1, le=100_000, description="conversations of one user; beyond them the oldest go"
    )
    messages_max: int = Field(
        default=1000, ge=10, le=100_000, description="messages of one conversation; beyond them the oldest go"
    )
    message_chars_max: int = Field(
        default=16_384, ge=100, le=1_048_576, description="characters kept of one message: its beginning"
    )
    queue_bytes_max: int = Field(
        default=64 * 1024**2,
        ge=1024**2,
        le=4 * 1024**3,
        description="what waits to be written; more is dropped and counted",
    )
    flush_s: Seconds = Field(default=1.0, description="longest wait before it is written; a crash loses what waits")
    search_messages_max: int = Field(
        default=20_000, ge=100, le=1_000_000, description="the newest messages of a user that one search reads"
    )
    recall: bool = Field(
        default=True, description="show former conversations to questions that ask for them, where they are recorded"
    )
    recall_ms: int = Field(
        default=100, ge=1, le=10_000, description="longest wait for them; a question goes on without them then"
    )
    chains: bool = Field(
        default=False,
        description="add the history to requests with `previous_response_id` or `conversation`, where models keep none",
    )
    begin_unknown: bool = Field(
        default=False,
        description="a `conversation` of which nothing is recorded begins here: no model behind Envoy keeps any itself",
    )
    chain_messages_max: int = Field(
        default=200,
        ge=2,
        le=1000,
        description="messages of a history that is added; longer ones are not",
    )
    chain_ms: int = Field(
        default=100, ge=1, le=10_000, description="longest wait for a history; a request passes as it came then"
    )
