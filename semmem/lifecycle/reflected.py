"""Whether a reflection still stands: all that it rests on is there, may be shown, and says what it said."""

import hashlib
from collections.abc import Iterable, Mapping

from semmem.memory import REFLECTION_OF, Memory, MemoryStatus

DIGEST_CHARS = 16


def rests_on(memories: Iterable[Memory]) -> dict[str, str]:
    """What a reflection keeps of these: by id a digest of what each says."""
    return {memory.id: _digest(memory.content) for memory in memories}


def bases(memory: Memory) -> Mapping[str, str]:
    """As ``rests_on`` gave them; empty for what is no reflection."""
    told = memory.metadata.get(REFLECTION_OF)
    return told if isinstance(told, dict) else {}


def stands(memory: Memory, everything: Mapping[str, Memory]) -> bool:
    """Whether it does; ``everything``: the user's memories by id. What is no reflection always does."""
    known = ((everything.get(memory_id), said) for memory_id, said in bases(memory).items())
    return all(one and one.status is MemoryStatus.ACTIVE and _digest(one.content) == said for one, said in known)


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARS]
