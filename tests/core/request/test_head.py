"""The head of a request: its headers, and what they say of the body."""

from __future__ import annotations

import math

import pytest

from semmem.request.head import RequestHead, read_headers


def head(**headers: str | tuple[str, ...]) -> RequestHead:
    sent = {name.replace("_", "-"): (value,) if isinstance(value, str) else value for name, value in headers.items()}
    return RequestHead("POST", "/v1/chat/completions", sent)


@pytest.mark.parametrize(
    ("announced", "length"),
    [
        ("5000", 5000),
        (" 7 ", 7),
        ("", 0),
        ("-1", 0),
        ("1e3", 0),
        ("٣", 0),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, math.inf),
        ("9" * 10_000, math.inf),
        (("5", "6"), 0),
    ],
)
def test_the_announced_length_is_a_number_or_nothing(announced: str | tuple[str, ...], length: float) -> None:
    assert head(content_length=announced).announced_bytes == length


@pytest.mark.parametrize(
    ("encoding", "is_encoded"),
    [("", False), ("identity", False), ("Identity", False), ("gzip", True), ("gzip, br", True)],
)
def test_a_body_is_encoded_unless_it_says_that_it_is_not(encoding: str, is_encoded: bool) -> None:
    assert head(content_encoding=encoding).is_encoded is is_encoded
    assert not head().is_encoded


def test_semmems_own_headers_are_known_by_their_beginning_however_often_they_are_sent() -> None:
    sent = read_headers([("X-Semmem-Memory", b"on"), ("x-semmem-memory", b"off"), ("X-Semmem-", b""), ("x-sem", b"")])
    assert RequestHead("POST", "/", sent).own_headers == ["x-semmem-memory", "x-semmem-"]
