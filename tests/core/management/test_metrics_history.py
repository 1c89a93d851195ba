"""What an operator is told of the last hour. Who may ask is test_roles.py's."""

from __future__ import annotations

from semmem.backends.sql.journal import SqlJournal
from semmem.management.access import AccessRules
from semmem.management.api import create_api
from semmem.management.engine_api import engine_routes
from semmem.ports.events import JournalCounted, RequestEnded
from semmem.telemetry.metrics import Metrics
from semmem.telemetry.samples import Samples
from tests.core.management.test_api import ADMIN, Api
from tests.core.management.test_roles import an_engine
from tests.support.counted import counting
from tests.support.described import described_client


async def test_the_last_hour_is_told_sample_by_sample_the_oldest_first(journal: SqlJournal) -> None:
    metrics = Metrics()
    samples = Samples(metrics, clock=lambda: 1_800_000_000.0, kept=2)
    routes = engine_routes(an_engine(), samples)
    app = create_api(Api(journal).memories, AccessRules(admin_token="secret-token"), more=[routes])
    async with described_client(app) as client:
        assert (await client.get("/v1/metrics/history", headers=ADMIN)).json() == {
            "interval_s": 20.0,
            "samples_max": 2,
            "samples": [],
        }
        counting(metrics)(RequestEnded("injected", 0.3))
        counting(metrics)(JournalCounted({"open": 1, "ready": 2}))
        for _ in range(3):
            samples.take()
            counting(metrics)(RequestEnded("injected", 0.3))
        told = (await client.get("/v1/metrics/history", headers=ADMIN)).json()["samples"]
    for each in told:
        assert each.pop("memory_bytes") > 0
    assert told == 2 * [
        {
            "time": "2027-01-15T08:00:00.000Z",
            "requests": 1,
            "p50_ms": 275.0,
            "p95_ms": 342.5,
            "waiting": 3,
            "learnt": 0,
            "failed": 0,
        }
    ]
