"""One request as retrieval sees it."""

from __future__ import annotations

from msgspec import Struct, field

from semmem.memory import Conversation, Role, Scope
from semmem.request.deadline import Deadline
from semmem.request.permission import EVERYTHING, Permission
from semmem.request.verdicts import NO_VERDICTS, Verdicts


class Question(Struct, frozen=True):
    """What is asked of a user's memories: by whom, when, and until when.

    ``scope`` has the session, where one is known; ``now`` is in seconds since the epoch.
    """

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
