"""Names of sessions and turns that every replica derives alike from the same words."""

from __future__ import annotations

from semmem.memory import Conversation, Role, Scope
from semmem.text.digest import digest


def session_key(scope: Scope, conversation: Conversation) -> str:
    """A name for a conversation that has none: its user, project, system prompt and first user message, hashed.

    The same words at another time are another session: see Sessions.
    """
    system = next((m.text.strip() for m in conversation.messages if m.role is Role.SYSTEM and m.text.strip()), "")
    first = next((m.text for m in conversation.messages if m.role is Role.USER), "")
    return "s_" + digest(scope.user, scope.project or "", system, first)


def turn_id(scope: Scope, ordinal: int, user_text: str, after: str = "") -> str:
    """The same for a retry, a regeneration or a tool-call continuation; another for an edited history.

    ``after`` is the answer that this request goes on from, where the API keeps the history and ``ordinal`` says little.
    """
    return "t_" + digest(scope.user, scope.session or "", str(ordinal), user_text, *([after] if after else []))
