"""The end of a request phase: it holds, and only the step that asked has more time."""

from __future__ import annotations

import asyncio

import pytest

from semmem.request.question import Deadline


def in_seconds(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_a_step_ends_with_the_deadline() -> None:
    deadline = Deadline(in_seconds(0.01))
    with pytest.raises(TimeoutError):
        async with deadline.limit():
            await asyncio.Event().wait()


async def test_a_step_that_asked_has_as_much_longer_and_the_next_one_has_not() -> None:
    asked: list[float] = []

    async def ask(extra_s: float) -> None:
        asked.append(extra_s)

    deadline = Deadline(in_seconds(0.01), ask)
    async with deadline.limit():
        await deadline.extend(60.0)
        await asyncio.sleep(0.03)
    assert asked == [60.0]
    with pytest.raises(TimeoutError):
        async with deadline.limit():
            await asyncio.Event().wait()


async def test_without_a_deadline_there_is_nothing_to_extend() -> None:
    deadline = Deadline()
    await deadline.extend(1.0)
    async with deadline.limit() as limit:
        await deadline.extend(1.0)
        assert limit.when() is None


async def test_a_last_step_has_its_time_even_after_the_deadline() -> None:
    now = in_seconds(0.0)
    assert Deadline(now + 60.0).at_least(1.0) == now + 60.0
    assert now + 1.0 <= (Deadline(now - 60.0).at_least(1.0) or 0.0) <= now + 30.0
    assert Deadline().at_least(1.0) is None
