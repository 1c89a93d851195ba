"""Everybody's memories, a page at a time. Who may ask is test_roles.py's."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from semmem.backends.in_process import InProcessStore
from semmem.backends.sql.journal import SqlJournal
from semmem.management import everybodys_api
from semmem.management.access import AccessRules
from semmem.management.api import create_api
from semmem.management.everybodys_api import everybodys_routes, page_of_everybody
from semmem.management.shown import MemoryShown
from semmem.memory import Memory, Scope
from tests.core.management.test_api import ADMIN, Api
from tests.support.described import described_client
from tests.support.empty_journal import empty_journal
from tests.support.memories import memory, put

NAMES = ["ada", "bob", "阿達", "dora", "eve " * 60]


class World:
    def __init__(self, journal: SqlJournal) -> None:
        self.journal, self.store = journal, InProcessStore()

    async def tell(self, user: str, *numbers: int) -> None:
        await self.journal.register_user(user)
        await put(self.store, *(memory(user, f"m{number}", created_at=float(number)) for number in numbers))

    async def all(self, *, limit: int) -> tuple[list[tuple[str, str]], int]:
        """Whose and which, over all pages; how many pages."""
        found: list[MemoryShown] = []
        cursor, number = None, 0
        while True:
            page = await page_of_everybody(self.store, self.journal, limit=limit, cursor=cursor)
            found += page["memories"]
            number += 1
            if (cursor := page["next_cursor"]) is None:
                return [(one["user_id"], one["id"]) for one in found], number


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    journal = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await journal.open()
    made = World(journal)
    await made.store.open()
    yield made
    await journal.close()


async def test_where_nobody_has_anything_there_is_one_empty_page(world: World) -> None:
    assert await world.all(limit=5) == ([], 1)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
async def test_each_is_there_once_whatever_the_pages(world: World, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(everybodys_api, "USERS_READ_MAX", 2)
    told = {name: range(number) for number, name in enumerate(NAMES)}
    for name, numbers in told.items():
        await world.tell(name, *numbers)
    found, pages = await world.all(limit=limit)
    assert found == [(name, f"m{number}") for name in sorted(NAMES) for number in reversed(told[name])]
    assert pages <= len(found) + len(NAMES)


async def test_a_page_that_is_full_with_the_last_of_all_is_the_last(world: World) -> None:
    await world.tell("ada", 1, 2)
    await world.tell("bob", 1, 2)
    assert (await world.all(limit=2))[1] == 2
    assert (await world.all(limit=4))[1] == 1


async def test_who_was_shown_whole_is_not_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    listed = world.store.list

    async def list_and_tell(scope: Scope, **asked: Any) -> list[Memory]:
        read.append(scope.user)
        return await listed(scope, **asked)

    monkeypatch.setattr(world.store, "list", list_and_tell)
    for name in ("ada", "bob", "carl"):
        await world.tell(name, 1, 2)
    assert await world.all(limit=2) == ([(name, f"m{n}") for name in ("ada", "bob", "carl") for n in (2, 1)], 3)
    assert read == ["ada", "bob", "carl"]


async def test_what_is_written_and_erased_meanwhile_moves_nobody_elses(world: World) -> None:
    for name in ("ada", "bob", "carl"):
        await world.tell(name, 1, 2, 3)
    first = await page_of_everybody(world.store, world.journal, limit=4, cursor=None)
    assert first["memories"][-1]["id"] == "m3"
    await world.tell("bob", 4)  # newer than what was shown: on a page before
    await world.store.forget(Scope("bob"), "m3")  # the one that the cursor names
    await world.tell("ann", 1)  # before
    rest = await page_of_everybody(world.store, world.journal, limit=100, cursor=first["next_cursor"])
    assert [(one["user_id"], one["id"]) for one in rest["memories"]] == [
        ("bob", "m2"), ("bob", "m1"), ("carl", "m3"), ("carl", "m2"), ("carl", "m1"),
    ]  # fmt: skip
    assert rest["next_cursor"] is None


@pytest.fixture
def client(world: World) -> httpx.AsyncClient:
    api = Api(world.journal)
    more = [everybodys_routes(world.store, world.journal)]
    return described_client(create_api(api.memories, AccessRules(admin_token="secret-token"), more=more))


def spelled(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


FOREIGN = ("[]", '["a", 1, "b"]', '["a", 1.5]', '[["a"]]', "{}", "[" * 5000)


@pytest.mark.parametrize("cursor", ["?", "abc", *map(spelled, FOREIGN)])
async def test_what_was_not_made_here_is_refused(client: httpx.AsyncClient, cursor: str) -> None:
    answer = await client.get("/v1/memories", params={"cursor": cursor}, headers=ADMIN)
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_CURSOR")


async def test_the_route_goes_on_where_it_was(world: World, client: httpx.AsyncClient) -> None:
    await world.tell("ada", 1, 2)
    await world.tell(NAMES[4], 1)
    told = (await client.get("/v1/memories", params={"limit": 2}, headers=ADMIN)).json()
    assert [(one["user_id"], one["id"]) for one in told["memories"]] == [("ada", "m2"), ("ada", "m1")]
    asked = {"limit": 2, "cursor": told["next_cursor"]}
    told = (await client.get("/v1/memories", params=asked, headers=ADMIN)).json()
    assert [(one["user_id"], one["id"]) for one in told["memories"]] == [(NAMES[4], "m1")]
    assert told["next_cursor"] is None
