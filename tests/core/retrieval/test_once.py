"""What is worked out once for each memory: how often, and for how long it stays."""

from __future__ import annotations

import gc
from collections.abc import Sized
from dataclasses import replace

from semmem.memory import Hit, Memory, MemoryType
from semmem.retrieval import arrangement, context, rank
from semmem.retrieval.once import OncePerMemory
from semmem.text.quoting import quoted


def memory(content: str = "User likes tea") -> Memory:
    return Memory("mem_1", 1, MemoryType.SEMANTIC, content, "ada")


def test_it_is_worked_out_once_for_the_same_memory_and_anew_for_another_version() -> None:
    asked: list[str] = []

    def length(one: Memory) -> int:
        asked.append(one.content)
        return len(one.content)

    once, first = OncePerMemory(length), memory()
    other = replace(first, version=2, content="User likes coffee")
    assert [once(first), once(first), once(other), once(replace(first))] == [14, 14, 17, 14]
    assert asked == ["User likes tea", "User likes coffee", "User likes tea"]


def test_nothing_of_a_memory_stays_when_nobody_holds_it() -> None:
    once = OncePerMemory(lambda one: one.content.upper())
    held = [memory(f"User has {number} cats") for number in range(5)]
    assert [once(one) for one in held][-1:] == ["USER HAS 4 CATS"]
    del held[1:]
    gc.collect()
    assert len(once) == 1


def test_nothing_that_is_shown_stays_after_its_memory() -> None:
    kept: tuple[Sized, ...] = (rank._content, rank._screened, context._note, arrangement._told)
    gc.collect()
    before = [len(once) for once in kept]  # of other tests' memories
    hits = [Hit(memory(content), 0.5, 0.5) for content in ("User likes tea", quoted("I never eat nuts"))]
    verdicts = rank.rank(hits, said=[], limit=5, now=0.0)
    context.render([one.hit for one in verdicts], tokens_max=500, mark=lambda _: "0" * 16)
    assert [len(once) - been for once, been in zip(kept, before, strict=True)] == [2, 2, 2, 2]
    del hits, verdicts
    gc.collect()
    assert all(len(once) <= been for once, been in zip(kept, before, strict=True))
