"""A conversation of the Responses API before a model that keeps none: kept from here, one request after another."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.conversations.chains import Chained, Chains
from semmem.dialects import responses as responses_api
from semmem.memory import Past, Role, Scope
from semmem.ports.continuing import IDLE, Continued
from semmem.ports.conversations import KeptConversation, new_conversation_id
from semmem.ports.errors import JournalError
from semmem.request.head import RequestHead
from semmem.request.outcome import Outcome
from semmem.turns.observation import Observation
from semmem.turns.recorder import TurnRecorder
from semmem.turns.sessions import Sessions
from tests.core.backends.test_journal_conversations import learnt_from
from tests.core.conversations.test_chains import (
    CALL,
    HISTORY,
    ODD_ANSWERS,
    RESULT,
    USER,
    House,
    Json,
    message,
    spoken,
)
from tests.core.exchange.world import BUDGET, QUESTION
from tests.support.journal_samples import erase
from tests.support.newest_conversation import newest_conversation

TALK: Json = {"conversation": "talk"}
ALICE = Scope("alice")


class Keeper(House):
    """A house that lets every conversation begin."""

    def limited(self, records: Any = None, messages_max: int = 50, timeout_s: float = 20.0, **more: Any) -> Chains:
        chains = super().limited(records, messages_max, timeout_s)
        chains.begin_unknown = more.get("begin_unknown", True)
        return chains

    def words(self) -> dict[str, int]:
        """What became of the requests since this was asked last."""
        words = dict(self.chains.counts)
        self.chains.counts.clear()
        return words

    async def say(self, words: Any, *output: Json, **more: Any) -> Json:
        """The body that the model is given for these words in the one conversation."""
        body = more.pop("body", TALK)
        found: Json = json.loads(await self.ask({"input": words} | body, *output, **more))
        return found

    def answer(self, status: int = 200, kind: str = "text/event-stream", ticket: Any = None) -> Observation:
        """Of the last request, or of a ticket's."""
        self.world.now += 1.0
        told = self.result.ticket if ticket is None else ticket
        seen: Observation = self.exchange.response(told, status=status, content_type=kind, content_encoding="")
        return seen


@pytest.fixture
def house(journal: SqlJournal) -> Keeper:
    return Keeper(journal)


# --- added ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("named", ["talk", {"id": "talk"}], ids=["as text", "as an object"])
async def test_a_conversation_with_a_tool_reaches_a_model_that_keeps_nothing_and_is_recorded_once(
    house: Keeper, streams: bool, named: Any
) -> None:
    body = {"conversation": named}
    first = await house.say("Hello", spoken("Hi!"), name="r1", streams=streams, body=body)
    assert first == {"model": "m", "input": "Hello"}
    second = await house.say("How warm is it?", CALL, name="r2", streams=streams, body=body)
    assert second == {"model": "m", "input": [*HISTORY[:3]]}
    third = await house.say([RESULT], spoken("Warm."), name="r3", streams=not streams, body=body)
    assert third == {"model": "m", "input": [*HISTORY, RESULT]}
    last = await house.say("Thanks", body=body)
    assert last["input"] == [*HISTORY, RESULT, message("assistant", "Warm."), message("user", "Thanks")]
    assert house.words() == {"begun": 1, "added": 3}
    assert [turn.user_text for turn in house.turns] == ["Hello", "How warm is it?", "Thanks"]
    assert {turn.scope.session for turn in house.turns} == {"talk"}
    kept = await newest_conversation(house.journal, Scope("alice", session="talk"))
    assert kept is not None
    said = await house.journal.messages(ALICE, kept.id)
    assert [each.content for each in said] == ["Hello", "Hi!", "How warm is it?", "", "21 degrees", "Warm."]


