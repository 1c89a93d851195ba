"""A request that goes on from an answer is given its history from the record: all of it, or it passes as it came."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.backends.sql.journal import SqlJournal
from semmem.background.writers import ConversationWriter
from semmem.conversations.chains import Chained, Chains, is_whole
from semmem.dialects import responses as responses_api
from semmem.memory import Past, Role, Scope, ToolCall, Turn
from semmem.ports.conversations import ConversationLimits, KeptMessage, Whole
from semmem.ports.errors import JournalError
from semmem.ports.recording import TurnClosed
from semmem.request.head import RequestHead
from semmem.request.outcome import Outcome
from semmem.turns.recorder import TurnRecorder
from semmem.turns.sessions import Sessions
from tests.core.exchange.world import BUDGET, PATIENT, QUESTION, World
from tests.support.newest_conversation import newest_conversation

Json = dict[str, Any]
CALL: Json = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Lisbon"}'}
RESULT: Json = {"type": "function_call_output", "call_id": "c1", "output": "21 degrees"}
USER = {"x-user-id": ("alice",)}


def message(role: str, content: str) -> Json:
    return {"type": "message", "role": role, "content": content}


def spoken(text: str) -> Json:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


class House:
    """An exchange whose chains are recorded, and a model that keeps nothing."""

    def __init__(self, journal: SqlJournal, **limits: Any) -> None:
        self.journal = journal
        self.world = World(**limits)
        self.writer = ConversationWriter(journal, ConversationLimits(), retention_s=1e9)
        self.exchange: Any = self.world.exchange
        self.conversations = self.world.records(self.writer.add)
        self.exchange.turns = TurnRecorder(Sessions(journal), self.world.journal)
        self.turns: list[Turn] = []
        self.limited()

    def limited(self, records: Any = None, messages_max: int = 50, timeout_s: float = 20.0) -> Chains:
        self.chains = Chains(
            self.journal if records is None else records,
            settle=self.writer.flush,
            waiting=lambda: len(self.writer),
            messages_max=messages_max,
            timeout_s=timeout_s,
        )
        self.conversations.histories = self.chains
        return self.chains

    async def ask(
        self, body: Json, *output: Json, name: str = "", streams: bool = False, headers: Any = USER, **more: Any
    ) -> bytes:
        """The body that the model is given; its answer, where it has a name, is observed."""
        self.world.now += 1.0
        came = json.dumps({"model": "m"} | body).encode()
        self.result = await self.exchange.request(RequestHead("POST", "/v1/responses", headers), came)
        if name and self.result.ticket is not None:
            self.world.now += 1.0
            told: Json = {"id": name, "status": "completed", "output": list(output)} | more
            kind = "text/event-stream" if streams else "application/json"
            seen = self.exchange.response(self.result.ticket, status=200, content_type=kind, content_encoding="")
            events = [{"type": "response.created", "response": {**told, "output": []}}]
            events.append({"type": "response.completed", "response": told})
            for event in events if streams else [told]:
                seen.feed(b"data: " * streams + json.dumps(event).encode() + b"\n\n" * streams)
            seen.end()
        opened = [half for half in self.world.journal if isinstance(half, Turn)]
        await self.journal.record(opened, [half for half in self.world.journal if isinstance(half, TurnClosed)])
        self.turns += opened
        self.world.journal.clear()
        return self.result.body or came

    async def begin(self) -> None:
        """Two answers, of which the second calls a tool."""
        await self.ask({"input": "Hello"}, spoken("Hi!"), name="r1")
        await self.ask({"input": "How warm is it?", "previous_response_id": "r1"}, CALL, name="r2")


@pytest.fixture
def house(journal: SqlJournal) -> House:
    return House(journal)


HISTORY = [message("user", "Hello"), message("assistant", "Hi!"), message("user", "How warm is it?"), CALL]
GOES_ON: Json = {"input": [RESULT], "previous_response_id": "r2"}


# --- added ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streams", [False, True])
async def test_a_chain_with_a_tool_reaches_a_model_that_keeps_nothing_and_is_recorded_once(
    house: House, streams: bool
) -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    await house.ask({"input": "Hello", "store": False}, reasoning, spoken("Hi!"), name="r1", streams=streams)
    plain = [{"role": "user", "content": [{"type": "input_text", "text": "How warm is it?"}]}]
    second = await house.ask({"input": plain, "previous_response_id": "r1"}, CALL, name="r2", streams=not streams)
    assert json.loads(second) == {"model": "m", "input": [*HISTORY[:2], *plain]}
    third = await house.ask(GOES_ON, spoken("Warm."), name="r3", streams=streams)
    assert json.loads(third) == {"model": "m", "input": [*HISTORY, RESULT]}
    last = await house.ask({"input": "Thanks", "previous_response_id": "r3"})
    assert json.loads(last)["input"] == [*HISTORY, RESULT, message("assistant", "Warm."), message("user", "Thanks")]

    assert house.chains.counts == {"added": 3}
    assert [turn.user_text for turn in house.turns] == ["Hello", "How warm is it?", "Thanks"]
    assert len({turn.scope.session for turn in house.turns}) == 1
    await house.writer.flush()
    kept = await newest_conversation(house.journal, Scope("alice"))
    assert kept is not None
    said = await house.journal.messages(Scope("alice"), kept.id)
    assert [each.content for each in said] == [
        "Hello", "Hi!", "How warm is it?", "", "21 degrees", "Warm.", "Thanks",
    ]  # fmt: skip


async def test_where_chains_are_off_everything_passes_and_turns_are_the_same(journal: SqlJournal, house: House) -> None:
    await house.begin()
    ids = [turn.id for turn in house.turns]
    assert json.loads(await house.ask(GOES_ON))["input"] == [*HISTORY, RESULT]
    house.conversations.histories = None
    body = await house.ask(GOES_ON, spoken("Warm."), name="r3")
    assert (json.loads(body), house.result.body) == ({"model": "m"} | GOES_ON, None)
    again = {"input": "How warm is it?", "previous_response_id": "r1"}
    await house.ask(again)
    assert house.turns[-1].id == ids[-1]


async def test_memories_go_into_the_instructions_and_in_a_loop_in_the_same_way_again(house: House) -> None:
    await house.world.knows(BUDGET)
    await house.ask({"input": "Hello"}, spoken("Hi!"), name="r1")
    body = {"input": QUESTION, "previous_response_id": "r1", "instructions": "Be brief."}
    first = json.loads(await house.ask(body, CALL, name="r2"))
    assert BUDGET in first["instructions"]
    assert first["instructions"].startswith("Be brief.")
    assert first["input"] == [*HISTORY[:2], message("user", QUESTION)]
    loop = json.loads(await house.ask({**GOES_ON, "instructions": "Be brief."}))
    assert (house.result.outcome, loop["instructions"]) == (Outcome.REPEATED, first["instructions"])
    assert loop["input"][-1] == RESULT


async def test_a_block_among_the_input_is_in_no_history_and_stands_in_the_same_place_again(journal: SqlJournal) -> None:
    house = House(journal, rules=replace(PATIENT, position="before_last_user"))
    await house.world.knows(BUDGET)
    first = json.loads(await house.ask({"input": QUESTION}, CALL, name="r2"))
    assert BUDGET in first["input"][0]["content"]
    loop = json.loads(await house.ask(GOES_ON))
    assert loop["input"] == [first["input"][0], message("user", QUESTION), CALL, RESULT]


async def test_words_that_only_the_journal_keeps_shorter_or_otherwise_are_no_history(house: House) -> None:
    for number, words in enumerate(("x" * 1001, "a\0b")):
        await house.ask({"input": words}, spoken("Hi!"), name=f"r{number}")
        body = {"input": "And?", "previous_response_id": f"r{number}"}
        assert json.loads(await house.ask(body)) == {"model": "m"} | body
    assert house.chains.counts == {"gap": 2}


# --- passed as it came ------------------------------------------------------------------------------------------------

IMAGE = {"type": "input_image", "image_url": "data:,"}
ODD_BEGINNINGS: dict[str, Json] = {
    "an image": {"input": [{"role": "user", "content": [IMAGE, {"type": "input_text", "text": "Look"}]}]},
    "orders": {"input": [{"role": "developer", "content": "Rhyme."}, {"role": "user", "content": "Hello"}]},
    "a history of its own": {"input": [message("user", "a"), message("assistant", "b"), message("user", "c")]},
    "several words": {"input": [message("user", "a"), message("user", "b")]},
    "a stored prompt": {"input": "Hello", "prompt": {"id": "p"}},
    "a conversation": {"input": "Hello", "conversation": "conv_1"},
    "a conversation that has no name": {"input": "Hello", "conversation": {"id": 5}},
    "an answer from before": {"input": "Hello", "previous_response_id": "r0"},
}


@pytest.mark.parametrize("kind", ODD_BEGINNINGS)
async def test_what_went_on_from_anything_that_is_not_recorded_passes(house: House, kind: str) -> None:
    await house.ask(ODD_BEGINNINGS[kind], spoken("Hi!"), name="r1")
    house.chains.counts.clear()
    body = {"input": "And?", "previous_response_id": "r1"}
    assert json.loads(await house.ask(body)) == {"model": "m"} | body
    assert house.result.body is None
    assert house.chains.counts == {"gap": 1}


CUT: Json = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
ODD_ANSWERS: dict[str, tuple[list[Json], Json]] = {
    "cut by its length": ([spoken("Hi!")], CUT),
    "a hosted tool": ([{"type": "web_search_call", "id": "ws_1"}, spoken("Hi!")], {}),
    "another kind of call": ([{**CALL, "type": "custom_tool_call", "input": "x"}], {}),
    "words behind a call": ([CALL, spoken("Hi!")], {}),
    "several messages": ([spoken("Hi!"), spoken("Ho!")], {}),
    "longer than is kept": ([spoken("x" * 1001)], {}),
    "a call without a name": ([{**CALL, "name": None}], {}),
}


@pytest.mark.parametrize("kind", ODD_ANSWERS)
async def test_an_answer_that_is_not_recorded_to_the_letter_is_no_history(house: House, kind: str) -> None:
    output, more = ODD_ANSWERS[kind]
    await house.ask({"input": "Hello"}, *output, name="r1", **more)
    body = {"input": "And?", "previous_response_id": "r1"}
    assert json.loads(await house.ask(body)) == {"model": "m"} | body
    assert house.chains.counts == {"gap": 1}


UNFIT: dict[str, Json] = {
    "no result": {"input": "Never mind", "previous_response_id": "r2"},
    "another call's": {"input": [{**RESULT, "call_id": "c2"}], "previous_response_id": "r2"},
    "a result twice": {"input": [RESULT, RESULT], "previous_response_id": "r2"},
    "words before it": {"input": [message("user", "So?"), RESULT], "previous_response_id": "r2"},
    "another kind": {"input": [{**RESULT, "type": "custom_tool_call_output"}], "previous_response_id": "r2"},
    "a conversation too": {**GOES_ON, "conversation": {"id": "conv_1"}},
    "a reference": {"input": [RESULT, {"type": "item_reference", "id": "x"}], "previous_response_id": "r2"},
    "no input": {"previous_response_id": "r2"},
    "an empty input": {"input": [], "previous_response_id": "r2"},
}


@pytest.mark.parametrize("kind", UNFIT)
async def test_a_request_that_does_not_go_on_from_its_history_passes(house: House, kind: str) -> None:
    await house.begin()
    house.chains.counts.clear()
    assert json.loads(await house.ask(UNFIT[kind])) == {"model": "m"} | UNFIT[kind]
    assert house.chains.counts == {"unfit": 1}


class Slow:
    def __init__(self, failing: bool) -> None:
        self._failing = failing

    async def chain(self, *_args: Any, **_limits: Any) -> list[KeptMessage]:
        if self._failing:
            raise JournalError("away")
        await asyncio.sleep(99)
        raise AssertionError


async def test_limits_and_what_fails_cost_the_history_and_not_the_request(house: House) -> None:
    await house.begin()
    came = {"model": "m"} | GOES_ON
    for word, limits in (
        (Chained.TOO_LONG, {"messages_max": 3}),
        (Chained.LATE, {"records": Slow(failing=False), "timeout_s": 0.01}),
        (Chained.FAILED, {"records": Slow(failing=True)}),
    ):
        chains = house.limited(**limits)
        assert json.loads(await house.ask(GOES_ON)) == came
        assert chains.counts == {word: 1}
    chains = house.limited(messages_max=4)
    assert json.loads(await house.ask(GOES_ON))["input"] == [*HISTORY, RESULT]
    assert chains.counts == {"added": 1}


async def test_a_body_that_would_be_too_large_passes(journal: SqlJournal) -> None:
    house = House(journal, request_body_bytes_max=260)
    await house.begin()
    assert json.loads(await house.ask(GOES_ON)) == {"model": "m"} | GOES_ON
    assert house.chains.counts == {"added": 1, "too_long": 1}


async def test_nobody_is_given_the_history_of_another_or_against_their_word(house: House) -> None:
    await house.begin()
    house.chains.counts.clear()
    for headers in ({"x-user-id": ("bob",)}, {}, *(USER | {"x-semmem-memory": (mode,)} for mode in ("off", "write"))):
        assert json.loads(await house.ask(GOES_ON, headers=headers)) == {"model": "m"} | GOES_ON
    assert house.chains.counts == {"unknown": 1}
    asks = {"input": "And?", "previous_response_id": "r1"}
    for name in ("x-session-id", "x-project-id", "x-agent-id"):
        assert json.loads(await house.ask(asks, headers=USER | {name: ("other",)})) == {"model": "m"} | asks
    assert house.chains.counts == {"unknown": 4}
    read = await house.ask(GOES_ON, spoken("Warm."), name="r3", headers=USER | {"x-semmem-memory": ("read",)})
    assert json.loads(read)["input"] == [*HISTORY, RESULT]
    await house.ask({"input": "And?", "previous_response_id": "r3"})
    assert house.chains.counts == {"unknown": 5, "added": 1}


async def test_what_was_removed_is_added_to_nothing(house: House) -> None:
    await house.begin()
    await house.writer.flush()
    kept = await newest_conversation(house.journal, Scope("alice"))
    assert kept is not None
    await house.journal.forget_conversation(Scope("alice"), kept.id, now=house.world.now)
    house.chains.counts.clear()
    assert json.loads(await house.ask(GOES_ON)) == {"model": "m"} | GOES_ON
    assert house.chains.counts == {"unknown": 1}


async def test_a_name_that_two_answers_have_is_none(house: House) -> None:
    session = USER | {"x-session-id": ("s1",)}
    for words in ("Hello", "Good morning"):
        await house.ask({"input": words}, spoken(f"{words}!"), name="r1", headers=session)
    await house.ask({"input": "And?", "previous_response_id": "r1"}, headers=session)
    assert house.chains.counts == {"unknown": 1}


async def test_a_second_answer_takes_the_place_of_the_first_with_what_it_is_worth(house: House) -> None:
    await house.ask({"input": "Hello"}, spoken("Hi!"), name="r1")
    looking = [{"role": "user", "content": [{"type": "input_text", "text": "Hello"}, IMAGE]}]
    await house.ask({"input": looking}, spoken("A goat!"), name="r2")
    for name in ("r1", "r2"):
        await house.ask({"input": "And?", "previous_response_id": name})
    assert house.chains.counts == {"unknown": 1, "gap": 1}


# --- any chain --------------------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
NAMES = st.text('abcdefgh"\\\n', min_size=1, max_size=4)


@st.composite
def chains(draw: st.DrawFn) -> list[KeptMessage]:
    """Of any number of steps, each with any number of calls; the last one's may be open."""
    said: list[KeptMessage] = []
    before: KeptMessage | None = None
    for number in range(draw(st.integers(1, 6))):
        after = "" if before is None else before.answer_id
        step = KeptMessage(0, Role.USER, draw(TEXTS), 0.0, place="", turn=f"t{number}", step="", after=after)
        calls = () if before is None else draw(st.permutations(before.calls))
        said += [replace(step, role=Role.TOOL, answers=call.id) for call in calls] or [step]
        names = draw(st.lists(NAMES, unique=True, max_size=3))
        before = replace(
            step,
            role=Role.ASSISTANT,
            content=draw(TEXTS),
            calls=tuple(ToolCall(name, draw(NAMES), draw(TEXTS)) for name in names),
            answer_id=f"r{number}",
            after="",
            whole=Whole.GOES_ON if number else Whole.BEGINS,
        )
        said.append(before)
    return said


