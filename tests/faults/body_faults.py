"""Requests whose body is wrong, odd, large, or not what its head says of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.faults.answers import bomb
from tests.faults.counts import MEMORY
from tests.faults.forms import QUESTION, Form
from tests.faults.house import House, Trial

Run = Callable[[House, Form], Trial]
BODY_BYTES_MAX = 6 * 1024 * 1024
"""limits.request_body_bytes_max of the faults' semmem, so that a body above it is not too long to send often."""


@dataclass(frozen=True)
class OddBody:
    """One body in every form; ``words`` are the outcomes that show how semmem took it."""

    write: Callable[[Form], bytes]
    words: tuple[str, ...]
    encoding: str = ""
    chunked: bool = False

    def __call__(self, house: House, form: Form) -> Trial:
        headers = {"content-encoding": self.encoding} if self.encoding else {}
        body = self.write(form)
        plain = house.ask(form, plain=True, body=body, headers=headers, chunked=self.chunked)
        fired = house.outcome(*self.words)
        faulted = house.ask(form, body=body, headers=headers, chunked=self.chunked)
        return Trial(plain, faulted, fired())


def _with(form: Form, member: str) -> bytes:
    """The usual question with one more member in front, spelled as it is."""
    return b"{" + member.encode() + b", " + form.question()[1:]


def _twice(form: Form) -> bytes:
    """What was said, said twice: readers that take the first and readers that take the last differ."""
    said = "input" if form.api == "responses" else "messages"
    return _with(form, f'"{said}": [{{"role": "user", "content": "Hi"}}]')


def _of_another(form: Form) -> bytes:
    """Another API's body. Of responses every member may be missing, so it is none that it could be mistaken for."""
    return json.dumps({"input": 7} if form.api == "responses" else {"input": QUESTION}).encode()


def _deep(levels: int) -> Callable[[Form], bytes]:
    return lambda form: _with(form, f'"x": {"[" * levels}{"]" * levels}')


def _padded(size: int) -> Callable[[Form], bytes]:
    return lambda form: form.question(padding="x" * size)


ODD_BODIES: dict[str, Run] = {
    "body not JSON": OddBody(lambda _: b"what is my budget?", ("malformed",)),
    "body truncated": OddBody(lambda form: form.question()[:-7], ("malformed",)),
    "body 90,000 deep": OddBody(_deep(90_000), ("malformed",)),
    "body 100,000 deep": OddBody(_deep(100_000), ("oversize",)),  # more values than are read
    "body with a key twice": OddBody(_twice, ("malformed",)),
    "body with lone surrogates": OddBody(lambda form: form.question(QUESTION + " \ud83d", user="\udc00"), MEMORY),
    "body not UTF-8": OddBody(lambda form: form.question("gruss").replace(b"uss", b"\xfc\xdf"), ("malformed",)),
    "body empty": OddBody(lambda _: b"", ("malformed",)),
    "body of 5 MB": OddBody(_padded(5_000_000), MEMORY),
    "body of 5 MB, chunked": OddBody(_padded(5_000_000), MEMORY, chunked=True),
    "body over the cap": OddBody(_padded(BODY_BYTES_MAX + 1), ("oversize",)),
    "body over the cap, chunked": OddBody(_padded(BODY_BYTES_MAX), ("oversize",), chunked=True),
    "body compressed": OddBody(lambda form: gzip.compress(form.question()), ("compressed",), encoding="gzip"),
    "body a gzip bomb": OddBody(lambda form: bomb(1024, sse=form.sse), ("compressed",), encoding="gzip"),
    "body of another API": OddBody(_of_another, ("malformed",)),
    "body with control members": OddBody(
        lambda form: form.question(tools=[{"type": "function"}], n=2, seed=2**70), MEMORY
    ),
}


def beyond_grpc(house: House, form: Form) -> Trial:
    """Chunked, and larger than a message that semmem's gRPC takes: Envoy must go on by itself."""
    body = form.question(padding="x" * (BODY_BYTES_MAX + 3 * 1024 * 1024))
    plain = house.ask(form, plain=True, body=body, chunked=True)
    fired, counted = house.envoy_rises("failure_mode_allowed"), house.no_outcome()
    faulted = house.ask(form, body=body, chunked=True)
    return Trial(plain, faulted, f"{fired()}, {counted()}")


def announced_too_short(house: House, form: Form) -> Trial:
    """The body goes on behind the length that was announced: what is too much is no part of this request."""
    body = form.question()
    headers, long = {"content-length": str(len(body))}, body + b"x" * 40
    plain = house.ask(form, plain=True, body=long, arrives=body, headers=headers)
    fired = house.outcome(*MEMORY)
    return Trial(plain, house.ask(form, body=long, arrives=body, headers=headers), fired())


def hostile_members(house: House, form: Form) -> Trial:
    """Line ends in whatever could find its way into a header; semmem's own member never reaches the model.

    The project is none of the user's, so what belongs to no project is found.
    """
    line = "a\r\nx-semmem-user: mallory\r\n\r\n\0"
    members: dict[str, Any] = {"model": line, "user": line, "metadata": {"user_id": line}}
    body = form.question(**members, memory_context={"user_id": line, "project_id": line})
    arrives = form.question(**members)
    plain = house.ask(form, plain=True, body=body)
    fired = house.outcome(*MEMORY)
    return Trial(plain, house.ask(form, body=body, arrives=arrives), fired())
