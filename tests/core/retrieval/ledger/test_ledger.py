"""The pages of sessions: how many, how long, who drops them, and what of them is in the database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from semmem.background import Tasks
from semmem.memory import Conversation as Said
from semmem.memory import Memory, MemoryType, Message, Role
from semmem.ports.session_states import START, ShownBlock
from semmem.retrieval.ledger.anchors import Anchor, anchors_of
from semmem.retrieval.ledger.ledger import (
    BLOCK_BYTES,
    BLOCKS_MAX,
    ERASED,
    LATE,
    UNWRITTEN,
    Ledger,
    LedgerRules,
    Page,
)
from tests.core.retrieval.ledger.records import Heard, Records

NOW = 1_800_000_000.0


def block(anchor: str, text: str = "Notes", *memories: str, at: float = NOW, until: float = NOW + 100) -> ShownBlock:
    return ShownBlock(anchor, text, tuple((each, 1) for each in memories), 9, f"turn of {anchor}", "turn", at, until)


def history(*names: str) -> list[Anchor]:
    return [Anchor(name, number) for number, name in enumerate(names)]


@dataclass
class Process:
    """A ledger, what it keeps beside itself, and what it tells."""

    records: Records | None = field(default_factory=Records)
    rules: LedgerRules = field(default_factory=lambda: LedgerRules(lookup_s=0.2))
    heard: Heard = field(default_factory=Heard)
    tasks: Tasks = field(default_factory=Tasks)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.records, self.rules, spawn=self.tasks.spawn, announce=self.heard.append)

    async def page(self, user: str = "ada", name: str = "s1", *before: str, held: bool = False) -> Page:
        return await self.ledger.page(user, name, history(*before), held=held, now=NOW)

    async def add(self, block: ShownBlock, user: str = "ada", name: str = "s1") -> Page:
        page = await self.page(user, name)
        self.ledger.add(page, block)
        return page

    async def shown(self, *before: str, user: str = "ada", name: str = "s1", held: bool = False) -> dict[str, str]:
        page = await self.page(user, name, *before, held=held)
        return {anchor: each.text for anchor, each in page.blocks.items()}


@pytest.fixture
async def process() -> AsyncIterator[Process]:
    made = Process()
    yield made
    await made.ledger.flush()
    await made.tasks.cancel()


def alone(**rules: Any) -> Process:
    return Process(None, LedgerRules(**rules))


# --- this process ----------------------------------------------------------------------------------------------------


async def test_a_session_has_what_it_was_shown_and_no_other_has_it() -> None:
    process = alone()
    await process.add(block("m1"))
    assert await process.shown("m1") == {"m1": "Notes"}
    assert await process.shown("m1", name="s2") == await process.shown("m1", user="eve") == {}
    assert process.ledger.has_any("ada")


async def test_the_last_block_of_a_message_stays() -> None:
    process = alone()
    for text in ("Notes", "Others", ""):
        await process.add(block("m1", text))
        assert await process.shown("m1") == {"m1": text}


async def test_the_same_text_with_other_memories_or_of_another_turn_takes_the_place_of_the_first() -> None:
    """By the memories it is known whether it may stand, by the turn a tool loop finds it."""
    process = alone()
    page = await process.add(block("m1", "Notes", "mem_1"))
    for other in (block("m1", "Notes", "mem_2"), structs.replace(block("m1", "Notes", "mem_2"), turn="t_2")):
        process.ledger.add(page, other)
        assert page.blocks["m1"] == other


async def test_sessions_that_were_not_used_for_longest_go() -> None:
    process = alone(sessions_max=2)
    for name in ("s1", "s2"):
        await process.add(block("m1"), name=name)
    await process.page("ada", "s1")
    await process.add(block("m1"), name="s3")
    assert [await process.shown("m1", name=name) for name in ("s1", "s3")] == [{"m1": "Notes"}] * 2
    assert await process.shown("m1", name="s2") == {}
    assert len(process.ledger) == 2


async def test_sessions_go_where_they_take_too_many_bytes_and_one_always_stays() -> None:
    process = alone(bytes_max=3 * BLOCK_BYTES)
    await process.add(block("m1", "a"), name="s1")
    await process.add(block("m1", "b"), name="s2")
    assert len(process.ledger) == 1
    await process.add(block("m2", "c" * 10_000), name="s2")
    assert await process.shown("m1", "m2", name="s2") == {"m1": "b", "m2": "c" * 10_000}
    assert await process.shown("m1", name="s1") == {}


async def test_of_one_session_the_oldest_blocks_go_and_its_beginning_stays() -> None:
    process = alone()
    page = await process.add(block(START))
    for number in range(BLOCKS_MAX + 5):
        process.ledger.add(page, block(f"m{number}"))
    assert list(page.blocks) == [START, *(f"m{number}" for number in range(5, BLOCKS_MAX + 5))]


async def test_a_session_does_not_grow_with_the_histories_that_it_is_sent() -> None:
    """Each of them may bring thousands of messages that were never shown anything."""
    process = alone(bytes_max=1_000_000)
    for request in range(40):
        page = await process.page("ada", "s1", *(f"m{request}-{number}" for number in range(1000)))
    assert len(page.known) <= 5000


async def test_who_is_erased_has_nothing_left_and_others_keep_theirs() -> None:
    process = alone()
    for user, name in (("ada", "s1"), ("ada", "s2"), ("eve", "s1")):
        await process.add(block("m1"), user, name)
    await process.page("ada", "empty")
    process.ledger.forget("ada")
    process.ledger.forget("nobody")
    assert not process.ledger.has_any("ada")
    assert await process.shown("m1") == await process.shown("m1", name="s2") == {}
    assert await process.shown("m1", user="eve") == {"m1": "Notes"}
    assert process.heard.words == [ERASED, ERASED]


async def test_a_page_that_was_given_out_before_an_erasure_takes_nothing_in() -> None:
    process = alone()
    page = await process.add(block("m1"))
    process.ledger.forget("ada")
    process.ledger.add(page, block("m2"))
    process.ledger.clear(page, ERASED)
    assert await process.shown("m1", "m2") == {}
    await taken(process)


async def test_a_session_that_is_cleared_begins_anew() -> None:
    process = alone()
    page = await process.add(block("m1"))
    process.ledger.clear(page, "compacted")
    assert await process.shown("m1") == {}
    process.ledger.add(page, block("m2"))
    assert await process.shown("m1", "m2") == {"m2": "Notes"}
    assert process.heard.words == ["compacted"]


async def test_a_conversation_that_is_gone_takes_the_sessions_along_that_were_shown_it() -> None:
    process = alone()
    for user, name, memory in (("ada", "s1", "conv_1"), ("ada", "s2", "conv_2"), ("ada", "s3", "mem_1")):
        await process.add(block("m1", "Notes", memory), user, name)
    await process.add(block("m1", "Notes", "conv_1"), "eve", "s1")
    process.ledger.talk_changed("ada", "conv_1")
    assert [await process.shown("m1", name=f"s{n}") for n in (1, 2, 3)] == [{}, {"m1": "Notes"}, {"m1": "Notes"}]
    process.ledger.talk_changed("ada")
    assert [await process.shown("m1", name=f"s{n}") for n in (2, 3)] == [{}, {"m1": "Notes"}]
    assert await process.shown("m1", user="eve") == {"m1": "Notes"}
    process.ledger.everything_changed()
    assert await process.shown("m1", user="eve") == {}
    assert await process.shown("m1", name="s3") == {"m1": "Notes"}


async def taken(process: Process) -> int:
    """By the ledger's own count, which must be what its pages take."""
    ledger = process.ledger
    assert ledger._bytes == sum(page.bytes for page in ledger._pages.values())
    assert {(user, name) for user, names in ledger._of_user.items() for name in names} == set(ledger._pages)
    return ledger._bytes


