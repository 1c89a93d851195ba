"""Lines into a semmem: what is there, what was erased, what no model fits, and what nobody will confirm."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.backends.sql.journal import SqlJournal
from semmem.backup import lines
from semmem.backup.importing import Imports, WrongLine
from semmem.lifecycle.holds import Holds
from semmem.lifecycle.quota import Quota
from semmem.memory import PROVISIONAL, Forgetting, Memory, Scope
from semmem.ports.errors import StoreUnavailable
from semmem.ports.memory_records import Uses
from tests.support.empty_journal import empty_journal
from tests.support.fakes import HashEmbedder, bag_of_words
from tests.support.memories import DIMENSION, NOW, memory

ADA = Scope("ada")
SIGNATURE = HashEmbedder(DIMENSION).signature


class Failing(InProcessStore):
    """One memory cannot be written."""

    failing = ""

    async def put(self, scope: Scope, *memories: Memory) -> None:
        if self.failing in [memory.id for memory in memories]:
            raise StoreUnavailable("down")
        await asyncio.sleep(0)
        await super().put(scope, *memories)


class World:
    def __init__(self, journal: SqlJournal) -> None:
        self.journal = journal
        self.store = Failing()
        holds = Holds(journal, clock=lambda: NOW)
        quota = Quota(self.store, journal, memories_max=3)
        self.imports = Imports(
            self.store, HashEmbedder(DIMENSION), journal, holds, quota, dimension=DIMENSION, wait_s=1.0
        )

    async def take(self, *memories: Memory, signature: str = SIGNATURE, uses: Uses | None = None) -> dict[str, object]:
        told = [lines.memory_line(each, uses).decode() for each in memories]
        done = await self.imports.take(signature, told)
        return {name: value for name, value in asdict(done).items() if value}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    journal = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await journal.open()
    made = World(journal)
    await made.store.open()
    yield made
    await journal.close()


async def test_uses_come_once_however_often_a_file_is_imported(world: World) -> None:
    assert await world.take(memory("ada"), uses=Uses(3, NOW)) == {"imported": 1}
    assert await world.take(memory("ada"), uses=Uses(3, NOW)) == {"unchanged": 1}
    assert await world.journal.uses("ada") == {"mem_1": Uses(3, NOW)}


async def test_a_vector_of_another_model_or_length_or_none_is_computed_here(world: World) -> None:
    told = memory("ada", content="likes tea")
    for number, (vector, signature) in enumerate(
        [(told.embedding, "another"), (None, SIGNATURE), (bag_of_words("x", 7), SIGNATURE)]
    ):
        await world.take(replace(told, id=f"m{number}", embedding=vector), signature=signature)
        found = await world.store.get(ADA, f"m{number}")
        assert found is not None
        assert found.embedding is not None
        assert found.embedding.tolist() == bag_of_words("likes tea", DIMENSION).tolist()


async def test_what_was_erased_here_is_left_out_and_what_was_said_since_is_not(world: World) -> None:
    what = Forgetting(ADA, NOW)
    hold, _ = await world.journal.begin_erasure(what, now=NOW)
    await world.journal.finish_erasure(what, hold)
    later = memory("ada", "later", created_at=NOW + 1, updated_at=NOW + 1)
    assert await world.take(memory("ada"), later, memory("eve")) == {"imported": 2, "erased": 1}
    assert await world.store.get(ADA, "mem_1") is None


async def test_a_provisional_memory_is_imported_as_one_that_stays(world: World) -> None:
    told = memory("ada", metadata={PROVISIONAL: True, "note": "n"})
    assert await world.take(told) == {"imported": 1}
    found = await world.store.get(ADA, "mem_1")
    assert found is not None
    assert found.metadata == {"note": "n"}
    assert await world.take(told) == {"unchanged": 1}
    await world.store.put(ADA, replace(told, version=2))
    assert await world.take(replace(told, version=2)) == {"unchanged": 1}


async def test_an_older_version_changes_nothing_and_other_words_in_the_same_one_are_a_conflict(
    world: World,
) -> None:
    here = memory("ada", version=2, content="newer")
    await world.store.put(ADA, here)
    assert await world.take(memory("ada", content="older")) == {"unchanged": 1}
    assert await world.take(memory("eve"), replace(here, content="other")) == {"imported": 1, "conflicts": [1]}
    assert await world.take(replace(here, version=3, content="newest")) == {"updated": 1}
    found = await world.store.get(ADA, "mem_1")
    assert found is not None
    assert found.content == "newest"
    assert [each.content for each in await world.journal.versions(ADA, "mem_1")] == ["newer"]


async def test_a_file_holds_more_than_a_user_may_have(world: World) -> None:
    told = [memory("ada", f"m{number}", updated_at=NOW + number) for number in range(5)]
    assert await world.take(*told) == {"imported": 5, "over_quota": 2}
    assert await world.store.count(ADA) == 3


async def test_versions_of_one_memory_come_one_after_another_in_the_order_of_the_file(world: World) -> None:
    told = [memory("ada", version=number, content=f"text {number}") for number in (1, 2, 2, 1, 3)]
    others = [memory("ada", f"other_{number}") for number in range(2)]
    assert await world.take(told[0], others[0], *told[1:], others[1]) == {"imported": 3, "updated": 2, "unchanged": 2}
    found = await world.store.get(ADA, "mem_1")
    assert found is not None
    assert found.content == "text 3"
    assert [each.content for each in await world.journal.versions(ADA, "mem_1")] == ["text 1", "text 2"]


async def test_what_a_failure_leaves_out_the_same_call_brings_again(world: World) -> None:
    told = [memory("ada", f"m{number}") for number in range(3)]
    world.store.failing = "m1"
    with pytest.raises(StoreUnavailable):
        await world.take(*told, uses=Uses(3, NOW))
    assert {each.id for each in await world.store.list(ADA)} == {"m0", "m2"}
    assert (await world.journal.uses("ada")).keys() == {"m0", "m2"}
    world.store.failing = ""
    assert await world.take(*told, uses=Uses(3, NOW)) == {"imported": 1, "unchanged": 2}
    assert (await world.journal.uses("ada")).keys() == {"m0", "m1", "m2"}


async def test_one_wrong_line_imports_none_of_its_call(world: World) -> None:
    with pytest.raises(WrongLine) as wrong:
        await world.imports.take(SIGNATURE, [lines.memory_line(memory("ada")).decode(), '{"kind":"memory"}'])
    assert wrong.value.place == 1
    assert len(world.store) == 0
    assert await world.journal.users_due(maintained_before=1e12, limit=10) == []
