"""The one step that undoes that a standing memory ended or changed: what was known before is known again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from semmem.memory import CHANGES_STANDING, Fact, Memory, MemoryStatus, MemoryType, Scope, Standing
from semmem.ports.errors import StoreUnavailable
from semmem.ports.events import MemoriesRemoved
from tests.core.extraction.provisional_world import BOSTON, SEATTLE, Found, ProvisionalWorld
from tests.core.management.test_curation_api import NOW, LifeApi

LONG = "User's budget for the big summer family vacation in Hawaii next year is {} dollars"
TEN, TWELVE, FIFTEEN = (LONG.format(number) for number in (10000, 12000, 15000))


def stands(content: str, turn_id: str) -> Fact:
    return Fact(MemoryType.SEMANTIC, content, turn_id, importance=0.9, standing=Standing.PROFILE)


LEARNT: Found = {
    "in Boston": [stands(BOSTON, "t-1")],
    "in Seattle": [SEATTLE],
    "10000 dollars": [stands(TEN, "t-1")],
    "12000 dollars": [stands(TWELVE, "t-2")],
    "15000 dollars": [FIFTEEN],
}
"""Two ways in which a standing memory ends: another memory takes its place, or it says something else."""
MOVED = ("I live in Boston", "Now I live in Seattle")
RAISED = (TEN.replace("User's", "My"), FIFTEEN.replace("User's", "My"))


class World(ProvisionalWorld):
    """What alice says, and the API that she calls."""

    def __init__(self, api: LifeApi) -> None:
        super().__init__(api.journal, api.store, local=LEARNT)
        self.api = api
        self.now = NOW - 1000.0

    async def changed(self, first: str, then: str, *, settled: bool, session: str = "s-1") -> Memory:
        """The memory with which a standing one ended or changed; ``settled``: its batch has learnt. ``session``: where
        that one was said."""
        await self.tell(first, scope=Scope("alice", session=session))
        await self.learn(session=session)
        await self.tell(then)
        if settled:
            await self.learn()
        [memory] = [each for each in await self.memories() if each.status is MemoryStatus.ACTIVE]
        assert memory.metadata.get(CHANGES_STANDING) is True
        assert memory.is_provisional is not settled
        return memory

    async def undo(self, memory: Memory, status: int = 200) -> dict[str, Any]:
        answer = await self.api.client.post(f"/{memory.id}/undo")
        assert answer.status_code == status, answer.text
        told: dict[str, Any] = answer.json()
        return told

    async def refused(self, memory: Memory) -> None:
        """There is nothing to undo, and nothing changes."""
        before = await self.memories()
        assert (await self.undo(memory, 409))["code"] == "NOTHING_TO_UNDO"
        assert await self.memories() == before

    async def said(self, memory: Memory) -> list[str]:
        """All that is in the memory's history, oldest first."""
        told = (await self.api.client.get(f"/{memory.id}/history")).json()
        return [version["content"] for version in (*told["versions"], told["current"])]


@pytest.fixture
async def alice(journal: Any) -> AsyncIterator[World]:
    api = LifeApi(journal)
    await api.store.open()
    yield World(api)
    await api.client.aclose()


# --- what is undone --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "provisional"])
async def test_what_took_the_place_of_a_standing_memory_goes_and_that_one_is_back(alice: World, settled: bool) -> None:
    seattle = await alice.changed(*MOVED, settled=settled)
    told = await alice.undo(seattle)
    assert (told["restored"], told["memory"]["id"], told["memory"]["status"]) == (1, seattle.id, "superseded")
    assert await alice.known() == {BOSTON: "settled"}
    assert set(await alice.said(seattle)) == {SEATTLE}
    history = (await alice.api.client.get(f"/{seattle.id}/history")).json()
    assert (history["current"]["superseded_by"], history["current"]["superseded_why"]) == (None, "undone")
    assert history["versions"][-1]["replaced_why"] == "undone"
    assert not any(memory.is_provisional for memory in await alice.memories())
    await alice.refused(seattle)


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "provisional"])
async def test_a_memory_that_changed_says_again_what_it_said_before(alice: World, settled: bool) -> None:
    changed = await alice.changed(*RAISED, settled=settled)
    told = await alice.undo(changed)
    assert (told["restored"], told["memory"]["id"], told["memory"]["content"]) == (0, changed.id, TEN)
    assert (told["memory"]["importance"], told["memory"]["metadata"]) == (0.9, {"standing": "profile"})
    assert told["memory"]["version"] == changed.version + 1
    assert await alice.known() == {TEN: "settled"}
    assert (await alice.said(changed))[-2:] == [FIFTEEN, TEN]
    [hit] = await alice.store.search(Scope("alice"), await alice.api.embedder.embed(TEN), limit=5, now=NOW)
    assert hit.cosine == pytest.approx(1.0, abs=1e-4)
    await alice.refused(changed)


