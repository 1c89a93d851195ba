"""Erasing what was learnt at once, in every order with it: nothing is left, and nothing comes back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from semmem.background.at_once import AtOnceLearner
from semmem.extraction.at_once import AtOnce
from semmem.extraction.rules import RulesExtractor
from semmem.memory import Forgetting, Memory, Scope
from semmem.ports.errors import WorkUnavailable
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


class Behind:
    """Words that cannot be taken out before the memory is hidden, and after that not before a whole batch has run."""

    def __init__(self, world: ErasedWorld) -> None:
        self._world, self._waiting, self._asked = world, world.erasing.erasure.waiting, 0

    async def take_out(self, user: str, memories: Sequence[Memory], *, until: float) -> tuple[int, int]:
        self._asked += 1
        if self._asked == 1:
            raise WorkUnavailable("busy")
        self._world.erasing.tasks.spawn("learner", self._world.learner.run())
        await self._world.quiet()
        return await self._waiting.take_out(user, memories, until=until)

    async def stating(self, passages: Sequence[Memory], memories: Sequence[Memory]) -> list[Memory]:
        return await self._waiting.stating(passages, memories)


async def test_what_a_batch_learns_while_a_memory_is_hidden_and_not_yet_gone_goes_with_it(tmp_path: Path) -> None:
    async with erased_world(tmp_path, learning=False) as world:
        learner = at_once(world)
        world.say("I keep bees. I live in Boston.")
        world.say("My dog is called Rufus.")
        await learnt(world, learner)
        bees = next(each for each in await world.store.list(Scope("alice")) if "bees" in each.content)
        world.erasing.erasure.waiting = Behind(world)
        receipt = await world.erasing.erasure.forget_memory(Scope("alice"), bees.id)
        assert receipt is not None
        assert receipt.memories == 2, "the batch had learnt it anew"
        assert await world.contents() == {"User lives in Boston", "User's dog is called Rufus"}
        kept = await world.store.list(Scope("alice"))
        assert not any(each.is_provisional for each in kept), "the batch has run"
        assert world.tables_with("bees") <= {"turns", "said_messages"}


@pytest.mark.parametrize("is_known", [True, False], ids=["looked", "nobody looked"])
async def test_of_what_is_learnt_of_the_turn_meanwhile_only_what_says_the_same_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """However it is dated where it is known what there was before."""
    async with erased_world(tmp_path, learning=False) as world:
        learner = at_once(world)
        world.say("I keep bees.")
        await learnt(world, learner)
        [bees] = await world.store.list(Scope("alice"))
        erasure, at = world.erasing.erasure, 1.0 if is_known else time.time()
        late = replace(bees, id="mem_late", created_at=at, updated_at=at)

        class Meanwhile(Behind):
            async def take_out(self, user: str, memories: Sequence[Memory], *, until: float) -> tuple[int, int]:
                await world.raw.put(Scope("alice"), late, replace(late, id="mem_else", content="User works at Acme"))
                return await self._waiting.take_out(user, memories, until=until)

        if is_known:
            erasure.waiting = Meanwhile(world)
            monkeypatch.setattr(erasure, "_unsay_first", _not_in_time)
        else:
            monkeypatch.setattr(erasure, "_beside", _not_in_time)
            await Meanwhile(world).take_out("alice", [], until=0.0)
        assert await erasure.forget_memory(Scope("alice"), bees.id) is not None
        assert await world.contents() == {"User works at Acme"}


async def _not_in_time(_what: Forgetting) -> None:
    return None


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
