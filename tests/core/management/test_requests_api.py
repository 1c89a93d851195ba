"""What is told of a user's last requests: by whom it may be read, what stands in it, and that erasures take it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from semmem.management.access import AccessRules
from semmem.management.activity_api import Activity, activity_routes
from semmem.management.api import create_api
from semmem.request.outcome import RequestRecord
from tests.core.management.test_api import ADMIN, Api
from tests.support.described import described_client

OF_BOB = {"x-user-id": "bob"}
NOW = 1_800_000_000.0


def record(user: str, name: str, *shown: str, turn: str = "", found: str = "") -> RequestRecord:
    weighed = ((found, 1.23456),) if found else ()
    return RequestRecord(name, user, None, "s1", turn, "chat", "a-model", shown, weighed)


@pytest.fixture
def activity() -> Activity:
    return Activity(lambda: NOW, kept=10)


@pytest.fixture
async def client(api: Api, activity: Activity) -> AsyncIterator[httpx.AsyncClient]:
    access = AccessRules(admin_token="secret-token", trusted_headers=("x-user-id",))
    app = create_api(api.memories, access, more=[activity_routes(activity, api.memories)])
    async with described_client(app) as made:
        yield made


async def test_a_request_is_told_of_with_its_memories_as_they_are(
    api: Api, activity: Activity, client: httpx.AsyncClient
) -> None:
    old, new = await api.add("User lives in Oslo"), await api.add("User has a cat")
    activity.ended("injected", 0.0123, 3, 40, record("alice", "r1", old["id"], new["id"], "mem_gone", found=new["id"]))
    told = (await client.get("/v1/requests/r1", headers=ADMIN)).json()
    assert (told["id"], told["user_id"], told["session_id"], told["model"]) == ("r1", "alice", "s1", "a-model")
    assert (told["outcome"], told["milliseconds"], told["memories"], told["tokens"]) == ("injected", 12.3, 3, 40)
    assert [(one["content"], one["is_new"], one["log_odds"]) for one in told["in_prompt"]] == [
        ("User lives in Oslo", False, None),
        ("User has a cat", True, 1.235),
    ]
    assert told["gone"] == 1
    assert told["learnt"] == []


async def test_the_best_that_were_left_out_are_told_of_with_the_reason_as_long_as_they_are_there(
    api: Api, activity: Activity, client: httpx.AsyncClient
) -> None:
    cat = await api.add("User has a cat")
    left = ((cat["id"], "limit", 0.5), ("mem_gone", "near_duplicate", None))
    activity.ended("no_hits", 0.01, 0, 0, RequestRecord("r1", "alice", left=left, purpose="recall"))
    told = (await client.get("/v1/requests/r1", headers=ADMIN)).json()
    assert [(one["content"], one["reason"], one["log_odds"]) for one in told["left_out"]] == [
        ("User has a cat", "limit", 0.5)
    ]
    assert (told["purpose"], told["in_prompt"]) == ("recall", [])


async def test_log_odds_that_are_no_number_are_null(api: Api, activity: Activity, client: httpx.AsyncClient) -> None:
    known = await api.add("User lives in Oslo")
    weighed = ((known["id"], float("-inf")),)
    activity.ended("injected", 0.01, 1, 9, RequestRecord("r1", "alice", shown=(known["id"],), weighed=weighed))
    [one] = (await client.get("/v1/requests/r1", headers=ADMIN)).json()["in_prompt"]
    assert (one["is_new"], one["log_odds"]) == (True, None)


async def test_a_users_last_requests_are_listed_newest_first(activity: Activity, client: httpx.AsyncClient) -> None:
    for number, outcome in enumerate(("injected", "no_hits", "injected")):
        activity.ended(outcome, 0.01, 0, 0, record("alice", f"r{number}"))
    activity.ended("anonymous", 0.01, 0, 0, None)
    activity.ended("injected", 0.01, 0, 0, record("bob", "of bob"))
    asked = {"user_id": "alice"}
    told = (await client.get("/v1/requests", params=asked, headers=ADMIN)).json()["requests"]
    assert [one["id"] for one in told] == ["r2", "r1", "r0"]
    told = (await client.get("/v1/requests", params={**asked, "outcome": "injected", "limit": 1}, headers=ADMIN)).json()
    assert [one["id"] for one in told["requests"]] == ["r2"]


async def test_an_operator_is_told_by_which_id_a_request_is_found_until_its_user_erases(
    activity: Activity, client: httpx.AsyncClient
) -> None:
    activity.ended("injected", 0.01, 0, 0, record("alice", "r1"))
    activity.ended("anonymous", 0.01, 0, 0, None)

    async def ids() -> list[str | None]:
        return [one["id"] for one in (await client.get("/v1/activity", headers=ADMIN)).json()["requests"]]

    assert await ids() == ["r1", None]
    activity.forget("alice", None)
    assert await ids() == [None, None]


async def test_nobody_reads_of_somebody_elses(activity: Activity, client: httpx.AsyncClient) -> None:
    activity.ended("injected", 0.01, 0, 0, record("alice", "of alice"))
    activity.ended("injected", 0.01, 0, 0, record("bob", "of bob"))
    own = (await client.get("/v1/requests", headers=OF_BOB)).json()["requests"]
    assert [one["id"] for one in own] == ["of bob"]
    assert (await client.get("/v1/requests/of bob", headers=OF_BOB)).status_code == 200
    refused = await client.get("/v1/requests/of alice", headers=OF_BOB)
    unknown = await client.get("/v1/requests/never sent", headers=OF_BOB)
    assert (refused.status_code, refused.json()) == (unknown.status_code, unknown.json())
    assert refused.status_code == 404


async def test_an_id_that_was_sent_again_is_the_newest(activity: Activity, client: httpx.AsyncClient) -> None:
    activity.ended("timeout", 0.35, 0, 0, record("alice", "r"))
    activity.ended("injected", 0.01, 0, 0, record("alice", "r"))
    assert (await client.get("/v1/requests/r", headers=ADMIN)).json()["outcome"] == "injected"


def known(activity: Activity) -> list[str]:
    return [record.id for _, record in activity.known()]


def test_what_is_erased_leaves_the_figures_and_takes_the_names() -> None:
    activity = Activity(lambda: NOW, kept=4)
    activity.ended("injected", 0.01, 2, 9, record("alice", "r1", "m1", "m2"))
    activity.ended("injected", 0.01, 1, 9, record("alice", "r2", "m3"))
    activity.ended("injected", 0.01, 1, 9, record("bob", "r3", "m2"))
    activity.forget("alice", ["m2"])
    assert known(activity) == ["r3", "r2"]
    activity.ended("no_hits", 0.01, 0, 9, RequestRecord("r4", "alice", left=(("m4", "limit", None),)))
    activity.forget("alice", ["m4"])
    assert known(activity) == ["r3", "r2"], "nor is known in whose prompt it might have been"
    activity.forget("alice", None)
    assert known(activity) == ["r3"]
    assert len(activity.since(0)["requests"]) == 4


def test_a_request_that_was_under_way_during_an_erasure_leaves_no_names() -> None:
    now = [NOW]
    activity = Activity(lambda: now[0], kept=4)
    activity.forget("alice", ["m1"])
    now[0] += 0.2
    activity.ended("injected", 0.3, 1, 9, record("alice", "under way", "m1"))
    activity.ended("injected", 0.1, 1, 9, record("alice", "after it"))
    activity.ended("injected", 0.3, 1, 9, record("bob", "of bob"))
    assert known(activity) == ["of bob", "after it"]