@pytest.mark.parametrize(
    ("said", "known", "others"),
    [(MOVED, BOSTON, {"Seattle": ["User resides in Seattle"]}), (RAISED, TEN, {"15000": [FIFTEEN, TWELVE]})],
    ids=["another memory", "the same memory"],
)
async def test_the_batch_of_the_turn_does_not_bring_the_change_back(
    alice: World, said: tuple[str, str], known: str, others: Found
) -> None:
    await alice.undo(await alice.changed(*said, settled=False))
    assert (await alice.learn(others)).status == "nothing"
    assert await alice.known() == {known: "settled"}


async def test_what_a_batch_said_in_other_words_since_can_be_undone(alice: World) -> None:
    seattle = await alice.changed(*MOVED, settled=False)
    await alice.learn({"Seattle": ["User resides in Seattle"]})
    assert await alice.known() == {"User resides in Seattle": "settled"}
    assert (await alice.undo(seattle))["restored"] == 1
    assert await alice.known() == {BOSTON: "settled"}


async def test_other_words_that_are_another_turns_are_no_change_of_their_own(alice: World) -> None:
    changed = await alice.changed(*RAISED, settled=False)
    await alice.say("Summer, summer")
    other_words = f"{FIFTEEN} in all"
    await alice.learn({"Summer": [other_words]})
    [now] = await alice.memories()
    assert (now.content, now.source.turn) == (other_words, "t-3")
    assert (await alice.undo(changed))["memory"]["content"] == TEN


async def test_of_several_changes_the_last_one_is_undone_and_that_is_the_one_step(alice: World) -> None:
    await alice.tell(RAISED[0])
    await alice.learn()
    await alice.tell(TWELVE.replace("User's", "My"), RAISED[1])
    await alice.learn()
    [memory] = await alice.memories()
    assert memory.content == FIFTEEN
    assert (await alice.undo(memory))["memory"]["content"] == TWELVE
    await alice.refused(memory)


@pytest.mark.parametrize(("days_ago", "restored"), [(1, 0), (0, 1)], ids=["before", "with the change"])
async def test_of_what_a_memory_replaced_only_that_is_back_which_went_with_the_change(
    alice: World, days_ago: int, restored: int
) -> None:
    changed = await alice.changed(*RAISED, settled=True)
    why = {"superseded_by": changed.id, "superseded_why": "contradicted"}
    await alice.api.put("other", BOSTON, age_days=days_ago, status=MemoryStatus.SUPERSEDED, metadata=why)
    assert (await alice.undo(changed))["restored"] == restored
    assert set(await alice.known()) == ({TEN, BOSTON} if restored else {TEN})


async def test_an_undone_change_is_counted_once(alice: World) -> None:
    seattle = await alice.changed(*MOVED, settled=True)
    await alice.undo(seattle)
    await alice.refused(seattle)
    assert alice.api.announced == [MemoriesRemoved("undone", 1)]


# --- what is not -----------------------------------------------------------------------------------------------------


async def test_where_nothing_that_stands_ended_there_is_nothing_to_undo(alice: World) -> None:
    await alice.refused(await alice.api.put("m", "User likes tea"))


