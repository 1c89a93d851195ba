"""What somebody who means harm tries at the API, its tools and its keys, beside what test_door and test_roles try."""

from __future__ import annotations

import argparse
import asyncio
import base64
import gzip
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.background import Tasks
from semmem.commands.asking import Api as Asking
from semmem.commands.memories import _by_id
from semmem.commands.operating import revoke
from semmem.management import segment
from semmem.management.server import HttpListener
from semmem.management.web_tokens import KeysUnavailable, NotValid, keys_at
from tests.core.management.test_api import ADMIN, Api
from tests.core.management.test_mcp import Served, refusal, served, told
from tests.core.management.test_roles import Guarded
from tests.core.management.test_web_tokens import CLAIMS, RSA, Keys, jwk, signed
from tests.support.empty_journal import empty_journal

__all__ = ["served"]  # a fixture

ODD_IDS = (".", "..", "./", "../memory", "%2e", "..%2f", "?purge=true", "#", "mem_a/../..", "\u2024", "a;b")


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Guarded]:
    journal = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await journal.open()
    api = Api(journal)
    await api.store.open()
    yield Guarded(api, journal)
    await api.client.aclose()
    await journal.close()


# --- paths -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ODD_IDS)
def test_an_id_is_one_segment_for_every_client(odd: str) -> None:
    path = httpx.Client(base_url="http://semmem").build_request("DELETE", f"/v1/memory/{segment(odd)}").url.raw_path
    assert path.startswith(b"/v1/memory/")
    assert len(path) > len(b"/v1/memory/")
    assert not set(path[len(b"/v1/memory/") :]) & set(b"/?#.")


class Asked(Asking):
    """The commands' client, which only notes where a call would go."""

    def __init__(self) -> None:
        super().__init__("http://semmem", "")
        self.paths: list[bytes] = []

    def answer(self, method: str, path: str, **_: Any) -> httpx.Response:
        self.paths.append(httpx.Request(method, self.url + path).url.raw_path)
        return httpx.Response(200, json={})


@pytest.mark.parametrize("odd", ODD_IDS)
def test_commands_ask_for_the_one_thing_they_are_told(odd: str) -> None:
    api = Asked()
    _by_id(api, {"user_id": "alice"}, [odd], purge=False)
    revoke(api, argparse.Namespace(id=odd, user=None))
    assert [path.rpartition(b"/")[0] for path in api.paths] == [b"/v1/memory", b"/v1/tokens"]


@pytest.mark.parametrize("odd", ODD_IDS)
async def test_a_tool_that_forgets_one_memory_never_forgets_all(served: Served, odd: str) -> None:
    kept = await served.api.add("User likes green tea")
    token = (await served.make(role="user", user_id="alice"))["token"]
    async with served.connected(token) as client:
        await refusal(client, "memory_delete", id=odd)
        await refusal(client, "memory_update", id=odd, content="User likes nothing")
        assert [memory["id"] for memory in (await told(client, "memory_list"))["memories"]] == [kept["id"]]


async def test_a_stream_that_is_asked_of_the_tools_does_not_hold_a_connection(served: Served) -> None:
    token = (await served.make(role="reader", user_id="alice"))["token"]
    headers = {"authorization": f"Bearer {token}", "accept": "text/event-stream, application/json"}
    async with asyncio.timeout(60), httpx.AsyncClient(headers=headers) as http:
        assert (await http.get(f"{served.url}/mcp")).status_code == 405
        assert (await http.delete(f"{served.url}/mcp")).status_code == 405


