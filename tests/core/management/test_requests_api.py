"""What is told of a user's requests: by whom it may be read, what stands in it, and what an operator is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.management.access import AccessRules
from semmem.management.activity_api import Activity, activity_routes
from semmem.management.api import create_api
from semmem.management.requests_api import request_routes
from semmem.memory import Scope
from semmem.ports.errors import JournalError
from semmem.ports.request_log import LoggedAnswer, LoggedRequest
from tests.core.management.test_api import ADMIN, Api
from tests.support.described import described_client

OF_BOB = {"x-user-id": "bob"}
NOW = 1_800_000_000.0


class Log:
    """A journal's log, and what waits to be written to it."""

    def __init__(self, journal: SqlJournal) -> None:
        self.journal = journal
        self.waiting: list[LoggedRequest | LoggedAnswer] = []

    def add(self, name: str, user: str = "alice", *, at: float = NOW, **rest: Any) -> None:
        told: dict[str, Any] = {"outcome": "injected", "api": "chat", "model": "a-model"} | rest
        key = f"k{len(self.waiting)}_{name}"
        self.waiting.append(LoggedRequest(key=key, id=name, scope=Scope(user, session="s1"), at=at, **told))

    async def settle(self) -> bool:
        await self.journal.log_requests(self.waiting)
        return True


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[Log]:
    journal = SqlJournal(tmp_path / "requests.db")
    await journal.open()
    yield Log(journal)
    await journal.close()


@pytest.fixture
async def client(api: Api, log: Log) -> AsyncIterator[httpx.AsyncClient]:
    access = AccessRules(admin_token="secret-token", trusted_headers=("x-user-id",))
    app = create_api(api.memories, access, more=[request_routes(log.journal, log.settle, api.store)])
    async with described_client(app) as made:
        yield made


async def test_a_request_is_told_of_with_its_memories_as_they_are(
    api: Api, log: Log, client: httpx.AsyncClient
) -> None:
    old, new = await api.add("User lives in Oslo"), await api.add("User has a cat")
    steps = (("reading", 1.5), ("journalling", 0.25), ("finding", 10.0), ("rewriting", 0.55))
    log.add(
        "r1",
        memories=3,
        tokens=40,
        shown=(old["id"], new["id"], "mem_gone"),
        weighed=((new["id"], 1.23456),),
        steps=steps,
        trace="0af7651916cd43dd8448eb211c80319c",
    )
    told = (await client.get("/v1/requests/r1", headers=ADMIN)).json()
    assert (told["id"], told["user_id"], told["session_id"], told["model"]) == ("r1", "alice", "s1", "a-model")
    assert (told["outcome"], told["milliseconds"], told["memories"], told["tokens"]) == ("injected", 12.3, 3, 40)
    assert (told["steps"], told["answer"]) == (dict(steps), None)
    assert told["trace_id"] == "0af7651916cd43dd8448eb211c80319c"
    assert [(one["content"], one["is_new"], one["log_odds"]) for one in told["in_prompt"]] == [
        ("User lives in Oslo", False, None),
        ("User has a cat", True, 1.235),
    ]
    assert told["gone"] == 1
    assert told["learnt"] == []


async def test_how_its_answer_ended_is_told_with_what_the_provider_counted(log: Log, client: httpx.AsyncClient) -> None:
    log.add("r1")
    log.waiting.append(LoggedAnswer(log.waiting[0].key, NOW + 1.5, "answered", 1200, 80, 1000))
    told = (await client.get("/v1/requests/r1", headers=ADMIN)).json()
    assert told["answer"] == {
        "ending": "answered",
        "milliseconds": 1500.0,
        "tokens_in": 1200,
        "tokens_out": 80,
        "cached_tokens": 1000,
    }
    [listed] = (await client.get("/v1/requests", params={"user_id": "alice"}, headers=ADMIN)).json()["requests"]
    assert listed["answer"] == told["answer"]


async def test_the_best_that_were_left_out_are_told_of_with_the_reason_as_long_as_they_are_there(
    api: Api, log: Log, client: httpx.AsyncClient
) -> None:
    cat = await api.add("User has a cat")
    log.add("r1", left=((cat["id"], "limit", 0.5), ("mem_gone", "near_duplicate", None)), purpose="recall")
    told = (await client.get("/v1/requests/r1", headers=ADMIN)).json()
    assert [(one["content"], one["reason"], one["log_odds"]) for one in told["left_out"]] == [
        ("User has a cat", "limit", 0.5)
    ]
    assert (told["purpose"], told["in_prompt"]) == ("recall", [])


