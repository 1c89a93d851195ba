"""A clock that was set back before an erasure or after it, or a replica whose clock goes ahead."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from semmem.lifecycle.hiding_store import Marks
from semmem.memory import Forgetting, Memory, Scope, Source
from tests.core.lifecycle.erased_world import ErasedWorld, erased_world
from tests.support.memories import memory

HOUR_S = 3600.0


async def said_ahead(world: ErasedWorld) -> Memory:
    """A memory whose words were said an hour from now."""
    assert (await world.create("User likes tea", project_id="p")).status_code == 201
    [memory] = await world.raw.list(Scope("alice"))
    later = replace(memory, version=2, source=Source("user", "s", "t", time=time.time() + HOUR_S))
    await world.journal.keep_version(memory)
    await world.raw.put(Scope("alice"), later)
    return later


@pytest.mark.parametrize("what", ["one", "a project", "a kind", "all"])
async def test_what_was_said_ahead_of_the_clock_is_erased_like_everything(tmp_path: Path, what: str) -> None:
    async with erased_world(tmp_path) as world:
        memory = await said_ahead(world)
        path = f"/{memory.id}" if what == "one" else ""
        narrow = {"a project": {"project_id": "p"}, "a kind": {"type": "semantic"}}.get(what, {})
        answer = await world.delete(path, **narrow)
        assert (answer.status_code, answer.json()["deleted"]) == (200, 1)
        assert len(world.raw) == 0
        assert world.rows()["versions"] == world.rows()["pending_erasures"] == []


async def test_words_after_it_are_learnt_as_usual(tmp_path: Path) -> None:
    async with erased_world(tmp_path) as world:
        await said_ahead(world)
        await world.delete()
        world.say("I live in Porto", opened_at=world.erasing.after("alice", time.time()))
        await world.quiet()
        assert await world.contents() == {"User lives in Porto"}


async def test_words_after_an_erasure_by_a_clock_that_was_ahead_are_learnt_and_shown(tmp_path: Path) -> None:
    async with erased_world(tmp_path) as world:
        assert (await world.create("User likes tea")).status_code == 201
        world.erasing.erasure.clock = world.journal._clock.now = lambda: time.time() + HOUR_S
        assert (await world.delete()).json()["deleted"] == 1
        world.erasing.erasure.clock = world.journal._clock.now = time.time
        world.say("I live in Porto", opened_at=time.time())
        await world.quiet()
        assert await world.contents() == {"User lives in Porto"}
        assert (await world.delete()).json()["deleted"] == 1
        world.say("I live in Lisbon", opened_at=time.time())
        await world.quiet()
        assert await world.contents() == {"User lives in Lisbon"}


def test_what_is_hidden_by_a_clock_that_was_ahead_is_what_was_said_before_it_was(tmp_path: Path) -> None:
    wall, passed_s = 10_000.0, 0.0
    marks = Marks(clock=lambda: passed_s, wall=lambda: wall)
    marks.hold(Forgetting(Scope("alice"), wall + HOUR_S))
    passed_s += 10.0
    wall += 10.0
    for said_at, is_hidden in ((9_999.0, True), (10_005.0, False), (10_010.0, False), (wall + HOUR_S / 2, True)):
        said = memory("alice", source=Source("user", "s", "t", time=said_at))
        assert marks.cover(said) is is_hidden, said_at