steps = st.tuples(
    st.sampled_from(["add", "add", "add", "clear", "forget", "talk", "everything", "page"]),
    st.sampled_from(["ada", "eve"]),
    st.sampled_from(["s1", "s2", "s3"]),
    st.sampled_from(["m1", "m2", START]),
    st.sampled_from(["", "a", "b" * 1000]),
)


@given(st.lists(steps, max_size=40), st.sampled_from([2, 100]), st.sampled_from([2000, 10**9]))
def test_the_count_of_bytes_never_drifts(does: list[Any], sessions_max: int, bytes_max: int) -> None:
    asyncio.run(_counted(does, sessions_max, bytes_max))


async def _counted(does: Iterable[Any], sessions_max: int, bytes_max: int) -> None:
    process = Process(Records(), LedgerRules(sessions_max=sessions_max, bytes_max=bytes_max))
    ledger, out = process.ledger, list[Page]()
    for what, user, name, anchor, text in does:
        page = await process.page(user, name, anchor)
        out = [*out[-3:], page]
        match what:
            case "add":
                ledger.add(out[0], block(anchor, text, "conv_1" if text else "mem_1"))
                ledger.add(page, block(anchor, text, "conv_1" if text else "mem_1"))
            case "clear":
                ledger.clear(out[0], "compacted")
            case "forget":
                ledger.forget(user)
            case "talk":
                ledger.talk_changed(user, "conv_1")
            case "everything":
                ledger.everything_changed()
        await taken(process)
        assert len(ledger) <= sessions_max
    for user in ("ada", "eve"):
        ledger.forget(user)
    assert await taken(process) == 0
    await process.tasks.cancel()


