"""What was said, beside the memories that a request is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.background import Tasks
from semmem.memory import (
    STANDS_FOR,
    SUPERSEDED_BY,
    UNSETTLED,
    Conversation,
    Hit,
    Memory,
    MemoryStatus,
    MemoryType,
    Message,
    Role,
    Scope,
    Source,
)
from semmem.ports.errors import StoreUnavailable
from semmem.request.question import Deadline, Question
from semmem.retrieval.index.hot_memories import HotMemories
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.notes import EARLIER, order_told
from semmem.retrieval.passages import FOUND_S, PassageSearch
from semmem.retrieval.search import HOT, Candidates, ResolvedQuery, SearchResult, Strategy
from tests.support.decisions import Decided
from tests.support.fakes import bag_of_words

ADA = Scope("ada")
NOW = 1_700_000_000.0
QUESTION = "Where did we look at the green boat?"
VECTOR = bag_of_words(QUESTION, 384)


def kept(
    id: str, content: str, *, turn: str = "", session: str = "before", at: float = NOW - 60.0, **fields: Any
) -> Memory:
    kind = MemoryType.PASSAGE if id.startswith("psg_") else MemoryType.SEMANTIC
    return Memory(
        id, 1, kind, content, "ada", session=session, source=Source(session=session, turn=turn, time=at),
        created_at=NOW, updated_at=NOW, embedding=bag_of_words(content, 384), **fields,
    )  # fmt: skip


class Shelf(InProcessStore):
    asked = 0
    down = False
    slow_s = 0.0

    async def search(self, *given: Any, **options: Any) -> list[Hit]:
        self.asked += 1
        await asyncio.sleep(self.slow_s)
        if self.down:
            raise StoreUnavailable("down")
        return await super().search(*given, **options)


class World:
    def __init__(self, word: str = "search") -> None:
        self.store = Shelf()
        self.erasing = False
        self.decided = Decided(word)
        self.search = PassageSearch(self.store, self.decided, 0.2, lambda _user: self.erasing)
        self.index = MemoryIndex(())
        self.own: list[str] = []

    async def put(self, *passages: Memory) -> None:
        await self.store.open()
        for one in passages:
            await self.store.put(ADA, one)

    async def ask(self, memories: Sequence[Memory] = (), **options: Any) -> list[str]:
        return [hit.memory.id for hit in await self.hits(memories, **options)]

    async def hits(
        self,
        memories: Sequence[Memory] = (),
        *,
        limit: int = 5,
        now: float = NOW,
        types: Any = (),
        session: str = "now",
        threshold: float | None = None,
        until: float | None = None,
    ) -> list[Hit]:
        query = ResolvedQuery(QUESTION, ADA, now, Strategy.HYBRID, limit, types=types)
        hits = [Hit(memory, 0.5, 0.5) for memory in memories]
        verdict = self.decided.request_alone(QUESTION, VECTOR)
        request = replace(verdict, is_served=not verdict.is_general)
        found = SearchResult(query, Candidates(hits, request=request), HOT, threshold, self.index)
        said = Conversation(tuple(Message(Role.USER, text) for text in self.own))
        question = Question(said, Scope("ada", session=session), now, deadline=Deadline(until))
        return await self.search.beside(question, found, VECTOR, hits)


@pytest.fixture
async def world() -> World:
    made = World()
    await made.put(
        kept("psg_boat", '"we look at the green boat in Ghent"', turn="t1"),
        kept("psg_tax", '"the form for taxes is due"', turn="t2"),
    )
    return made


async def test_what_no_memory_holds_is_found_where_it_was_said(world: World) -> None:
    assert await world.ask() == ["psg_boat"]


async def test_it_takes_the_place_of_a_memory_of_the_same_turn_and_no_other(world: World) -> None:
    clipped, other = kept("mem_1", "User saw a boat", turn="t1"), kept("mem_2", "User sails", turn="t9")
    assert await world.ask([clipped, other]) == ["psg_boat", "mem_2"]


async def test_it_stands_for_the_memories_in_whose_place_it_is_shown(world: World) -> None:
    told = [
        kept("mem_new", "User looks at the green boat", turn="t1", metadata={UNSETTLED: ["mem_old", 7]}),
        kept("mem_old", '"we look at the red boat"', turn="t0", at=NOW - 90.0),
        kept("mem_other", "User lives in Bergen with four cats", turn="t1", metadata={UNSETTLED: ["mem_x"]}),
    ]
    world.index = MemoryIndex(told)
    await world.put(kept("psg_old", '"where did we look at the red boat, was it Ghent"', turn="t0", at=NOW - 90.0))
    shown = {hit.memory.id: hit.memory for hit in await world.hits()}
    assert (shown["psg_boat"].ids(STANDS_FOR), shown["psg_boat"].unsettled) == (["mem_new"], ["mem_old"])
    assert (shown["psg_old"].ids(STANDS_FOR), shown["psg_old"].unsettled) == (["mem_old"], [])
    assert order_told([*shown.values()]) == {"psg_old": EARLIER}
    assert order_told([told[0], shown["psg_old"]]) == {"psg_old": EARLIER}
    assert order_told([told[1], shown["psg_boat"]]) == {"mem_old": EARLIER}
    assert order_told([told[2], shown["psg_boat"]]) == {}


async def test_together_they_are_no_more_than_the_request_may_be_shown(world: World) -> None:
    others = [kept(f"mem_{n}", "User sails", turn=f"t{n + 10}") for n in range(3)]
    assert len(await world.ask(others, limit=2)) == 2


async def test_a_conversation_is_not_told_what_stands_in_it(world: World) -> None:
    assert await world.ask(session="before") == []


async def test_nobody_is_told_what_they_say_themselves(world: World) -> None:
    world.own = ["we look at the green boat in Ghent", QUESTION]
    assert await world.ask() == []


async def test_a_bare_request_is_no_answer(world: World) -> None:
    await world.put(kept("psg_same", '"where did we look at the green boat"', turn="t3", importance=0.09))
    assert await world.ask() == ["psg_boat"]


async def test_what_was_answered_is_told_to_who_asks_what_was_talked_about(world: World) -> None:
    gist = replace(kept("psg_answer", "the green boat is in Ghent", turn="t4"), type=MemoryType.GIST)
    await world.put(gist)
    assert await world.ask() == ["psg_boat"]
    world.search = replace(world.search, looks_back=lambda question, _vector: question == QUESTION)
    world.index = MemoryIndex(())
    assert set(await world.ask()) == {"psg_boat", "psg_answer"}


def gist(id: str, content: str, at: float, session: str = "before", turn: str = "t0") -> Memory:
    made = kept(f"psg_{id}", content, turn=turn, session=session)
    return replace(made, type=MemoryType.GIST, source=replace(made.source, time=at))


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (gist("asked", "where did you look at the green boat?", NOW - 90.0), ["psg_reply"]),
        (gist("asked", "so you did look at the green boat", NOW - 60.0, turn="t5"), ["psg_reply"]),
        (gist("asked", "where did you look at the green boat?", NOW - 90.0, session="other"), []),
        (gist("asked", "where did you look at the green boat?", NOW - 4000.0), []),
        (gist("asked", "where did you look at the green boat?", NOW - 30.0), []),
    ],
)
async def test_a_reply_is_found_by_the_words_that_it_answers(said: Memory, found: list[str]) -> None:
    world = World()
    await world.put(said, kept("psg_reply", '"Ghent, beside old locks"', turn="t5"))
    assert await world.ask() == found


async def test_of_answers_in_the_same_words_the_last_one_is_told(world: World) -> None:
    for number, at in enumerate((NOW - 90.0, NOW - 30.0, NOW - 60.0)):
        gist = kept(f"psg_answer{number}", "the green boat is in Ghent", turn=f"t{number + 4}")
        await world.put(replace(gist, type=MemoryType.GIST, source=replace(gist.source, time=at)))
    world.search = replace(world.search, looks_back=lambda _question, _vector: True)
    assert set(await world.ask()) == {"psg_boat", "psg_answer1"}


async def test_a_request_that_wants_no_memory_wants_none_of_it() -> None:
    world = World("general_fact")
    await world.put(kept("psg_boat", '"we look at the green boat in Ghent"'))
    assert await world.ask() == []
    assert world.store.asked == 0


async def test_who_asks_for_other_types_gets_those_alone(world: World) -> None:
    assert await world.ask(types=(MemoryType.PROCEDURAL,)) == []
    assert await world.ask(types=(MemoryType.EPISODIC,)) == ["psg_boat"]


async def test_it_is_left_out_where_a_memory_is_shown_that_took_its_place(world: World) -> None:
    old = kept("mem_old", "User looked at a boat", turn="t1", metadata={SUPERSEDED_BY: "mem_new"})
    new = kept("mem_new", "User bought the boat", turn="t8")
    world.index = MemoryIndex((new,), (replace(old, status=MemoryStatus.SUPERSEDED),))
    assert await world.ask([new]) == ["mem_new"]
    assert await world.ask() == ["psg_boat"], "nothing says otherwise"


async def test_while_something_is_erased_nothing_that_was_said_is_shown(world: World) -> None:
    world.erasing = True
    assert await world.ask([kept("mem_1", "User sails")]) == ["mem_1"]


async def test_a_store_that_is_down_or_late_costs_nobody_their_memories(world: World) -> None:
    world.store.down = True
    assert await world.ask([kept("mem_1", "User sails")]) == ["mem_1"]
    world.store.down, world.store.slow_s, world.index = False, 5.0, MemoryIndex(())
    assert await world.ask([kept("mem_1", "User sails")]) == ["mem_1"]


async def test_what_failed_once_is_asked_again(world: World) -> None:
    world.store.down = True
    assert await world.ask() == []
    world.store.down = False
    assert await world.ask() == ["psg_boat"]


async def test_it_takes_no_longer_than_the_request_has(world: World) -> None:
    world.search, world.store.slow_s = replace(world.search, timeout_s=30.0), 20.0
    began = asyncio.get_running_loop().time()
    assert await world.ask([kept("mem_1", "User sails")], until=began + 0.1) == ["mem_1"]
    assert asyncio.get_running_loop().time() - began < 5.0


async def test_who_sets_a_threshold_gets_nothing_that_is_further_away(world: World) -> None:
    assert await world.ask(threshold=0.1) == ["psg_boat"]
    assert await world.ask(threshold=0.99) == []


async def test_the_same_question_is_not_searched_for_twice_in_a_minute(world: World) -> None:
    assert await world.ask() == await world.ask(now=NOW + FOUND_S / 2)
    assert world.store.asked == 1
    await world.ask(now=NOW + FOUND_S)
    assert world.store.asked == 2


async def test_of_who_has_said_nothing_nothing_is_asked_until_they_do() -> None:
    world = World()
    await world.store.open()
    for _ in range(2):
        assert await world.ask() == []
        world.index = MemoryIndex(())
    assert world.store.asked == 1
    memories = HotMemories(world.store, spawn=Tasks().spawn)
    world.search = replace(world.search, unsaid=memories.unsaid)
    world.search.unsaid.note(ADA)
    await memories.put(ADA, kept("psg_boat", '"we look at the green boat in Ghent"'))
    assert await world.ask() == ["psg_boat"]


async def test_without_the_users_memories_at_hand_there_is_nothing_to_go_by(world: World) -> None:
    world.index = None  # type: ignore[assignment]
    assert await world.ask() == []