async def test_one_that_the_api_made_begins_and_is_the_very_conversation_that_it_names(house: Keeper) -> None:
    house.chains.begin_unknown = False
    name = new_conversation_id(ALICE)
    empty = KeptConversation(name, Scope("alice", session=name), "", 1.0, 1.0, progress=IDLE)
    assert await house.journal.put_conversation(empty, [], house.writer.limits) is not None
    body = {"conversation": name}
    assert await house.say("Hello", spoken("Hi!"), name="r1", body=body) == {"model": "m", "input": "Hello"}
    assert (await house.say("And?", body=body))["input"][:2] == HISTORY[:2]
    assert house.words() == {"begun": 1, "added": 1}
    await house.writer.flush()
    kept = await house.journal.conversation(ALICE, name)
    assert kept is not None
    assert (kept.messages, kept.title) == (3, "Hello")
    assert await house.say("Hello", body=body, headers={"x-user-id": ("bob",)}) == {
        "model": "m", "input": "Hello", "conversation": name
    }  # fmt: skip


async def test_the_same_words_and_the_same_answer_again_are_two_steps(house: Keeper) -> None:
    for number in range(3):
        await house.say("Yes", spoken("Yes?"), name=f"r{number}")
    told = await house.say("Yes")
    assert told["input"] == [message("user", "Yes"), message("assistant", "Yes?")] * 3 + [message("user", "Yes")]
    assert len({turn.id for turn in house.turns}) == 4


async def test_memories_go_where_they_go_and_in_a_loop_in_the_same_way_again(house: Keeper) -> None:
    await house.world.knows(BUDGET)
    await house.say("Hello", spoken("Hi!"), name="r1")
    first = await house.say(QUESTION, CALL, name="r2")
    assert BUDGET in first["instructions"]
    loop = await house.say([RESULT])
    assert (house.result.outcome, loop["instructions"]) == (Outcome.REPEATED, first["instructions"])
    assert loop["input"][-1] == RESULT


async def test_a_chain_may_leave_it_and_the_conversation_goes_on_as_it_was(house: Keeper) -> None:
    await house.say("Hello", spoken("Hi!"), name="r1")
    aside = {"previous_response_id": "r1"}
    assert (await house.say("Aside", spoken("Aha."), name="r2", body=aside))["input"][:2] == HISTORY[:2]
    assert (await house.say("And?", spoken("So."), name="r3"))["input"] == [*HISTORY[:2], message("user", "And?")]
    assert (await house.say("Well?", body={"previous_response_id": "r3"}))["input"][3] == message("assistant", "So.")
    assert house.words() == {"begun": 1, "added": 3}


# --- requests without an answer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 429, 500, 503])
async def test_a_request_that_the_model_refused_is_left_out(house: Keeper, status: int) -> None:
    for before, expected in ((False, "begun"), (True, "added")):
        if before:
            await house.say("Hello", spoken("Hi!"), name="r1")
            house.words()
        await house.say("Too much" if before else "At first")
        house.answer(status, "application/json").end()
        assert await house.say("Shorter" if before else "Then") == {
            "model": "m",
            "input": [*HISTORY[:2], message("user", "Shorter")] if before else "Then",
        }
        assert house.words() == {expected: 2}
        house.answer(status, "application/json").end()


BEGUN = b'data: {"type":"response.created","response":{"id":"r2","status":"in_progress"}}\n\n'
BROKEN_STREAMS = {
    "nothing": b"",
    "after an event": BEGUN + b'data: {"type":"response.output_text.delta","delta":"Wa"}\n\n',
    "in an event": BEGUN + b'data: {"type":"response.out',
    "in the last event": BEGUN + b'data: {"type":"response.completed","response":{"id":"r2","status":"comp',
    "failed": BEGUN
    + b'data: {"type":"response.failed","response":{"id":"r2","status":"failed","error":{"code":"x"}}}\n\n',
}


@pytest.mark.parametrize("kind", BROKEN_STREAMS)
async def test_an_answer_that_broke_off_is_left_out_with_what_it_answers(house: Keeper, kind: str) -> None:
    await house.say("Hello", spoken("Hi!"), name="r1")
    await house.say("Tell me more")
    seen = house.answer()
    seen.feed(BROKEN_STREAMS[kind])
    seen.end()
    assert (await house.say("In short?"))["input"] == [*HISTORY[:2], message("user", "In short?")]
    assert house.words() == {"begun": 1, "added": 2}


