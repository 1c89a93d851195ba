"""The folder of a Milvus Lite that an earlier build has written, up to a kill -9."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.memory import Memory, MemoryType, Scope
from tests.support.embedded import EmbeddedMilvus
from tests.support.memories import NOW, found_ids, towards

EARLIER = Path(__file__).parent / "milvus_of_029ae4f.tar.gz"
"""What that build left: rows in files, rows that only the log has, memories that were updated, forgotten, expired."""
ADA, BOB, EVE = Scope("ada"), Scope("bob"), Scope('eve "q" \\')
OPTIONS: dict[str, Any] = {
    "collection": "memories",
    "dimension": 16,
    "signature": "test/16",
    "num_partitions": 2,
    "open_timeout_s": 60.0,
}


async def contents(store: EmbeddedMilvus, scope: Scope) -> dict[str, tuple[int, str]]:
    return {each.id: (each.version, each.content) for each in await store.list(scope)}


async def test_memories_of_an_earlier_build_are_found_changed_and_forgotten(tmp_path: Path) -> None:
    with tarfile.open(EARLIER) as archive:
        archive.extractall(tmp_path, filter="data")
    store = EmbeddedMilvus(MilvusLiteProcess(tmp_path / "data"), search_timeout_s=5.0, **OPTIONS)
    await store.open()
    try:
        await as_it_was(store)
        tea = await kept(store, ADA, "mem_tea")
        await store.put(ADA, replace(tea, version=2, content="User likes green tea"))
        await store.forget_scope(BOB)
        assert (await contents(store, ADA))["mem_tea"] == (2, "User likes green tea")
        assert await contents(store, BOB) == {}
    finally:
        await store.close()


async def as_it_was(store: EmbeddedMilvus) -> None:
    assert await contents(store, ADA) == {
        "mem_tea": (1, "User likes tea"),
        "mem_town": (2, "User lives in Lisbon"),
        "mem_last": (1, "User keeps bees"),
    }
    assert await contents(store, EVE) == {"mem_1": (1, 'Ünïcode ✓ "said"\n')}
    assert await store.get(Scope("ada", "elsewhere"), "mem_town") is None
    tea, coffee = await kept(store, ADA, "mem_tea"), await kept(store, BOB, "mem_tea")
    assert (tea.metadata, tea.source.turn, tea.source.time) == ({"note": "green"}, "t1", NOW - 5)
    assert tea.embedding is not None
    assert tea.embedding.tolist() == towards(0).tolist()
    assert (coffee.version, coffee.content, coffee.type) == (2, "User likes coffee", MemoryType.SEMANTIC)
    assert await found_ids(store, ADA, towards(5), limit=1) == ["mem_last"]
    assert await found_ids(store, BOB, towards(0)) == ["mem_tea"], "what has expired is not found"


async def kept(store: EmbeddedMilvus, scope: Scope, memory_id: str) -> Memory:
    found = await store.get(scope, memory_id)
    assert found is not None
    return found
