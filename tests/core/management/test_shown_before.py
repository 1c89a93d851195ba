"""What a preview says of the blocks that a session's prompts have already, and that it changes none of them."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.background import Tasks
from semmem.exchange import RequestResult
from semmem.lifecycle.quota import Quota
from semmem.management.access import AccessRules
from semmem.management.api import create_api
from semmem.management.memories import Memories
from semmem.memory import SUPERSEDED_BY, SUPERSEDED_WHY, UPDATED, MemoryStatus, Scope
from semmem.ports.session_states import ShownBlock
from semmem.retrieval.ledger.ledger import Ledger
from semmem.retrieval.recall import Recall
from semmem.retrieval.showing import Showing
from tests.core.exchange.world import BUDGET, NOW, PATIENT, QUESTION, World, prompt
from tests.support.described import described_client
from tests.support.empty_journal import empty_journal
from tests.support.erasing import Erasing
from tests.support.fakes import HashEmbedder

FILE = "journal.db"
ALICE = {"x-user-id": "alice"}
MUSEUM = "User's Hawaii trip budget is apart from the museum tickets"
LATER = "And the museum tickets of the Hawaii trip?"


class House:
    """Requests and the API on one store, one journal and one ledger."""

    def __init__(self, journal: SqlJournal, file: Path, position: str = "turn") -> None:
        self.journal, self.file = journal, file
        self.rules = replace(PATIENT, position=position, user_role_models=("o1",))
        self.ledger = Ledger(journal, spawn=Tasks().spawn)
        self.world = World(ledger=self.ledger, rules=self.rules)
        self.client = self.api(self.ledger)

    def api(self, ledger: Ledger) -> httpx.AsyncClient:
        """The API of a process with this ledger."""
        erasing = Erasing(self.world.store, self.journal, clock=lambda: NOW)
        recall = Recall(self.world.memories, HashEmbedder(), self.rules, decision=self.world.decision)
        memories = Memories(
            erasing.store,
            HashEmbedder(),
            self.journal,
            Quota(self.world.store, self.journal),
            recall,
            clock=lambda: NOW,
            erasure=erasing.erasure,
            holds=erasing.holds,
            showing=Showing(ledger, recall),
        )
        return described_client(create_api(memories, AccessRules(trusted_headers=("x-user-id",))))

    async def preview(self, query: str = QUESTION, **asked: Any) -> dict[str, Any]:
        body = {"query": query, "session_id": "s", **asked}
        answer = await self.client.post("/v1/memory/preview", headers=ALICE, json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def ask(self, *texts: str, **members: Any) -> RequestResult:
        """The user's messages, with an answer after each but the last."""
        said = [{"role": "user", "content": texts[0]}]
        for text in texts[1:]:
            said += [{"role": "assistant", "content": "Noted."}, {"role": "user", "content": text}]
        return await self.world.ask({"messages": said, **members}, x_session_id="s")

    async def changed(self, content: str, **fields: Any) -> None:
        [old] = [memory for memory in await self.world.store.list(Scope("alice")) if memory.content == content]
        await self.world.store.put(Scope("alice"), replace(old, version=old.version + 1, **fields))
        self.world.memories.forget_user("alice")


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[SqlJournal]:
    journal = SqlJournal(empty_journal(tmp_path / FILE))
    await journal.open()
    await journal.register_user("alice")
    yield journal
    await journal.close()


@pytest.fixture
async def house(journal: SqlJournal, tmp_path: Path) -> AsyncIterator[House]:
    house = House(journal, tmp_path / FILE)
    await house.world.knows(BUDGET)
    yield house
    await house.client.aclose()
    await house.ledger.flush()


def lines(block: str) -> list[str]:
    """Those between the fences, which each process marks with a key of its own here."""
    return block.strip().splitlines()[1:-1]


def said(found: dict[str, Any]) -> dict[str, bool]:
    return {memory["content"]: memory["in_prompt"] for memory in found["memories"]}


async def test_before_its_first_request_a_session_was_shown_nothing(house: House) -> None:
    found = await house.preview()
    assert (found["shown_before"], found["compacted"], said(found)) == ([], False, {BUDGET: False})
    assert BUDGET in found["block"]


async def test_what_is_in_the_prompt_already_is_marked_and_not_added_again(house: House) -> None:
    sent = await house.ask(QUESTION)
    found = await house.preview()
    [block] = found["shown_before"]
    assert block in prompt(sent)
    assert BUDGET in block
    assert (said(found), found["block"], found["tokens"]) == ({BUDGET: True}, "", 0)
    assert [(memory["kept"], memory["reason"]) for memory in found["memories"]] == [(True, "kept")]

    await house.world.knows(MUSEUM)
    house.world.memories.forget_user("alice")
    found = await house.preview(LATER)
    assert said(found) == {BUDGET: True, MUSEUM: False}
    assert MUSEUM in found["block"]
    assert BUDGET not in found["block"]
    following = prompt(await house.ask(QUESTION, LATER))
    shown = (await house.preview(LATER))["shown_before"]
    assert [lines(text) for text in shown] == [lines(block), lines(found["block"])]
    assert following.index(shown[0]) < following.index(shown[1])


