"""Settings -> what records conversations, and what the API does with them."""

from __future__ import annotations

import time

from semmem.backends.sql.journal import SqlJournal
from semmem.background import ConversationWriter
from semmem.config.settings import Settings
from semmem.conversations.tap import Tap
from semmem.lifecycle.marks import Marks
from semmem.management.conversations import Conversations
from semmem.ports.conversations import ConversationLimits


class ConversationRecord:
    """What stays as long as the process: halves that wait."""

    def __init__(self, settings: Settings, journal: SqlJournal) -> None:
        rules = settings.conversations
        self.enabled = rules.enabled
        self._journal = journal
        self.writer = ConversationWriter(
            journal,
            limits(settings),
            retention_s=rules.retention_s,
            interval_s=rules.flush_s,
            queue_bytes_max=rules.queue_bytes_max,
        )

    def tap(self) -> Tap | None:
        """None where nothing is recorded."""
        return Tap(self.writer.add, chars_max=self.writer.limits.message_chars_max) if self.enabled else None

    def shown(self, marks: Marks) -> Conversations:
        return Conversations(
            self._journal,
            self.writer.limits,
            settle=self.writer.flush,
            clock=time.time,
            after=marks.after,
            recording=self.enabled,
        )


def limits(settings: Settings) -> ConversationLimits:
    rules = settings.conversations
    return ConversationLimits(
        messages_max=rules.messages_max,
        per_user_max=rules.per_user_max,
        message_chars_max=rules.message_chars_max,
        search_messages_max=rules.search_messages_max,
    )
