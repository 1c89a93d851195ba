"""Where it is kept which calls of the management API were made under an idempotency key, and what came of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """``body`` is JSON; None: it is not kept, or not any more. ``counts``: what of it holds no content, as JSON; empty
    where there is nothing of that kind."""

    status: int
    body: bytes | None = None
    counts: str = ""


@dataclass(frozen=True, slots=True)
class KnownCall:
    """``request``: a digest of what was asked. ``answer`` None: somebody is at it."""

    request: str
    answer: CallAnswer | None = None


class CallRecords(Protocol):
    """Keys are digests. All raise JournalError."""

    async def begin_call(
        self, key: str, request: str, *, now: float, lease_s: float, keep_s: float, calls_max: int
    ) -> KnownCall | None:
        """None: the call is the caller's, who has to end it, for ``lease_s`` or as long as the process lives; else what
        is known of it. A call of a process that is gone is given to whoever asks next with the same request. What is
        older than ``keep_s`` is gone; of more than about ``calls_max`` the oldest go."""

    async def end_call(self, key: str, answer: CallAnswer, users: Collection[str]) -> None:
        """It is answered. The body goes when something of one of these users is erased, and is not kept when something
        of anybody was erased while the call was under way."""

    async def drop_call(self, key: str) -> None:
        """Nothing was done: the key may be used again."""

    async def forget_calls(self) -> None:
        """All of them."""
