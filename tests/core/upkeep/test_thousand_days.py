"""A thousand days of one user: what is kept stays bounded, and what matters is still there and still found."""

from __future__ import annotations

from pathlib import Path

from semmem.lifecycle.quota import Quota
from semmem.memory import Memory, MemoryType, Scope
from semmem.ports.memory_records import Uses
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.search import ResolvedQuery, Strategy, best_of
from tests.core.upkeep.life_world import DAY, EMBEDDER, NOW, LifeWorld

DAYS, SAID_EVERY, MOST = 1000, 2, 22
UPKEEP_EVERY, ASKED_EVERY = 10, 20
LASTING = {
    "Where was I born?": "User was born in Trondheim",
    "What does my sister Maren keep?": "User's sister Maren keeps bees",
    "Which instrument do I play?": "User plays the instrument viola",
    "What am I allergic to?": "User is allergic to peanuts",
    "Who is my dentist?": "User's dentist is Lindqvist",
}


def chatter(day: int) -> str:
    """Every tenth day says what was said before, word for word."""
    return f"User looked at ticket {day % 10 and day} on the board"


async def remember(world: LifeWorld, memory_id: str, content: str, day: int, importance: float) -> None:
    at = NOW + day * DAY
    memory = Memory(
        memory_id,
        1,
        MemoryType.EPISODIC,
        content,
        "ada",
        embedding=await EMBEDDER.embed(content),
        importance=importance,
        created_at=at,
        updated_at=at,
    )
    await world.store.put(Scope("ada"), memory)
    quota = Quota(world.store, world.journal, memories_max=MOST, clock=lambda: at, announce=world.count)
    await quota.make_room("ada")


async def test_the_store_stays_bounded_and_right_answers_stay(tmp_path: Path) -> None:
    world = await LifeWorld(tmp_path).open()
    await world.journal.register_user("ada")
    upkeep = world.upkeep(never_used_s=30 * DAY, importance_max=0.5, consolidate_from=10)
    for place, content in enumerate(LASTING.values()):
        await remember(world, f"lasting{place}", content, 0, 0.8)
    most = 0
    for day in range(DAYS):
        if day % SAID_EVERY == 0:
            await remember(world, f"m{day}", chatter(day), day, 0.3)
        at = NOW + day * DAY
        if day % ASKED_EVERY == 0:
            await world.journal.record_uses([("ada", f"lasting{place}", Uses(1, at)) for place in range(len(LASTING))])
        if day % UPKEEP_EVERY == 0:
            await upkeep.run(at)
        most = max(most, await world.store.count(Scope("ada")))
    left = await world.active()
    assert most <= MOST
    assert len(await world.journal.recorded_ids("ada")) <= MOST
    assert min(world.removed[reason] for reason in ("never_used", "quota", "merged")) > 0, world.removed
    assert {f"lasting{place}" for place in range(len(LASTING))} <= left.keys()
    index = MemoryIndex(list(left.values()))
    for question, answer in LASTING.items():
        vector = await EMBEDDER.embed(question)
        query = ResolvedQuery(question, Scope("ada"), NOW + DAYS * DAY, Strategy.HYBRID, limit=5)
        found = best_of(index, query, vector)
        assert found.hits[0].memory.content == answer
    await world.close()
