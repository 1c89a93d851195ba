"""What every History must do with earlier versions of memories."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import numpy as np
import pytest

from semmem.backends.sql.database import JournalLimits
from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Memory, MemoryStatus, MemoryType, Scope, Source
from semmem.ports.errors import JournalError
from tests.support.journal_samples import HOSTILE, Place, change, erase

TEA = Memory(
    id="mem_1",
    version=1,
    type=MemoryType.PROCEDURAL,
    content="Pours milk first — 先倒牛奶 \ud800\x00",
    user="ada",
    project="p",
    agent="a",
    session="s",
    source=Source(role="user", session="s", turn="t", request_id="r", time=12.5),
    key="tea",
    metadata={"nested": {"list": [1, 2.5, None, True]}},
    importance=0.75,
    created_at=1.5,
    updated_at=2.5,
    occurred_at=3.5,
    expires_at=4.5,
    status=MemoryStatus.SUPERSEDED,
    embedding=np.ones(3, dtype=np.float32),
)
ADA = Scope("ada")


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(place, limits=JournalLimits(versions_max=3))
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def history(journal: SqlJournal) -> SqlJournal:
    return journal


async def test_a_version_comes_back_whole_but_for_its_vector(history: SqlJournal) -> None:
    await history.keep_version(TEA)
    [found] = await history.versions(ADA, "mem_1")
    assert found == TEA
    assert found.embedding is None
    assert isinstance(found.type, MemoryType)
    assert isinstance(found.status, MemoryStatus)


async def test_a_memory_with_nothing_optional_comes_back(history: SqlJournal) -> None:
    bare = Memory(id="mem_2", version=1, type=MemoryType.SEMANTIC, content="x", user="ada")
    await history.keep_version(bare)
    assert await history.versions(ADA, "mem_2") == [bare]


async def test_keeping_a_version_again_changes_nothing(history: SqlJournal) -> None:
    await history.keep_version(TEA)
    await history.keep_version(replace(TEA, content="rewritten"))
    assert await history.versions(ADA, "mem_1") == [TEA]


async def test_versions_come_oldest_first(history: SqlJournal) -> None:
    for version in (2, 3, 1):
        await history.keep_version(replace(TEA, version=version))
    assert [each.version for each in await history.versions(ADA, "mem_1")] == [1, 2, 3]


async def test_only_the_newest_versions_are_kept(history: SqlJournal) -> None:
    await history.keep_version(replace(TEA, id="other"))
    for version in (1, 2, 3, 4, 5, 1):
        await history.keep_version(replace(TEA, version=version))
    assert [each.version for each in await history.versions(ADA, "mem_1")] == [3, 4, 5]
    assert len(await history.versions(ADA, "other")) == 1


async def test_nobody_sees_or_erases_another_users_versions(history: SqlJournal) -> None:
    await history.keep_version(TEA)
    for scope in (Scope("eve"), Scope("ada", project="q"), Scope("ada", agent="b"), Scope("ada", session="z")):
        assert await history.versions(scope, "mem_1") == []
        assert await history.forget_memories(scope, ["mem_1"], shuts_turns=False) == 0
    assert await history.versions(Scope("ada", "p", "a", "s"), "mem_1") == [TEA]


async def test_two_users_may_have_the_same_id_and_version(history: SqlJournal) -> None:
    for user in HOSTILE:
        await history.keep_version(replace(TEA, user=user))
    assert [(await history.versions(Scope(user), "mem_1"))[0].user for user in HOSTILE] == HOSTILE


async def test_forgetting_one_memory_erases_its_versions(history: SqlJournal) -> None:
    for version in (1, 2):
        await history.keep_version(replace(TEA, version=version))
    await history.keep_version(replace(TEA, id="other"))
    assert await history.forget_memories(ADA, ["mem_1"], shuts_turns=False) == 2
    assert await history.forget_memories(ADA, ["mem_1"], shuts_turns=False) == 0
    assert await history.versions(ADA, "mem_1") == []
    assert len(await history.versions(ADA, "other")) == 1


async def test_forgetting_a_scope_erases_its_history(journal: SqlJournal) -> None:
    for memory in (TEA, replace(TEA, id="other", project="q"), replace(TEA, user="eve")):
        await journal.keep_version(memory)
    await erase(journal, Scope("ada", project="p"), at=2e9)
    assert await journal.versions(ADA, "mem_1") == []
    assert len(await journal.versions(ADA, "other")) == 1
    await erase(journal, ADA, at=2e9)
    assert await journal.versions(ADA, "other") == []
    assert len(await journal.versions(Scope("eve"), "mem_1")) == 1


@pytest.mark.parametrize("body", ["", "[]", "{", '{"type": "semantic"}', '{"type": "unheard of"}'])
async def test_a_damaged_version_is_a_journal_error(journal: SqlJournal, body: str) -> None:
    await journal.keep_version(TEA)
    await change(journal, f"UPDATE versions SET body = '{body}'")
    with pytest.raises(JournalError, match="cannot be read"):
        await journal.versions(ADA, "mem_1")