# --- the database ----------------------------------------------------------------------------------------------------


async def test_without_a_database_nothing_is_written_and_nothing_is_late() -> None:
    process = alone()
    await process.add(block("m1"))
    await process.ledger.flush()
    assert await process.ledger.withdrawn("ada", {"mem_1"}) == set()
    assert process.heard.words == []


async def test_after_a_restart_the_same_blocks_are_there_in_the_order_in_which_they_were_shown(
    process: Process,
) -> None:
    for number, anchor in enumerate(("m2", START, "m1")):
        await process.add(block(anchor, f"Notes {number}", at=NOW + number))
    await process.ledger.flush()
    after = Process(process.records)
    assert await after.shown("m1") == {"m2": "Notes 0", START: "Notes 1", "m1": "Notes 2"}
    assert list(await after.shown("m1")) == ["m2", START, "m1"]
    assert (await after.page("ada", "s1", "m1")).blocks == (await process.page()).blocks


async def test_what_is_past_its_time_does_not_come_back(process: Process) -> None:
    await process.add(block("m1", until=NOW))
    await process.add(block("m2"))
    await process.ledger.flush()
    assert await Process(process.records).shown("m1", "m2") == {"m2": "Notes"}


async def test_a_first_message_asks_no_database_and_a_history_asks_it_once(process: Process) -> None:
    assert process.records is not None
    await process.page()
    assert process.records.reads == []
    await process.page("ada", "s1", "m1", "m2")
    await process.page("ada", "s1", "m2")
    await process.page("ada", "s1", "m1", "m2")
    assert process.records.reads == [("ada", "s1")]
    await process.page("ada", "s1", "m1", "m2", "m3")
    assert len(process.records.reads) == 2


async def test_a_history_that_the_request_does_not_bring_asks_it_when_the_session_is_new_here(
    process: Process,
) -> None:
    await process.add(block(START))
    await process.ledger.flush()
    after = Process(process.records)
    assert await after.shown(held=True) == {START: "Notes"}
    assert process.records is not None
    reads = len(process.records.reads)
    await after.shown(held=True)
    assert len(process.records.reads) == reads


async def test_a_database_that_was_late_for_such_a_session_is_asked_again(process: Process) -> None:
    await process.add(block(START))
    await process.ledger.flush()
    after = Process(process.records)
    assert process.records is not None
    process.records.broken = True
    assert await after.shown(held=True) == {}
    process.records.broken = False
    assert await after.shown(held=True) == {START: "Notes"}


