"""One request as retrieval sees it, when it has to be answered, and whom to tell that it takes longer."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from msgspec import Struct, field

from semmem.memory import Conversation, Role, Scope
from semmem.request.permission import EVERYTHING, Permission
from semmem.request.verdicts import NO_VERDICTS, Verdicts

ExtendDeadline = Callable[[float], Awaitable[None]]
"""Asks whoever waits for the answer to wait so many seconds more."""


async def no_extension(_extra_s: float) -> None:
    """Where nobody waits who could be asked."""


class Deadline:
    """The end of one request phase: ``at`` in the event loop's time; None where nothing ends it. ``began``: the phase
    did, by the monotonic clock."""

    def __init__(self, at: float | None = None, ask_for_more: ExtendDeadline = no_extension) -> None:
        self.at, self.began = at, time.monotonic()
        self._ask_for_more = ask_for_more
        self._running: asyncio.Timeout | None = None

    def limit(self) -> asyncio.Timeout:
        """For ``async with``: raises TimeoutError when the deadline passes, as it is then."""
        self._running = asyncio.timeout_at(self.at)
        return self._running

    def at_least(self, seconds: float) -> float | None:
        """``at``, or so many seconds from now where that is later."""
        return None if self.at is None else max(self.at, asyncio.get_running_loop().time() + seconds)

    async def extend(self, extra_s: float) -> None:
        """The step within ``limit`` may take so many seconds more; ``at``, for all others, stays."""
        if self._running is not None and self.at is not None:
            self._running.reschedule(self.at + extra_s)
        await self._ask_for_more(extra_s)


class Question(Struct, frozen=True):
    """What is asked of a user's memories: by whom, when, and until when. ``scope`` has the session, where one is known;
    ``now`` is in seconds since the epoch."""

    conversation: Conversation
    scope: Scope
    now: float
    allowed: Permission = EVERYTHING
    verdicts: Verdicts = NO_VERDICTS
    deadline: Deadline = field(default_factory=Deadline)

    @property
    def text(self) -> str:
        """The user's last message."""
        messages = reversed(self.conversation.messages)
        return next((message.text for message in messages if message.role is Role.USER), "")
