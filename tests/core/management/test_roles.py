"""Tokens with roles: what each may do, that only hashes are kept, and that a revoked one opens nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from fastapi.routing import APIRoute
from hypothesis import given
from hypothesis import strategies as st

from semmem.backends.sql.journal import SqlJournal
from semmem.backup.restoring import Restored, revoke_tokens
from semmem.lifecycle.everybody import ErasureOfAll
from semmem.management.access import AccessRules, Act, CallerRole, Tokens
from semmem.management.accounts_api import alias_routes, switch_routes, token_routes
from semmem.management.activity_api import Activity, activity_routes, work_routes
from semmem.management.api import create_api
from semmem.management.audit import audit_routes
from semmem.management.conversations import Conversations, conversation_routes
from semmem.management.curation import curation_routes
from semmem.management.engine_api import (
    EmbeddingProvider,
    Engine,
    EngineStatus,
    Reload,
    engine_routes,
    reindex_routes,
    reload_routes,
)
from semmem.management.everybodys_api import backup_routes, everybodys_routes
from semmem.management.feedback_api import FeedbackDesk, feedback_routes
from semmem.management.requests_api import request_routes
from semmem.management.usage_api import Usage, usage_routes
from semmem.ports.accounts import TokenRow
from semmem.ports.conversations import ConversationLimits
from semmem.ports.errors import JournalError, StoreUnavailable
from semmem.ports.usage import user_name
from semmem.reindex.reindexing import Reindexing
from semmem.telemetry.metrics import Metrics
from semmem.telemetry.samples import Samples
from semmem.usage.report import UsageReport
from tests.core.management.test_api import ADMIN, Api
from tests.support.described import described_client
from tests.support.usage import PRICES

NEEDS = {
    ("GET", "/v1/memory"): Act.READ,
    ("POST", "/v1/memory"): Act.WRITE,
    ("DELETE", "/v1/memory"): Act.WRITE,
    ("POST", "/v1/memory/search"): Act.READ,
    ("POST", "/v1/memory/preview"): Act.READ,
    ("GET", "/v1/memory/{memory_id}"): Act.READ,
    ("PUT", "/v1/memory/{memory_id}"): Act.WRITE,
    ("DELETE", "/v1/memory/{memory_id}"): Act.WRITE,
    ("POST", "/v1/sessions/{session_id}/end"): Act.WRITE,
    ("POST", "/v1/memory/consolidate"): Act.WRITE,
    ("POST", "/v1/memory/summarize"): Act.WRITE,
    ("POST", "/v1/memory/reflect"): Act.WRITE,
    ("GET", "/v1/memory/{memory_id}/history"): Act.READ,
    ("POST", "/v1/memory/{memory_id}/release"): Act.WRITE,
    ("POST", "/v1/memory/{memory_id}/undo"): Act.WRITE,
    ("POST", "/v1/backup"): Act.ADMINISTER,
    ("GET", "/v1/export"): Act.ADMINISTER,
    ("POST", "/v1/import"): Act.ADMINISTER,
    ("GET", "/v1/erasures"): Act.ADMINISTER,
    ("POST", "/v1/memory/forget"): Act.WRITE,
    ("GET", "/v1/memory/search"): Act.READ,
    ("GET", "/v1/status"): Act.OPERATE,
    ("GET", "/v1/health"): Act.OPERATE,
    ("GET", "/v1/embedding/providers"): Act.OPERATE,
    ("GET", "/v1/metrics/history"): Act.OPERATE,
    ("GET", "/v1/config"): Act.OPERATE,
    ("GET", "/v1/memories"): Act.ADMINISTER,
    ("GET", "/v1/batches"): Act.OPERATE,
    ("GET", "/v1/replicas"): Act.OPERATE,
    ("POST", "/v1/config/reload"): Act.OPERATE,
    ("GET", "/v1/users"): Act.ADMINISTER,
    ("GET", "/v1/activity"): Act.OPERATE,
    ("GET", "/v1/requests"): Act.READ,
    ("GET", "/v1/requests/{request_id}"): Act.READ,
    ("GET", "/v1/usage"): Act.READ,  # of a user who is named; of all of them OPERATE
    ("GET", "/v1/usage/summary"): Act.READ,
    ("POST", "/v1/feedback"): Act.WRITE,
    ("GET", "/v1/conversations"): Act.READ,
    ("GET", "/v1/conversations/counts"): Act.READ,  # of a user who is named; of everybody OPERATE
    ("POST", "/v1/conversations"): Act.WRITE,
    ("GET", "/v1/conversations/{conversation_id}"): Act.READ,
    ("PATCH", "/v1/conversations/{conversation_id}"): Act.WRITE,
    ("DELETE", "/v1/conversations/{conversation_id}"): Act.WRITE,
    ("GET", "/v1/conversations/{conversation_id}/export"): Act.READ,
    ("GET", "/v1/conversations/{conversation_id}/matches"): Act.READ,
    ("GET", "/v1/conversations/facets"): Act.READ,
    ("GET", "/v1/memory/reindex"): Act.OPERATE,
    ("POST", "/v1/memory/reindex"): Act.OPERATE,
    ("DELETE", "/v1/memory/reindex"): Act.OPERATE,
    ("GET", "/v1/users/{user_id}/memory-switches"): Act.ADMINISTER,
    ("PUT", "/v1/users/{user_id}/memory-switches"): Act.ADMINISTER,
    ("GET", "/v1/users/{user_id}/alias"): Act.READ,
    ("PUT", "/v1/users/{user_id}/alias"): Act.WRITE,
    ("GET", "/v1/groups/{group_id}/memory-switches"): Act.ADMINISTER,
    ("PUT", "/v1/groups/{group_id}/memory-switches"): Act.ADMINISTER,
    ("GET", "/v1/memory-switches"): Act.ADMINISTER,
    ("GET", "/v1/audit/name"): Act.ADMINISTER,
    ("GET", "/v1/whoami"): Act(0),
    ("POST", "/v1/tokens"): Act.ADMINISTER,
    ("GET", "/v1/tokens"): Act.ADMINISTER,
    ("DELETE", "/v1/tokens/{token_id}"): Act.ADMINISTER,
    ("DELETE", "/v1/tokens"): Act.ADMINISTER,
}
BY_WORD = {("DELETE", "/v1/memory", "all"): Act.ADMINISTER}
"""What a word in the query asks for beyond the route's act."""
BODIES: dict[str, dict[str, Any]] = {
    "/v1/memory": {"content": "User likes tea"},
    "/v1/memory/search": {"query": "tea"},
    "/v1/memory/preview": {"query": "tea"},
    "/v1/memory/forget": {"query": "tea"},
    "/v1/import": {"lines": []},
    "/v1/conversations": {"messages": [{"role": "user", "content": "tea?"}]},
    "/v1/conversations/{conversation_id}": {"title": "Tea"},
    "/v1/feedback": {"memory_ids": ["mem_0"], "helpful": True},
    "/v1/tokens": {"role": "reader"},
    "/v1/users/{user_id}/alias": {"alias": "Al"},
}


