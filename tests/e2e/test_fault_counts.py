"""The fault suite's other eyes: what semmem counted against what was done, and what a crowd of streams got."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from semmem.dialects import DIALECTS
from semmem.memory import Injection
from tests.faults import answers
from tests.faults.client import Seen, differences
from tests.faults.counts import miscounts
from tests.faults.forms import EVERY_FORM, Form, without_injection
from tests.faults.streams import Client, Crowd, chunk, word
from tests.faults.upstream import Exchange

# --- counts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counted", "told", "unsure", "said"),
    [
        ({"injected": 2}, {"injected": 2}, 0, []),
        ({"injected": 2}, {"injected": 1}, 1, []),
        ({}, {}, 3, []),
        ({"injected": 1}, {"injected": 2}, 1, ["clients were told injected 1 more than was counted"]),
        ({"injected": 2}, {"injected": 1}, 0, ["counted injected 1 for 0 requests without a word"]),
        ({"injected": 1, "timeout": 2}, {"injected": 1}, 1, ["counted timeout 2 for 1 requests without a word"]),
        (
            {"malformed": 1},
            {"injected": 1},
            0,
            [
                "clients were told injected 1 more than was counted",
                "counted malformed 1 for 0 requests without a word",
            ],
        ),
    ],
)
def test_what_was_counted_is_what_clients_were_told(
    counted: dict[str, int], told: dict[str, int], unsure: int, said: list[str]
) -> None:
    assert miscounts(Counter(counted), Counter(told), unsure) == said


# --- forms and answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", EVERY_FORM, ids=str)
@pytest.mark.parametrize("members", [{}, {"model": "a\r\nb"}, {"metadata": {"user_id": "x"}}], ids=str)
def test_one_injection_is_taken_out_again(form: Form, members: dict[str, str]) -> None:
    body = form.question(**members)
    block = Injection('<semmem-memory 0123456789abcdef>\n- "x\\"\n</semmem-memory>')
    rewritten = DIALECTS[form.path].parse(body).rewrite(block)
    assert rewritten is not None
    assert rewritten != body
    assert without_injection(rewritten) == body
    assert without_injection(rewritten.replace(b"<semmem-memory ", b"<else ")) != body


@pytest.mark.parametrize("form", EVERY_FORM, ids=str)
def test_the_model_speaks_every_api_so_that_semmem_understands_it(form: Form) -> None:
    pieces = answers.pieces(form.path, "n" * 16, ["one ", "two "], sse=form.sse)
    kind = "text/event-stream" if form.sse else "application/json"
    reader = DIALECTS[form.path].reader(content_type=kind, answer_bytes_max=1000, body_bytes_max=10_000)
    assert reader is not None
    for piece in pieces:
        reader.feed(piece)
    answer = reader.end()
    assert (answer.text.strip(), answer.complete) == ("one two", True)


def test_headers_of_semmems_making_at_the_model_are_seen() -> None:
    def seen(*headers: tuple[str, str]) -> Seen:
        exchange = Exchange("n", "t", "POST", "/", [("host", "h"), *headers], b"{}", whole=True)
        return Seen(b"{}", 200, exchange=exchange)

    plain = seen(("x-trial", "1"))
    assert differences(plain, seen(("x-trial", "2"), ("content-length", "2"))) == []
    assert differences(plain, seen(("x-evil", "1"))) == ["the model got other headers: [('x-evil', '1')]"]
    assert differences(plain, seen(("content-length", "3"))) == ["the model got content-length 3 for 2 bytes"]
    assert differences(plain, replace(seen(), trailers=[("x", "1")]))


# --- streams ---------------------------------------------------------------------------------------------------------


def crowd_of_one(raw: bytes, *, prompt: bytes | None = None) -> Crowd:
    crowd = Crowd(streams=1, tokens=2)
    exchange = Exchange("n" * 16, "", "POST", "/v1/chat/completions", [], crowd.body(0) if prompt is None else prompt)
    exchange.planned = b"abcdef"
    crowd.answering[exchange.nonce] = exchange
    client = Client(b"")
    client.raw += raw
    crowd.clients.append(client)
    return crowd


HEAD = b"HTTP/1.1 200 OK\r\nx-nonce: " + b"n" * 16 + b"\r\ntransfer-encoding: chunked\r\n\r\n"
WHOLE = HEAD + chunk(b"abc") + chunk(b"def") + b"0\r\n\r\n"


def test_a_stream_that_came_whole_is_not_wrong() -> None:
    assert crowd_of_one(WHOLE).wrong() == []


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (WHOLE[:-5], "not the bytes"),
        (WHOLE.replace(b"def", b"dEf"), "not the bytes"),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", "status 503"),
        (b"", "status , and not the model's"),
    ],
)
def test_a_stream_that_did_not_come_whole_is_seen(raw: bytes, said: str) -> None:
    assert [said in text for text in crowd_of_one(raw).wrong()] == [True]


def test_a_crowd_sees_another_prompt_and_somebody_elses_answer() -> None:
    crowd = crowd_of_one(WHOLE, prompt=b"{}")
    crowd.clients.append(crowd.clients[0])
    assert [text.partition(":")[0] for text in crowd.wrong()] == [
        "the model got another prompt",
        "somebody else's answer",
    ]


async def test_a_crowd_answers_only_when_everybody_is_there() -> None:
    crowd = Crowd(streams=2, tokens=3, token_s=0.01)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split(b" ", 2)[1].decode()
        nonce = f"{len(crowd.answering):016d}"
        exchange = Exchange(nonce, "", "POST", path, [])
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length"))
        exchange.body = await reader.readexactly(length)
        await crowd.answer(exchange, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        await crowd.come(server.sockets[0].getsockname()[1], "ute", "s")
    assert crowd.open_at_once == 2
    assert crowd.wrong() == []
    assert all(word(2, client.head["x-nonce"]).encode() in client.body for client in crowd.clients)
