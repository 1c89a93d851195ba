"""A long conversation from request to request: what the model is sent, when that changes, and what forbids it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from semmem.memory import Forgetting, Memory, MemoryType, Scope
from semmem.ports.accounts import Switch, SwitchRow
from semmem.ports.errors import JournalError, ModelUnavailable
from semmem.ports.recording import TurnClosed
from semmem.ports.session_states import SessionState
from semmem.request.switches import Switches, user_key
from semmem.retrieval.context import OPENING, STATE_HEADER, strip_block
from tests.core.compression.histories import APIS, Spoken
from tests.core.compression.world import FENCE, FILLER, RULES, SCOPE, Client, Replica, replicas
from tests.core.exchange.world import NOW
from tests.support.fakes import HashEmbedder


@pytest.fixture
async def replica(tmp_path: Path) -> AsyncIterator[Replica]:
    async with replicas(tmp_path) as (one,):
        yield one


def is_state(element: Any) -> bool:
    return isinstance(element.get("content"), str) and STATE_HEADER in element["content"]


@pytest.mark.parametrize("api", APIS)
async def test_a_long_session_is_sent_as_its_state_and_its_last_turns(replica: Replica, api: str) -> None:
    client = Client(replica, api)
    result, body = await client.talks(8)
    assert result.notes
    sent = json.loads(body)[client.api.member]
    (state,) = [element for element in sent if is_state(element)]
    assert state["role"] == "user"
    assert "has the code 4000" in state["content"]
    whole = json.loads(client.api.encoded([*client.turns[:-1], Spoken(client.turns[-1].text, answer=None)]))
    kept = [element for element in sent if not is_state(element) and element.get("role") != "system"]
    assert whole[client.api.member][-len(kept) :] == kept
    assert len(kept) < len(whole[client.api.member]) - 1
    assert dict(result.notes)["compressed"] == len(whole[client.api.member]) - len(kept)
    before, after = (dict(result.notes)[f"compressed_{way}_tokens"] for way in ("from", "to"))
    assert int(after) < int(before)


async def test_the_block_is_the_users_own_and_no_word_of_it_is_learnt(replica: Replica) -> None:
    client = Client(replica)
    _, body = await client.talks(8)
    (block,) = [each["content"] for each in json.loads(body)["messages"] if is_state(each)]
    assert block.startswith(OPENING)
    assert strip_block(block) == ""
    inside = block.split(">\n", 1)[1].rsplit("\n<", 1)[0]
    assert f"{OPENING} {FENCE.mark('alice', inside)}>" in block
    assert FENCE.mark("bob", inside) not in block
    sent = json.loads(body)  # a proxy behind this one
    further = Replica(replica.journal)
    client.replica, client.turns = further, []
    client.api = type(client.api)(client.api.path, client.api.member, lambda _turns: sent)
    result, again = await client.send(settle=False)
    assert not result.notes
    assert json.loads(again)["messages"][1:] == sent["messages"][1:]
    assert not any(STATE_HEADER in half.user_text for half in further.halves if not isinstance(half, TurnClosed))


async def test_the_beginning_stays_the_same_until_the_state_is_renewed(replica: Replica) -> None:
    """So that a provider's cache of it is of use: it changes every renew_turns turns, and not with each request."""
    client = Client(replica)
    await client.talks(4)
    beginnings = [await beginning(client, number) for number in range(4, 20)]
    compressed = [each for each in beginnings if each is not None]
    runs = [len([1 for other in compressed if other == each]) for each in dict.fromkeys(compressed)]
    assert len(compressed) >= 12
    assert all(run == RULES.renew_turns for run in runs[:-1]), runs


async def beginning(client: Client, number: int) -> str | None:
    """What stands before the turns that stay, of the next request."""
    _, body = await client.says(f"My locker number {number} has the code {4000 + number}. {FILLER * 3}", FILLER * 4)
    messages = json.loads(body)["messages"]
    place = next((at for at, each in enumerate(messages) if is_state(each)), None)
    return None if place is None else json.dumps(messages[: place + 2])


