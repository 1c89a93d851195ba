"""The fault suite's own eyes: each way in which an answer could differ is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.faults.client import Seen, differences
from tests.faults.upstream import Exchange, Script

SENT = b'{"messages":[{"role":"user","content":"Hi"}]}'
PIECE = b'<semmem-memory 0123456789abcdef>\\n- \\"x\\"\\n</semmem-memory>\\n\\n'
GIVEN = SENT.replace(b"Hi", PIECE + b"Hi")


def seen(nonce: str = "a" * 16) -> Seen:
    answer = f"one {nonce} two {nonce}".encode()
    sent = [(0.1, 10), (0.2, len(answer))]
    exchange = Exchange(
        nonce, "trial", "POST", "/", [], SENT, whole=True, planned=answer, answer=answer, sent=sent, ended=True
    )
    headers = {"content-type": "text/event-stream", "x-nonce": nonce, "date": nonce}
    arrivals = [(moment + 0.001, size) for moment, size in sent]
    return Seen(SENT, 200, headers, body=answer, arrivals=arrivals, seconds=0.2, exchange=exchange)


def the_model_got(body: bytes) -> Callable[[Seen], Seen]:
    return lambda one: replace(one, exchange=replace(_exchange(one), body=body))


def _exchange(one: Seen) -> Exchange:
    assert one.exchange is not None
    return one.exchange


def test_two_answers_with_nonces_of_their_own_are_the_same() -> None:
    plain, other = seen(), the_model_got(GIVEN)(seen("b" * 16))
    assert differences(plain, other) == []


def test_answers_that_break_off_amid_a_nonce_are_the_same() -> None:
    plain, other = (replace(one, body=one.body[:12], error="cut") for one in (seen(), seen("b" * 16)))
    assert differences(plain, other) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda one: replace(one, status=500), "status 500"),
        (lambda one: replace(one, error="cut"), "ended cut"),
        (lambda one: replace(one, headers={**one.headers, "content-length": "1"}), "headers"),
        (lambda one: replace(one, body=one.body[:-1]), "body of"),
        (lambda one: replace(one, body=one.body.replace(b"two", b"TWO")), "not the bytes the model sent"),
        (lambda one: replace(one, body=seen("c" * 16).body), "not the bytes the model sent"),
        (lambda one: replace(one, headers={**one.headers, "x-nonce": "c" * 16}), "somebody else's nonce"),
        (lambda one: replace(one, exchange=None), "did not give"),
        (lambda one: replace(one, seconds=9.0), "took 9.00 s"),
        (lambda one: replace(one, arrivals=[(0.1, 10), (0.9, len(one.body))]), "a gap of 0.800 s"),
        (lambda one: replace(one, arrivals=[(0.8, 10), (0.9, len(one.body))]), "to arrive"),
        (the_model_got(SENT.replace(b"Hi", b"Ho")), "another prompt"),
        (the_model_got(GIVEN.replace(b'":', b'": ')), "another prompt"),
        (the_model_got(b""), "another prompt"),
    ],
)
def test_a_difference_is_seen(change: Callable[[Seen], Seen], said: str) -> None:
    assert any(said in text for text in differences(seen(), change(seen("b" * 16))))


def test_a_plain_answer_that_went_astray_is_no_measure() -> None:
    assert differences(the_model_got(b"{}")(seen()), seen("b" * 16)) == [
        "plain: the model got another prompt than the client sent"
    ]


def test_a_script_is_read_as_it_is_written() -> None:
    script = Script(sse=True, status=429, tokens=3, reset_after=0, empty=True)
    assert Script.read(script.write()) == script
    assert Script.read("") == Script()
