"""How often the API may be called: each caller apart, with a Retry-After that is true, and bounded in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.management.access import AccessRules, Buckets, Caller, CallerRole, RateLimits, RateRules, Tokens
from semmem.management.api import create_api
from semmem.management.door import Guards
from semmem.ports.accounts import TokenRow
from semmem.telemetry.metrics import Metrics
from tests.core.management.test_api import ADMIN, ALICE, Api
from tests.support.counted import counting
from tests.support.empty_journal import empty_journal

BOB = {"x-user-id": "bob"}
MADE_UP = {"authorization": "Bearer semmem_1_2"}
GOOD = {"authorization": "Bearer semmem_good"}


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


class OneToken(Tokens):
    """Knows one, and how often it was asked."""

    asked = 0

    def __init__(self) -> None:
        """Nothing is looked up."""

    async def caller(self, token: str) -> tuple[TokenRow, str | None] | None:
        self.asked += 1
        row = TokenRow("good", "reader", "", "", "", 0.0)
        return (row, None) if token == "semmem_good" else None


class Limited:
    def __init__(self, api: Api) -> None:
        self.clock, self.metrics, self.tokens = Clock(), Metrics(), OneToken()
        rules = RateRules(calls_per_s=2.0, burst=3, failures_per_minute=4.0, callers_max=100)
        limits = RateLimits(rules, clock=self.clock, announce=counting(self.metrics))
        access = AccessRules(admin_token="secret-token", trusted_headers=("x-user-id",), tokens=self.tokens)
        self.app = create_api(api.memories, access, guards=Guards(limits=limits))
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://semmem")

    async def status(self, headers: dict[str, str], path: str = "/v1/memory?user_id=alice") -> int:
        return (await self.client.get(path, headers=headers)).status_code


@pytest.fixture
async def limited(tmp_path: Path) -> AsyncIterator[Limited]:
    journal = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await journal.open()
    api = Api(journal)
    await api.store.open()
    made = Limited(api)
    yield made
    await made.client.aclose()
    await api.client.aclose()
    await journal.close()


async def test_a_call_too_many_is_refused_until_retry_after_and_other_callers_are_not(limited: Limited) -> None:
    assert [await limited.status(ALICE) for _ in range(3)] == [200] * 3
    refused = await limited.client.get("/v1/memory", headers=ALICE)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "RATE_LIMITED")
    assert refused.headers["retry-after"] == "1"
    assert (await limited.status({"x-user-id": "bob"}, "/v1/memory"), await limited.status(ADMIN)) == (200, 200)
    limited.clock.now += float(refused.headers["retry-after"])
    assert [await limited.status(ALICE) for _ in range(3)] == [200, 200, 429]
    page = limited.metrics.registry.get_sample_value("semmem_api_limited_total", {"who": "caller"})
    assert page == 2


async def test_a_call_too_many_has_no_effect(limited: Limited) -> None:
    for _ in range(4):
        told = await limited.client.post("/v1/memory", json={"content": "User likes tea"}, headers=ALICE)
    assert told.status_code == 429
    limited.clock.now += 10
    listed = (await limited.client.get("/v1/memory", headers=ALICE)).json()
    assert listed["total"] == 3


async def test_made_up_tokens_are_not_looked_up_without_end_and_a_good_one_goes_on(limited: Limited) -> None:
    assert await limited.status(GOOD) == 200
    assert [await limited.status(MADE_UP) for _ in range(6)] == [401] * 4 + [429] * 2
    assert limited.tokens.asked == 1 + 4
    assert await limited.status(GOOD) == 200
    assert await limited.status(ALICE) == 200  # has no credential that would have to be looked up
    assert await limited.status(ADMIN) == 429  # was not seen before: might be anybody's
    limited.clock.now += 15.1
    assert await limited.status(ADMIN) == 200


async def test_what_anybody_may_read_is_limited_too(limited: Limited) -> None:
    assert [await limited.status({}, "/openapi.json") for _ in range(4)] == [200, 200, 200, 429]


def test_callers_have_names_of_their_own() -> None:
    callers = [
        Caller(),
        Caller(CallerRole.ADMIN, token_id="1"),
        Caller(CallerRole.READER, token_id="2"),
        Caller(CallerRole.READER, "alice", "3"),
        Caller(CallerRole.USER, "alice"),
        Caller(CallerRole.USER, "bob"),
    ]
    assert len({caller.name for caller in callers}) == len(callers)


def test_only_so_many_are_known_and_the_one_who_called_last_stays() -> None:
    buckets = Buckets(1.0, 2, 3, Clock())
    for key in ("a", "b", "c", "a", "d", "e"):
        buckets.take(key)
    assert len(buckets) == 3
    assert buckets.take("a") == 1.0  # still known: it has had its two
    assert buckets.take("b") == 0.0


def test_one_customer_has_many_addresses_of_the_newer_kind() -> None:
    limits = RateLimits(RateRules(calls_per_s=1.0, burst=1), clock=Clock())
    limits.anybody("2001:db8::1")
    with pytest.raises(Exception, match="too many calls"):
        limits.anybody("2001:db8::2")
    limits.anybody("2001:db8:0:1::1")
    limits.anybody("192.0.2.1")
    limits.anybody("192.0.2.2")


def test_without_rules_nobody_is_limited() -> None:
    limits = RateLimits(clock=Clock())
    for _ in range(10_000):
        limits.anybody("192.0.2.1")
