"""``all=true``: everybody is forgotten, one after another, whoever store and journal know; nobody without the word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from semmem.lifecycle import everybody
from semmem.memory import Scope
from tests.core.lifecycle.erased_world import ADMIN, ErasedWorld, erased_world

USERS = [f"user-{number}" for number in range(7)]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ErasedWorld]:
    async with erased_world(tmp_path) as made:
        yield made


async def tell(world: ErasedWorld) -> None:
    for user in USERS:
        assert (await world.create(f"User lives in {user}", user_id=user)).status_code == 201


async def contents(world: ErasedWorld) -> int:
    return sum([len(await world.contents(user)) for user in USERS])


async def test_without_a_user_and_without_the_word_nothing_goes(world: ErasedWorld) -> None:
    await tell(world)
    for params in ({}, {"all": "false"}):
        answer = await world.http.delete("/v1/memory", params=params, headers=ADMIN)
        assert (answer.status_code, answer.json()["code"]) == (401, "MISSING_USER_ID")
    assert await contents(world) == len(USERS)


async def test_beside_a_user_the_word_is_refused(world: ErasedWorld) -> None:
    await tell(world)
    answer = await world.delete(all="true")
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")
    assert await contents(world) == len(USERS)


async def test_everybodys_memories_turns_and_names_go_with_one_receipt(world: ErasedWorld) -> None:
    await tell(world)
    world.say("I live in Lisbon", scope=Scope("user-6", session="s"))
    await world.quiet()
    answer = await world.http.delete("/v1/memory", params={"all": "true"}, headers=ADMIN)
    told = answer.json()
    assert (answer.status_code, told["users"], told["receipt"]["turns"]) == (200, len(USERS), 1)
    assert told["deleted"] == len(USERS) + 1
    assert await contents(world) == 0
    assert world.tables_with("user-", "Lisbon") == set()


async def test_who_only_said_something_that_waits_is_forgotten_too(
    world: ErasedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(everybody, "SLICE", 2)  # names come in several slices
    for user in USERS:
        world.say("I live in Lisbon", scope=Scope(user, session="s"))
    await asyncio.sleep(0.05)
    await world.http.delete("/v1/memory", params={"all": "true"}, headers=ADMIN)
    await world.quiet()
    assert await contents(world) == 0
    assert world.tables_with("user-", "Lisbon") == set()


async def test_what_is_younger_stays(world: ErasedWorld) -> None:
    await tell(world)
    answer = await world.http.delete("/v1/memory", params={"all": "true", "older_than_days": 1}, headers=ADMIN)
    assert (answer.json()["deleted"], answer.json()["users"]) == (0, 0)
    assert await contents(world) == len(USERS)


async def test_another_project_stays(world: ErasedWorld) -> None:
    await tell(world)
    await world.create("User keeps bees", user_id="user-1", project_id="hive")
    answer = await world.http.delete("/v1/memory", params={"all": "true", "project_id": "hive"}, headers=ADMIN)
    assert (answer.json()["deleted"], answer.json()["users"]) == (1, 1)
    assert await contents(world) == len(USERS)


async def test_where_one_is_pending_the_others_are_erased_and_success_is_not_said(
    world: ErasedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tell(world)
    erase = world.raw.forget_scope
    failed: list[str] = []

    async def fails_once(scope: Scope, **narrow: object) -> int:
        if scope.user == "user-3" and not failed:
            failed.append(scope.user)
            world.raw.down = True
            try:
                return await erase(scope, **narrow)
            finally:
                world.raw.down = False
        return await erase(scope, **narrow)

    monkeypatch.setattr(world.raw, "forget_scope", fails_once)
    answer = await world.http.delete("/v1/memory", params={"all": "true"}, headers=ADMIN)
    told = answer.json()
    assert (answer.status_code, told["code"], told["success"]) == (503, "ERASURE_PENDING", False)
    assert told["receipt"]["memories"] == len(USERS) - 1
    assert await contents(world) == 0  # the one that is pending is hidden
    assert await world.erasing.erasure.finish_pending() == 0
