"""Names of sessions, turns and messages, which every replica derives alike from the same words.

A session that nobody named is called ``<key>.<start>``: a digest of its words, and when it began, in whole seconds.
"""

from __future__ import annotations

import math
import re

from semmem.memory import Conversation, Role, Scope
from semmem.text.digest import known_digest

_USER, _SYSTEM = Role.USER, Role.SYSTEM  # looked up once: each look costs more than comparing
_DERIVED_SESSION = re.compile(r"(s_[0-9a-f]{32})\.[0-9]+")


def session_key(scope: Scope, conversation: Conversation) -> str:
    """A name for a conversation that has none: its user, project, system prompt and first user message, hashed.

    The same words at another time are another session: see Sessions.
    """
    messages = conversation.messages
    system = next((text for m in messages if m.role is _SYSTEM and (text := m.text.strip())), "")
    first = next((m.text for m in messages if m.role is _USER), "")
    return "s_" + known_digest(scope.user, scope.project or "", system, first)


def derived_session(key: str, start: float) -> str:
    """The name of the session with this key that began then, in seconds since the epoch."""
    return f"{key}.{int(start)}"


def session_without_start(session: str) -> str:
    """The key of a session whose name is derived; the name of any other."""
    if not session.startswith("s_"):
        return session
    derived = _DERIVED_SESSION.fullmatch(session)
    return derived[1] if derived else session


def session_start(session: str) -> float:
    """When a session whose name is derived began, in whole seconds; -inf for any other: it is not known."""
    return float(session.rpartition(".")[2]) if _DERIVED_SESSION.fullmatch(session) else -math.inf


def chained_session(user: str, answer_id: str) -> str:
    """The session of a request that goes on from an answer of which nothing else is known."""
    return "r_" + known_digest(user, answer_id)


def turn_id(scope: Scope, ordinal: int, user_text: str, after: str = "") -> str:
    """The same for a retry, a regeneration or a tool-call continuation; another for an edited history.

    ``after`` is the answer that this request goes on from, where the API keeps the history and ``ordinal`` says little.
    """
    return "t_" + known_digest(scope.user, scope.session or "", str(ordinal), user_text, *([after] if after else []))


def message_id(user: str, session: str, text: str) -> str:
    """The bare id of a message. Nothing of it can be read from that."""
    return "m_" + known_digest(user, session, text)