async def test_a_preview_changes_nothing_of_what_sessions_were_shown(house: House) -> None:
    await house.preview()
    assert not house.ledger.has_any("alice")
    sent = await house.ask(QUESTION)
    await house.ledger.flush()
    kept = rows(house)
    assert kept
    await house.preview()
    await house.preview(session_id="another")
    assert (len(house.ledger), rows(house)) == (1, kept)
    assert prompt(await house.ask(QUESTION, "Thanks!")).startswith(prompt(sent)), "the next one goes on from it"


def rows(house: House) -> list[str]:
    with closing(sqlite3.connect(house.file)) as journal:
        return [repr(row) for row in journal.execute("SELECT * FROM shown_blocks ORDER BY anchor")]


async def test_what_another_process_wrote_is_seen_and_not_taken_in(house: House) -> None:
    await house.ask(QUESTION)
    shown = (await house.preview())["shown_before"]
    elsewhere = Ledger(house.journal, spawn=Tasks().spawn)
    async with house.api(elsewhere) as client:
        asked = {"query": QUESTION, "session_id": "s"}
        found = (await client.post("/v1/memory/preview", headers=ALICE, json=asked)).json()
    assert found["shown_before"] == shown
    assert len(elsewhere) == 0


@pytest.mark.parametrize(
    "other", [{"session_id": "t"}, {"session_id": None}, {"project_id": "p"}, {"limit": 3}, {"model": "o1"}]
)
async def test_another_page_is_not_looked_at(house: House, other: dict[str, Any]) -> None:
    await house.ask(QUESTION)
    assert (await house.preview(**other))["shown_before"] == []


async def test_who_a_body_says_it_is_from_makes_no_other_page(house: House) -> None:
    await house.ask(QUESTION, user="somebody", auto_store=False)
    assert len((await house.preview())["shown_before"]) == 1


async def test_nobody_else_is_shown_it(house: House) -> None:
    await house.ask(QUESTION)
    asked = {"query": QUESTION, "session_id": "s"}
    found = (await house.client.post("/v1/memory/preview", headers={"x-user-id": "bob"}, json=asked)).json()
    assert (found["shown_before"], found["memories"]) == ([], [])


async def test_what_may_not_be_shown_again_is_not_there_and_goes_with_the_next_request_only(house: House) -> None:
    await house.ask(QUESTION)
    await house.changed(BUDGET, status=MemoryStatus.QUARANTINED)
    found = await house.preview()
    assert (found["shown_before"], found["block"]) == ([], "")
    await house.changed(BUDGET, status=MemoryStatus.ACTIVE)
    assert len((await house.preview())["shown_before"]) == 1


async def test_what_holds_now_in_place_of_what_was_shown_is_added(house: House) -> None:
    now = "User's budget for the Hawaii trip is $12,000"
    await house.ask(QUESTION)
    await house.world.knows(now, id="mem_new")
    metadata = {SUPERSEDED_BY: "mem_new", SUPERSEDED_WHY: UPDATED}
    await house.changed(BUDGET, status=MemoryStatus.SUPERSEDED, metadata=metadata)
    found = await house.preview("Bees and wasps")
    assert [BUDGET in block for block in found["shown_before"]] == [True]
    assert now in found["block"]
    assert found["memories"][0]["reason"] == "correction"
    assert [memory["content"] for memory in found["memories"]].count(now) == 1
    assert now in prompt(await house.ask(QUESTION, "Bees and wasps"))


async def test_where_both_have_no_room_the_earlier_blocks_would_go(house: House) -> None:
    await house.ask(QUESTION)
    shown = await house.preview()
    await house.world.knows(MUSEUM)
    house.world.memories.forget_user("alice")
    room = (await house.preview(LATER, session_id=None))["tokens"]
    found = await house.preview(LATER, tokens_max=room)
    assert (found["shown_before"], found["compacted"]) == (shown["shown_before"], True)
    assert BUDGET in found["block"]
    assert MUSEUM in found["block"]
    assert not (await house.preview(LATER))["compacted"]


async def test_at_another_position_no_earlier_block_stays(journal: SqlJournal, tmp_path: Path) -> None:
    house = House(journal, tmp_path / FILE, position="system")
    await house.world.knows(BUDGET)
    await house.ask(QUESTION)
    found = await house.preview()
    assert (found["shown_before"], said(found)) == ([], {BUDGET: False})
    assert BUDGET in found["block"]
    await house.client.aclose()
    await house.ledger.flush()


async def test_what_was_read_before_an_erasure_is_not_shown_after_it(house: House) -> None:
    await house.ask(QUESTION)
    await house.ledger.flush()
    [name] = house.ledger._of_user["alice"]

    class Slow:
        """A journal that answers after everything of the user's was erased."""

        async def shown_blocks(self, user: str, session: str, *, now: float) -> list[ShownBlock]:
            found = await house.journal.shown_blocks(user, session, now=now)
            house.ledger.forget(user)
            return found

    house.ledger._records = Slow()  # type: ignore[assignment]
    assert (await house.ledger.look("alice", name, now=NOW)).blocks == {}