async def test_a_retry_after_an_answer_that_broke_off_is_the_same_turn(house: Keeper) -> None:
    await house.say("Hello", spoken("Hi!"), name="r1")
    for _ in range(2):
        await house.say("More")
        house.answer(503).end()
    await house.say("More", spoken("Well."), name="r2")
    assert (await house.say("And?"))["input"] == [
        *HISTORY[:2], message("user", "More"), message("assistant", "Well."), message("user", "And?")
    ]  # fmt: skip
    assert [turn.user_text for turn in house.turns if turn.user_text == "More"] == ["More"] * 3
    assert len({turn.id for turn in house.turns}) == 3


async def test_results_that_broke_off_are_brought_again(house: Keeper) -> None:
    await house.say("Hello", spoken("Hi!"), name="r1")
    await house.say("How warm is it?", CALL, name="r2")
    other = {**RESULT, "output": "I do not know"}
    for results in ([other], [RESULT]):
        assert (await house.say(results))["input"] == [*HISTORY, *results]
        house.answer(500).end()
    await house.say([RESULT], spoken("Warm."), name="r3")
    assert (await house.say("Thanks"))["input"] == [
        *HISTORY, RESULT, message("assistant", "Warm."), message("user", "Thanks")
    ]  # fmt: skip


UNKNOWN_ENDS: dict[str, tuple[int, str, bytes, bool]] = {
    "not seen": (200, "text/event-stream", BEGUN, False),
    "unreadable": (200, "text/event-stream", b"data: {{{\n\n" + BEGUN, True),
    "of another kind": (200, "text/plain", b"Warm.", True),
    "half a body": (200, "application/json", b'{"id":"r2","status":"comp', True),
    "to be fetched later": (200, "application/json", b'{"id":"r2","status":"queued"}', True),
    "withheld": (
        200,
        "application/json",
        b'{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}',
        True,
    ),
    "moved": (307, "application/json", b"", True),
}


@pytest.mark.parametrize("kind", [*UNKNOWN_ENDS, "never heard of"])
async def test_nobody_goes_on_where_it_is_not_known_what_was_answered(house: Keeper, kind: str) -> None:
    await house.say("Hello", spoken("Hi!"), name="r1")
    await house.say("More")
    if kind in UNKNOWN_ENDS:
        status, content_type, body, seen = UNKNOWN_ENDS[kind]
        answer = house.answer(status, content_type)
        answer.feed(body)
        answer.end(seen=seen)
    assert await house.say("And?") == {"model": "m", "input": "And?"} | TALK
    assert house.result.body is None
    assert house.words() == {"begun": 1, "added": 1, "gap": 1}
    aside = {"previous_response_id": "r1"}
    assert (await house.say("And?", body=aside))["input"][:2] == HISTORY[:2]


@pytest.mark.parametrize("kind", ODD_ANSWERS)
async def test_an_answer_that_is_not_recorded_to_the_letter_ends_it(house: Keeper, kind: str) -> None:
    output, more = ODD_ANSWERS[kind]
    await house.say("Hello", *output, name="r1", **more)
    assert await house.say("And?") == {"model": "m", "input": "And?"} | TALK
    assert house.words() == {"begun": 1, "gap": 1}


async def test_words_that_are_not_recorded_to_the_letter_end_it(house: Keeper) -> None:
    looking = [{"role": "user", "content": [{"type": "input_image", "image_url": "data:,"}]}]
    for number, words in enumerate(("x" * 1001, "a\0b", looking)):
        body = {"conversation": f"talk {number}"}
        await house.say(words, spoken("Hi!"), name=f"r{number}", body=body)
        await house.say("And?", body=body)
    assert house.words() == {"begun": 3, "gap": 3}


# --- at once ----------------------------------------------------------------------------------------------------------


