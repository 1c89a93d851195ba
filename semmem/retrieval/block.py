"""A block of memories on its way into a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from semmem.memory import Hit, Injection
from semmem.ports.talks import TALK_ID


@dataclass(frozen=True, slots=True)
class Block:
    """What is put into a prompt: the text with its role and place, its estimated tokens, and the ids of what stands in
    it: memories, and conversations that the question asked for.

    ``expires_at``: when the first of the memories expires; None for never. ``versions``: of each of ``memories``.
    """

    injection: Injection
    memories: tuple[str, ...]
    tokens: int
    expires_at: float | None = None
    versions: tuple[int, ...] = ()


def block_of(injection: Injection, hits: Sequence[Hit], tokens: int) -> Block:
    """The block in which these hits are shown."""
    memories = [hit.memory for hit in hits]
    expiries = (memory.expires_at for memory in memories if memory.expires_at is not None)
    ids, versions = tuple(memory.id for memory in memories), tuple(memory.version for memory in memories)
    return Block(injection, ids, tokens, min(expiries, default=None), versions)


def memories_in(hits: Sequence[Hit]) -> tuple[str, ...]:
    """The ids of the memories among what is shown."""
    return tuple(hit.memory.id for hit in hits if not hit.memory.id.startswith(TALK_ID))