async def test_what_was_changed_or_replaced_since_is_not_undone(alice: World) -> None:
    changed = await alice.changed(*RAISED, settled=True)
    answer = await alice.api.client.put(f"/{changed.id}", json={"content": TWELVE})
    assert answer.status_code == 200, answer.text
    await alice.refused(changed)
    other = await alice.api.put("gone", SEATTLE, metadata={CHANGES_STANDING: True}, status=MemoryStatus.SUPERSEDED)
    await alice.refused(other)


async def test_what_only_matters_more_since_is_undone(alice: World) -> None:
    changed = await alice.changed(*RAISED, settled=True)
    assert (await alice.api.client.put(f"/{changed.id}", json={"importance": 1.0})).status_code == 200
    assert (await alice.undo(changed))["memory"]["content"] == TEN


async def test_somebody_elses_change_does_not_exist(alice: World) -> None:
    seattle = await alice.changed(*MOVED, settled=True)
    before = await alice.memories()
    answer = await alice.api.client.post(f"/{seattle.id}/undo", headers={"x-user-id": "bob"})
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
    assert await alice.memories() == before


async def test_while_somebody_is_at_work_on_the_memories_nothing_is_undone(alice: World) -> None:
    seattle = await alice.changed(*MOVED, settled=True)
    held = await alice.journal.hold("alice", now=NOW, lease_s=60.0)
    assert (await alice.undo(seattle, 409))["code"] == "BUSY"
    assert await alice.known() == {SEATTLE: "settled"}
    await alice.journal.release(held)
    await alice.undo(seattle)


# --- what was erased -------------------------------------------------------------------------------------------------


async def test_what_was_erased_since_does_not_come_back(alice: World) -> None:
    seattle = await alice.changed(*MOVED, settled=True)
    [boston] = [memory for memory in await alice.memories() if memory.content == BOSTON]
    await alice.api.client.delete(f"/{boston.id}")
    await alice.refused(seattle)
    assert await alice.known() == {SEATTLE: "settled"}
    await alice.api.client.delete(f"/{seattle.id}")
    assert (await alice.undo(seattle, 404))["code"] == "NOT_FOUND"


@pytest.mark.parametrize("said", [MOVED, RAISED], ids=["another memory", "the same memory"])
async def test_a_change_that_is_erased_while_it_is_undone_is_gone(
    alice: World, said: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = await alice.changed(*said, settled=True)

    async def erased(*_: str) -> None:
        assert (await alice.api.client.delete(f"/{changed.id}")).json()["deleted"] == 1

    monkeypatch.setattr(alice.journal, "shut", erased)
    await alice.undo(changed, 404)
    assert sum(event.number for event in alice.api.announced if isinstance(event, MemoriesRemoved)) == 0
    assert await alice.store.get(Scope("alice"), changed.id) is None
    assert await alice.journal.versions(Scope("alice"), changed.id) == []


async def test_what_is_back_may_be_erased_and_what_was_undone_stays_undone(alice: World) -> None:
    """What a memory that is erased with its session has replaced is retrieved again; this was not replaced by it."""
    await alice.undo(await alice.changed(*MOVED, settled=True, session="s-0"))
    assert await alice.known() == {BOSTON: "settled"}
    await alice.api.client.delete("http://semmem/v1/memory", params={"session_id": "s-0"})
    assert [(memory.content, memory.status) for memory in await alice.memories()] == [(SEATTLE, "superseded")]


# --- what fails ------------------------------------------------------------------------------------------------------


async def test_an_undo_that_was_cut_off_is_done_by_the_next_call(alice: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was replaced is back first: at no moment is nothing known."""
    seattle = await alice.changed(*MOVED, settled=True)
    put = alice.store.put

    async def failing(scope: Scope, memory: Memory) -> None:
        if memory.id == seattle.id:
            raise StoreUnavailable("store.put")
        await put(scope, memory)

    monkeypatch.setattr(alice.store, "put", failing)
    assert (await alice.undo(seattle, 503))["code"] == "MEMORY_NOT_AVAILABLE"
    assert set(await alice.known()) == {BOSTON, SEATTLE}
    monkeypatch.undo()
    await alice.undo(seattle)
    assert await alice.known() == {BOSTON: "settled"}
    await alice.refused(seattle)
