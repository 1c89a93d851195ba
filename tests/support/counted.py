"""What is announced in a test, counted as in a running semmem."""

from __future__ import annotations

from semmem.telemetry.counting import Counting
from semmem.telemetry.metrics import Metrics


def counting(metrics: Metrics) -> Counting:
    """A listener that counts into these metrics."""
    return Counting(metrics, backend="in_process", retention_days=7)
