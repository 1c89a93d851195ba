"""What an operator is told of batches and replicas. Who may ask is test_roles.py's."""

from __future__ import annotations

import httpx
import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.management.access import AccessRules
from semmem.management.activity_api import work_routes
from semmem.management.api import create_api
from semmem.memory import Scope
from semmem.ports.learning import BatchRules
from tests.core.management.test_api import ADMIN, Api
from tests.support.described import described_client
from tests.support.journal_samples import answered, turn

RULES = BatchRules(size=1, answer_wait_s=20.0, idle_s=50.0, lease_s=10.0)
NOW = 1_800_000_000.0


@pytest.fixture
def client(journal: SqlJournal) -> httpx.AsyncClient:
    routes = work_routes(journal, lambda: NOW)
    return described_client(create_api(Api(journal).memories, AccessRules(admin_token="secret-token"), more=[routes]))


async def say(journal: SqlJournal, name: str, at: float) -> None:
    await journal.record([turn(name, Scope("somebody"), opened_at=at)], [answered(name, at=at)])


async def test_batches_are_told_with_their_words_and_how_long_they_took(
    journal: SqlJournal, client: httpx.AsyncClient
) -> None:
    await say(journal, "t0", NOW - 5000)
    old = await journal.claim(RULES, now=NOW - 4000)
    assert old is not None
    await journal.finish(old.id, "gave_up", now=NOW - 4000)
    await say(journal, "t1", NOW - 30)
    done = await journal.claim(RULES, now=NOW - 20)
    assert done is not None
    await journal.finish(done.id, "stored", now=NOW - 17.5)
    await say(journal, "t2", NOW - 9)
    rests = await journal.claim(RULES, now=NOW - 8)
    assert rests is not None
    await journal.postpone(rests.id, until=NOW + 60)
    await say(journal, "t3", NOW - 4)
    told = (await client.get("/v1/batches", headers=ADMIN)).json()
    assert told["waiting"] == {"turns": 1, "oldest_at": "2027-01-15T07:59:56.000Z", "lag_s": 4.0}
    assert told["live_total"] == 1
    assert [(batch["state"], batch["until"]) for batch in told["live"]] == [("resting", "2027-01-15T08:01:00.000Z")]
    assert [(batch["word"], batch["turns"], batch["lag_s"]) for batch in told["ended"]] == [
        ("stored", 1, 12.5),
        ("gave_up", 1, 1000.0),
    ]
    assert (told["words"], told["words_s"]) == ({"stored": 1}, 3600.0)
    assert len((await client.get("/v1/batches", params={"limit": 1}, headers=ADMIN)).json()["ended"]) == 1
    assert "somebody" not in str(told)
    assert "tea" not in str(told)


async def test_replicas_are_told_and_which_of_them_answers(journal: SqlJournal, client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/replicas", headers=ADMIN)).json() == {"replicas": []}
    await journal.show_life(now=NOW - 1, dead_before=0.0)
    [replica] = (await client.get("/v1/replicas", headers=ADMIN)).json()["replicas"]
    assert (replica["this"], replica["seen_at"]) == (True, "2027-01-15T07:59:59.000Z")
    assert replica["since"] is not None
