"""Aliases through the API: set by an administrator or the user, shown in the list of users, and no identity."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.management.access import AccessRules
from semmem.management.accounts_api import ALIAS_CHARS_MAX, alias_routes
from semmem.management.api import create_api
from semmem.management.engine_api import engine_routes
from semmem.memory import Scope, Turn
from semmem.telemetry.metrics import Metrics
from semmem.telemetry.samples import Samples
from tests.core.management.test_api import ADMIN, ALICE, NOW, Api
from tests.core.management.test_roles import an_engine
from tests.support.described import described_client
from tests.support.empty_journal import empty_journal

KEY = "key_0123456789abcdef"


class Naming:
    """The API of test_api with aliases, and the list of users."""

    def __init__(self, api: Api, journal: SqlJournal) -> None:
        self.api, self.journal = api, journal
        self.app = create_api(
            api.memories,
            AccessRules(admin_token="secret-token", trusted_headers=("x-user-id",)),
            more=[alias_routes(journal), engine_routes(replace(an_engine(), known=journal), Samples(Metrics()))],
        )
        self.client = described_client(self.app)

    async def put(self, user: str, alias: Any, headers: dict[str, str] = ADMIN) -> httpx.Response:
        body = json.dumps({"alias": alias})  # also half a character
        sent = headers | {"content-type": "application/json"}
        return await self.client.put(f"/v1/users/{user}/alias", content=body, headers=sent)

    async def get(self, path: str) -> Any:
        return (await self.client.get(path, headers=ADMIN)).json()


@pytest.fixture
async def naming(tmp_path: Path) -> AsyncIterator[Naming]:
    journal = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await journal.open()
    api = Api(journal)
    await api.store.open()
    made = Naming(api, journal)
    yield made
    await made.client.aclose()
    await api.client.aclose()
    await journal.close()


async def test_an_alias_is_set_shown_and_taken_away(naming: Naming) -> None:
    answer = await naming.put(KEY, "  Ada's build server ")
    assert (answer.status_code, answer.json()) == (200, {"user_id": KEY, "alias": "Ada's build server"})
    assert await naming.get(f"/v1/users/{KEY}/alias") == answer.json()
    listed = await naming.get("/v1/users")
    assert (listed["users"], listed["aliases"]) == ([KEY], {KEY: "Ada's build server"})
    assert (await naming.put(KEY, None)).json() == {"user_id": KEY, "alias": None}
    assert await naming.get(f"/v1/users/{KEY}/alias") == {"user_id": KEY, "alias": None}
    await naming.put(KEY, "Ada")
    await naming.put(KEY, "   ")
    assert (await naming.get("/v1/users"))["aliases"] == {}


async def test_users_name_themselves_and_nobody_else(naming: Naming) -> None:
    assert (await naming.put("alice", "Me", ALICE)).json() == {"user_id": "alice", "alias": "Me"}
    mine = await naming.client.get("/v1/users/alice/alias", headers=ALICE)
    assert mine.json()["alias"] == "Me"
    assert (await naming.put("bob", "Bobby", ALICE)).status_code == 404
    assert (await naming.client.get("/v1/users/bob/alias", headers=ALICE)).status_code == 404
    assert await naming.journal.aliases(["alice", "bob"]) == {"alice": "Me"}


async def test_an_alias_is_no_identity(naming: Naming) -> None:
    await naming.api.add("User likes tea", user=KEY)
    await naming.put(KEY, "Ada")
    by_alias = await naming.client.get("/v1/memory", params={"user_id": "Ada"}, headers=ADMIN)
    assert by_alias.json()["total"] == 0


@pytest.mark.parametrize(
    "alias", ["a" * (ALIAS_CHARS_MAX + 1), "two\nlines", "two\u2028lines", "\x07", "\x85", "\ud800", 7, ["a"], {}]
)
async def test_what_is_not_one_short_line_is_refused_and_not_repeated(naming: Naming, alias: Any) -> None:
    await naming.put(KEY, "Ada")
    answer = await naming.put(KEY, alias)
    assert answer.status_code == 400
    assert "lines" not in answer.text
    assert await naming.journal.aliases([KEY]) == {KEY: "Ada"}


@pytest.mark.parametrize("body", [{}, {"alias": "Ada", "user_id": "bob"}])
async def test_nothing_is_taken_away_by_a_body_that_does_not_say_so(naming: Naming, body: dict[str, Any]) -> None:
    await naming.put(KEY, "Ada")
    assert (await naming.client.put(f"/v1/users/{KEY}/alias", json=body, headers=ADMIN)).status_code == 400
    assert await naming.journal.aliases([KEY]) == {KEY: "Ada"}


async def test_as_many_characters_as_may_be_are_taken_of_any_script(naming: Naming) -> None:
    alias = "👩‍🔧" * (ALIAS_CHARS_MAX // 3)
    assert (await naming.put("realm%2Fada%2Falias", alias)).json() == {"user_id": "realm/ada/alias", "alias": alias}


async def test_an_erasure_of_the_user_says_that_it_went(naming: Naming) -> None:
    await naming.put("alice", "Ada")
    kept = await naming.client.delete("/v1/memory", params={"user_id": "alice", "type": "semantic"}, headers=ADMIN)
    assert kept.json()["receipt"]["aliases"] == 0
    gone = await naming.client.delete("/v1/memory", params={"user_id": "alice"}, headers=ADMIN)
    assert gone.json()["receipt"]["aliases"] == 1
    assert await naming.get("/v1/users/alice/alias") == {"user_id": "alice", "alias": None}


async def test_the_list_says_when_users_were_last_seen(naming: Naming) -> None:
    await naming.journal.record([Turn("t", Scope("alice", session="s"), 1, "Hello", NOW)], [])
    await naming.journal.register_user("bob")
    listed = await naming.get("/v1/users")
    assert listed["users"] == ["alice", "bob"]
    assert listed["last_seen"] == {"alice": "2027-01-15T08:00:00.000Z"}