@pytest.mark.parametrize("trouble", [{"delay_s": 5.0}, {"broken": True}], ids=["late", "failing"])
async def test_a_database_in_trouble_is_counted_and_asked_again_next_time(
    process: Process, trouble: dict[str, Any]
) -> None:
    await process.add(block("m1"))
    await process.ledger.flush()
    after = Process(process.records, LedgerRules(lookup_s=0.02))
    assert process.records is not None
    for name, value in trouble.items():
        setattr(process.records, name, value)
    assert await after.shown("m1") == {}
    assert await after.ledger.withdrawn("ada", {"mem_1"}) == set()
    assert after.heard.words == [LATE]
    process.records.delay_s, process.records.broken = 0.0, False
    assert await after.shown("m1") == {"m1": "Notes"}
    assert after.heard.words == [LATE]


async def test_what_cannot_be_written_is_counted_and_the_next_is_tried(process: Process) -> None:
    assert process.records is not None
    process.records.broken = True
    await process.add(block("m1"))
    await process.ledger.flush()
    assert process.heard.words == [UNWRITTEN]
    process.records.broken = False
    await process.add(block("m2"))
    await process.ledger.flush()
    assert process.heard.words == [UNWRITTEN]
    assert await process.shown("m1", "m2") == {"m1": "Notes", "m2": "Notes"}, "this process has both"
    assert await Process(process.records).shown("m1", "m2") == {"m2": "Notes"}


async def test_what_is_shown_about_the_same_time_is_written_together_behind_the_requests(process: Process) -> None:
    assert process.records is not None
    for name in ("s1", "s2", "s3"):
        await process.add(block("m1"), name=name)
        for _ in range(5):
            await asyncio.sleep(0)
    await process.add(block("m1"), name="s1")  # the same again is not written again
    assert process.records.writes == []
    await process.ledger.flush()
    (rows,) = process.records.writes
    assert [(user, name) for user, name, _ in rows] == [("ada", "s1"), ("ada", "s2"), ("ada", "s3")]


async def test_what_comes_while_others_are_written_is_written_after_them_in_order(process: Process) -> None:
    assert process.records is not None
    process.records.delay_s = 0.05
    page = await process.add(block("m1", "first"))
    while not process.records.writes:
        await asyncio.sleep(0.005)
    process.ledger.add(page, block("m1", "second"))
    process.ledger.clear(page, "compacted")
    process.ledger.add(page, block("m1", "third"))
    await process.ledger.flush()
    assert await Process(process.records).shown("m1") == {"m1": "third"}
    assert len(process.records.writes) == 2


class AtTheEnd(Records):
    """``then`` is called when a write has just ended."""

    def __init__(self) -> None:
        super().__init__()
        self.then = list[Any]()

    async def keep_shown(self, rows: Any, *, per_user: int) -> None:
        await super().keep_shown(rows, per_user=per_user)
        for call in self.then:
            asyncio.get_running_loop().call_soon(call)
        self.then.clear()


async def test_what_comes_in_the_moment_in_which_the_writing_ends_is_written_too() -> None:
    records = AtTheEnd()
    process = Process(records)
    page = await process.add(block("m1"))
    records.then.append(lambda: process.ledger.add(page, block("m2")))
    while records.then or not records.kept:
        await asyncio.sleep(0.005)
    await asyncio.sleep(0)
    await process.ledger.flush()
    assert await Process(records).shown("m1", "m2") == {"m1": "Notes", "m2": "Notes"}


async def test_only_so_many_wait_and_the_rest_is_this_processes_alone() -> None:
    process = Process(rules=LedgerRules(waiting_max=2))
    for number in range(4):
        await process.add(block(f"m{number}"))
    await process.ledger.flush()
    assert len(await process.shown("m0")) == 4
    assert process.heard.words == [UNWRITTEN, UNWRITTEN]
    assert await Process(process.records).shown("m0") == {"m0": "Notes", "m1": "Notes"}


async def test_what_waits_of_an_erased_user_is_not_written(process: Process) -> None:
    assert process.records is not None
    await process.add(block("m1"))
    await process.add(block("m1"), "eve")
    process.ledger.forget("ada")
    await process.ledger.flush()
    assert [(user, name) for rows in process.records.writes for user, name, _ in rows] == [("eve", "s1")]


async def test_a_cleared_session_is_cleared_in_the_database_too(process: Process) -> None:
    page = await process.add(block("m1"))
    await process.ledger.flush()
    process.ledger.clear(page, "compacted")
    await process.ledger.flush()
    assert await Process(process.records).shown("m1") == {}


