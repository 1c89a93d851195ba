"""A block of memories on its way into a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from semmem.memory import Hit, Injection


@dataclass(frozen=True, slots=True)
class Block:
    """What is put into a prompt: the text with its role and place, the memories' ids, its estimated tokens.

    ``expires_at``: when the first of the memories expires; None for never.
    """

    injection: Injection
    memories: tuple[str, ...]
    tokens: int
    expires_at: float | None = None


def block_of(injection: Injection, hits: Sequence[Hit], tokens: int) -> Block:
    """The block in which these hits are shown."""
    memories = [hit.memory for hit in hits]
    expiries = (memory.expires_at for memory in memories if memory.expires_at is not None)
    return Block(injection, tuple(memory.id for memory in memories), tokens, min(expiries, default=None))
