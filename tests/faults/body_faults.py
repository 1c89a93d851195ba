"""Requests that are wrong, odd or large; clients that leave; models that refuse, break off or say nothing."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.house import QUESTION, House, NotProven, Trial, proven, question
from tests.faults.sidecar import switched
from tests.faults.upstream import Script

Run = Callable[[House, bool], Trial]
BODY_BYTES_MAX = 6 * 1024 * 1024
"""limits.request_body_bytes_max of the faults' semmem, so that a body above it is not too long to send often."""


@dataclass(frozen=True)
class OddBody:
    """One body; ``words`` are the outcomes that show how semmem took it."""

    body: bytes
    words: tuple[str, ...]
    encoding: str = ""
    chunked: bool = False

    def __call__(self, house: House, sse: bool) -> Trial:
        headers = {"content-encoding": self.encoding} if self.encoding else {}
        plain = house.ask(sse, plain=True, body=self.body, headers=headers, chunked=self.chunked)
        fired = house.outcome(*self.words)
        faulted = house.ask(sse, body=self.body, headers=headers, chunked=self.chunked)
        return Trial(plain, faulted, fired())


def _message(text: str) -> str:
    return f'{{"role": "user", "content": "{text}"}}'


ODD_BODIES: dict[str, OddBody] = {
    "body not JSON": OddBody(b"what is my budget?", ("malformed",)),
    "body truncated": OddBody(question()[:-7], ("malformed",)),
    "body 100,000 deep": OddBody(
        b'{"messages": [' + _message(QUESTION).encode() + b'], "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        ("malformed",),
    ),
    "body with a key twice": OddBody(
        f'{{"messages": [{_message("Hi")}], "messages": [{_message(QUESTION)}]}}'.encode(), ("malformed",)
    ),
    "body with lone surrogates": OddBody(
        b'{"messages": [' + _message(QUESTION + r" \ud83d").encode() + rb'], "user": "\udc00"}', ("injected",)
    ),
    "body not UTF-8": OddBody(b'{"messages": [' + _message("gr\xfc\xdf").encode("latin-1") + b"]}", ("malformed",)),
    "body empty": OddBody(b"", ("malformed",)),
    "body of 5 MB": OddBody(question(padding="x" * 5_000_000), ("injected",)),
    "body of 5 MB, chunked": OddBody(question(padding="x" * 5_000_000), ("injected",), chunked=True),
    "body over the cap": OddBody(question(padding="x" * (BODY_BYTES_MAX + 1)), ("oversize",)),
    "body over the cap, chunked": OddBody(question(padding="x" * BODY_BYTES_MAX), ("oversize",), chunked=True),
    "body compressed": OddBody(gzip.compress(question()), ("compressed",), encoding="gzip"),
    "body of another API": OddBody(json.dumps({"input": QUESTION}).encode(), ("malformed",)),
    "body with control members": OddBody(question(tools=[{"type": "function"}], n=2, seed=2**70), ("injected",)),
}


def beyond_grpc(house: House, sse: bool) -> Trial:
    """Chunked, and larger than a message that semmem's gRPC takes: Envoy must go on by itself."""
    body = question(padding="x" * (BODY_BYTES_MAX + 3 * 1024 * 1024))
    plain = house.ask(sse, plain=True, body=body, chunked=True)
    fired = house.envoy_rises("failure_mode_allowed")
    return Trial(plain, house.ask(sse, body=body, chunked=True), fired())


# --- clients that leave ----------------------------------------------------------------------------------------------


def client_gone_before(house: House, sse: bool) -> Trial:
    """It leaves while the model still thinks: the model is told, and the next client is served."""
    sides = [house.exchange(house.leave(sse, plain=plain, wait=True)) for plain in (True, False)]
    proof = proven(lambda: all(side.cut for side in sides), "the model saw both clients go")
    return Trial(house.ask(sse, plain=True), house.ask(sse), proof)


def client_gone_in_search(house: House, sse: bool) -> Trial:
    """It leaves while semmem still searches: the model is never asked."""
    with switched(house.sidecar, "slow"):
        trial = house.leave(sse, plain=False, wait=False, after_s=0.1)
        time.sleep(0.6)
    if house.upstream.of(trial) is not None:
        raise NotProven("the model was asked before the client left")
    proof = proven(
        lambda: house.sidecar.semmem.metric("semmem_extproc_streams", role="mutate") == 0, "no stream is left"
    )
    house.recovered()
    return Trial(house.ask(sse, plain=True), house.ask(sse), f"the model was never asked, {proof}")


def client_gone_in_its_body(house: House, sse: bool) -> Trial:
    """It sends half of what it announced."""
    trial = house.leave(sse, plain=False, wait=False, after_s=0.1, part=20)
    time.sleep(0.3)
    if house.upstream.of(trial) is not None:
        raise NotProven("the model was asked for half a request")
    proof = proven(
        lambda: house.sidecar.semmem.metric("semmem_extproc_streams", role="mutate") == 0, "no stream is left"
    )
    return Trial(house.ask(sse, plain=True), house.ask(sse), f"the model was never asked, {proof}")


def _no_stream_is_left(house: House) -> str:
    streams = "semmem_extproc_streams"
    return proven(lambda: house.sidecar.semmem.metric(streams, role="mutate") == 0, "no stream is left")


def client_gone_during(house: House, sse: bool) -> Trial:
    """It leaves in mid-answer; what it had until then is the same, and the turn's answer is not kept."""
    script = Script(tokens=60, token_ms=20)
    lost = house.rises("llm_memory_turns_total", status="answer_lost")
    plain = house.ask(sse, plain=True, script=script, leave_after=500)
    faulted = house.ask(sse, script=script, leave_after=500)
    sides = (plain.exchange, faulted.exchange)
    gone = proven(lambda: all(side is not None and side.cut for side in sides), "the model saw both clients go")
    return Trial(plain, faulted, f"{gone}, {lost()}")


# --- models that fail ------------------------------------------------------------------------------------------------


def model_answers(script: Script, ending: str) -> Run:
    """A model that refuses or breaks off; ``ending`` is how semmem closes the turn (empty: it sees no answer)."""

    def run(house: House, sse: bool) -> Trial:
        plain = house.ask(sse, plain=True, script=script)
        closed = house.rises("llm_memory_turns_total", status=ending)
        return Trial(plain, house.ask(sse, script=script), closed())

    return run


MODEL_FAULTS: dict[str, Run] = {
    "model answers 401": model_answers(Script(status=401), "refused"),
    "model answers 429": model_answers(Script(status=429), "refused"),
    "model answers 500": model_answers(Script(status=500), "answer_lost"),
    "model resets in mid-stream": model_answers(Script(reset_after=8), "answer_lost"),
    "model answers nothing": model_answers(Script(empty=True), "answer_lost"),
    "model closes without an answer": model_answers(Script(drop=True), "answer_lost"),
}
