"""The last hour: what each sample says, that only so many are kept, and what an operator is told of them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count, pairwise
from typing import get_type_hints

from semmem.extraction.result import BatchLearnt, BatchResult
from semmem.ports.events import JournalCounted, RequestEnded
from semmem.telemetry.metrics import Metrics
from semmem.telemetry.samples import SAMPLES_MAX, Sample, Samples, quantile_ms
from tests.support.counted import counting


def a_clock() -> Samples:
    times = count(1000)
    return Samples(Metrics(), clock=lambda: float(next(times)), kept=3)


def test_a_sample_says_what_happened_since_the_one_before() -> None:
    metrics = Metrics()
    samples, happened = Samples(metrics, clock=lambda: 7.0), counting(metrics)
    for seconds in (0.0007, 0.0008, 0.0009, 0.03):
        happened(RequestEnded("injected", seconds))
    happened(RequestEnded("greeting", 0.0001))
    happened(JournalCounted({"open": 2, "ready": 3, "leased": 1, "done": 90, "refused": 0, "lonely": 4}))
    for turns, status in ((3, "stored"), (1, "nothing"), (5, "postponed"), (2, "gave_up"), (4, "extraction_failed")):
        happened(BatchLearnt("b-1", "end", turns, BatchResult(status), 0.2))
    samples.take()
    samples.take()
    happened(RequestEnded("injected", 0.2))
    happened(BatchLearnt("b-2", "end", 6, BatchResult("stored"), 0.2))
    samples.take()
    first, quiet, last = samples.kept
    assert first.memory_bytes is not None
    assert first.memory_bytes > 10_000_000
    assert [(each.requests, each.waiting, each.learnt, each.failed) for each in samples.kept] == [
        (5, 5, 4, 6),
        (0, 5, 0, 0),
        (1, 5, 6, 0),
    ]
    assert (quiet.p50_ms, quiet.p95_ms) == (None, None)
    assert first.at == 7.0
    assert first.p50_ms is not None
    assert 0.5 < first.p50_ms <= 1.0, "three of five took 0.7 to 0.9 ms"
    assert first.p95_ms is not None
    assert 25 < first.p95_ms <= 50
    assert last.p50_ms is not None
    assert 100 < last.p50_ms <= 200


def test_a_quantile_is_spread_evenly_within_its_bucket_and_is_no_more_than_the_last_bound() -> None:
    inf = float("inf")
    assert quantile_ms(0.5, {0.1: 0, 0.2: 10, inf: 10}) == 150
    assert quantile_ms(0.95, {0.1: 90, 0.2: 100, inf: 100}) == 150
    assert quantile_ms(0.5, {0.1: 0, 0.2: 0, inf: 4}) == 200, "longer than the last bound, nobody knows by how much"
    assert quantile_ms(0.5, {0.1: 0, inf: 0}) is None
    assert quantile_ms(0.5, {}) is None


def test_only_the_last_samples_are_kept() -> None:
    samples = a_clock()
    for _ in range(5):
        samples.take()
    assert [each.at for each in samples.kept] == [1002, 1003, 1004]
    assert Samples(Metrics()).kept.maxlen == SAMPLES_MAX == 180


async def test_they_are_taken_one_after_another_until_the_end() -> None:
    samples = Samples(Metrics(), interval_s=0.001, kept=3)
    task = asyncio.get_running_loop().create_task(samples.run())
    async with asyncio.timeout(60):
        while len(samples.kept) < 3:
            await asyncio.sleep(0.001)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert all(before.at < after.at for before, after in pairwise(samples.kept))


def test_no_sample_has_room_for_a_user_or_content() -> None:
    assert set(get_type_hints(Sample).values()) == {float, int, float | None, int | None}
