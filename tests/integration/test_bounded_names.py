"""Requests with names of megabytes, as many as would fill the machine if they were kept."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

import pytest

from tests.core.exchange.world import World
from tests.core.test_bounded_names import HUGE, answer, body, post, texts

ROOM_BYTES = 3_000_000
"""What all 45 requests may leave: less than a fifth of one of their names."""


@pytest.mark.long(6)
async def test_45_requests_with_names_of_15_megabytes_leave_nothing_behind() -> None:
    world = World(request_body_bytes_max=16 * 1024 * 1024, phase_s=60.0)
    warm = await post(world, "/v1/responses", body("/v1/responses", "I like tea", conversation="c" * 5000))
    answer(world, warm, "resp_warm")
    world.journal.clear()
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(45):
            member = ("conversation", "previous_response_id", "model")[number % 3]
            content = body("/v1/responses", f"I like tea {number}", **{member: HUGE[number:]})
            ticket = await post(world, "/v1/responses", content)
            answer(world, ticket, f"{number}" * 50_000)
            del content
        await asyncio.get_running_loop().shutdown_default_executor()  # a thread may not have let go of its work yet
        gc.collect()
        left = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert left < ROOM_BYTES
    assert len(world.journal) == 90
    assert sum(len(text) for half in world.journal for text in texts(half)) < 90 * 6 * 100