@given(chains(), st.data())
def test_a_chain_is_whole_and_without_one_of_its_messages_not(said: list[KeptMessage], data: st.DataObject) -> None:
    name = said[-1].answer_id
    assert is_whole(said, name)
    at = data.draw(st.integers(0, len(said) - 1))
    assert not is_whole(said[:at] + said[at + 1 :], name)
    for change in ({"cut": True}, {"whole": Whole.NO}):
        changed = replace(said[at], **change)
        is_same = "whole" in change and said[at].role is not Role.ASSISTANT
        assert is_whole([*said[:at], changed, *said[at + 1 :]], name) is is_same
    assert not is_whole(said, name + "x")


@given(chains(), TEXTS, st.booleans(), st.permutations(["a", "b", "c"]))
def test_any_history_stands_in_order_before_the_input_and_other_bytes_stay(
    said: list[KeptMessage], words: str, as_list: bool, order: Sequence[str]
) -> None:
    history = [Past(each.role, each.content, each.answers, each.calls) for each in said]
    results = [{"type": "function_call_output", "call_id": call.id, "output": words} for call in history[-1].calls]
    own = json.dumps([*results, message("user", words)] if results or as_list else words).encode()
    members = {"a": b'"model" : "m\\u0020"', "b": b'"input":' + own, "c": b'"previous_response_id": "r1"'}
    body = b'{ "x":-0.0 , ' + b" ,\n".join(members[name] for name in order) + b', "y" :[ ] }'
    joined = responses_api.parse(body).with_history(history)
    assert joined is not None
    told = json.loads(joined)
    assert "previous_response_id" not in told
    assert joined.startswith(b'{ "x":-0.0 ,')
    assert joined.endswith(b', "y" :[ ] }')
    assert members["a"] in joined
    assert own.removeprefix(b"[").removesuffix(b"]") in joined

    expected: list[Json] = []
    for each in history:
        if each.role is Role.TOOL:
            expected.append({"type": "function_call_output", "call_id": each.answers, "output": each.text})
            continue
        if each.text or not each.calls:
            expected.append(message(each.role.value, each.text))
        for call in each.calls:
            kind = {"type": "function_call", "call_id": call.id}
            expected.append({**kind, "name": call.name, "arguments": call.arguments})
    assert told["input"] == [*expected, *results, message("user", words)]
