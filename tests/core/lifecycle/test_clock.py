"""A clock that was set back between what was said and its erasure, or a replica whose clock goes ahead."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from semmem.memory import Memory, Scope, Source
from tests.core.lifecycle.erased_world import ErasedWorld, erased_world

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