async def nothing_new() -> Reload:
    return Reload("unchanged", "2027-01-15T08:00:00Z", "0123456789abcdef")


async def nothing_waits() -> None:
    """Of the request log."""


class NothingToReindex:
    """Stands where Reindexing does."""

    async def status(self) -> dict[str, Any]:
        return {"state": "none"}

    async def start(self, *, force: bool, limit: int | None) -> None: ...

    async def drop_former(self) -> int:
        return 0


@dataclass
class Clock:
    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Guarded:
    """The API of test_api, with tokens and every file of routes."""

    def __init__(self, api: Api, journal: SqlJournal) -> None:
        self.api, self.clock = api, Clock()
        self.tokens = Tokens(journal, clock=self.clock)
        nothing: Any = None
        self.app = create_api(
            api.memories,
            AccessRules(admin_token="secret-token", tokens=self.tokens),
            more=[
                curation_routes(api.life),
                token_routes(self.tokens),
                engine_routes(an_engine(), Samples(Metrics())),
                work_routes(journal, self.clock),
                everybodys_routes(api.store, journal),
                activity_routes(Activity(self.clock)),
                request_routes(journal, nothing_waits, api.store),
                usage_routes(a_usage(journal, self.clock)),
                conversation_routes(the_conversations(api, journal, self.clock)),
                switch_routes(nothing),
                alias_routes(journal),
                audit_routes(nothing),
                reindex_routes(cast(Reindexing, NothingToReindex())),
                reload_routes(nothing_new),
                feedback_routes(feedback_desk(api, journal)),
                backup_routes(nothing, nothing, nothing, nothing, self.clock),
            ],
            everybody=ErasureOfAll(api.erasing.erasure, api.store, journal, clock=self.clock),
        )
        self.client = described_client(self.app)

    async def call(self, token: str, method: str, path: str, **asked: Any) -> httpx.Response:
        return await self.client.request(method, path, headers={"authorization": f"Bearer {token}"}, **asked)

    async def make(self, **asked: Any) -> dict[str, Any]:
        made = await self.client.post("/v1/tokens", json=asked, headers=ADMIN)
        assert made.status_code == 201, made.text
        found: dict[str, Any] = made.json()
        return found


