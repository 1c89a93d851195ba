"""Is it worth looking for memories before this request is answered?

A wrong skip loses a memory the user expected; a needless search costs some milliseconds and finds little. So every
rule fires only when it is sure, and the last row is: search.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from semmem.memory import Conversation, Role
from semmem.retrieval.decide.greetings import is_social
from semmem.retrieval.decide.pronouns import speaks_of_user

SEARCH = "search"


class Signals(Struct, frozen=True):
    """What a rule may look at: the last user message, and what earlier filters found out (None: they did not say)."""

    text: str
    tool_turn: bool
    fact: bool | None = None
    tool: bool | None = None


def _greeting(signals: Signals) -> bool:
    return is_social(signals.text)


def _general_fact(signals: Signals) -> bool:
    """An earlier filter may take the user's own budget for general knowledge; a reference to the user overrules it."""
    return bool(signals.fact) and not speaks_of_user(signals.text)


def _tool_turn(signals: Signals) -> bool:
    return signals.tool_turn if signals.tool is None else signals.tool


RULES: tuple[tuple[str, Callable[[Signals], bool]], ...] = (
    ("greeting", _greeting),
    ("general_fact", _general_fact),
    ("tool_turn", _tool_turn),
)
"""Reason words for not searching, in the order in which they are tried."""


def decide(conversation: Conversation, *, fact: bool | None = None, tool: bool | None = None) -> str:
    """``greeting``, ``general_fact``, ``tool_turn``, or SEARCH.

    ``fact`` and ``tool`` are the verdicts of an earlier filter (a question of general knowledge; a tool will answer).
    They replace semmem's own judgement, except that a question about the user is searched for whatever was said.
    """
    signals = Signals(_last_user_text(conversation), conversation.tool_turn, fact, tool)
    return next((word for word, fires in RULES if fires(signals)), SEARCH)


def _last_user_text(conversation: Conversation) -> str:
    return next((message.text for message in reversed(conversation.messages) if message.role is Role.USER), "")
