"""A store full of memories gets another embedding model, under traffic, and is killed in the middle of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.backends.qdrant.collection import Collection as QdrantCollection
from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Memory, MemoryType, Source
from semmem.ports.store import Collection
from tests.reindex.traffic import Counted, Person, Traffic, people
from tests.support.embedded import EmbeddedMilvus
from tests.support.fakes import HashEmbedder
from tests.support.harness import ADMIN_TOKEN, SemmemProcess, semmem_process
from tests.support.owned_qdrant import OwnedQdrant

FORMER, NEW = HashEmbedder(64), HashEmbedder(384)
"""Two models: neither's vectors mean anything to the other."""
THREADS, FILL, SETTLE_S = 3, 1000, 900.0


@dataclass
class Told:
    """``memories``: how many there were at the beginning; ``seconds``: what the reindex took, restarts included."""

    memories: int
    counted: Counted
    kills: int
    seconds: float
    lines: list[str]

    @property
    def is_right(self) -> bool:
        counted = self.counted
        return not (counted.wrong or counted.missing or counted.came_back or counted.refused)


def store_of(folder: Path, collection: str, model: HashEmbedder, backend: str) -> Collection:
    """Where semmem has it that serves with its data in ``folder``. ``backend``: ``milvus`` or ``qdrant``, embedded."""
    if backend == "qdrant":
        wanted = QdrantCollection(collection, model.dimension, model.signature)
        return OwnedQdrant(folder / "data" / "qdrant", wanted, read_timeout_s=10.0)
    child = MilvusLiteProcess(folder / "data" / "milvus")
    options: dict[str, Any] = {"dimension": model.dimension, "signature": model.signature}
    return EmbeddedMilvus(child, collection=collection, write_timeout_s=60.0, **options)


async def fill(folder: Path, everybody: Sequence[Person], backend: str = "milvus") -> None:
    """Memories as the former model left them."""
    data_dir = folder / "data"
    data_dir.mkdir(parents=True)
    journal = SqlJournal(data_dir / "journal.db")
    await journal.open()
    store = store_of(folder, "agentic_memory", FORMER, backend)
    await store.open()
    now = time.time()
    memories = [
        Memory(
            thing.id,
            1,
            MemoryType.SEMANTIC,
            thing.content,
            person.name,
            source=Source(time=now),
            created_at=now,
            updated_at=now,
            embedding=await FORMER.embed(thing.content),
        )
        for person in everybody
        for thing in person.things
    ]
    for start in range(0, len(memories), FILL):
        await store.fill(memories[start : start + FILL])
    for person in everybody:
        await journal.register_user(person.name)
    await store.close()
    await journal.close()


def play(
    folder: Path, *, persons: int, things: int, kills: int, pause_s: float = 0.02, backend: str = "milvus"
) -> Told:
    """Fill, start with another model, kill, wait for the end, and look at everything once more."""
    everybody = people(persons, things)
    asyncio.run(fill(folder, everybody, backend))
    traffic = [
        Traffic(everybody[number::THREADS], ADMIN_TOKEN, seed=number, pause_s=pause_s) for number in range(THREADS)
    ]
    for each in traffic:
        each.start()
    began, lines, killed = time.monotonic(), [], 0
    for part in range(kills + 1):
        with semmem_process(folder, override(persons * things, backend)) as semmem:
            for each in traffic:
                each.url = semmem.api_url
            until = (part + 1) / (kills + 1) if part < kills else 2.0
            status = _reindexed(semmem, until)
            lines.append(f"{status['state']}: {status.get('users_done')} of {status.get('users')} users")
            if part < kills:
                semmem.child.process.kill()
                semmem.child.process.wait()
                killed += status["state"] == "filling"
                continue
            seconds = time.monotonic() - began
            counted = Counted()
            for each in traffic:
                counted.add(each.end())
            counted.add(_look_at_everything(semmem, everybody))
            away = f"{counted.failed} questions while it was away"
            lines.append(f"{counted.asked} answers judged, {away}, {counted.refused} calls refused")
    return Told(persons * things, counted, killed, seconds, lines + counted.examples[:5])


def override(memories: int, backend: str = "milvus") -> dict[str, Any]:
    model = {"dimension": NEW.dimension}
    return {
        "memory": {
            "backend": backend,
            "embedding": model,
            "milvus": model,
            "reindex": {"start": "auto", "poll_s": 0.2},
            "hot_cache": {"memories_max": max(1000, memories)},
        }
    }


def _reindexed(semmem: SemmemProcess, share: float) -> dict[str, Any]:
    """Its status when so much of it is done, or all."""
    deadline = time.monotonic() + SETTLE_S
    while time.monotonic() < deadline:
        status: dict[str, Any] = semmem.api("GET", "/v1/memory/reindex")
        assert status["state"] != "none", status
        if status["state"] == "kept" or (status.get("users") and status["users_done"] / status["users"] >= share):
            return status
        time.sleep(0.02)
    raise AssertionError(f"the reindex did not end: {status}")


def _look_at_everything(semmem: SemmemProcess, everybody: Sequence[Person]) -> Counted:
    """Every memory of everybody: there as it was told last, or erased and gone."""
    counted = Counted()
    for person in everybody:
        found: list[dict[str, Any]] = []
        while True:
            asked = {"user_id": person.name, "limit": 1000, "offset": len(found)}
            page = semmem.api("GET", "/v1/memory", params=asked)["memories"]
            found += page
            if len(page) < 1000:
                break
        told = [memory["content"] for memory in found if memory["status"] == "active"]
        for thing in person.things:
            of_it = [content for content in told if f"the {thing.word} in" in content]
            if thing.unsure:
                continue
            counted.asked += 1
            counted.came_back += thing.erased and bool(of_it)
            counted.missing += not thing.erased and thing.content not in of_it
            counted.wrong += not thing.erased and len(of_it) > 1
    return counted
