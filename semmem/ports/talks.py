"""Past conversations, as a question about them needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from semmem.memory import Role, Scope

TALK_ID = "conv_"
"""Begins the id of a conversation, and of no memory."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """What the user or the model said in it, or the beginning of that."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation, and of its messages those that matter, in their order. ``at``: when it was last added to, in
    seconds since 1970."""

    id: str
    session: str
    title: str
    at: float
    said: tuple[Utterance, ...]


class TalkRecords(Protocol):
    """What was recorded of conversations. Raises JournalError."""

    async def talks(
        self,
        scope: Scope,
        words: Sequence[str],
        *,
        since: float | None = None,
        until: float | None = None,
        limit: int = 12,
    ) -> list[Talk]:
        """Conversations of the scope in which anything was said in this time, with the messages that hold any of these
        words, or begin a word with one: those that hold most of them first. Without words the newest first, with their
        first and last messages."""
        ...
