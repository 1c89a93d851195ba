"""What users take in this process: the estimate beside what the interpreter says.

``python -m tests.core.retrieval.test_hot_sizes`` prints both.
"""

from __future__ import annotations

import asyncio
import gc
import pickle
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.background import Tasks
from semmem.memory import Conversation, Memory, MemoryType, Message, Role, Scope, Source
from semmem.request.question import Question
from semmem.retrieval.index import sizes
from semmem.retrieval.index.hot_memories import HotMemories
from semmem.retrieval.recall import Recall, RecallRules
from tests.support.fakes import HashEmbedder, bag_of_words

WITHIN = 0.2
THINGS = "tea coffee rowing chess opera hiking cheese jazz trains maps tulips saunas bread rugby ferries".split()
TOWNS = "Lyon Oslo Porto Ghent Turin Bergen Graz Cork Malmo Basel".split()


def short(number: int) -> str:
    return f"User likes {THINGS[number % 15]} number {number} in {TOWNS[number % 10]}"


def long(number: int) -> str:
    return ". ".join(f"{short(number + 7 * part)}, says friend{number}x{part}" for part in range(8))


def german(number: int) -> str:
    return f"Der Nutzer wohnt seit {1900 + number} in der Straße {number} und mag {THINGS[number % 15]} für später"


def chinese(number: int) -> str:
    return f"用户住在第{number}街，他喜欢喝茶，每天早上{number % 24}点去公园跑步。"


class Shelves(InProcessStore):
    """Gives what it has as a server does: nothing of it is shared with what the store keeps."""

    async def list(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        found = await super().list(scope, types=types, limit=limit, offset=offset, vectors=vectors)
        copied: list[Memory] = pickle.loads(pickle.dumps(found))
        return copied


def memory(user: str, number: int, text: str, metadata: dict[str, Any]) -> Memory:
    source = Source("user", f"conversation-{number // 10:08x}", f"{number:032x}", f"{number:036x}", 1.7e9 + number)
    return Memory(
        f"mem_{number:032x}",
        1,
        MemoryType.SEMANTIC,
        text,
        user,
        session=source.session,
        source=source,
        metadata=metadata,
        created_at=1.8e9 + number,
        updated_at=1.8e9 + number + 0.5,
        embedding=bag_of_words(text),
    )


@dataclass(frozen=True)
class Taken:
    """Bytes of a user: ``loaded`` and after ``asked`` questions; the estimate of each."""

    loaded: float
    loaded_estimate: float
    asked: float
    asked_estimate: float


async def taken(text: Callable[[int], str], memories: int, users: int, *, questions: int, noted: str = "") -> Taken:
    store = Shelves()
    await store.open()
    tasks = Tasks()
    hot = HotMemories(store, spawn=tasks.spawn, bytes_max=10**10)
    recall = Recall(hot, HashEmbedder(), RecallRules(embed_timeout_s=5, store_timeout_s=5))
    for user in range(users + 1):
        for number in range(memories):
            metadata = {"note": f"{noted} {number}"} if noted else {}
            await store.put(Scope(f"user {user}"), memory(f"user {user}", number, text(number), metadata))

    async def ask(user: int) -> None:
        for number in range(questions):
            told = Conversation((Message(Role.USER, f"What about {text(3 * number % max(memories, 1))}?"),))
            await recall.search(Question(told, Scope(f"user {user}"), 1.9e9))

    async def settled() -> int:
        assert await tasks.wait(5)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    await hot.index("user 0", wait_s=5)
    await ask(0)  # what is imported or made once is not a user's
    before_estimate = hot.taken.bytes
    tracemalloc.start(1)
    try:
        before = await settled()
        for user in range(1, users + 1):
            await hot.index(f"user {user}", wait_s=5)
        loaded, loaded_estimate = await settled() - before, hot.taken.bytes - before_estimate
        for user in range(1, users + 1):
            await ask(user)
        asked, asked_estimate = await settled() - before, hot.taken.bytes - before_estimate
    finally:
        tracemalloc.stop()
    return Taken(loaded / users, loaded_estimate / users, asked / users, asked_estimate / users)


CASES = [(text, memories) for text in (short, long, german, chinese) for memories in (0, 1, 10, 100)]


@pytest.mark.parametrize(("text", "memories"), [*CASES, (short, 1000)])
async def test_the_estimate_is_near_what_is_taken(text: Callable[[int], str], memories: int) -> None:
    found = await taken(text, memories, max(1, min(20, 200 // max(memories, 1))), questions=0)
    assert found.loaded_estimate == pytest.approx(found.loaded, rel=WITHIN)


@pytest.mark.parametrize(("text", "memories"), [(short, 10), (long, 10), (german, 100), (chinese, 100), (short, 100)])
async def test_also_when_searches_have_left_something_behind(text: Callable[[int], str], memories: int) -> None:
    found = await taken(text, memories, 5, questions=12)
    assert found.asked > found.loaded * 1.1
    assert found.asked_estimate == pytest.approx(found.asked, rel=WITHIN)


async def test_metadata_are_counted() -> None:
    found = await taken(short, 50, 3, questions=0, noted="x" * 3000)
    assert found.loaded > 50 * 3000
    assert found.loaded_estimate == pytest.approx(found.loaded, rel=WITHIN)


@pytest.mark.parametrize("memories", [10, 100, 1000])
async def test_advice_says_about_what_is_taken(memories: int) -> None:
    found = await taken(short, memories, 2, questions=0)
    assert sizes.typical(memories, 384) == pytest.approx(found.loaded, rel=WITHIN)


def table() -> Iterator[str]:
    for text, memories in [*CASES, (short, 1000), (long, 1000)]:
        found = asyncio.run(taken(text, memories, max(1, 400 // max(memories, 20)), questions=12))
        yield (
            f"{text.__name__:8} {memories:5}: loaded {found.loaded:10,.0f} estimate {found.loaded_estimate:10,.0f};"
            f" after 12 questions {found.asked:10,.0f} estimate {found.asked_estimate:10,.0f}"
        )


if __name__ == "__main__":
    print("\n".join(table()))