@pytest.mark.parametrize("api", APIS)
async def test_a_tool_loop_and_a_retry_have_the_same_beginning_in_each_request(replica: Replica, api: str) -> None:
    """A state that is made while the loop runs waits for the next turn."""
    client = Client(replica, api)
    await client.talks(3)
    loops: dict[bool, int] = {True: 0, False: 0}
    for number in range(3, 12):
        text = f"Look up number {number}. {FILLER * 7}"
        seen = []
        for rounds in ((), (2,), (2, 1), (2, 1)):
            client.turns.append(Spoken(text, rounds=rounds, answer=None))
            result, body = await client.send()
            sent = json.loads(body)[client.api.member]
            turn = next(at for at, each in enumerate(sent) if text in json.dumps(each))
            seen.append((bool(result.notes), json.dumps(sent[:turn])))
            client.turns.pop()
        assert len(set(seen)) == 1, f"turn {number}"
        loops[seen[0][0]] += 1
        client.turns.append(Spoken(text, rounds=(2, 1), answer="Found."))
    assert loops[True]
    assert loops[False]


async def test_a_history_that_was_edited_is_sent_whole(replica: Replica) -> None:
    client = Client(replica)
    await client.talks(8)
    client.turns[0] = Spoken("Let us talk about something else", answer="Gladly.")
    result, body = await client.says("And now?")
    assert not result.notes
    assert STATE_HEADER.encode() not in body
    assert replica.results()[-1] == "changed"


async def test_another_users_state_is_never_used(replica: Replica) -> None:
    """Even for the same words in a session of the same name."""
    alice, bob = Client(replica), Client(replica, user="bob")
    await alice.talks(8)
    bob.turns = list(alice.turns)
    result, _ = await bob.says("And now?")
    assert not result.notes
    assert replica.results()[-1] == "no_state"


@pytest.mark.parametrize(("value", "compressed"), [("off", False), ("ON", True), ("perhaps", False)])
async def test_a_header_takes_a_request_out_of_it(replica: Replica, value: str, compressed: bool) -> None:
    client = Client(replica)
    await client.talks(8)
    result, _ = await client.says("And now?", headers={"x-semmem-compression": value})
    assert bool(result.notes) is compressed
    assert replica.results()[-1] == ("compressed" if compressed else "off")


@pytest.mark.parametrize(
    ("headers", "made", "used"),
    [
        ({"x-semmem-memory": "read"}, 0, True),
        ({"x-semmem-memory": "write"}, 1, False),
        ({"x-semmem-memory": "off"}, 0, False),
    ],
)
async def test_who_may_not_store_makes_none_and_who_may_not_read_uses_none(
    replica: Replica, headers: dict[str, str], made: int, used: bool
) -> None:
    client = Client(replica)
    await client.talks(8)
    before = len(replica.made())
    client.turns += [Spoken(f"{number}: {FILLER * 8}", answer="Yes.") for number in range(RULES.renew_turns)]
    result, _ = await client.says("And now?", headers=headers)
    assert bool(result.notes) is used
    assert len(replica.made()) - before == made


async def test_a_switch_of_an_administrators_takes_both(tmp_path: Path) -> None:
    switches = Switches([SwitchRow(user_key("alice"), "", Switch(reading=False, storing=False), 1, NOW)])
    async with replicas(tmp_path, switches=switches) as (replica,):
        result, _ = await Client(replica).talks(8)
        assert not result.notes
        assert replica.made() == [] == replica.results()


async def test_a_session_with_a_message_that_was_not_to_be_kept_is_sent_whole(replica: Replica) -> None:
    client = Client(replica)
    await client.says("The secret word is heron.", headers={"x-semmem-memory": "off"})
    result, _ = await client.talks(8)
    assert not result.notes
    assert set(replica.made()) == {"refused"}
    assert await states(replica) == []


async def test_what_semmem_never_saw_makes_no_state(replica: Replica) -> None:
    """It cannot be known whether it may be kept."""
    client = Client(replica)
    client.turns = [Spoken(f"Number {number}. {FILLER * 9}", answer="Yes.") for number in range(80)]
    result, _ = await client.says("And now?")
    await client.says("And then?")
    assert not result.notes
    assert await states(replica) == []


