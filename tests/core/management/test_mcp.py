"""The tools of the Model Context Protocol, asked by the SDK's own client: over HTTP with tokens, and over stdio."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from semmem.backends.sql.journal import SqlJournal
from semmem.background import Tasks
from semmem.management.mcp_doors import tools_of
from semmem.management.server import HttpListener
from semmem.memory import Scope
from semmem.ports.errors import StoreUnavailable
from tests.core.commands.test_previewing import TOKEN, running
from tests.core.management.test_api import Api
from tests.core.management.test_roles import Guarded
from tests.support.empty_journal import empty_journal

TOOLS = {"memory_search", "memory_add", "memory_list", "memory_update", "memory_delete", "memory_clear"}


class Served(Guarded):
    url: str

    @asynccontextmanager
    async def connected(self, token: str) -> AsyncIterator[Client]:
        http = httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"})
        async with http, Client(streamable_http_client(f"{self.url}/mcp", http_client=http)) as client:
            yield client


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    journal = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await journal.open()
    api = Api(journal)
    await api.store.open()
    served = Served(api, journal)
    listener = HttpListener(served.app, "127.0.0.1:0")
    served.url = f"http://{listener.bind()}"
    tools, tasks = tools_of(served.app, body_bytes_max=1024 * 1024), Tasks()
    tools.add_to(served.app)
    tasks.spawn("tools", tools.run())
    await tools.ready.wait()
    serving = tasks.spawn("api", listener.serve())
    yield served
    listener.stop()
    await serving
    listener.close()
    await tasks.cancel()
    await api.client.aclose()
    await journal.close()


async def told(client: Client, tool: str, **asked: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, asked)
    assert not result.is_error, result.content
    found: dict[str, Any] = json.loads(result.content[0].text)  # type: ignore[union-attr]
    return found


async def refusal(client: Client, tool: str, **asked: Any) -> str:
    result = await client.call_tool(tool, asked)
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]


async def test_a_user_remembers_finds_corrects_and_forgets(served: Served) -> None:
    token = (await served.make(role="user", user_id="alice"))["token"]
    async with served.connected(token) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        added = await told(client, "memory_add", content="User likes green tea")
        found = await told(client, "memory_search", query="User likes green tea")
        assert [memory["id"] for memory in found["memories"]] == [added["id"]]
        assert found["total_tokens"] == found["memories"][0]["tokens"] > 0
        changed = await told(client, "memory_update", id=added["id"], content="User likes black tea")
        assert (changed["version"], changed["content"]) == (2, "User likes black tea")
        assert (await told(client, "memory_list"))["memories"][0]["content"] == "User likes black tea"
        gone = await told(client, "memory_delete", id=added["id"])
        assert (gone["deleted_count"], gone["receipt"]["versions"], gone["pending"]) == (1, 1, False)
        assert (await told(client, "memory_list"))["total"] == 0


async def test_what_is_added_may_name_its_session_and_carry_metadata(served: Served) -> None:
    async with served.connected("secret-token") as client:
        added = await told(
            client, "memory_add", content="User likes tea", session="s-1", metadata={"from": "form"}, user_id="alice"
        )
    [memory] = await served.api.store.list(Scope("alice"), limit=1)
    assert (memory.id, memory.session, memory.metadata["from"]) == (added["id"], "s-1", "form")


async def test_a_search_stays_within_its_tokens(served: Served) -> None:
    for number in range(3):
        await served.api.add(f"User likes green tea of kind {number}")
    async with served.connected("secret-token") as client:
        everything = await told(client, "memory_search", query="User likes green tea", user_id="alice")
        budget = everything["memories"][0]["tokens"]
        within = await told(client, "memory_search", query="User likes green tea", user_id="alice", max_tokens=budget)
    assert (everything["count"], within["count"], within["total_tokens"]) == (3, 1, budget)


async def test_a_clear_takes_one_type_or_one_age(served: Served) -> None:
    await served.api.add("User likes green tea")
    await served.api.add("User went to Rome", type="episodic")
    async with served.connected("secret-token") as client:
        for narrowed, number in (({"older_than_days": 1}, 0), ({"type": "episodic"}, 1), ({"older_than_days": 0}, 1)):
            assert (await told(client, "memory_clear", user_id="alice", **narrowed))["deleted_count"] == number


@pytest.mark.parametrize("made_up", [{"session_id": "s-1"}, {"types": ["episodic"]}, {"x" * 5000: 1}])
async def test_what_a_model_makes_up_to_narrow_a_tool_is_refused(made_up: dict[str, Any], served: Served) -> None:
    await served.api.add("User likes green tea")
    async with served.connected("secret-token") as client:
        [name] = made_up
        for tool, asked in (("memory_clear", {}), ("memory_list", {}), ("memory_search", {"query": "tea"})):
            said = await refusal(client, tool, user_id="alice", **asked, **made_up)
            assert said.endswith(f"INVALID_REQUEST: {tool} knows no argument {name[:60]}")
        assert (await told(client, "memory_list", user_id="alice"))["total"] == 1


async def test_a_whole_user_is_cleared_for_its_caller_alone_with_the_receipt_of_the_api(served: Served) -> None:
    await served.api.add("User likes green tea", key="tea")
    await served.api.add("User likes black tea", key="tea")
    await served.api.add("User likes coffee", user="bob")
    token = (await served.make(role="user", user_id="alice"))["token"]
    async with served.connected(token) as client:
        assert "NOT_FOUND" in await refusal(client, "memory_clear", user_id="bob")
        gone = await told(client, "memory_clear", purge=True)
        assert (await told(client, "memory_list"))["total"] == 0
    assert gone.pop("receipt").items() >= {"memories": 1, "versions": 1, "turns": 0}.items()
    assert gone == {"deleted_count": 1, "pending": False, "purged": True}
    async with served.connected("secret-token") as client:
        assert (await told(client, "memory_list", user_id="bob"))["total"] == 1


async def test_a_clear_that_is_pending_says_so_with_its_receipt(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any, **__: Any) -> int:
        raise StoreUnavailable("away")

    await served.api.add("User likes green tea")
    monkeypatch.setattr(served.api.store, "forget_scope", away)
    async with served.connected("secret-token") as client:
        gone = await told(client, "memory_clear", user_id="alice")
        assert (gone["deleted_count"], gone["pending"], gone["outlives_restart"]) == (0, True, True)
        assert (await told(client, "memory_list", user_id="alice"))["total"] == 0


async def test_tools_have_the_rights_of_their_caller(served: Served) -> None:
    theirs = await served.api.add("User likes coffee", user="bob")
    reader = (await served.make(role="reader", user_id="alice"))["token"]
    async with served.connected(reader) as client:
        assert (await told(client, "memory_list"))["total"] == 0
        assert "FORBIDDEN" in await refusal(client, "memory_add", content="User likes milk")
        assert "FORBIDDEN" in await refusal(client, "memory_clear")
        assert "NOT_FOUND" in await refusal(client, "memory_list", user_id="bob")
    user = (await served.make(role="user", user_id="alice"))["token"]
    async with served.connected(user) as client:
        assert "NOT_FOUND" in await refusal(client, "memory_delete", id=theirs["id"])
        assert "NOT_FOUND" in await refusal(client, "memory_delete", id=theirs["id"], user_id="bob")
    operator = (await served.make(role="operator"))["token"]
    async with served.connected(operator) as client:
        assert "FORBIDDEN" in await refusal(client, "memory_list", user_id="bob")
    async with served.connected("secret-token") as client:
        assert "MISSING_USER_ID" in await refusal(client, "memory_list")


async def test_what_a_model_adds_is_screened(served: Served) -> None:
    async with served.connected("secret-token") as client:
        secret = "User's key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
        assert "SCREENED" in await refusal(client, "memory_add", content=secret, user_id="alice")


async def test_an_odd_id_stays_one_id(served: Served) -> None:
    await served.api.add("User likes coffee", user="bob")
    async with served.connected("secret-token") as client:
        await refusal(client, "memory_delete", id="?user_id=bob", user_id="alice")
        await refusal(client, "memory_delete", id="../memory", user_id="alice")
        assert (await told(client, "memory_list", user_id="bob"))["total"] == 1


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wrong"}])
async def test_nobody_reaches_the_tools_without_a_token(served: Served, headers: dict[str, str]) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with httpx.AsyncClient(headers=headers) as http:
        assert (await http.post(f"{served.url}/mcp", json=body)).status_code == 401
        foreign = {"host": "evil.example", "authorization": "Bearer secret-token"}
        assert (await http.post(f"{served.url}/mcp", json=body, headers=foreign)).status_code == 421


def command(url: str, *more: str) -> StdioServerParameters:
    environment = {"SEMMEM_LISTENERS__API__ADMIN_TOKEN": TOKEN, "PYTHONPATH": ":".join(sys.path)}
    return StdioServerParameters(
        command=sys.executable, args=["-m", "semmem", "mcp", "--api", url, *more], env=environment
    )


async def test_a_process_speaks_it_for_one_user(tmp_path: Path) -> None:
    with running(tmp_path) as url:
        async with Client(command(url, "--user", "alice")) as client:
            assert (await told(client, "memory_list"))["memories"][0]["content"] == "User likes green tea"
            await told(client, "memory_add", content="User likes black tea")
            assert (await told(client, "memory_list"))["total"] == 2


async def test_a_semmem_that_is_away_is_said_to_the_model(tmp_path: Path) -> None:
    async with Client(command("http://127.0.0.1:9", "--user", "alice")) as client:
        assert "NO_ANSWER" in await refusal(client, "memory_list")
