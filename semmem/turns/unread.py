"""Histories that could not be compared with the journal, as it did not say in time what it knows. The next request of
the conversation brings them again; where none comes, they are compared once more when the journal answers.
"""

from __future__ import annotations

import asyncio

from msgspec import Struct

from semmem.memory import Conversation, Forgetting, Turn
from semmem.turns.recent import Recent
from semmem.turns.user_messages import UserMessages

HISTORIES_MAX = 200
CHARS_MAX = 256 * 1024
"""A longer conversation is left to its next request: together they take 50 MB at most."""


class Unread(Struct, frozen=True):
    """The newest turn of a request, which was recorded, and the messages that the request brought."""

    newest: Turn
    messages: UserMessages
    after: str


class UnreadHistories:
    """The newest of each conversation, of the conversations that were heard of last."""

    def __init__(self, *, histories_max: int = HISTORIES_MAX, chars_max: int = CHARS_MAX) -> None:
        self._chars_max = chars_max
        self._waiting = Recent[str, Unread](histories_max)
        self._some = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def keep(self, conversation: Conversation, unread: Unread) -> None:
        if sum(len(message.text) for message in conversation.messages) <= self._chars_max:
            self._waiting.put(unread.messages.key, unread)
            self._some.set()

    def drop(self, unread: Unread) -> None:
        """It was dealt with; not what a later request brought."""
        self._waiting.drop(lambda each: each is unread)

    def settled(self, conversation: str) -> None:
        """A later request of the conversation of this key was compared with the journal."""
        self._waiting.drop(lambda each: each.messages.key == conversation)

    def forget(self, what: Forgetting) -> None:
        self._waiting.drop(lambda each: what.covers_turn(each.newest))

    def waiting(self) -> list[Unread]:
        """Those of the conversations that were heard of first come first."""
        return self._waiting.values()

    async def some(self) -> None:
        """Return when there are any."""
        while not self._waiting:
            self._some.clear()
            await self._some.wait()