# --- erasure


@pytest.mark.parametrize(
    "what",
    [
        Forgetting(SCOPE, 0),
        Forgetting(Scope("alice", session="s1"), 0),
        Forgetting(Scope("alice", session="another"), 0),
        Forgetting(SCOPE, 0, memory_id="mem_1"),
    ],
    ids=["user", "session", "another session", "one memory"],
)
async def test_whatever_is_erased_of_a_user_takes_the_states_and_none_is_made_of_what_was_said_before(
    replica: Replica, what: Forgetting
) -> None:
    client = Client(replica)
    await client.talks(8)
    assert await states(replica)
    replica.now += 5
    what = Forgetting(what.scope, replica.now, what.types, what.memory_id)
    replica.maker.forget("alice")
    hold, _ = await replica.journal.begin_erasure(what, now=replica.now)
    if what.memory_id:
        await replica.journal.mark_memories([memory(what.memory_id)], at=replica.now)
    await replica.journal.finish_erasure(what, hold)
    assert await states(replica) == []
    for _ in range(RULES.renew_turns + 1):
        result, _ = await client.says(f"And now? {FILLER}")
        assert not result.notes
    assert await states(replica) == []
    replica.now += 10
    other = Client(replica, session="s2")
    result, _ = await other.talks(8)
    assert result.notes, "what is said afterwards is compressed as ever"


async def test_a_state_that_is_being_made_while_its_user_is_erased_is_not_kept(tmp_path: Path) -> None:
    gate, begun = asyncio.Event(), asyncio.Event()

    class Slow:
        async def write(self, parts: Any, before: Any) -> Any:
            begun.set()
            await gate.wait()
            raise ModelUnavailable("no answer")

    async with replicas(tmp_path, writer=Slow()) as (replica,):
        client = Client(replica)
        for number in range(8):
            await client.says(
                f"My locker number {number} has the code {4000 + number}. {FILLER * 3}", FILLER * 4, settle=False
            )
            await replica.commit()
        assert len(replica.maker)
        await asyncio.wait_for(begun.wait(), 10)
        replica.maker.forget("alice")
        what = Forgetting(SCOPE, replica.now)
        hold, _ = await replica.journal.begin_erasure(what, now=replica.now)
        await replica.journal.finish_erasure(what, hold)
        gate.set()
        await replica.settle()
        assert replica.made() == ["refused"]
        assert await states(replica) == []
        assert await replica.known.states("alice", "s1", now=replica.now) == []


async def test_a_state_that_was_read_before_an_erasure_is_not_used_after_it(replica: Replica) -> None:
    client = Client(replica)
    await client.talks(8)
    found = await states(replica)
    gate = asyncio.Event()

    class Late:
        async def session_states(self, user: str, session: str, *, now: float) -> list[SessionState]:
            await gate.wait()
            return found

    replica.known._records = Late()  # type: ignore[assignment]
    replica.known._entries.drop(lambda _entry: True)

    async def forget() -> None:
        await asyncio.sleep(0.05)
        replica.maker.forget("alice")
        gate.set()

    (result, _), _ = await asyncio.gather(client.says("And now?", settle=False), forget())
    assert not result.notes


async def test_while_anything_of_a_users_is_being_erased_no_state_is_used(tmp_path: Path) -> None:
    erased: set[str] = set()
    async with replicas(tmp_path, is_erased=erased.__contains__) as (replica,):
        client = Client(replica)
        await client.talks(8)
        erased.add("alice")
        result, _ = await client.says("And now?")
        assert not result.notes
        erased.clear()
        result, _ = await client.says("And then?")
        assert result.notes


# --- failures, replicas


