"""How requests went, as it is kept for whoever asks later: names and figures, nothing that was said."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from semmem.memory import Scope


class RequestDetails(msgspec.Struct, frozen=True, kw_only=True):
    """``turn``: the name of what is learnt from; ``api``: the dialect. ``memories`` and ``tokens`` are what was put
    into the prompt; ``shown``: the ids of all memories that the prompt has; ``weighed``: those of them that were found
    anew, with the log-odds that the request needs them, None where the decision has none; ``left``: ids of the best
    that were near enough and were left out, each with the word for why and its log-odds. ``purpose``: what the request
    is about. ``steps``: milliseconds of each step. ``trace``: the id of its trace, empty where none is recorded."""

    turn: str = ""
    api: str = ""
    model: str = ""
    memories: int = 0
    tokens: int = 0
    shown: tuple[str, ...] = ()
    weighed: tuple[tuple[str, float | None], ...] = ()
    left: tuple[tuple[str, str, float | None], ...] = ()
    purpose: str = ""
    steps: tuple[tuple[str, float], ...] = ()
    trace: str = ""

    @property
    def milliseconds(self) -> float:
        """What semmem took for it."""
        return sum(taken for _, taken in self.steps)


class LoggedRequest(RequestDetails, frozen=True, kw_only=True):
    """A request that went on to the model. ``key``: what it is called here; ``id``: its ``x-request-id``, or the key
    where there is no usable one; ``at``: when it came, in seconds since 1970."""

    key: str
    id: str
    scope: Scope
    at: float
    outcome: str


class LoggedAnswer(msgspec.Struct, frozen=True):
    """How the answer to a request ended, and when (seconds since 1970). Tokens are None where the provider did not
    count them, ``cached_tokens`` those of the prompt that its prompt cache had."""

    key: str
    at: float
    ending: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    cached_tokens: int | None = None


class KeptRequest(msgspec.Struct, frozen=True):
    """Both halves. ``answer`` None: it was not observed, or not to its end yet."""

    request: LoggedRequest
    answer: LoggedAnswer | None


class RequestLog(Protocol):
    """All raise JournalError."""

    async def log_requests(self, halves: Sequence[LoggedRequest | LoggedAnswer]) -> int:
        """Keep them, in any order, any number of times; how many requests were turned away, because they name an
        erased memory, or a scope of their user's was erased since."""

    async def logged(self, user: str, *, outcome: str | None, limit: int) -> list[KeptRequest]:
        """The user's requests, newest first."""

    async def logged_request(self, id: str, user: str | None) -> KeptRequest | None:
        """The newest with this ``x-request-id``, of this user where one is given."""

    async def prune_requests(self, *, before: float, number: int) -> int:
        """Forget the oldest of those from before this time and of those beyond the newest ``number``; how many. Whoever
        calls goes on until there are none."""
