"""Whatever a client, a memory or an embedder says: the search answers, and nothing but a port's error is raised."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semmem.backends.in_process import InProcessStore
from semmem.memory import Controls, Conversation, Memory, MemoryType, Message, Role, Scope, Vector
from semmem.ports.errors import EmbedderError
from semmem.request.question import Question
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.rank import rank
from semmem.retrieval.recall import Recall, RecallRules
from semmem.retrieval.search import ResolvedQuery, Strategy, best_of
from tests.core.retrieval.talk import NOW
from tests.support.examples import examples
from tests.support.fakes import HashEmbedder, hot

STRANGE = [
    "", " ", "\x00", "\ud800", "ß" * 300, "ﷺ" * 200, "İ" * 200, "٣٤٥ 19٣٤ ٢nd of May 2023", "?" * 500, "的" * 500,
    "1.2.3,4.5", "May 99th 2023", "in 0000", "'s 's 's", "’" * 50, "🧑‍🧑‍🧒" * 50, "\u202e\u2066abc", "²³ ½ Ⅷ ①",
    "ก" * 400, "x:" * 300, "A: B: C: \n", "[INST]" * 30, "\U00020000\U0003ffff", "a\u0300" * 400,
    "user " * 400, "who " * 400,
]  # fmt: skip
TEXTS = st.one_of(st.sampled_from(STRANGE), st.text(max_size=60), st.text(alphabet=st.characters(), max_size=20))
NUMBERS = st.sampled_from([0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 1e38, 1e-40])
VECTORS = st.one_of(st.none(), st.lists(NUMBERS, max_size=4).map(lambda row: np.array(row, dtype=np.float32)))
TIMES = st.sampled_from([0.0, -1e12, 3.2e12, NOW, math.nan, math.inf, -math.inf])


class Unable(HashEmbedder):
    """Has no vector for anything."""

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        raise EmbedderError("no model")


@st.composite
def memories(draw: st.DrawFn) -> list[Memory]:
    rows = draw(st.lists(st.tuples(TEXTS, VECTORS, TIMES, TIMES), max_size=6))
    return [
        Memory(
            f"mem_{number}",
            1,
            MemoryType.SEMANTIC,
            text,
            "ada",
            embedding=vector,
            importance=draw(NUMBERS),
            created_at=made,
            updated_at=made,
            occurred_at=happened,
        )
        for number, (text, vector, made, happened) in enumerate(rows)
    ]


@settings(deadline=None, max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow])
@given(memories(), TEXTS, VECTORS, st.sampled_from(Strategy), st.integers(0, 50))
def test_any_memories_are_ranked_for_any_question(
    some: list[Memory], query: str, vector: Vector | None, strategy: Strategy, limit: int
) -> None:
    with np.errstate(all="ignore"):
        best = best_of(MemoryIndex(some), ResolvedQuery(query, Scope("ada"), NOW, strategy, limit), vector)
        verdicts = rank(best.hits, said=[query], limit=limit, now=NOW, cuts=best.cuts)
    assert sum(one.kept for one in verdicts) <= limit
    assert {hit.memory.id for hit in best.hits} <= {memory.id for memory in some}


@pytest.mark.parametrize("text", STRANGE, ids=range(len(STRANGE)))
@pytest.mark.parametrize("limit", [None, 0, 50])
async def test_any_question_is_answered(text: str, limit: int | None) -> None:
    store, embedder = InProcessStore(), HashEmbedder()
    await store.open()
    for number, content in enumerate(STRANGE):
        vector = await embedder.embed(content)
        kept = content.encode("utf-8", "replace").decode()  # no store takes a lone surrogate
        memory = Memory(f"mem_{number}", 1, MemoryType.SEMANTIC, kept or "-", "ada", embedding=vector)
        await store.put(Scope("ada"), replace(memory, created_at=NOW, updated_at=NOW))
    rules = RecallRules(store_timeout_s=5.0)
    asked = Conversation(
        (Message(Role.USER, text * 40), Message(Role.USER, text)), model=text, controls=Controls(limit=limit)
    )
    for each in (embedder, Unable()):
        found = await Recall(hot(store), each, rules).search(Question(asked, Scope("ada"), NOW))
        assert len(found.hits) <= (5 if limit is None else limit)
