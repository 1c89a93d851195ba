"""Conversations and hits as the tests of this room write them."""

from __future__ import annotations

from typing import Any

from semmem.memory import Conversation, Hit, Memory, MemoryType, Message, Role

DAY_S = 86_400.0
NOW = 1_790_000_000.0


def asked(*user_texts: str, tool_turn: bool = False) -> Conversation:
    """A conversation in which the assistant says "Well." after each user message but the last."""
    messages = [Message(Role.SYSTEM, "Be brief.")]
    for text in user_texts:
        messages += [Message(Role.USER, text), Message(Role.ASSISTANT, "Well.")]
    return Conversation(tuple(messages[:-1]), tool_turn=tool_turn)


def hit(content: str, cosine: float = 0.5, *, id: str | None = None, **fields: Any) -> Hit:
    """A hit on an active semantic memory, updated NOW unless said otherwise."""
    known: dict[str, Any] = {"updated_at": NOW, "type": MemoryType.SEMANTIC}
    memory = Memory(id=id or f"mem_{content[:40]}", version=1, content=content, user="ada", **(known | fields))
    return Hit(memory, cosine=cosine, score=cosine)
