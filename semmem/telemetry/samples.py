"""The last hour of this process out of its own metrics, for whoever has no Prometheus. No content, no users."""

import asyncio
import math
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct
from prometheus_client import Counter, Gauge

from semmem.telemetry.metrics import Metrics

INTERVAL_S = 20.0
SAMPLES_MAX = 180
"""One sample takes 1 to 3 ms of processor time; all of them are an hour."""
WAITING = ("open", "ready")
"""States of turns that are in no batch yet."""
FAILED = ("extraction_failed", "gave_up")
"""Final words of batches whose turns are not learnt from."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Sample(Struct, frozen=True):
    """``requests``, ``learnt`` and ``failed`` (turns) since the sample before, of which are also the quantiles of the
    time that requests waited (None: there were none). ``waiting``: turns that are in no batch. ``memory_bytes``:
    resident, of this process without its children; None where the system does not say it."""

    at: float
    requests: int
    p50_ms: float | None
    p95_ms: float | None
    waiting: int
    learnt: int
    failed: int
    memory_bytes: int | None


class Samples:
    """Keeps the last ``kept`` samples, the oldest first. ``clock``: seconds since 1970."""

    def __init__(
        self,
        metrics: Metrics,
        *,
        clock: Callable[[], float] = time.time,
        interval_s: float = INTERVAL_S,
        kept: int = SAMPLES_MAX,
    ) -> None:
        self._metrics, self._clock = metrics, clock
        self.interval_s = interval_s
        self.kept: deque[Sample] = deque(maxlen=kept)
        self._buckets, self._turns = self._counted()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(self.interval_s)
            self.take()

    def take(self) -> None:
        """Add a sample of what happened since the one before."""
        buckets, turns = self._counted()
        new = {bound: number - self._buckets.get(bound, 0) for bound, number in buckets.items()}
        ended = {status: number - self._turns.get(status, 0) for status, number in turns.items()}
        failed = sum(ended.pop(status, 0) for status in FAILED)
        ended.pop("postponed", None)
        self._buckets, self._turns = buckets, turns
        states = _values(self._metrics.journal_turns)
        self.kept.append(
            Sample(
                at=self._clock(),
                requests=new.get(math.inf, 0),
                p50_ms=quantile_ms(0.5, new),
                p95_ms=quantile_ms(0.95, new),
                waiting=sum(states.get(state, 0) for state in WAITING),
                learnt=sum(ended.values()),
                failed=failed,
                memory_bytes=_resident_bytes(),
            )
        )

    def _counted(self) -> tuple[dict[float, int], dict[str, int]]:
        """Requests until now that took at most so many seconds, and turns of batches by their word."""
        buckets: dict[float, int] = {}
        for sample in next(iter(self._metrics.request_seconds.collect())).samples:
            if sample.name.endswith("_bucket"):
                bound = float(sample.labels["le"])
                buckets[bound] = buckets.get(bound, 0) + int(sample.value)
        return buckets, _values(self._metrics.batch_turns)


def _values(metric: Counter | Gauge) -> dict[str, int]:
    """By the one label."""
    family = next(iter(metric.collect()))
    return {next(iter(sample.labels.values())): int(sample.value) for sample in family.samples}


def quantile_ms(share: float, buckets: Mapping[float, int]) -> float | None:
    """The time within which this share of requests ended, as Prometheus' ``histogram_quantile`` estimates it: evenly
    spread within a bucket. ``buckets``: how many took at most so many seconds, infinity among them."""
    rank = share * buckets.get(math.inf, 0)
    lower, before = 0.0, 0
    for bound, number in sorted(buckets.items()):
        if number >= rank > 0:
            within = 0.0 if math.isinf(bound) else (bound - lower) * (rank - before) / (number - before)
            return round(1000 * (lower + within), 2)
        lower, before = bound, number
    return None


def _resident_bytes() -> int | None:
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * PAGE_BYTES
    except OSError:
        return None
