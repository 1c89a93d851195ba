"""The fault suite's other eyes: what semmem counted against what was done, what a crowd of streams got, and what a
house that fails leaves undone."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.dialects import DIALECTS
from semmem.memory import Injection
from tests.faults import answers
from tests.faults.client import Seen, differences
from tests.faults.counts import NotProven, miscounts
from tests.faults.forms import EVERY_FORM, JSON, SSE, Form, without_injection
from tests.faults.house import House, Trial
from tests.faults.streams import Client, Crowd, chunk, word
from tests.faults.suite import Cell, Result, run_house, try_out
from tests.faults.table import FULL_JOURNAL_ROOM_BYTES, Run
from tests.faults.upstream import Exchange
from tests.support.empty_journal import empty_journal_bytes

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
    block = Injection('<semmem-memory 0123456789abcdef>\n- "x\\"\n</semmem-memory>', position="turn")
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


# --- houses ----------------------------------------------------------------------------------------------------------


class NoLedger:
    """A house as far as a fault needs one that never asks."""

    def __init__(self) -> None:
        self.ledger = self

    def open(self) -> None:
        pass

    def close(self) -> tuple[str, list[str]]:
        return "counted", []


def unproven(_house: House, _form: Form) -> Trial:
    raise NotProven("never fired")


def unheard_of(_house: House, _form: Form) -> Trial:
    raise OSError("nobody expects this")


@contextmanager
def opened(**faults: Run) -> Iterator[tuple[House, Mapping[str, Run]]]:
    yield cast(House, NoLedger()), faults


def trials(*gaps: float) -> Run:
    """A fault whose answer has each gap in turn, in place of the 0.1 s of one without semmem."""
    left = iter(gaps)

    def answer(gap_s: float) -> Seen:
        return Seen(b"", 200, arrivals=[(1.0, 1), (1.0 + gap_s, 2)], seconds=2.0)

    return lambda _house, _form: Trial(answer(0.1), answer(next(left)), "fired")


@pytest.mark.parametrize(
    ("gaps", "differs", "proof"),
    [
        ((0.2,), False, "fired; counted"),
        ((5.0, 0.2), False, "fired; counted; at try 2"),
        ((5.0, 6.0, 7.0), True, "fired; counted; at try 3"),
    ],
)
def test_a_cell_that_is_late_is_tried_again_and_differs_when_it_is_late_each_time(
    gaps: tuple[float, ...], differs: bool, proof: str
) -> None:
    cell = try_out("a", trials(*gaps), cast(House, NoLedger()), JSON)
    assert (bool(cell.different), cell.proof) == (differs, proof)


@contextmanager
def locked() -> Iterator[tuple[House, Mapping[str, Run]]]:
    yield from ()  # which is an error: there is nobody to come in


def test_a_house_that_fails_is_told_and_counted_and_the_next_one_is_tried() -> None:
    result, told = Result(), list[Any]()
    run_house(locked(), [("a", JSON), ("a", SSE)], result, told.append)
    run_house(opened(a=unproven, b=unheard_of), [("a", JSON), ("b", JSON), ("b", SSE)], result, told.append)
    run_house(opened(a=unproven), [("a", JSON)], result, told.append)
    assert str(result) == "faults: 2 cells, 2 differ; 2 houses failed, 4 cells not run"
    assert ["didn't yield" in str(text) for text in told] == [True, False, False, False]
    assert "nobody expects this" in told[2]
    assert "A HOUSE FAILED at b" in told[2]


SAME, OTHER = Cell("a", JSON, (), "seen", 0.1), Cell("a", JSON, ("another answer",), "seen", 0.1)


@pytest.mark.parametrize(
    ("result", "good"),
    [(Result(), False), (Result([SAME]), True), (Result([SAME, OTHER]), False), (Result([SAME], 1), False)],
    ids=str,
)
def test_a_run_is_good_when_there_was_one_and_nothing_differs_and_no_house_failed(result: Result, good: bool) -> None:
    assert result.good is good


async def test_the_journal_that_is_to_be_full_holds_its_tables(tmp_path: Path) -> None:
    journal = SqlJournal(tmp_path / "journal.db", size_bytes_max=empty_journal_bytes() + FULL_JOURNAL_ROOM_BYTES)
    await journal.open()
    try:
        assert not sum((await journal.counts()).values())
    finally:
        await journal.close()
