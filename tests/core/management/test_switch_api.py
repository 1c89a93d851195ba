"""Switches through the API: an administrator sets them, they hold at once, and everybody sees their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.background.in_process import RecordWatch
from semmem.management.access import AccessRules, Tokens
from semmem.management.accounts_api import SwitchDesk, switch_routes, token_routes
from semmem.management.api import create_api
from semmem.management.engine_api import engine_routes
from semmem.request.permission import EVERYTHING, READING
from semmem.request.switches import Switches
from semmem.telemetry.metrics import Metrics
from semmem.telemetry.samples import Samples
from tests.core.management.test_api import ADMIN, ALICE, Api
from tests.core.management.test_roles import an_engine
from tests.support.empty_journal import empty_journal

OFF = {"reading": "off", "storing": "off"}
UNSAID = {"reading": None, "storing": None}


class Switching:
    """The API of test_api with switches, and what requests would obey."""

    def __init__(self, api: Api, journal: SqlJournal) -> None:
        self.known = Switches()
        watch = RecordWatch(journal.switches_since, self.known, what="switches", refresh_s=60.0)
        desk = SwitchDesk(journal, self.known, watch.refresh, entries_max=3, clock=lambda: 1_800_000_000.0)
        self.app = create_api(
            api.memories,
            AccessRules(admin_token="secret-token", trusted_headers=("x-user-id",)),
            more=[
                token_routes(Tokens(journal, clock=lambda: 1e9), switches=self.known),
                engine_routes(an_engine(), Samples(Metrics()), switches=self.known),
                switch_routes(desk),
            ],
        )
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://semmem")

    async def put(self, whose: str, **said: Any) -> httpx.Response:
        return await self.client.put(f"/v1/{whose}/memory-switches", json=said, headers=ADMIN)

    async def get(self, path: str, **asked: Any) -> Any:
        return (await self.client.get(path, headers=ADMIN, **asked)).json()


@pytest.fixture
async def switching(tmp_path: Path) -> AsyncIterator[Switching]:
    journal = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await journal.open()
    api = Api(journal)
    await api.store.open()
    made = Switching(api, journal)
    yield made
    await made.client.aclose()
    await api.client.aclose()
    await journal.close()


async def test_what_is_set_holds_at_once_and_is_shown(switching: Switching) -> None:
    answer = await switching.put("users/alice", storing="off")
    assert (answer.status_code, answer.json()) == (200, {"user_id": "alice", "reading": None, "storing": "off"})
    assert switching.known.allowed("alice", ()) == READING
    assert await switching.get("/v1/users/alice/memory-switches") == answer.json()
    assert (await switching.put("groups/staff", **OFF)).json() == {"group_id": "staff", **OFF}
    assert await switching.get("/v1/groups/staff/memory-switches") == {"group_id": "staff", **OFF}
    groups = [{"group_id": "staff", **OFF, "changed_at": "2027-01-15T08:00:00.000Z"}]
    listed = await switching.get("/v1/memory-switches")
    assert [{**group, "changed_at": ""} for group in listed["groups"]] == [{**groups[0], "changed_at": ""}]
    assert listed["users"] == 1


async def test_what_is_left_out_is_not_said_any_more(switching: Switching) -> None:
    await switching.put("users/alice", **OFF)
    await switching.put("users/alice")
    assert switching.known.allowed("alice", ()) == EVERYTHING
    assert await switching.get("/v1/users/alice/memory-switches") == {"user_id": "alice", **UNSAID}
    assert (await switching.get("/v1/memory-switches"))["users"] == 0


async def test_a_name_may_have_slashes_in_it(switching: Switching) -> None:
    await switching.put("users/realm%2Fada%2Fmemory-switches", **OFF)
    assert switching.known.of_user("realm/ada/memory-switches").reading is False


async def test_users_are_listed_with_their_switches_and_each_sees_their_own(switching: Switching) -> None:
    await switching.put("users/bob", reading="off")
    assert (await switching.get("/v1/users"))["memory_switches"] == {"bob": {"reading": "off", "storing": None}}
    mine = (await switching.client.get("/v1/whoami", headers=ALICE)).json()
    his = (await switching.client.get("/v1/whoami", headers={"x-user-id": "bob"})).json()
    assert (mine["memory_switches"], his["memory_switches"]) == (UNSAID, {"reading": "off", "storing": None})
    assert (await switching.get("/v1/whoami"))["memory_switches"] is None


@pytest.mark.parametrize("said", [{"reading": "maybe"}, {"reading": True}, {"writing": "off"}])
async def test_what_is_no_switch_is_refused_and_changes_nothing(switching: Switching, said: dict[str, Any]) -> None:
    assert (await switching.put("users/alice", **said)).status_code == 400
    assert switching.known.number_set == 0


@pytest.mark.parametrize("name", ["%00", "a" * 257, "a%01b"])
async def test_what_is_no_name_has_no_switches(switching: Switching, name: str) -> None:
    assert (await switching.put(f"users/{name}", **OFF)).status_code == 400
    assert (await switching.put(f"groups/{name}", **OFF)).status_code == 400


async def test_there_are_only_so_many(switching: Switching) -> None:
    for number in range(3):
        assert (await switching.put(f"users/{number}", **OFF)).status_code == 200
    full = await switching.put("users/alice", **OFF)
    assert (full.status_code, switching.known.allowed("alice", ())) == (409, EVERYTHING)
    assert (await switching.put("users/2")).status_code == 200
    assert (await switching.put("users/alice", **OFF)).status_code == 200


async def test_a_user_may_not_switch_anybody(switching: Switching) -> None:
    for path in ("users/alice", "groups/staff"):
        answer = await switching.client.put(f"/v1/{path}/memory-switches", json=OFF, headers=ALICE)
        assert answer.status_code == 403
    assert switching.known.number_set == 0
