"""The ``conversations:`` section: whether it is recorded what is said in conversations, how much of it and how long."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from semmem.config.values import Seconds, Section, key

YEARS_10_S = 315_360_000


class ConversationsSection(Section):
    """``conversations``: what users, models and tools said, word for word; off unless enabled."""

    restart: ClassVar = {
        "enabled retention_s per_user_max messages_max message_chars_max queue_bytes_max flush_s"
        " search_messages_max": "what waits to be written is kept by it",
        "recall": "what has vectors of conversations made follows from it",
    }

    enabled: bool = key(False, "record the conversations of users whose words may be stored")
    retention_s: Annotated[float, Field(gt=0, le=YEARS_10_S)] = key(
        2_592_000.0, "how long messages are kept, in seconds (30 days)"
    )
    per_user_max: int = key(1000, "conversations of one user; beyond them the oldest go", ge=1, le=100_000)
    messages_max: int = key(1000, "messages of one conversation; beyond them the oldest go", ge=10, le=100_000)
    message_chars_max: int = key(16_384, "characters kept of one message: its beginning", ge=100, le=1_048_576)
    queue_bytes_max: int = key(
        64 * 1024**2, "what waits to be written; more is dropped and counted", ge=1024**2, le=4 * 1024**3
    )
    flush_s: Seconds = key(1.0, "longest wait before it is written; a crash loses what waits")
    search_messages_max: int = key(20_000, "the newest messages of a user that one search reads", ge=100, le=1_000_000)
    recall: bool = key(True, "show former conversations to questions that ask for them, where they are recorded")
    recall_ms: int = key(100, "longest wait for them; a question goes on without them then", ge=1, le=10_000)
    chains: bool = key(
        False, "add the history to requests with `previous_response_id` or `conversation`, where models keep none"
    )
    begin_unknown: bool = key(
        False, "a `conversation` of which nothing is recorded begins here: no model behind Envoy keeps any itself"
    )
    chain_messages_max: int = key(200, "messages of a history that is added; longer ones are not", ge=2, le=1000)
    chain_ms: int = key(100, "longest wait for a history; a request passes as it came then", ge=1, le=10_000)
