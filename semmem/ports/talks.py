"""Past conversations, as a question about them needs them: which hold its words, which are near it, what was said."""

from dataclasses import dataclass

from semmem.memory import Role

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
