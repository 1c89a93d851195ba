"""Who sees which statistics of use, and what may be asked of them."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from semmem.ports.usage import session_name, user_name
from tests.core.management.test_api import ADMIN
from tests.core.management.test_roles import Guarded
from tests.support.usage import rows, script

TODAY = datetime.fromtimestamp(1_800_000_000.0, UTC).replace(hour=0, minute=0, second=0)
"""The day of the clock that the API has here."""


@pytest.fixture
async def used(guarded: Guarded) -> Guarded:
    """Of one day: 30 requests of alice's and 70 of bob's."""
    key, dice = await guarded.api.journal.usage_key(), random.Random(5)
    made = rows(script(100, seed=6, begins=TODAY))
    for place, row in enumerate(made):
        user = "alice" if place < 30 else "bob"
        session = session_name(key, user, str(dice.randrange(3)))
        made[place] = msgspec.structs.replace(row, user=user_name(key, user), session=session)
    await guarded.api.journal.add_usage(made)
    return guarded


async def told(used: Guarded, token: str, path: str = "/v1/usage/summary", **asked: Any) -> dict[str, Any]:
    answer = await used.call(token, "GET", path, params=asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_an_operator_sees_everybodys_figures_and_nobodys_name(used: Guarded) -> None:
    token = (await used.make(role="operator"))["token"]
    assert (await told(used, token))["total"]["requests"] == 100
    groups = (await told(used, token, "/v1/usage", by="user"))["groups"]
    assert [each["requests"] for each in groups] == [70, 30]
    assert "alice" not in str(groups)


async def test_an_operator_may_not_ask_by_name(used: Guarded) -> None:
    token = (await used.make(role="operator"))["token"]
    answer = await used.call(token, "GET", "/v1/usage/summary", params={"user_id": "alice"})
    assert answer.status_code == 403


async def test_an_administrator_sees_all_or_whom_they_name(used: Guarded) -> None:
    for asked, number in (({}, 100), ({"user_id": "bob"}, 70), ({"user_id": "nobody"}, 0)):
        answer = await used.client.get("/v1/usage/summary", params=asked, headers=ADMIN)
        assert answer.json()["total"]["requests"] == number


async def test_the_share_that_was_cached_is_told_of_all_and_of_each_group(used: Guarded) -> None:
    token = (await used.make(role="operator"))["token"]
    summary = await told(used, token)
    users = (await told(used, token, "/v1/usage", by="user"))["groups"]
    for each in (summary["total"], *summary["models"], *summary["providers"], *summary["top_projects"], *users):
        assert 0 < each["cache_reported"] < each["requests"]
        assert each["cached_share"] == round(each["cached_tokens"] / each["prompt_tokens"], 4)
    [day] = summary["activity"]
    assert day["prompt_tokens"] == summary["total"]["prompt_tokens"] == sum(each["prompt_tokens"] for each in users)
    assert day["cached_tokens"] == summary["total"]["cached_tokens"] > 0


@pytest.mark.parametrize("role", ["user", "reader"])
async def test_who_is_bound_to_a_user_sees_that_users(used: Guarded, role: str) -> None:
    token = (await used.make(role=role, user_id="alice"))["token"]
    summary = await told(used, token)
    assert (summary["total"]["requests"], summary["sessions"]) == (30, 3)
    by_user = (await told(used, token, "/v1/usage", by="user"))["groups"]
    assert [each["requests"] for each in by_user] == [30]
    answer = await used.call(token, "GET", "/v1/usage", params={"user_id": "bob"})
    assert answer.status_code == 404


async def test_a_reader_of_nobody_must_say_whose(used: Guarded) -> None:
    token = (await used.make(role="reader"))["token"]
    assert (await used.call(token, "GET", "/v1/usage")).status_code == 401
    assert (await told(used, token, "/v1/usage", user_id="bob"))["total"]["requests"] == 70


async def test_days_are_told_in_their_order_and_both_ends_count(used: Guarded) -> None:
    token, day = (await used.make(role="operator"))["token"], TODAY.date().isoformat()
    found = await told(used, token, "/v1/usage", **{"from": day, "to": day})
    assert [each["day"] for each in found["groups"]] == [day]
    assert (found["time_zone"], found["currency"], found["recording"]) == ("UTC", "USD", True)
    before = await told(used, token, "/v1/usage", **{"from": "2020-01-01", "to": "2020-12-31"})
    assert (before["groups"], before["total"]["requests"]) == ([], 0)


@pytest.mark.parametrize(
    "asked",
    [
        {"by": "content"},
        {"limit": 0},
        {"limit": 1001},
        {"from": "yesterday"},
        {"from": "2027-02-01", "to": "2027-01-01"},
    ],
)
async def test_what_makes_no_sense_is_refused(used: Guarded, asked: dict[str, str]) -> None:
    answer = await used.client.get("/v1/usage", params=asked, headers=ADMIN)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == ("INVALID_LIMIT" if "limit" in asked else "INVALID_REQUEST")


async def test_days_at_the_end_of_time_are_none_or_are_refused_and_never_a_fault(used: Guarded) -> None:
    for asked in ({"to": "1970-01-01"}, {"from": "9999-12-31"}, {"to": "9999-12-31"}, {"to": "0001-01-01"}):
        answer = await used.client.get("/v1/usage", params=asked, headers=ADMIN)
        assert answer.status_code in (200, 400)