# --- while it is read ------------------------------------------------------------------------------------------------


async def read_while(process: Process, meanwhile: Any) -> dict[str, str]:
    """What a page has that another process filled and that is read while something happens."""
    assert process.records is not None
    await process.add(block("m1", "Notes", "conv_1"))
    await process.ledger.flush()
    after = Process(process.records)
    process.records.gate = asyncio.Event()
    page = await after.page()
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(after.page("ada", "s1", "m1"))
        while len(process.records.reads) < 1:
            await asyncio.sleep(0)
        meanwhile(after, page)
        process.records.gate.set()
    assert reading.result() is page
    process.records.gate = None
    return {anchor: each.text for anchor, each in page.blocks.items()}


async def test_what_was_read_before_an_erasure_is_not_kept_after_it(process: Process) -> None:
    assert await read_while(process, lambda after, page: after.ledger.forget("ada")) == {}


async def test_what_was_read_before_a_conversation_was_removed_is_not_kept_after_it(process: Process) -> None:
    def removed(after: Process, page: Page) -> None:
        after.ledger.add(page, block("m0", "Notes", "conv_1"))
        after.ledger.talk_changed("ada", "conv_1")

    assert await read_while(process, removed) == {}


async def test_nor_where_this_process_had_shown_nothing_of_it_itself(process: Process) -> None:
    assert await read_while(process, lambda after, page: after.ledger.talk_changed("ada", "conv_1")) == {}


async def test_what_was_shown_here_later_is_not_replaced_by_what_is_read(process: Process) -> None:
    def shown(after: Process, page: Page) -> None:
        after.ledger.add(page, block("m1", "Later", at=NOW + 1))

    assert await read_while(process, shown) == {"m1": "Later"}


async def test_what_is_written_by_no_means_is_not_replaced_by_what_is_read(process: Process) -> None:
    assert process.records is not None
    await process.add(block("m1", "First"))
    await process.ledger.flush()
    process.records.broken = True
    await process.add(block("m1", "Again", at=NOW + 1))
    await process.ledger.flush()
    process.records.broken = False
    assert await process.shown("m1", "seen elsewhere") == {"m1": "Again"}


async def test_what_another_process_showed_later_takes_the_place_of_what_was_shown_here(process: Process) -> None:
    await process.add(block("m1", "Here"))
    await process.ledger.flush()
    other = Process(process.records)
    await other.add(block("m1", "There", at=NOW + 1))
    await other.ledger.flush()
    assert await process.shown("m1", "m2") == {"m1": "There"}


async def test_a_session_that_makes_room_while_it_is_read_takes_nothing_in() -> None:
    process = Process(rules=LedgerRules(sessions_max=1))
    assert process.records is not None
    process.records.gate = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(process.page("ada", "s1", "m1"))
        while not process.records.reads:
            await asyncio.sleep(0)
        await process.page("ada", "s2")
        process.records.gate.set()
    process.ledger.add(first.result(), block("m2"))
    assert len(process.ledger) == 1
    await taken(process)


# --- histories -------------------------------------------------------------------------------------------------------


async def test_a_memory_that_has_a_history_was_withdrawn(process: Process) -> None:
    assert process.records is not None
    for id in ("mem_1", "mem_2"):
        process.records.past[id] = [Memory(id, 1, MemoryType.SEMANTIC, "User likes tea", "ada")]
    assert await process.ledger.withdrawn("ada", {"mem_1", "mem_2"}) == {"mem_1", "mem_2"}
    assert "mem_3" not in await process.ledger.withdrawn("ada", {"mem_1", "mem_3"})
    assert await process.ledger.withdrawn("ada", set()) == set()


def test_a_page_is_found_by_the_names_of_real_messages() -> None:
    said = Said((Message(Role.USER, "Hello"), Message(Role.ASSISTANT, "Hi"), Message(Role.USER, "Bye")))
    process = alone()
    first, _ = anchors_of(said)

    async def run() -> dict[str, str]:
        await process.add(block(first.name))
        return await process.shown(*(anchor.name for anchor in anchors_of(said)))

    assert asyncio.run(run()) == {first.name: "Notes"}