async def at_once(house: Keeper, *words: str) -> list[bool]:
    """Which of the requests with these words pass as they came."""
    head = RequestHead("POST", "/v1/responses", USER)
    bodies = [json.dumps({"model": "m", "input": each} | TALK).encode() for each in words]
    results = await asyncio.gather(*(house.exchange.request(head, body) for body in bodies))
    return sorted(result.body is None for result in results)


async def test_of_two_requests_at_once_one_goes_on_and_the_other_passes(house: Keeper) -> None:
    await house.say("Hello", spoken("Hi!"), name="r1")
    house.words()
    assert await at_once(house, "This", "That", "Those") == [False, True, True]
    assert house.words() == {"added": 1, "gap": 2}


async def test_of_two_beginnings_at_once_one_begins(house: Keeper) -> None:
    assert await at_once(house, "This", "That") == [False, True]
    assert house.words() == {"begun": 1, "gap": 1}


async def test_the_other_one_that_is_answered_all_the_same_ends_it_and_if_it_is_refused_it_does_not(
    house: Keeper,
) -> None:
    await house.say("Hello", spoken("Hi!"), name="r1")
    for status in (400, 200):
        await house.say("This")
        first = ticket_of(house)
        assert "conversation" in await house.say("That")
        if status == 400:
            house.answer(400).end()
        else:
            await house.say("That", spoken("Out of the blue."), name="r9")
        seen = house.answer(503, ticket=first)
        seen.end()
    house.words()
    await house.say("And?")
    assert house.words() == {"gap": 1}


def ticket_of(house: Keeper) -> Any:
    return house.result.ticket


async def test_an_answer_that_another_replica_has_not_written_yet_is_waited_for_by_nobody(
    house: Keeper, journal: SqlJournal
) -> None:
    other = Keeper(journal)
    await other.say("Hello", spoken("Hi!"), name="r1")
    house.world.now = other.world.now
    assert "conversation" in await house.say("And?")
    house.answer(400).end()
    await other.writer.flush()
    assert (await house.say("And?", spoken("So."), name="r2"))["input"][:2] == HISTORY[:2]
    await house.writer.flush()
    other.world.now = house.world.now
    assert (await other.say("Well?"))["input"][:4] == [
        *HISTORY[:2],
        message("user", "And?"),
        message("assistant", "So."),
    ]
    assert (house.words(), other.words()) == ({"gap": 1, "added": 1}, {"begun": 1, "added": 1})


async def test_results_belong_to_the_turn_that_the_record_says_while_sessions_cannot_be_looked_up(
    house: Keeper, journal: SqlJournal
) -> None:
    await house.say("Hello", CALL, name="r1")
    await house.writer.flush()
    other = Keeper(journal)
    other.world.now = house.world.now
    away: Any = Slow(journal, "turn_of_answer", failing=True)
    other.exchange.turns = TurnRecorder(Sessions(away), other.world.journal)
    await other.say([RESULT], spoken("Warm."), name="r2")
    assert [each["type"] for each in (await other.say("Thanks"))["input"]] == [
        "message", "function_call", "function_call_output", "message", "message"
    ]  # fmt: skip


# --- passed as it came ------------------------------------------------------------------------------------------------


async def test_a_conversation_that_the_model_keeps_is_never_taken_from_it(house: Keeper) -> None:
    house.chains.begin_unknown = False
    for number in range(3):
        came = {"model": "m", "input": f"Words {number}"} | TALK
        assert await house.say(f"Words {number}", spoken("Hi!"), name=f"r{number}") == came
        assert house.result.body is None
    house.chains.begin_unknown = True  # it goes on where it is
    assert await house.say("More") == {"model": "m", "input": "More"} | TALK
    assert house.words() == {"unknown": 4}


async def test_where_chains_are_off_everything_passes_and_ends_what_began_here(house: Keeper) -> None:
    await house.say("Hello", spoken("Hi!"), name="r1")
    house.conversations.histories, chains = None, house.conversations.histories
    assert await house.say("More", spoken("Well."), name="r2") == {"model": "m", "input": "More"} | TALK
    house.conversations.histories = chains
    await house.say("And?")
    assert house.words() == {"begun": 1, "gap": 1}