class Broken:
    """A journal that fails, or does not answer."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error

    async def session_states(self, user: str, session: str, *, now: float) -> list[SessionState]:
        if self.error is not None:
            raise self.error
        await asyncio.sleep(3600)
        raise AssertionError


@pytest.mark.parametrize("error", [JournalError("locked"), None], ids=["fails", "hangs"])
async def test_without_the_database_the_request_goes_whole(tmp_path: Path, error: Exception | None) -> None:
    impatient = replace(RULES, lookup_s=0.02)
    async with replicas(tmp_path, rules=impatient) as (replica,):
        client = Client(replica)
        await client.talks(8)
        replica.known._records = Broken(error)  # type: ignore[assignment]
        replica.known._entries.drop(lambda _entry: True)
        result, body = await client.says("And now?")
        assert not result.notes
        assert replica.results()[-1] == "late"
        assert STATE_HEADER.encode() not in body
        replica.known._records = replica.journal
        again, _ = await client.send_again()
        assert not again.notes, "the turn goes on as it began"
        later, _ = await client.says("And then?")
        assert later.notes


async def test_another_replica_uses_the_state_and_gives_a_turn_the_same_beginning(tmp_path: Path) -> None:
    async with replicas(tmp_path, 2) as (one, other):
        client = Client(one)
        await client.talks(8)
        client.turns.append(Spoken("And now?", answer=None))
        _, here = await client.send()
        client.replica, other.now = other, one.now
        result, there = await client.send()
        assert result.notes
        assert here == there


async def test_a_tool_loop_that_goes_on_at_another_replica_has_the_same_beginning(tmp_path: Path) -> None:
    """Nothing but the state itself says whose first request was without it."""
    async with replicas(tmp_path, 2, refresh_s=0.0) as (one, other):
        client, made = Client(one), 0
        await client.talks(3)
        for number in range(3, 12):
            text, beginnings = f"Look up number {number}. {FILLER * 7}", set[str]()
            for replica, rounds in ((one, ()), (other, (2,)), (other, (2, 1))):
                client.replica, replica.now = replica, max(one.now, other.now)
                client.turns.append(Spoken(text, rounds=rounds, answer=None))
                _, body = await client.send()
                messages = json.loads(body)["messages"]
                turn = next(at for at, each in enumerate(messages) if text in json.dumps(each))
                beginnings.add(json.dumps(messages[:turn]))
                client.turns.pop()
            assert len(beginnings) == 1, f"turn {number}"
            client.turns.append(Spoken(text, rounds=(2, 1), answer="Found."))
            made = len(one.made()) + len(other.made())
        assert made >= 2


async def test_a_state_ends_with_its_time(replica: Replica) -> None:
    client = Client(replica)
    await client.talks(8)
    replica.now += 3601
    assert await states(replica) == []
    await replica.journal.prune_states(now=replica.now)
    replica.now -= 3601
    assert await states(replica) == [], "and it is gone from the file"


async def test_a_few_states_are_kept_of_a_session_and_of_a_user(replica: Replica) -> None:
    client = Client(replica)
    await client.talks(20)
    kept = await states(replica)
    assert len(kept) == 2
    assert kept[0].turns > kept[1].turns
    for number in range(60):
        one = structs.replace(kept[0], session=f"other {number}", made_at=kept[0].made_at + number)
        assert await replica.journal.keep_state(one, [], per_session=2, per_user=50)
    assert len(await states(replica, "other 59")) == 1
    assert await states(replica, "other 5") == []


@pytest.mark.parametrize(("told", "times"), [("you like pears", 2), ("My locker number 0 has the code 4000", 3)])
async def test_memories_of_what_was_left_out_are_shown_though_the_state_tells_it(
    replica: Replica, told: str, times: int
) -> None:
    """They were in the request's own words until these were replaced; a state's words are not the user's."""
    client = Client(replica)
    await client.says("Good morning.", "you like pears.")
    await client.talks(8)
    known = replace(memory("mem_1", told), embedding=await HashEmbedder().embed(told))
    await replica.store.put(SCOPE, known)
    result, body = await client.says(f"{told}, or do we not?")
    assert result.notes
    assert (result.injected, body.decode().count(told)) == (1, times)


async def states(replica: Replica, session: str = "s1") -> list[SessionState]:
    return await replica.journal.session_states("alice", session, now=replica.now)


def memory(memory_id: str, content: str = "User likes tea") -> Memory:
    return Memory(memory_id, 1, MemoryType.SEMANTIC, content, "alice")