class Lines(logging.Handler):
    """What a log would show. Put on the root itself: pytest's own also hears what does not get there."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


async def test_what_a_caller_writes_to_the_tools_is_in_no_log(served: Served) -> None:
    shown = Lines()
    logging.getLogger().addHandler(shown)
    words = "Quagmire\n{'level': 'error'}"
    asked = [
        {"jsonrpc": "2.0", "method": words, "params": {"_meta": 5}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {"a": words}}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": words, "arguments": {"id": words}}},
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "memory_list", "arguments": {"type": words}},
        },
        {"jsonrpc": "2.0", "id": 1, "method": words, "params": [words]},
    ]
    headers = {"authorization": "Bearer secret-token", "accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(headers=headers) as http:
        for body in asked:
            assert (await http.post(f"{served.url}/mcp", json=body)).status_code in (200, 202, 400)
    logging.getLogger("mcp.server.runner").warning("dropped %r: malformed params", words)
    logging.getLogger().removeHandler(shown)
    assert "Quagmire" not in "".join(shown.lines)
    assert "the tools' SDK: a message in mcp.server.runner" in shown.lines


# --- others' memories ------------------------------------------------------------------------------------------------


async def test_a_cursor_of_another_users_list_shows_nothing_of_theirs(guarded: Guarded) -> None:
    for number in range(3):
        await guarded.api.add(f"User likes coffee number {number}", user="bob")
    mine = await guarded.api.add("User likes green tea")
    theirs = (await guarded.call("secret-token", "GET", "/v1/memory?user_id=bob&limit=1")).json()["next_cursor"]
    token = (await guarded.make(role="user", user_id="alice"))["token"]
    forged = [
        base64.urlsafe_b64encode(text.encode()).decode()
        for text in ("nan x", "inf ", "-inf \x00", "1e999 bob", "0 ' or 1=1", f"9e9 {mine['id']}", "9e99 ../bob")
    ]
    for cursor in (theirs, *forged):
        answer = await guarded.call(token, "GET", "/v1/memory", params={"cursor": cursor})
        assert answer.status_code in (200, 400)
        assert "coffee" not in answer.text
        assert "bob" not in answer.text


async def test_no_cache_keeps_what_is_answered(guarded: Guarded) -> None:
    await guarded.api.add("User likes green tea")
    for path in ("/v1/memory?user_id=alice", "/v1/memory/none?user_id=alice", "/v1/whoami", "/nowhere"):
        for headers in (ADMIN, dict[str, str]()):
            answer = await guarded.client.get(path, headers=headers)
            assert "no-store" in answer.headers.get_list("cache-control")
            assert answer.headers["x-content-type-options"] == "nosniff"


# --- keys and tokens -------------------------------------------------------------------------------------------------


def raw_token(header: bytes, payload: bytes = b"{}", signature: bytes = b"x") -> str:
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (header, payload, signature))


@pytest.mark.parametrize(
    "token",
    [
        raw_token(b"[" * 5000),
        raw_token(b'{"alg":' + b"[" * 5000),
        raw_token(b'{"alg":"RS256","kid":' + b"9" * 5000 + b"}"),
        raw_token(b'{"alg":"RS256","kid":null}', b"[" * 3000),
        raw_token(b'{"alg":["RS256"]}'),
        raw_token(b'{"alg":{}}'),
        raw_token(b"null"),
        raw_token(b"\xff\xfe"),
        raw_token(b'{"alg":"RS256","kid":"1","jku":"http://127.0.0.1:1/","x5u":"http://127.0.0.1:1/"}'),
        raw_token(b'{"alg":"RS256","kid":"../../etc/passwd"}'),
        raw_token(b'{"alg":"RS256","kid":"1\' or 1=1"}'),
        raw_token(b'{"alg":"RS256","kid":"1","crit":["exp"],"exp":0}'),
        "\u00e9.\u00e9.\u00e9",
        "..",
        "a.b.c" * 1600,
    ],
)
async def test_a_made_up_token_is_refused_and_breaks_nothing(token: str) -> None:
    keys = Keys(jwk(RSA, "1"))
    with pytest.raises(NotValid):
        await keys.believed().user_of(token)
    assert keys.fetched <= 2


async def test_a_token_with_a_key_of_its_own_is_not_believed() -> None:
    other = jwt.encode(dict(CLAIMS), "a" * 64, "HS256", headers={"kid": "1"})
    header = {"alg": "RS256", "kid": "1", "jwk": jwk(RSA, "1")}
    own = raw_token(json.dumps(header).encode(), json.dumps(CLAIMS).encode())
    for token in (other, own, signed() + "A", signed().rpartition(".")[0] + "."):
        with pytest.raises(NotValid):
            await Keys(jwk(RSA, "1")).believed().user_of(token)


@pytest.mark.parametrize(
    "odd",
    [
        {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
        {"kty": "RSA", "n": 5, "e": []},
        {"kty": "EC", "crv": ["P-256"], "x": "AA", "y": "AA"},
        {"kty": "OKP", "crv": "Ed25519", "x": None},
        {"kty": ["RSA"], "alg": ["RS256"]},
        {"kty": "oct", "k": "YQ"},
        {"kty": {}, "use": []},
    ],
)
async def test_an_odd_key_among_good_ones_does_no_harm(odd: dict[str, Any]) -> None:
    keys = Keys(odd | {"kid": "1"}, jwk(RSA, "1"))
    assert await keys.believed().user_of(signed()) == "alice"


async def test_keys_are_had_from_where_it_was_said_and_nowhere_else() -> None:
    asked: list[str] = []

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        await send({"type": "http.response.start", "status": 302, "headers": [(b"location", b"/elsewhere")]})
        await send({"type": "http.response.body", "body": b""})

    listener, tasks = HttpListener(app, "127.0.0.1:0"), Tasks()
    address = listener.bind()
    serving = tasks.spawn("serve", listener.serve())
    try:
        with pytest.raises(KeysUnavailable, match="HTTPStatusError"):
            await keys_at(f"http://{address}/keys")()
    finally:
        listener.stop()
        await serving
        listener.close()
    assert asked == ["/keys"]


async def test_keys_that_were_compressed_are_not_inflated() -> None:
    bomb = gzip.compress(b'{"keys": [' + b" " * 20_000_000 + b"]}")

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        headers = [(b"content-encoding", b"gzip")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": bomb})

    listener, tasks = HttpListener(app, "127.0.0.1:0"), Tasks()
    address = listener.bind()
    serving = tasks.spawn("serve", listener.serve())
    try:
        with pytest.raises(KeysUnavailable, match="no JWK set"):
            await keys_at(f"http://{address}/keys")()
    finally:
        listener.stop()
        await serving
        listener.close()
