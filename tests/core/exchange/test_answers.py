"""What is read of an answer, and the word for how it ended."""

from __future__ import annotations

import gzip

import pytest

from semmem.memory import Answer, TurnEnding
from semmem.ports.recording import TurnClosed
from semmem.turns.encodings import decoder_for
from semmem.turns.observation import Observation, Ticket
from tests.core.exchange.world import NOW, World, reply


def observe(
    world: World, chunks: list[bytes], status: int = 200, encoding: str = "", kind: str = "application/json"
) -> str:
    observation = world.exchange.response(
        Ticket("t1", "chat"), status=status, content_type=kind, content_encoding=encoding
    )
    for chunk in chunks:
        observation.feed(chunk)
    return observation.end()


async def test_a_whole_answer_closes_the_turn() -> None:
    world = World()
    assert observe(world, reply("It is $10,000.")) == "answered"
    assert list(world.journal) == [TurnClosed("t1", TurnEnding.ANSWERED, NOW, "It is $10,000.", "stop")]


async def test_a_compressed_answer_closes_the_turn() -> None:
    world = World()
    packed = gzip.compress(reply("It is $10,000.")[0])
    assert observe(world, [packed[:7], packed[7:]], encoding="gzip") == "answered"
    assert [half.answer for half in world.journal if isinstance(half, TurnClosed)] == ["It is $10,000."]


async def test_an_answer_in_an_unknown_encoding_has_a_word_of_its_own_and_is_lost() -> None:
    world = World()
    assert observe(world, reply("x"), encoding="snappy") == "unknown_encoding"
    assert [half.status for half in world.journal if isinstance(half, TurnClosed)] == ["answer_lost"]


async def test_a_streamed_answer_closes_the_turn() -> None:
    world = World()
    events = [b'data: {"choices":[{"index":0,"delta":{"content":"It is "}}]}\n\n']
    events += [b'data: {"choices":[{"index":0,"delta":{"content":"ten"},"finish_reason":"stop"}]}\n\n']
    assert observe(world, events, kind="text/event-stream; charset=utf-8") == "answered"
    assert observe(world, events[:1], kind="text/event-stream") == "answer_lost"
    assert [half.answer for half in world.journal if isinstance(half, TurnClosed)] == ["It is ten", None]


@pytest.mark.parametrize("status", [400, 401, 429])
async def test_a_refused_request_is_not_learnt_from(status: int) -> None:
    world = World()
    assert observe(world, reply("no"), status=status) == "refused"
    assert [half.status for half in world.journal if isinstance(half, TurnClosed)] == ["refused"]


async def test_a_filtered_answer_is_not_learnt_from() -> None:
    assert observe(World(), reply("", "content_filter")) == "refused"


@pytest.mark.parametrize(
    ("chunks", "status", "encoding", "kind"),
    [
        (reply("x"), 500, "", "application/json"),
        (reply("x"), 302, "", "application/json"),
        ([b"{"], 200, "", "application/json"),
        ([], 200, "", "application/json"),
        (reply("x"), 200, "gzip", "application/json"),
        ([gzip.compress(reply("x")[0])[:-20]], 200, "gzip", "application/json"),
        (reply("x"), 200, "", "text/html"),
        (reply("x"), 0, "", "application/json"),
    ],
)
async def test_an_answer_that_cannot_be_read_is_lost_but_the_users_words_are_not(
    chunks: list[bytes], status: int, encoding: str, kind: str
) -> None:
    assert observe(World(), chunks, status, encoding, kind) == "answer_lost"


async def test_a_call_of_a_tool_leaves_the_turn_open() -> None:
    world = World()
    assert observe(world, reply(None, "tool_calls")) == "continues"
    assert list(world.journal) == []


@pytest.mark.parametrize(
    ("status", "text", "calls_tool", "filtered", "complete"),
    [
        ("continues", "Let me look.", True, False, True),
        ("refused", "", False, True, False),
        ("answered", "Ten.", False, False, True),
        ("answer_lost", "Te", False, False, False),
    ],
)
async def test_how_an_answer_ended_is_one_word(
    status: str, text: str, calls_tool: bool, filtered: bool, complete: bool
) -> None:
    class Reader:
        def feed(self, chunk: bytes) -> None: ...

        def end(self) -> Answer:
            return Answer(text=text, complete=complete, filtered=filtered, calls_tool=calls_tool)

    ended: list[str] = []

    def close(ticket: Ticket, ending: TurnEnding, answer: Answer | None, *, failed: bool) -> None:
        ended.append(ending)

    decoder = decoder_for("", decoded_bytes_max=1)
    observation = Observation(Ticket("t", "chat"), 200, decoder, Reader(), close)
    assert observation.end() == status
    assert ended == [status]