def a_usage(journal: SqlJournal, clock: Callable[[], float]) -> Usage:
    async def name(user: str) -> str:
        return user_name(await journal.usage_key(), user)

    async def nothing_waits() -> None: ...

    return Usage(UsageReport(journal, PRICES), name, nothing_waits, clock, recording=True)


def the_conversations(api: Api, journal: SqlJournal, clock: Callable[[], float]) -> Conversations:
    async def nothing_waits() -> None: ...

    limits, after = ConversationLimits(), api.erasing.after
    return Conversations(journal, limits, settle=nothing_waits, clock=clock, after=after, recording=True)


def feedback_desk(api: Api, journal: SqlJournal) -> FeedbackDesk:
    async def refresh() -> None: ...

    return FeedbackDesk(api.store, journal, refresh, entries_max=10, clock=Clock())


def an_engine() -> Engine:
    async def works() -> None: ...

    async def fails() -> None:
        raise StoreUnavailable("the address of the store")

    everybody = ["alice", "bob", "carol"]

    async def users() -> list[str]:
        return [*everybody, "dora"]

    class Known:
        async def users_after(self, user: str, *, limit: int) -> list[str]:
            return [each for each in everybody if each > user][:limit]

        async def aliases(self, users: Sequence[str]) -> dict[str, str]:
            return {}

        async def last_seen(self, users: Sequence[str]) -> dict[str, float]:
            return {}

    def status() -> EngineStatus:
        return {
            "version": "1",
            "started_at": "2026-01-01T00:00:00Z",
            "components": {"store": True},
            "store": {"backend": "in_process", "hot_users": 0, "hot_memories": 0, "reindex": "none"},
            "embedding": {"source": "none", "signature": "bag", "dimension": 8, "cache": None},
            "journal": {"kind": "sqlite", "waiting": 0},
            "models": [],
            "rerank": False,
            "deployment": {"replicas": 1},
            "configuration": {
                "digest": "0" * 16,
                "loaded_at": "2026-01-01T00:00:00Z",
                "reloads": {"applied": 0, "refused": 0, "unchanged": 0},
                "last": None,
            },
        }

    async def providers() -> list[EmbeddingProvider]:
        return [{"name": "remote", "model": "", "configured": False, "available": False, "active": False}]

    parts = {"embedder": works, "store": fails}
    return Engine(status, parts, lambda: {"data_dir": "./data"}, users, Known(), providers)


def test_every_route_has_its_act_here(guarded: Guarded) -> None:
    routes = [route for route in guarded.app.routes if isinstance(route, APIRoute)]
    found = {
        (method, route.path.replace(":path}", "}"))
        for route in [*routes, *_included(guarded.app)]
        for method in route.methods or ()
    }
    assert found == set(NEEDS)


def _included(app: Any) -> list[APIRoute]:
    """Routes of included routers, which newer versions of the framework keep apart."""
    described = app.openapi()["paths"]
    known = {route.path for route in app.routes if isinstance(route, APIRoute)}
    return [
        APIRoute(path, lambda: None, methods=[method.upper() for method in methods])
        for path, methods in described.items()
        if path not in known and path.replace("}", ":path}") not in known
    ]


