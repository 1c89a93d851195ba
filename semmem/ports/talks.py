"""Past conversations, as a question about them needs them: which hold its words, which are near it, what was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """A conversation, and what was said in it. ``at``: when it was last added to, in seconds since 1970."""

    id: str
    session: str
    title: str
    at: float
    said: tuple[Utterance, ...]


@dataclass(frozen=True, slots=True)
class Placed:
    """The vector of a user's words, float16 in bytes, and where they were said."""

    talk: str
    turn: str
    at: float
    vector: bytes


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A user's words without a vector of the model, by the key of their message."""

    key: tuple[str, str, int]
    text: str


class TalkRecords(Protocol):
    """What was recorded of conversations. Raises JournalError."""

    async def talks_of_time(self, scope: Scope, *, since: float | None, until: float | None, limit: int) -> list[str]:
        """The ids of conversations of the scope in which anything was said in this time, newest first."""

    async def talks_holding(
        self, scope: Scope, words: Sequence[str], *, messages_max: int, chars_max: int, limit: int
    ) -> list[str]:
        """The ids of conversations of the scope whose newest messages hold, in their first characters, any of these
        words, or a word that one of them is a part of; those that hold most of them first."""

    async def talk_vectors(self, scope: Scope, model: str, *, limit: int) -> list[Placed]:
        """Of the newest words of the user's, those that have a vector of the model."""

    async def read_talks(
        self, scope: Scope, wanted: Mapping[str, str], *, messages_max: int, chars_max: int
    ) -> list[Talk]:
        """These conversations, by id, each from the turn that is named on, if one is, and then from its beginning:
        ``messages_max`` messages of users and models, ``chars_max`` characters of each."""


class TalkPlacing(Protocol):
    """What has vectors made. Raises JournalError."""

    async def unplaced(self, model: str, *, limit: int) -> list[Unplaced]:
        """Words of users without a vector of this model."""

    async def place(self, model: str, vectors: Mapping[tuple[str, str, int], bytes]) -> None:
        """Keep vectors; empty ones stand for words that have none. Of what is gone meanwhile nothing is kept."""
