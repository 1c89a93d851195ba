"""Erasing what was learnt at once, in every order with it: nothing is left, and nothing comes back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from semmem.background.at_once import AtOnceLearner
from semmem.extraction.at_once import AtOnce
from semmem.extraction.rules import RulesExtractor
from semmem.memory import Scope
from tests.core.lifecycle.erased_world import ALICE, ErasedWorld, Store, erased_world


def at_once(world: ErasedWorld) -> AtOnceLearner:
    """Learns from what the world's writer commits, as a running semmem does."""
    made = AtOnceLearner(
        AtOnce(world.journal, RulesExtractor(), world.learning.storing), world.learning.settling, world.erasing.holds
    )
    world.erasing.writer.committed = made.committed
    return made


async def learnt(world: ErasedWorld, learner: AtOnceLearner) -> None:
    assert await world.writer.drained(5.0)
    assert await learner.drained(10.0)


@pytest.mark.parametrize("path", ["", "/{id}"], ids=["user", "memory"])
async def test_what_was_learnt_at_once_is_erased_and_its_batch_does_not_bring_it_back(
    tmp_path: Path, path: str
) -> None:
    async with erased_world(tmp_path, learning=False) as world:
        learner = at_once(world)
        world.say("I keep bees.")
        await learnt(world, learner)
        [memory] = await world.store.list(Scope("alice"))
        assert memory.is_provisional
        answer = await world.delete(path.format(id=memory.id))
        assert answer.status_code == 200
        world.erasing.tasks.spawn("learner", world.learner.run())
        await world.quiet()
        assert await world.contents() == set()
        if not path:
            assert world.tables_with("bees", "alice") == set()


async def test_by_session_the_others_stay(tmp_path: Path) -> None:
    async with erased_world(tmp_path, learning=False) as world:
        learner = at_once(world)
        world.say("I keep bees.")
        world.say("I live in Boston.", scope=Scope("alice", session="other"))
        await learnt(world, learner)
        assert len(await world.contents()) == 2
        await world.erasing.erasure.forget_scope(ALICE)
        assert await world.contents() == {"User lives in Boston"}
        world.erasing.tasks.spawn("learner", world.learner.run())
        await world.quiet()
        assert await world.contents() == {"User lives in Boston"}


@pytest.mark.parametrize("wait_s", [0.0, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05])
@pytest.mark.parametrize("scope", [Scope("alice"), ALICE], ids=["user", "session"])
async def test_an_erasure_at_any_moment_of_it_leaves_nothing(tmp_path: Path, wait_s: float, scope: Scope) -> None:
    store = Store()
    store.pause_s = 0.005
    async with erased_world(tmp_path, store=store) as world:
        learner = at_once(world)
        world.say("I keep bees. I live in Boston. My dog is called Rufus.")
        await asyncio.sleep(wait_s)
        await world.erasing.erasure.forget_scope(scope)
        await learnt(world, learner)
        await world.quiet()
        assert await world.contents() == set()
        assert await store.list(Scope("alice")) == []
        assert world.rows()["provisional"] == []


async def test_what_is_said_after_an_erasure_is_learnt_at_once_again(tmp_path: Path) -> None:
    async with erased_world(tmp_path, learning=False) as world:
        learner = at_once(world)
        world.say("I keep bees.")
        await learnt(world, learner)
        await world.delete()
        world.say("I keep bees.")
        await learnt(world, learner)
        [memory] = await world.store.list(Scope("alice"))
        assert memory.is_provisional
