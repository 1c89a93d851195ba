"""What a prompt is given anyway, as the search for more needs to know it."""

from __future__ import annotations

from msgspec import Struct

from semmem.memory import Memory
from semmem.ports.session_states import ShownBlock
from semmem.retrieval.context import says


class Before(Struct, frozen=True):
    """``blocks``: those that stand in it; ``tokens``: of those that are put into it again. ``begins``: the session
    begins, and what goes with every answer gets a block of its own. ``at``: the number of the user's message, among
    those in the user's role, that the new block is for."""

    at: int = 0
    blocks: tuple[ShownBlock, ...] = ()
    tokens: int = 0
    begins: bool = False

    def holds(self, memory: Memory) -> bool:
        """Whether the memory stands there, or another with its words."""
        pair = memory.id, memory.version
        return any(pair in block.memories or says(block.text, memory) for block in self.blocks)


NOTHING = Before()
