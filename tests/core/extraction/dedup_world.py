"""What the tests of deduplication share: facts of one user on their way into the store."""

from __future__ import annotations

from semmem.backends.in_process import InProcessStore
from semmem.extraction.candidate import Candidate, memory_id
from semmem.memory import Fact, MemoryType, Scope, Turn
from tests.support.fakes import HashEmbedder

ALICE = Scope("alice", session="s-1")
EMBEDDER = HashEmbedder()
NOW = 1000.0

BUDGET = "User's budget for the big summer family vacation in Hawaii next year is 10000 dollars"
NEW_BUDGET = BUDGET.replace("10000", "15000")

BOSTON = "User lives in Boston"
SEATTLE = "User lives in Seattle now"


async def candidate(
    content: str,
    *,
    scope: Scope = ALICE,
    kind: MemoryType = MemoryType.SEMANTIC,
    index: int = 0,
    now: float = NOW,
    importance: float = 0.5,
) -> Candidate:
    turn = Turn(f"t-{index}", scope, index, content, opened_at=now - 5, request_id="r-1")
    fact = Fact(kind, content, turn.id, importance=importance)
    return Candidate(memory_id("b-1", index), fact, turn, await EMBEDDER.embed(content), now, expires_at=now + 100)


async def contents(store: InProcessStore, user: str = "alice") -> list[str]:
    return sorted(memory.content for memory in await store.list(Scope(user)))


async def found(store: InProcessStore, question: str) -> list[str]:
    hits = await store.search(Scope("alice"), await EMBEDDER.embed(question), limit=50, now=NOW + 50)
    return sorted(hit.memory.content for hit in hits)