async def test_nobody_is_given_the_history_of_another_or_against_their_word(house: Keeper) -> None:
    await house.say("Hello", spoken("Hi!"), name="r1")
    house.words()
    for name in ("x-session-id", "x-project-id", "x-agent-id"):
        assert "conversation" in await house.say(name, headers=USER | {name: ("other",)})
        house.answer(400).end()
    assert house.words() == {"unknown": 3}
    for mode in ("off", "write"):
        assert "conversation" in await house.say("And?", headers=USER | {"x-semmem-memory": (mode,)})
        if mode == "write":
            house.answer(400).end()
    assert house.words() == {}
    assert await house.say("Hello", headers={"x-user-id": ("bob",)}) == {"model": "m", "input": "Hello"}
    assert house.words() == {"begun": 1}
    same = USER | {"x-session-id": ("talk",)}
    assert (await house.say("And?", headers=same))["input"][:2] == HISTORY[:2]
    house.answer(500).end()
    reading = USER | {"x-semmem-memory": ("read",)}
    assert (await house.say("And?", headers=reading))["input"][:2] == HISTORY[:2]
    assert house.result.ticket is None
    await house.say("And?")
    assert house.words() == {"added": 2, "gap": 1}


async def test_nothing_is_kept_of_a_user_who_is_not_to_be_stored(house: Keeper) -> None:
    reading = USER | {"x-semmem-memory": ("read",)}
    assert await house.say("Hello", headers=reading) == {"model": "m", "input": "Hello"} | TALK
    assert house.words() == {"unknown": 1}
    assert (await house.journal.conversation_counts(None)).conversations == 0


UNFIT: dict[str, Json] = {
    "words for a result": {"input": "Never mind"},
    "another call's": {"input": [{**RESULT, "call_id": "c2"}]},
    "a reference": {"input": [RESULT, {"type": "item_reference", "id": "x"}]},
    "no input": {},
    "an answer too": {"input": [RESULT], "previous_response_id": 7},
}


@pytest.mark.parametrize("kind", UNFIT)
async def test_a_request_that_does_not_fit_passes_and_takes_nothing(house: Keeper, kind: str) -> None:
    await house.say("Hello", spoken("Hi!"), name="r1")
    await house.say("How warm is it?", CALL, name="r2")
    house.words()
    assert json.loads(await house.ask(UNFIT[kind] | TALK)) == {"model": "m"} | UNFIT[kind] | TALK
    assert house.words() == {"unfit": 1}
    assert (await house.say([RESULT]))["input"] == [*HISTORY, RESULT]


async def test_one_that_names_an_answer_too_passes(house: Keeper) -> None:
    await house.say("Hello", spoken("Hi!"), name="r1")
    both = TALK | {"previous_response_id": "r1"}
    assert await house.say("And?", body=both) == {"model": "m", "input": "And?"} | both
    assert house.words() == {"begun": 1, "unfit": 1}


class Slow:
    """Records that do not answer, or fail, at one of their calls."""

    def __init__(self, journal: SqlJournal, at: str, failing: bool) -> None:
        self._journal, self._at, self._failing = journal, at, failing

    def __getattr__(self, name: str) -> Any:
        return self._stuck if name == self._at else getattr(self._journal, name)

    async def _stuck(self, *args: Any, **more: Any) -> Any:
        if self._at == "claim_conversation":
            await self._journal.claim_conversation(*args, **more)
        if self._failing:
            raise JournalError("away")
        await asyncio.sleep(99)


@pytest.mark.parametrize("at", ["continued", "chain", "claim_conversation"])
@pytest.mark.parametrize("failing", [False, True])
async def test_records_that_are_slow_or_away_cost_the_history_and_not_the_request_nor_the_next_one(
    house: Keeper, at: str, failing: bool
) -> None:
    await house.say("Hello", spoken("Hi!"), name="r1")
    chains = house.limited(Slow(house.journal, at, failing), timeout_s=60.0 if failing else 0.2)
    assert await house.say("More") == {"model": "m", "input": "More"} | TALK
    assert chains.counts == {Chained.FAILED if failing else Chained.LATE: 1}
    house.answer(400).end()
    house.limited()
    assert (await house.say("And?"))["input"][:2] == HISTORY[:2]
    house.answer(503).end()
    house.limited(messages_max=1)
    await house.say("And?")
    assert house.words() == {"too_long": 1}


