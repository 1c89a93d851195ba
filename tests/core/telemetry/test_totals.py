"""A page of metrics, read back."""

from __future__ import annotations

import pytest

from semmem.telemetry.metrics import Metrics, MetricsPage
from semmem.telemetry.totals import totals_of


def test_what_was_counted_is_read_back() -> None:
    metrics = Metrics()
    metrics.outcomes.labels("injected").inc(3)
    metrics.outcomes.labels("no_hits").inc()
    metrics.injected_memories.inc(7)
    page, _ = MetricsPage(metrics)()
    totals = totals_of(page.decode())
    assert totals["semmem_requests_total"] == {"injected": 3, "no_hits": 1}
    assert totals["semmem_injected_memories_total"] == {"": 7}


def test_what_is_no_page_is_refused() -> None:
    with pytest.raises(ValueError, match="unclosed"):
        totals_of('metric{label="unclosed 1')