@pytest.mark.parametrize("role", ["admin", "operator", "user", "reader"])
async def test_a_role_may_do_its_acts_and_no_other(guarded: Guarded, role: str) -> None:
    token = (await guarded.make(role=role, **({"user_id": "alice"} if role == "user" else {})))["token"]
    for (method, path), act in NEEDS.items():
        if role == "admin" and act is Act.ADMINISTER:
            continue  # what stands behind these is not there
        others = {"/v1/import", "/v1/tokens", "/v1/memory/{memory_id}", "/v1/memory/reindex"}
        others |= {"/v1/conversations/{conversation_id}"}
        takes_user = path not in others and not path.endswith(("/memory-switches", "/alias"))
        body = BODIES.get(path, {}) | ({"user_id": "alice"} if takes_user else {})
        asked = (
            {"json": body} if method in ("POST", "PUT", "PATCH") and not path.endswith(("/release", "/undo")) else {}
        )
        url = path.format(
            memory_id="mem_0",
            conversation_id="conv_0",
            session_id="s",
            token_id="t",
            user_id="alice",
            group_id="staff",
            request_id="r",
        )
        query = {"user_id": "alice"} | ({"q": "tea"} if method == "GET" else {})
        answer = await guarded.call(token, method, url, params=query, **asked)
        refused = act not in CallerRole(role).acts
        assert (answer.status_code == 403) is refused, (method, path, answer.text)
        assert answer.status_code in (200, 201, 202, 403, 404), (method, path, answer.text)


@pytest.mark.parametrize("role", ["admin", "operator", "user", "reader"])
async def test_a_word_that_asks_for_more_needs_its_own_act(guarded: Guarded, role: str) -> None:
    token = (await guarded.make(role=role, **({"user_id": "alice"} if role == "user" else {})))["token"]
    for (method, path, word), act in BY_WORD.items():
        answer = await guarded.call(token, method, path, params={word: "true"})
        assert (answer.status_code == 403) is (act not in CallerRole(role).acts), answer.text
        assert answer.status_code in (200, 403), answer.text


async def test_a_trusted_header_does_not_ask_for_everybody(api: Api) -> None:
    answer = await api.client.delete("/v1/memory", params={"all": "true"}, headers={"x-user-id": "alice"})
    assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN")


async def test_a_token_of_a_user_reaches_that_user_alone(guarded: Guarded) -> None:
    mine = await guarded.api.add("User likes tea")
    theirs = await guarded.api.add("User likes coffee", user="bob")
    token = (await guarded.make(role="user", user_id="alice"))["token"]
    listed = (await guarded.call(token, "GET", "/v1/memory")).json()
    assert [memory["id"] for memory in listed["memories"]] == [mine["id"]]
    assert (await guarded.call(token, "GET", "/v1/memory", params={"user_id": "bob"})).status_code == 404
    assert (await guarded.call(token, "DELETE", f"/v1/memory/{theirs['id']}")).status_code == 404
    assert (await guarded.call(token, "GET", "/v1/whoami")).json()["user_id"] == "alice"


async def test_a_reader_bound_to_a_user_reads_that_user_alone_and_writes_nothing(guarded: Guarded) -> None:
    await guarded.api.add("User likes coffee", user="bob")
    token = (await guarded.make(role="reader", user_id="alice"))["token"]
    assert (await guarded.call(token, "GET", "/v1/memory", params={"user_id": "bob"})).status_code == 404
    assert (await guarded.call(token, "DELETE", "/v1/memory")).status_code == 403


async def test_an_unbound_token_must_say_whose_memories(guarded: Guarded) -> None:
    token = (await guarded.make(role="reader"))["token"]
    answer = await guarded.call(token, "GET", "/v1/memory")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "MISSING_USER_ID")


@pytest.mark.parametrize(
    "asked",
    [
        {"role": "user"},
        {"role": "admin", "user_id": "alice"},
        {"role": "operator", "user_id": "alice"},
        {"role": "reader", "expires_at": "2020-01-01T00:00:00Z"},
        {"role": "root"},
    ],
)
async def test_a_token_that_makes_no_sense_is_refused(guarded: Guarded, asked: dict[str, Any]) -> None:
    answer = await guarded.client.post("/v1/tokens", json=asked, headers=ADMIN)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")


async def test_a_revoked_token_opens_nothing(guarded: Guarded) -> None:
    made = await guarded.make(role="reader", label="dashboards")
    assert (await guarded.call(made["token"], "GET", "/v1/whoami")).status_code == 200
    revoked = await guarded.client.delete(f"/v1/tokens/{made['id']}", headers=ADMIN)
    assert revoked.json() == {"success": True, "revoked": 1}
    assert (await guarded.call(made["token"], "GET", "/v1/whoami")).status_code == 401
    assert (await guarded.client.delete(f"/v1/tokens/{made['id']}", headers=ADMIN)).status_code == 404
    listed = (await guarded.client.get("/v1/tokens", headers=ADMIN)).json()["tokens"]
    assert [(row["label"], row["good"]) for row in listed] == [("dashboards", False)]


