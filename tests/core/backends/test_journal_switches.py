"""Contract of every journal's switches: what was set holds, is numbered, told to others, and names no user."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from semmem.backends.sql.accounts import UNSAID_KEPT_S
from semmem.backends.sql.database import SWITCHED
from semmem.backends.sql.journal import SqlJournal
from semmem.background import Tasks
from semmem.memory import Forgetting, Scope
from semmem.ports.accounts import UNSAID, Switch
from semmem.request.switches import group_key, user_key
from tests.support.journal_samples import Place

OFF, ON = Switch(False, False), Switch(True, True)
ALICE, STAFF = user_key("alice"), group_key("staff")
DAY_S = 86_400.0


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(place)
    await made.open()
    yield made
    await made.close()


async def said(
    journal: SqlJournal, key: str, switch: Switch, *, group: str = "", now: float = 100.0, limit: int = 10
) -> bool:
    return await journal.set_switch(key, group, switch, now=now, entries_max=limit)


async def test_what_is_set_last_holds_and_each_change_has_a_greater_number(journal: SqlJournal) -> None:
    assert await said(journal, ALICE, OFF)
    assert await said(journal, STAFF, Switch(storing=False), group="staff", now=101.0)
    assert await said(journal, ALICE, Switch(reading=True), now=102.0)
    staff, alice = await journal.switches_since(0)
    assert (staff.key, staff.group, staff.switch, staff.changed_at) == (STAFF, "staff", Switch(storing=False), 101.0)
    assert (alice.key, alice.group, alice.switch, alice.changed_at) == (ALICE, "", Switch(reading=True), 102.0)
    assert (staff.number, alice.number) == (2, 3)
    assert await journal.switches_since(2) == [alice]
    assert await journal.switches_since(3) == []


async def test_what_is_not_said_any_more_is_told_for_a_day_and_then_gone(journal: SqlJournal) -> None:
    await said(journal, ALICE, OFF)
    await said(journal, ALICE, UNSAID, now=101.0)
    assert [(row.key, row.switch) for row in await journal.switches_since(0)] == [(ALICE, UNSAID)]
    await said(journal, STAFF, OFF, group="staff", now=101.0 + UNSAID_KEPT_S + 1)
    assert [row.key for row in await journal.switches_since(0)] == [STAFF]


async def test_there_are_only_so_many_and_those_that_are_there_can_be_changed(journal: SqlJournal) -> None:
    assert await said(journal, ALICE, OFF, limit=1)
    assert not await said(journal, STAFF, OFF, group="staff", limit=1)
    assert await said(journal, ALICE, ON, limit=1)
    assert await said(journal, ALICE, UNSAID, limit=1)
    assert await said(journal, STAFF, OFF, group="staff", limit=1)
    assert [(row.key, row.switch) for row in await journal.switches_since(0)] == [(ALICE, UNSAID), (STAFF, OFF)]


async def test_they_outlive_the_erasure_of_their_user(journal: SqlJournal) -> None:
    await said(journal, ALICE, OFF)
    what = Forgetting(Scope("alice"), at=200.0)
    hold, _ = await journal.begin_erasure(what, now=200.0)
    await journal.finish_erasure(what, hold)
    assert [(row.key, row.switch) for row in await journal.switches_since(0)] == [(ALICE, OFF)]


async def test_many_at_once_have_a_number_each(journal: SqlJournal) -> None:
    await asyncio.gather(*(said(journal, user_key(f"user {n}"), OFF, limit=100) for n in range(20)))
    assert [row.number for row in await journal.switches_since(0)] == list(range(1, 21))


async def test_others_on_a_server_hear_that_something_changed(journal: SqlJournal, place: Place) -> None:
    heard: list[str] = []
    listening = Tasks().spawn("listening", journal.listen(heard.append))
    other = SqlJournal(place)
    await other.open()
    try:
        for _ in range(200):
            await asyncio.sleep(0.01)
            if heard or listening.done():
                break
        await said(other, ALICE, OFF)
        for _ in range(200):
            if SWITCHED in heard or listening.done():
                break
            await asyncio.sleep(0.01)
        assert listening.done() or SWITCHED in heard  # a file has nobody to tell
        assert listening.done() == (not str(place).startswith("postgres"))
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await other.close()
