"""Memory only ever adds: whatever is down or hangs, answers come, and come in time."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness import House, Reply, StandInModel, eventually, house

FACT = "My budget for the Hawaii trip is $10,000"
QUESTION = "What's my budget for the trip?"
BODY = json.dumps({"model": "stand-in", "messages": [{"role": "user", "content": QUESTION}]}).encode()

STORE_MS = 500
"""A search of the store may take so long; everything else has patience, so that only the store is ever late."""


@pytest.fixture(scope="module")
def frail(model: StandInModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A house on Milvus Lite whose store is stopped and killed."""
    with house(tmp_path_factory.mktemp("frail"), model, {"deadlines": {"store_ms": STORE_MS}}) as running:
        yield running


@pytest.fixture(scope="module")
def light(model: StandInModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A house whose semmem is stopped and killed."""
    with house(
        tmp_path_factory.mktemp("light"), model, {"memory": {"backend": "in_process"}}, as_shipped=True
    ) as running:
        yield running


def store_process(semmem_pid: int) -> int:
    """The process of the embedded store: semmem's child that serves Milvus Lite."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            command = stat.with_name("cmdline").read_bytes()
        except OSError:  # it ended meanwhile
            continue
        if parent == semmem_pid and b"milvus" in command:
            return int(stat.parent.name)
    raise AssertionError("semmem has no child that serves Milvus Lite")


def answers_without_memory(reply: Reply) -> None:
    """What is broken or hangs is so until the test mends it: an answer that comes has not waited for it."""
    assert reply.status == 200
    assert reply.prompt == BODY
    assert reply.received is not None
    assert reply.body == reply.received.answer


def gave_up(house: House) -> float:
    return house.semmem.metric("semmem_requests_total", outcome="store_timeout")


def test_a_store_that_hangs_costs_the_deadline_and_no_more(frail: House, alice: str, bob: str) -> None:
    for user in (alice, bob):
        frail.semmem.remember(user, FACT)
    eventually(lambda: frail.send(BODY, user=bob).outcome == "injected", within_s=60, what="bob is known")
    store = store_process(frail.semmem.child.pid)
    counted = gave_up(frail)

    os.kill(store, signal.SIGSTOP)
    try:
        replies = [frail.send(BODY, user=alice) for _ in range(3)]
        streamed = frail.chat(alice, QUESTION, stream=True)
        known = frail.send(BODY, user=bob)
    finally:
        os.kill(store, signal.SIGCONT)

    for reply in replies:
        answers_without_memory(reply)
        assert reply.outcome == "store_timeout"
    assert (streamed.status, streamed.body[-14:]) == (200, b"data: [DONE]\n\n")
    assert gave_up(frail) == counted + 4
    assert known.outcome == "injected"  # bob's memories are in process
    assert b"$10,000" in known.prompt
    eventually(lambda: frail.send(BODY, user=alice).outcome == "injected", within_s=60, what="memory is back")


def test_a_store_that_is_gone_costs_no_answer(frail: House, alice: str, bob: str) -> None:
    os.kill(store_process(frail.semmem.child.pid), signal.SIGKILL)

    replies = [frail.send(BODY, user=alice) for _ in range(5)]

    for reply in replies:
        answers_without_memory(reply)
        assert reply.outcome in ("store_down", "store_timeout")
    down = frail.semmem.metric("semmem_requests_total", outcome="store_down")
    slow = frail.semmem.metric("semmem_requests_total", outcome="store_timeout")
    assert down + slow >= 5
    frail.chat(bob, "I live in Lisbon.")
    eventually(lambda: frail.semmem.turns(bob), within_s=60, what="what is said meanwhile is journalled")


def test_a_semmem_that_hangs_costs_envoys_deadline_and_then_nothing(light: House, alice: str) -> None:
    light.semmem.remember(alice, FACT)
    eventually(lambda: light.send(BODY, user=alice).outcome == "injected", within_s=60, what="alice is known")

    os.kill(light.semmem.child.pid, signal.SIGSTOP)
    try:
        first = light.send(BODY, user=alice)
        healthy = "cluster.semmem.membership_healthy"
        eventually(lambda: light.envoy.stat(healthy) == 0, within_s=60, what="Envoy has given semmem up")
        later = light.send(BODY, user=alice)
    finally:
        os.kill(light.semmem.child.pid, signal.SIGCONT)

    answers_without_memory(first)
    answers_without_memory(later)
    assert (first.outcome, later.outcome) == (None, None)
    eventually(lambda: light.send(BODY, user=alice).outcome == "injected", within_s=60, what="memory is back")


def test_a_semmem_that_dies_in_mid_answer_costs_no_token(light: House, alice: str) -> None:
    replies: list[Reply] = []
    light.model.scripted.append("word " * 200)
    asking = threading.Thread(target=lambda: replies.append(light.chat(alice, "Tell me a long story.", stream=True)))
    received = len(light.model.received)
    asking.start()
    eventually(
        lambda: len(light.model.received) > received and len(light.model.received[-1].answer) > 2000,
        within_s=60,
        what="the answer has begun",
    )

    os.kill(light.semmem.child.pid, signal.SIGKILL)
    asking.join(20)
    after = light.send(BODY, user=alice)

    (streamed,) = replies
    assert streamed.received is not None
    assert streamed.body == streamed.received.answer
    assert streamed.body.count(b"word") == 200
    answers_without_memory(after)
