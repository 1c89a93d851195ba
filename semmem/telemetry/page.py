"""The metrics as a page, with what is looked up at the moment of a scrape because nobody announces it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, generate_latest

from semmem.telemetry.metrics import Metrics


class MetricsPage:
    """``gauges``: each metric's value now. ``totals``: what each counter has come to since this process began."""

    def __init__(
        self,
        metrics: Metrics,
        *,
        gauges: Mapping[Gauge, Callable[[], float]] | None = None,
        totals: Mapping[Counter, Callable[[], int]] | None = None,
    ) -> None:
        self._metrics = metrics
        self._gauges = gauges or {}
        self._totals = totals or {}
        self._counted = dict.fromkeys(self._totals, 0)

    def __call__(self) -> tuple[bytes, str]:
        """The page, and its media type."""
        for gauge, value in self._gauges.items():
            gauge.set(value())
        for counter, total in self._totals.items():
            now = total()
            counter.inc(now - self._counted[counter])
            self._counted[counter] = now
        return generate_latest(self._metrics.registry), CONTENT_TYPE_LATEST