async def test_log_odds_that_are_no_number_are_null(api: Api, log: Log, client: httpx.AsyncClient) -> None:
    known = await api.add("User lives in Oslo")
    log.add("r1", shown=(known["id"],), weighed=((known["id"], float("-inf")),))
    [one] = (await client.get("/v1/requests/r1", headers=ADMIN)).json()["in_prompt"]
    assert (one["is_new"], one["log_odds"]) == (True, None)


async def test_a_users_last_requests_are_listed_newest_first(log: Log, client: httpx.AsyncClient) -> None:
    for number, outcome in enumerate(("injected", "no_hits", "injected")):
        log.add(f"r{number}", at=NOW + number, outcome=outcome)
    log.add("of bob", "bob")
    asked = {"user_id": "alice"}
    told = (await client.get("/v1/requests", params=asked, headers=ADMIN)).json()["requests"]
    assert [one["id"] for one in told] == ["r2", "r1", "r0"]
    told = (await client.get("/v1/requests", params={**asked, "outcome": "injected", "limit": 1}, headers=ADMIN)).json()
    assert [one["id"] for one in told["requests"]] == ["r2"]


@pytest.mark.parametrize("name", ["a/b", "../memory", "a?b#c", "100%", "n\u00e9", "k" * 256])
async def test_a_request_is_found_whatever_its_id_is_made_of(log: Log, client: httpx.AsyncClient, name: str) -> None:
    log.add(name)
    found = await client.get(f"/v1/requests/{quote(name, safe='')}", headers=ADMIN)
    assert (found.status_code, found.json().get("id")) == (200, name)


async def test_nobody_reads_of_somebody_elses(log: Log, client: httpx.AsyncClient) -> None:
    log.add("of alice")
    log.add("of bob", "bob")
    own = (await client.get("/v1/requests", headers=OF_BOB)).json()["requests"]
    assert [one["id"] for one in own] == ["of bob"]
    assert (await client.get("/v1/requests/of bob", headers=OF_BOB)).status_code == 200
    refused = await client.get("/v1/requests/of alice", headers=OF_BOB)
    unknown = await client.get("/v1/requests/never sent", headers=OF_BOB)
    assert (refused.status_code, refused.json()) == (unknown.status_code, unknown.json())
    assert refused.status_code == 404


async def test_a_user_finds_their_own_though_somebody_else_sent_the_same_id_later(
    log: Log, client: httpx.AsyncClient
) -> None:
    log.add("same", "bob", outcome="no_hits")
    log.add("same", "alice", at=NOW + 5)
    assert (await client.get("/v1/requests/same", headers=OF_BOB)).json()["outcome"] == "no_hits"
    assert (await client.get("/v1/requests/same", headers=ADMIN)).json()["user_id"] == "alice"


@pytest.mark.parametrize("way", ["shown", "left"])
async def test_what_is_kept_of_a_request_goes_with_a_memory_that_was_or_might_have_been_in_it(
    api: Api, way: str
) -> None:
    gone, stays = await api.add("User lives in Oslo"), await api.add("User has a cat")
    told: dict[str, Any] = {"shown": {"shown": (gone["id"],)}, "left": {"left": ((gone["id"], "limit", None),)}}[way]
    kept = LoggedRequest(key="k2", id="r2", scope=Scope("alice"), at=NOW, outcome="injected", shown=(stays["id"],))
    named = LoggedRequest(key="k1", id="r1", scope=Scope("alice"), at=NOW, outcome="injected", **told)
    await api.journal.log_requests([named, kept])
    deleted = await api.client.delete(f"/v1/memory/{gone['id']}", params={"user_id": "alice"}, headers=ADMIN)
    assert deleted.json()["receipt"]["requests"] == 1
    left = await api.journal.logged("alice", outcome=None, limit=9)
    assert [each.request.key for each in left] == ["k2"]


async def test_a_journal_that_is_away_is_said(log: Log, client: httpx.AsyncClient) -> None:
    async def away() -> bool:
        raise JournalError("away")

    await log.journal.close()
    log.settle = away  # type: ignore[method-assign]
    for path in ("/v1/requests?user_id=alice", "/v1/requests/r1"):
        refused = await client.get(path, headers=ADMIN)
        assert (refused.status_code, refused.json()["code"]) == (503, "MEMORY_NOT_AVAILABLE")


async def test_an_operator_is_told_by_which_id_a_request_is_found(api: Api) -> None:
    activity = Activity(lambda: NOW)
    activity.ended("injected", 0.01, 0, 0, "r1")
    activity.ended("anonymous", 0.01, 0, 0, None)
    access = AccessRules(admin_token="secret-token")
    async with described_client(create_api(api.memories, access, more=[activity_routes(activity)])) as client:
        told = (await client.get("/v1/activity", headers=ADMIN)).json()["requests"]
    assert [one["id"] for one in told] == ["r1", None]
