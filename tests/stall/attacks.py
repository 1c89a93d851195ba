"""Requests that are as dear as one user can make them, by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

LARGE_BYTES = 15_000_000


def chat(text: str) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()


def evil_messages() -> Iterator[bytes]:
    """A batch of them, each different: to find that such a text does not end with all its "or" took the square of its
    length."""
    for number in range(10):
        yield chat("I like " + "or " * 5300 + f"tea {number}")


def tiny_messages() -> Iterator[bytes]:
    message = b'{"role":"user","content":"a"}'
    body = b'{"model":"m","messages":[' + b",".join([message] * (LARGE_BYTES // (len(message) + 1))) + b"]}"
    yield from [body] * 10


def one_message() -> Iterator[bytes]:
    """Each of one text, which is valid and has little JSON in it."""
    for number in range(10):
        yield chat(f"{number} " + "hello there, " * (LARGE_BYTES // 13))


def escapes() -> Iterator[bytes]:
    """Half of them cut off, so that they are no JSON."""
    body = chat("\n" * (LARGE_BYTES // 2))
    for number in range(10):
        yield body[: len(body) - number % 2]


ATTACKS: Mapping[str, Callable[[], Iterator[bytes]]] = {
    "ten messages of 16 KB": evil_messages,
    "500,000 messages in 15 MB": tiny_messages,
    "one message of 15 MB": one_message,
    "15 MB of escapes": escapes,
}
