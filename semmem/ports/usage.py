"""What is kept of each answered request for the statistics of use: figures and keyed digests, never what was said."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from semmem.memory import PromptCache, TurnEnding

DAY_S, HOUR_S = 86_400, 3600

SUCCEEDED = frozenset({TurnEnding.ANSWERED, TurnEnding.CONTINUES})
"""Endings of answers that were seen to their proper end. All others count as errors."""


class Asked(msgspec.Struct, frozen=True, array_like=True):
    """What the request phase knows of a request whose answer is observed; it travels in the ticket. ``at`` in seconds
    since 1970. ``user`` and ``session`` are keyed digests, the latter empty where there is none. ``tokens`` is an
    estimate of what the model is sent. ``speaks``: it brings a new message of the user's."""

    at: float
    user: str
    session: str
    project: str
    model: str
    tokens: int
    streamed: bool
    speaks: bool


class UsageRow(msgspec.Struct, frozen=True):
    """One answered request. ``id`` makes a second try of writing it harmless. ``model`` is the one that answered, or
    that was asked where the answer names none. ``estimated``: a token count is not the provider's. ``messages``: the
    user's new message and the model's answer, as far as there were such. ``prompt_cache``: None where the provider did
    not report it."""

    id: str
    at: float
    endpoint: str
    model_asked: str
    model: str
    provider: str
    tokens_in: int
    tokens_out: int
    prompt_cache: PromptCache | None
    estimated: bool
    duration_ms: int
    streamed: bool
    ending: str
    tool_calls: int
    messages: int
    user: str
    session: str
    project: str


@dataclass(frozen=True, slots=True)
class Span:
    """From ``since`` to before ``until``, both the beginning of a day in UTC, in seconds since 1970; ``user``: a keyed
    digest, None for everybody."""

    since: int
    until: int
    user: str | None = None


@dataclass(frozen=True, slots=True)
class UsageSum:
    """What the rows of one group come to. ``key`` has a value for each column that was asked for: a time in seconds for
    ``hour`` and ``day``, 0 or 1 for ``streamed``, else a text. ``cache_reported``: the requests of which the provider
    reported how much of the prompt was cached; ``prompt_tokens`` and ``cached_tokens`` are of these alone."""

    key: tuple[str | int, ...]
    requests: int
    errors: int
    messages: int
    tool_calls: int
    tokens_in: int
    tokens_out: int
    estimated: int
    duration_ms: int
    cache_reported: int
    prompt_tokens: int
    cached_tokens: int


COLUMNS = ("hour", "day", "user", "project", "endpoint", "model_asked", "model", "provider", "streamed")
"""What sums may be asked by."""


class UsageRecords(Protocol):
    """All raise JournalError."""

    async def usage_key(self) -> bytes:
        """The key of the digests, made by whoever asks first."""

    async def add_usage(self, rows: Sequence[UsageRow]) -> int:
        """Keep them and what they come to, all or none; those that are there already are not added again, nor those of
        a user who was erased since. How many were added."""

    async def prune_usage(self, *, requests_before: float, hours_before: float, days_before: float) -> None:
        """Forget single requests, hours and days from before these times."""

    async def usage_sums(
        self, span: Span, by: Sequence[str], *, limit: int | None = None, within: Sequence[str | int] | None = None
    ) -> list[UsageSum]:
        """What the requests of the span come to, by some of COLUMNS; without any one sum. Of more than ``limit`` groups
        the latest where they are times, else those with the most requests. ``within``: values of the first column."""

    async def usage_sessions(self, span: Span) -> int:
        """How many different sessions were used."""


def user_name(key: bytes, user: str) -> str:
    """What a user is called in the statistics."""
    return name_of_digest(key, hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest())


def name_of_digest(key: bytes, digest: str) -> str:
    """The same, for whom only the plain digest is known that marks of erasures hold."""
    return hashlib.blake2b(digest.encode(), key=key, digest_size=16).hexdigest()


def session_name(key: bytes, user: str, session: str) -> str:
    return hashlib.blake2b(f"{user}\0{session}".encode("utf-8", "surrogatepass"), key=key, digest_size=8).hexdigest()
