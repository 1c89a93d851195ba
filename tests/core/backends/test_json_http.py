"""What all HTTP models have in common: an endpoint, against a real socket, and its breaker, on a clock of the test."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from semmem.backends.models.json_http import CircuitBreaker, JsonEndpoint
from semmem.background import Tasks
from semmem.management.server import HttpListener
from semmem.ports.errors import ModelRefused, ModelUnavailable


async def test_a_redirect_is_an_answer_and_not_followed() -> None:
    asked: list[str] = []

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        headers = [(b"location", b"/elsewhere")]
        await send({"type": "http.response.start", "status": 307, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}"})

    listener, tasks = HttpListener(app, "127.0.0.1:0"), Tasks()
    address = listener.bind()
    serving = tasks.spawn("serve", listener.serve())
    endpoint = JsonEndpoint(f"http://{address}", "/embeddings", answer_bytes_max=1000)
    try:
        status, _, _ = await endpoint.post({"input": "a secret"})
    finally:
        await endpoint.close()
        listener.stop()
        await serving
        listener.close()
    assert (status, asked) == (307, ["/v1/embeddings"])


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(failures_max=3, open_s=10.0, clock=clock)


def attempt(breaker: CircuitBreaker, error: BaseException | None = None) -> None:
    with breaker.watch():
        if error is not None:
            raise error


def fail(breaker: CircuitBreaker, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(ModelUnavailable, match="down"):
            attempt(breaker, ModelUnavailable("down"))


def test_it_opens_after_so_many_failures_in_a_row(breaker: CircuitBreaker) -> None:
    fail(breaker, 2)
    assert breaker.state == "closed"
    fail(breaker)
    assert breaker.state == "open"
    with pytest.raises(ModelUnavailable, match="circuit open"):
        attempt(breaker)


def test_a_success_or_a_refusal_between_failures_starts_the_count_again(breaker: CircuitBreaker) -> None:
    fail(breaker, 2)
    attempt(breaker)
    fail(breaker, 2)
    with pytest.raises(ModelRefused):
        attempt(breaker, ModelRefused("status 400"))
    fail(breaker, 2)
    assert breaker.state == "closed"


def test_after_a_while_one_try_decides_and_closes_it(breaker: CircuitBreaker, clock: Clock) -> None:
    fail(breaker, 3)
    clock.now += 10.0
    assert breaker.state == "half_open"
    attempt(breaker)
    assert breaker.state == "closed"


def test_a_failed_probe_opens_it_again_for_the_whole_time(breaker: CircuitBreaker, clock: Clock) -> None:
    fail(breaker, 3)
    clock.now += 10.0
    fail(breaker)
    clock.now += 9.9
    assert breaker.state == "open"
    clock.now += 0.1
    assert breaker.state == "half_open"


def test_while_one_try_decides_the_others_are_turned_away(breaker: CircuitBreaker, clock: Clock) -> None:
    fail(breaker, 3)
    clock.now += 10.0
    with breaker.watch(), pytest.raises(ModelUnavailable, match="circuit open"):
        attempt(breaker)
    attempt(breaker)


def test_a_cancelled_probe_counts_as_failed_and_lets_another_try_later(breaker: CircuitBreaker, clock: Clock) -> None:
    fail(breaker, 3)
    clock.now += 10.0
    with pytest.raises(asyncio.CancelledError):
        attempt(breaker, asyncio.CancelledError())
    assert breaker.state == "open"
    clock.now += 10.0
    attempt(breaker)
    assert breaker.state == "closed"


def test_an_unrelated_error_says_nothing_about_the_server(breaker: CircuitBreaker, clock: Clock) -> None:
    fail(breaker, 3)
    clock.now += 10.0
    with pytest.raises(KeyError):
        attempt(breaker, KeyError())
    assert breaker.state == "half_open"
    attempt(breaker)
    assert breaker.state == "closed"


@pytest.mark.parametrize(("failures_max", "open_s"), [(0, 1.0), (1, -1.0)])
def test_nonsense_settings_are_refused(failures_max: int, open_s: float) -> None:
    with pytest.raises(ValueError, match="failures_max"):
        CircuitBreaker(failures_max=failures_max, open_s=open_s, clock=lambda: 0.0)
