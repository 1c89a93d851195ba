"""The conversation of a scope that was last added to."""

from __future__ import annotations

from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Scope
from semmem.ports.conversations import ConversationLimits, KeptConversation, Wanted


async def newest_conversation(journal: SqlJournal, scope: Scope) -> KeptConversation | None:
    return next(iter(await journal.conversations(scope, Wanted(limit=1), ConversationLimits())), None)
