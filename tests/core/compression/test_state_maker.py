"""What waits to be made into states: how much, in which order, and when not again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest
from msgspec import structs

from semmem.background import Tasks
from semmem.background.derived import StateMaker
from semmem.compression.compressor import KnownStates
from semmem.compression.cutting import Part
from semmem.compression.making import Job, Making, ModelWriter
from semmem.extraction.work import InThread
from semmem.memory import Role
from semmem.ports.errors import JournalError, ModelUnavailable
from semmem.ports.events import Event, StateMade
from semmem.ports.session_states import CurrentState, SessionState

JOB = Job("alice", "s1", 4, "d", 10, 100.0, (Part(Role.USER, "We have 3 dogs in Ghent."),), ())


@dataclass
class Records:
    """Keeps what it is given, as far as it may be kept."""

    kept: dict[tuple[str, str], SessionState] = field(default_factory=dict)
    refuses: bool = False
    broken: bool = False
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def session_states(self, user: str, session: str, *, now: float) -> list[SessionState]:
        return [self.kept[user, session]] if (user, session) in self.kept else []

    async def keep_state(self, state: SessionState, said: object, *, per_session: int, per_user: int) -> bool:
        await self.gate.wait()
        if self.broken:
            raise JournalError("locked")
        if not self.refuses:
            self.kept[state.user, state.session] = state
        return not self.refuses


class World:
    def __init__(self) -> None:
        self.records = Records()
        self.events: list[Event] = []
        making = Making(self.records, InThread(), tokens_max=650, ttl_s=60.0, budget_s=5.0, clock=lambda: 200.0)
        self.known = KnownStates(self.records, sessions_max=10, refresh_s=30.0)
        self.maker = StateMaker(making, self.known, self.events.append, queue_max=2, again_turns=5, clock=lambda: 200.0)

    async def settled(self) -> list[str]:
        """Everything is made; how it went, since the last time."""
        self.records.gate.set()
        while len(self.maker):
            await asyncio.sleep(0.002)
        results = [event.result for event in self.events if isinstance(event, StateMade)]
        self.events.clear()
        return results


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made, tasks = World(), Tasks()
    tasks.spawn("states", made.maker.run())
    yield made
    await tasks.cancel()


async def test_a_state_is_made_kept_and_known_at_once(world: World) -> None:
    assert await world.known.states("alice", "s1", now=150.0) == []
    world.maker.offer(JOB)
    assert await world.settled() == ["rules"]
    state = world.records.kept["alice", "s1"]
    assert (state.turns, state.replaced, state.expires_at) == (10, 4, 260.0)
    assert await world.known.states("alice", "s1", now=150.0) == [state]


async def test_of_a_session_the_newest_waits_and_of_too_many_sessions_some_are_dropped(world: World) -> None:
    world.maker.offer(structs.replace(JOB, session="first"))
    while world.maker._waiting:
        await asyncio.sleep(0)
    for turns in (11, 12):
        world.maker.offer(structs.replace(JOB, turns=turns))
    for session in ("s2", "s3", "first"):
        world.maker.offer(structs.replace(JOB, session=session))
    assert len(world.maker) == 3
    assert sorted(await world.settled()) == ["dropped", "rules", "rules", "rules"]
    assert world.records.kept["alice", "s1"].turns == 12
    assert ("alice", "s3") not in world.records.kept


@pytest.mark.parametrize(("fault", "word"), [("refuses", "refused"), ("broken", "failed")])
async def test_a_session_without_a_state_is_tried_again_some_turns_later(world: World, fault: str, word: str) -> None:
    setattr(world.records, fault, True)
    world.maker.offer(JOB)
    assert await world.settled() == [word]
    world.maker.offer(structs.replace(JOB, turns=14))
    assert await world.settled() == []
    setattr(world.records, fault, False)
    world.maker.offer(structs.replace(JOB, turns=15))
    assert await world.settled() == ["rules"]


async def test_nothing_worth_telling_makes_no_state(world: World) -> None:
    world.maker.offer(structs.replace(JOB, parts=(Part(Role.ASSISTANT, "well, well."),)))
    assert await world.settled() == ["empty"]
    assert world.records.kept == {}


async def test_what_waits_of_a_user_who_is_forgotten_is_not_made(world: World) -> None:
    world.maker.offer(structs.replace(JOB, user="bob"))
    while world.maker._waiting:
        await asyncio.sleep(0)
    world.maker.offer(JOB)
    world.maker.forget("alice")
    await world.settled()
    assert list(world.records.kept) == [("bob", "s1")]


async def test_a_long_session_goes_on_from_its_last_state() -> None:
    records = Records()
    records.gate.set()
    making = Making(records, InThread(), tokens_max=650, ttl_s=60.0, budget_s=5.0, clock=lambda: 200.0)
    state, result = await making.make(structs.replace(JOB, before=CurrentState("Dogs", ("We agreed on 2 walks",))))
    assert result == "rules"
    assert state is not None
    assert state.state.decisions == ("We agreed on 2 walks",)


class Writer(ModelWriter):
    """A model that writes minutes, or fails."""

    def __init__(self, answer: CurrentState | None) -> None:
        self.answer = answer

    async def write(self, parts: Sequence[Part], before: CurrentState | None) -> CurrentState:
        if self.answer is None:
            raise ModelUnavailable("down")
        return self.answer


@pytest.mark.parametrize(
    ("answer", "word", "facts"),
    [
        (CurrentState("Dogs", (), ("User has 3 dogs",)), "model", ("User has 3 dogs", "We have 3 dogs in Ghent.")),
        (None, "rules", ("We have 3 dogs in Ghent.",)),
    ],
    ids=["answers", "is down"],
)
async def test_a_model_makes_it_where_there_is_one_and_rules_where_that_fails(
    answer: CurrentState | None, word: str, facts: tuple[str, ...]
) -> None:
    records = Records()
    records.gate.set()
    writer = Writer(answer)
    making = Making(records, InThread(), writer, tokens_max=650, ttl_s=60.0, budget_s=5.0, clock=lambda: 200.0)
    state, result = await making.make(JOB)
    assert state is not None
    assert (result, state.made_by) == (word, word)
    assert sorted(state.state.facts) == sorted(facts)
