"""What is said through the exchange, in every dialect, is read again as a conversation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.background.writers import HALVES_MAX, NO_TURN, QUEUE_FULL, TURN_WAIT_S, ConversationWriter
from semmem.conversations.tap import Tap, new_results
from semmem.envoy.wire import body_reply, read_ticket
from semmem.exchange import Exchange, RequestResult
from semmem.memory import Answer, Message, Role, Scope, Turn, TurnEnding
from semmem.ports.conversations import (
    FIRST_ANSWER,
    ConversationLimits,
    KeptMessage,
    Recorded,
    Said,
    SaidHalf,
    Step,
    title_of,
)
from semmem.ports.errors import JournalError
from semmem.ports.recording import TurnClosed
from semmem.request.head import RequestHead
from semmem.request.outcome import Outcome
from semmem.turns.observation import Ticket
from semmem.turns.recorder import TurnRecorder
from semmem.turns.sessions import Sessions
from tests.core.exchange.world import NOW, World
from tests.core.usage.test_ticket import observed
from tests.support.newest_conversation import newest_conversation
from tests.support.tickets import step_of, with_step

PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
ARGUMENTS = '{"city":"Lisbon"}'
Json = dict[str, Any]


class Recorder:
    """Two replicas that share a journal: one reads requests, the other sees answers."""

    def __init__(self, journal: SqlJournal) -> None:
        self.journal = journal
        self.halves: list[SaidHalf] = []
        self.asking, self.observing = self._replica(), self._replica()

    def _replica(self) -> World:
        world = World()
        world.records(self.halves.append)
        exchange: Any = world.exchange
        exchange.turns = TurnRecorder(Sessions(self.journal, shared=True), world.journal)
        return world

    async def ask(self, dialect: str, body: Json, answer: Sequence[Json], *, streams: bool, **headers: str) -> None:
        self.asking.now += 1.0
        sent = {"x-user-id": ("alice",), "x-session-id": ("s1",)} | {
            name.replace("_", "-"): (value,) for name, value in headers.items()
        }
        head = RequestHead("POST", PATHS[dialect], sent)
        result = await self.asking.exchange.request(head, json.dumps({"model": "auto"} | body).encode())
        ticket = read_ticket(observed(body_reply(result)))
        assert (ticket is None) is (result.ticket is None)
        if ticket is not None:
            self.answer(self.observing.exchange, ticket, answer, streams=streams)
        for world in (self.asking, self.observing):
            opened = [half for half in world.journal if isinstance(half, Turn)]
            await self.journal.record(opened, [half for half in world.journal if isinstance(half, TurnClosed)])
            world.journal.clear()

    def answer(self, exchange: Exchange, ticket: Ticket, told: Sequence[Json], *, streams: bool) -> None:
        kind = "text/event-stream" if streams else "application/json"
        observation = exchange.response(ticket, status=200, content_type=kind, content_encoding="")
        for each in told:
            observation.feed(b"data: " * streams + json.dumps(each).encode() + b"\n\n" * streams)
        self.observing.now = self.asking.now + 0.5
        observation.end()

    async def read(self, *, backwards: bool = False) -> list[KeptMessage]:
        """What the journal has of it; ``backwards``: the halves come in the other order."""
        writer = ConversationWriter(self.journal, ConversationLimits(), retention_s=1e9)
        for half in self.halves[::-1] if backwards else self.halves:
            writer.add(half)
        assert await writer.flush()
        kept = await newest_conversation(self.journal, Scope("alice", session="s1"))
        return [] if kept is None else await self.journal.messages(Scope("alice"), kept.id)


@pytest.fixture
def recorder(journal: SqlJournal) -> Recorder:
    return Recorder(journal)


# --- one conversation with a tool, as each API has it ----------------------------------------------------------------

ASK, LOOK, TOLD, SAY = "How warm is it?", "Let me look.", "21 degrees", "It is warm."


def chat(*, streams: bool) -> list[tuple[Json, list[Json]]]:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}
    ask: list[Json] = [{"role": "user", "content": ASK}]
    loop = [*ask, {"role": "assistant", "content": LOOK, "tool_calls": [call]}]
    loop += [{"role": "tool", "tool_call_id": "c1", "content": TOLD}]
    usage = {"prompt_tokens": 20, "completion_tokens": 5}

    def said(content: str, reason: str, calls: list[Json]) -> list[Json]:
        if not streams:
            message = {"content": content, "tool_calls": calls or None}
            choices = [{"finish_reason": reason, "message": message}]
            return [{"model": "gpt-4o", "usage": usage, "choices": choices}]
        pieces: list[Json] = [{"content": content}]
        for place, each in enumerate(calls):
            does = each["function"]
            pieces += [
                {"tool_calls": [{"index": place, "id": each["id"], "function": {"name": does["name"]}}]},
                *({"tool_calls": [{"index": place, "function": {"arguments": c}}]} for c in does["arguments"]),
            ]
        chunks: list[Json] = [{"model": "gpt-4o", "choices": [{"delta": piece}]} for piece in pieces]
        end = {"choices": [{"delta": {}, "finish_reason": reason}]}
        return [*chunks, end, {"choices": [], "usage": usage}]

    first, last = said(LOOK, "tool_calls", [call]), said(SAY, "stop", [])
    return [({"messages": ask, "stream": streams}, first), ({"messages": loop, "stream": streams}, last)]


def messages(*, streams: bool) -> list[tuple[Json, list[Json]]]:
    call = {"type": "tool_use", "id": "c1", "name": "weather", "input": json.loads(ARGUMENTS)}
    ask: list[Json] = [{"role": "user", "content": ASK}]
    result = {"type": "tool_result", "tool_use_id": "c1", "content": TOLD}
    loop = [*ask, {"role": "assistant", "content": [{"type": "text", "text": LOOK}, call]}]
    loop += [{"role": "user", "content": [result]}]
    usage = {"input_tokens": 20, "output_tokens": 5}

    def said(content: str, reason: str, calls: list[Json]) -> list[Json]:
        if not streams:
            blocks = [{"type": "text", "text": content}, *calls]
            return [{"model": "gpt-4o", "content": blocks, "stop_reason": reason, "usage": usage, "type": "message"}]
        begun = {"model": "gpt-4o", "usage": usage, "content": []}
        events: list[Json] = [
            {"type": "message_start", "message": begun},
            {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": content}},
        ]
        for each in calls:
            events += [{"type": "content_block_start", "content_block": {**each, "input": {}}}]
            events += [
                {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": piece}}
                for piece in ARGUMENTS
            ]
        end = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}}
        return [*events, end, {"type": "message_stop"}]

    first, last = said(LOOK, "tool_use", [call]), said(SAY, "end_turn", [])
    return [({"messages": ask, "max_tokens": 9}, first), ({"messages": loop, "max_tokens": 9}, last)]


def responses(*, streams: bool) -> list[tuple[Json, list[Json]]]:
    call = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": ARGUMENTS}
    result = {"type": "function_call_output", "call_id": "c1", "output": TOLD}
    goes_on: Json = {"previous_response_id": "resp_1", "input": [result]}

    def said(content: str, name: str, calls: list[Json]) -> list[Json]:
        spoken = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": content}]}
        usage = {"input_tokens": 20, "output_tokens": 5}
        whole = {"id": name, "model": "gpt-4o", "status": "completed", "output": [spoken, *calls], "usage": usage}
        return [{"type": "response.completed", "response": whole}] if streams else [whole]

    return [({"input": ASK}, said(LOOK, "resp_1", [call])), (goes_on, said(SAY, "resp_2", []))]


SCRIPTS = {"chat": chat, "messages": messages, "responses": responses}


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("dialect", SCRIPTS)
async def test_a_turn_with_a_tool_is_recorded_whole_and_once(
    recorder: Recorder, dialect: str, streams: bool, backwards: bool
) -> None:
    steps = SCRIPTS[dialect](streams=streams)
    for body, answer in [steps[0], *steps]:  # the first is tried twice
        await recorder.ask(dialect, body, answer, streams=streams)
    ask, look, told, say = await recorder.read(backwards=backwards)
    assert [each.content for each in (ask, look, told, say)] == [ASK, LOOK, TOLD, SAY]
    assert [each.role for each in (ask, look, told, say)] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    (call,) = look.calls
    assert (call.id, call.name, json.loads(call.arguments)) == ("c1", "weather", json.loads(ARGUMENTS))
    assert (told.answers, say.calls) == ("c1", ())
    assert {(each.model_asked, each.model, each.tokens_in, each.tokens_out) for each in (look, say)} == {
        ("auto", "gpt-4o", 20, 5)
    }
    assert ask.model_asked == "auto"
    if dialect == "responses":
        chain = await recorder.journal.chain(Scope("alice"), "resp_2", messages_max=9)
        assert [each.content for each in chain] == [ASK, LOOK, TOLD, SAY]
        assert say.after in ("", "resp_1")


async def test_a_conversation_goes_on_and_a_new_answer_replaces_the_old(recorder: Recorder) -> None:
    def answer(text: str) -> list[Json]:
        return [{"choices": [{"finish_reason": "stop", "message": {"content": text}}]}]

    history: list[Json] = []
    for words, answers in (("Hi", ["Hello."]), ("And you?", ["Bad.", "Good."])):
        history.append({"role": "user", "content": words})
        for text in answers:
            await recorder.ask("chat", {"messages": history}, answer(text), streams=False)
        history.append({"role": "assistant", "content": answers[-1]})
    said = [each.content for each in await recorder.read()]
    assert said == ["Hi", "Hello.", "And you?", "Good."]


@pytest.mark.parametrize("headers", [{"x_semmem_memory": "off"}, {"x_semmem_memory": "read"}])
async def test_what_is_not_to_be_stored_is_in_no_conversation(recorder: Recorder, headers: dict[str, str]) -> None:
    ((body, answer), _) = chat(streams=False)
    await recorder.ask("chat", body, answer, streams=False, **headers)
    assert recorder.halves == []
    await recorder.ask("chat", body | {"memory_config": {"auto_store": False}}, answer, streams=False)
    assert (recorder.halves, await recorder.read()) == ([], [])


@pytest.mark.parametrize("ending", [TurnEnding.REFUSED, TurnEnding.ANSWER_LOST, TurnEnding.UNKNOWN_ENCODING])
def test_an_answer_that_was_not_seen_whole_is_not_recorded(ending: TurnEnding) -> None:
    halves: list[SaidHalf] = []
    Tap(halves.append, chars_max=9).answered("t_1", Step("", FIRST_ANSWER, NOW), ending, Answer("x", True), NOW)
    assert halves == []


def test_where_nothing_is_recorded_nothing_travels_and_no_calls_are_kept() -> None:
    reader = World().exchange.response(
        Ticket("t_1", "chat"), status=200, content_type="application/json", content_encoding=""
    )
    (_, (answer,)) = chat(streams=False)[0]
    reader.feed(json.dumps(answer).encode())
    told: Any = reader
    assert told.reader.end().calls == ()
    assert told.reader.end().tool_calls == 1


def test_a_ticket_brings_the_place_of_its_answer_and_other_builds_words_are_not_believed() -> None:
    ticket = with_step(Step("", FIRST_ANSWER, 1_800_000_000.25))
    message = observed(body_reply(RequestResult(Outcome.NO_HITS, ticket=ticket)))
    assert read_ticket(message) == ticket
    for told in ("", "[]", "{}", '["x"]', '["x","y",1]'):
        message.metadata_context.filter_metadata["semmem"].fields["step"].string_value = told
        read = read_ticket(message)
        assert read is not None
        assert step_of(read) is None


# --- the writer ------------------------------------------------------------------------------------------------------


class Records:
    """ConversationRecording that may be away, or know no turn."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.away, self.knows = False, True

    async def record_said(self, halves: Sequence[SaidHalf], limits: ConversationLimits) -> Recorded:
        if self.away:
            raise JournalError("away")
        self.batches.append(len(halves))
        return Recorded(kept=len(halves)) if self.knows else Recorded(waiting=tuple(halves))

    async def prune_conversations(self, *, said_before: float) -> Any: ...


