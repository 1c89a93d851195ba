"""A block of memories on its way into a prompt, and what is given to the prompt anyway."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from semmem.memory import Hit, Injection, Memory
from semmem.ports.session_states import ShownBlock
from semmem.ports.talks import TALK_ID
from semmem.retrieval.context import says


@dataclass(frozen=True, slots=True)
class Block:
    """What is put into a prompt: the text with its role and place, its estimated tokens, and the ids of what stands in
    it with their versions: memories, and conversations that the question asked for. ``expires_at``: when the first of
    the memories expires; None for never. ``hits``: what was found, best first; empty where it is shown again.
    ``is_start``: it goes with every answer, at the session's beginning."""

    injection: Injection
    memories: tuple[tuple[str, int], ...]
    tokens: int
    expires_at: float | None = None
    hits: tuple[Hit, ...] = field(default=(), compare=False, repr=False)
    is_start: bool = False

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(each for each, _ in self.memories)


def block_of(injection: Injection, hits: Sequence[Hit], tokens: int, *, is_start: bool) -> Block:
    """The block in which these hits are shown."""
    memories = [hit.memory for hit in hits]
    expiries = (memory.expires_at for memory in memories if memory.expires_at is not None)
    pairs = tuple((memory.id, memory.version) for memory in memories)
    return Block(injection, pairs, tokens, min(expiries, default=None), tuple(hits), is_start)


def memories_in(hits: Sequence[Hit]) -> tuple[str, ...]:
    """The ids of the memories among what is shown."""
    return tuple(hit.memory.id for hit in hits if not hit.memory.id.startswith(TALK_ID))


class Before(Struct, frozen=True):
    """What a prompt is given anyway, as the search for more needs to know it. ``blocks``: those that stand in it;
    ``tokens``: of those that are put into it again. ``begins``: the session begins, and what goes with every answer
    gets a block of its own. ``at``: the number of the user's message, among those in the user's role, that the new
    block is for."""

    at: int = 0
    blocks: tuple[ShownBlock, ...] = ()
    tokens: int = 0
    begins: bool = False

    def holds(self, memory: Memory) -> bool:
        """Whether the memory stands there, or another with its words."""
        pair = memory.id, memory.version
        return any(pair in block.memories or says(block.text, memory) for block in self.blocks)


NOTHING = Before()