async def test_all_tokens_of_a_user_are_revoked_together(guarded: Guarded) -> None:
    his = [(await guarded.make(role="user", user_id="bob"))["token"] for _ in range(2)]
    hers = (await guarded.make(role="user", user_id="alice"))["token"]
    answer = await guarded.client.delete("/v1/tokens", params={"user_id": "bob"}, headers=ADMIN)
    assert answer.json()["revoked"] == 2
    assert [(await guarded.call(token, "GET", "/v1/whoami")).status_code for token in [*his, hers]] == [401, 401, 200]


async def test_revoking_without_a_name_revokes_nothing(guarded: Guarded) -> None:
    token = (await guarded.make(role="reader"))["token"]
    assert (await guarded.client.delete("/v1/tokens", headers=ADMIN)).status_code == 401
    assert (await guarded.call(token, "GET", "/v1/whoami")).status_code == 200


async def test_a_token_ends_at_its_time(guarded: Guarded) -> None:
    token = (await guarded.make(role="reader", expires_at="2027-01-15T09:00:00Z"))["token"]
    guarded.clock.now += 3599
    assert (await guarded.call(token, "GET", "/v1/whoami")).status_code == 200
    guarded.clock.now += 2
    assert (await guarded.call(token, "GET", "/v1/whoami")).status_code == 401


async def test_neither_token_nor_user_is_on_disk(guarded: Guarded, tmp_path: Path) -> None:
    token = (await guarded.make(role="user", user_id="alice-of-the-tokens"))["token"]
    kept = await asyncio.to_thread(_all_bytes, tmp_path)
    secret = token.partition(".")[0].split("_", 2)[2]
    assert secret.encode() not in kept
    assert b"alice-of-the-tokens" not in kept
    assert token.partition(".")[2].encode() not in kept


def _all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def test_a_journal_that_was_restored_opens_with_no_token_of_before(guarded: Guarded) -> None:
    tokens = [(await guarded.make(role="reader"))["token"] for _ in range(2)]
    restored = Restored()
    await revoke_tokens(guarded.api.journal, now=guarded.clock(), restored=restored)
    assert restored.revoked_tokens == 2
    assert [(await guarded.call(token, "GET", "/v1/whoami")).status_code for token in tokens] == [401, 401]


@given(place=st.integers(0, 90), letter=st.sampled_from("aA0-_.="))
async def test_a_token_with_one_other_letter_is_nobodys(place: int, letter: str) -> None:
    tokens = Tokens(InMemory(), clock=Clock())
    token, _ = await tokens.make(CallerRole.USER, label="", user="alice")
    changed = token[:place] + letter + token[place + 1 :]
    assert (await tokens.caller(changed) is not None) is (changed == token)


async def test_a_user_cannot_be_put_in_anothers_place(guarded: Guarded) -> None:
    hers = (await guarded.make(role="user", user_id="alice"))["token"]
    his = (await guarded.make(role="user", user_id="bob"))["token"]
    mixed = hers.partition(".")[0] + "." + his.partition(".")[2]
    assert (await guarded.call(mixed, "GET", "/v1/whoami")).status_code == 401
    assert (await guarded.call(hers.partition(".")[0], "GET", "/v1/whoami")).status_code == 401


async def test_a_token_that_cannot_be_looked_up_is_not_called_wrong(guarded: Guarded) -> None:
    class Away(InMemory):
        async def token(self, token_id: str) -> TokenRow | None:
            raise JournalError("no such file")

    app = create_api(guarded.api.memories, AccessRules(tokens=Tokens(Away(), clock=Clock())))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://semmem") as client:
        answer = await client.get("/v1/memory", headers={"authorization": "Bearer semmem_1_2"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "IDENTITY_NOT_AVAILABLE")


class InMemory:
    """TokenRecords."""

    def __init__(self) -> None:
        self.rows: dict[str, TokenRow] = {}

    async def add_token(self, row: TokenRow) -> None:
        self.rows[row.id] = row

    async def token(self, token_id: str) -> TokenRow | None:
        return self.rows.get(token_id)

    async def tokens(self) -> list[TokenRow]:
        return list(self.rows.values())

    async def revoke_tokens(self, *, now: float, token_id: str | None = None, user_digest: str | None = None) -> int:
        return 0