async def test_a_body_that_would_be_too_large_passes_and_takes_nothing(journal: SqlJournal) -> None:
    house = Keeper(journal, request_body_bytes_max=200)
    await house.say("Hello", spoken("Hi!"), name="r1")
    await house.say("x" * 120)
    house.answer(400).end()
    await house.say("And?")
    assert house.words() == {"begun": 1, "too_long": 1, "added": 1}


# --- erased -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["the user", "the conversation"])
async def test_what_was_removed_comes_back_by_no_request(house: Keeper, what: str) -> None:
    await house.say("My secret", spoken("Noted."), name="r1")
    await house.say("More")
    running = ticket_of(house)
    await house.writer.flush()
    kept = await newest_conversation(house.journal, ALICE)
    assert kept is not None
    if what == "the user":
        await erase(house.journal, ALICE, at=house.world.now)
    else:
        await house.journal.forget_conversation(ALICE, kept.id, now=house.world.now)
    house.words()
    assert await house.say("And?") == {"model": "m", "input": "And?"}
    seen = house.answer(ticket=running, kind="application/json")
    seen.feed(json.dumps({"id": "r2", "status": "completed", "output": [spoken("The secret.")]}).encode())
    seen.end()
    ended = house.answer(200, "application/json")
    ended.feed(json.dumps({"id": "r3", "status": "completed", "output": [spoken("So.")]}).encode())
    ended.end()
    assert (await house.say("Well?"))["input"] == [
        message("user", "And?"), message("assistant", "So."), message("user", "Well?")
    ]  # fmt: skip
    assert house.words() == {"begun": 1, "added": 1}


@pytest.mark.parametrize("how", ["older_than", "retention", "a memory"])
async def test_half_a_history_is_none(house: Keeper, how: str) -> None:
    await house.say("Hello", spoken("Hi!"), name="r1")
    between = house.world.now + 0.5
    await house.say("More", spoken("Well."), name="r2")
    await house.writer.flush()
    if how == "older_than":
        await erase(house.journal, ALICE, at=between)
    elif how == "retention":
        await house.journal.prune_conversations(said_before=between)
    else:
        memory = replace(learnt_from(house.turns[-1].id), user="alice")
        await house.journal.mark_memories([memory], at=house.world.now)
    house.words()
    assert await house.say("And?") == {"model": "m", "input": "And?"} | TALK
    assert house.words() == {"gap": 1}


# --- the bytes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("history", [(), (Past(Role.USER, "a"), Past(Role.ASSISTANT, "b"))])
@pytest.mark.parametrize("own", [b'"c"', b'[ {"role":"user","content":"c"} ]'])
def test_every_other_member_keeps_its_bytes(history: Sequence[Past], own: bytes) -> None:
    members = [b'"previous_response_id": null', b'"x":-0.0', b'"input" : ' + own, b'"conversation":\t{"id":"talk"}']
    for turned in range(len(members)):
        order = members[turned:] + members[:turned]
        joined = responses_api.parse(b"{ " + b" , ".join(order) + b" }").with_history(history)
        assert joined is not None
        told = json.loads(joined)
        assert told.keys() == {"previous_response_id", "x", "input"}
        assert b'"x":-0.0' in joined
        assert own.strip(b"[]") in joined
        assert (own in joined) or history
        assert len(told["input"]) == (len(history) + 1 if history or own != b'"c"' else 1)


def test_a_conversation_is_free_only_in_these_words() -> None:
    free = [word for word in ("", "idle", "open x", "done x", "failed x", "broken") if Continued("c", word).is_free]
    assert free == ["idle", "done x", "failed x"]