def half(text: str = "x") -> SaidHalf:
    return SaidHalf("t_1", Step("", 1, NOW), (Said(1, Role.TOOL, text, NOW),))


def writer(records: Any, **rules: Any) -> ConversationWriter:
    return ConversationWriter(records, ConversationLimits(), retention_s=100.0, **rules)


async def test_halves_are_written_in_batches_and_wait_while_the_journal_is_away() -> None:
    records = Records()
    one = writer(records)
    for _ in range(2 * HALVES_MAX + 50):
        one.add(half())
    records.away = True
    assert not await one.flush()
    assert len(one) == 2 * HALVES_MAX + 50
    records.away = False
    assert await one.flush()
    assert (records.batches, one.written, len(one)) == ([HALVES_MAX, HALVES_MAX, 50], 2 * HALVES_MAX + 50, 0)


async def test_halves_wait_for_their_turn_only_so_long() -> None:
    records, now = Records(), [NOW]
    one = writer(records, clock=lambda: now[0])
    records.knows = False
    one.add(half())
    assert await one.flush()
    assert (len(one), one.missed[NO_TURN]) == (1, 0)
    now[0] += TURN_WAIT_S
    assert await one.flush()
    assert (len(one), one.missed[NO_TURN]) == (0, 1)


def test_what_waits_is_bounded_in_bytes_and_what_is_dropped_is_counted() -> None:
    one = writer(Records(), queue_bytes_max=10_000)
    for _ in range(20):
        one.add(half("x" * 3000))
    assert (len(one), one.missed[QUEUE_FULL]) == (2, 18)


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("", ""),
        ("\n  Two\twords  \nmore", "Two words"),
        ("w" * 200, "w" * 79 + "…"),
        ("word " * 40, ("word " * 16)[:-5].strip() + "…"),
    ],
)
def test_a_title_is_the_first_line_cut_at_a_word(words: str, title: str) -> None:
    assert title_of(words) == title
    assert len(title_of(words)) <= 80


def test_results_before_new_words_belong_to_those_words() -> None:
    told = [Message(Role.USER, "a"), Message(Role.ASSISTANT, ""), Message(Role.TOOL, "r"), Message(Role.USER, "b")]
    assert new_results(told) == ([(-1, told[2])], True)
    assert new_results([]) == ([], False)
