"""The API's door and what is behind it: any call, any token, any message to the tools, any cursor, any line of an
import. Nothing reaches the last resort, nobody is let in, and alice never has a word of bob's."""

from __future__ import annotations

import asyncio
import atexit
import base64
import functools
import hashlib
import hmac
import json
import logging
import tempfile
from collections import deque
from collections.abc import Coroutine, Mapping, MutableMapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from semmem.backends.sql.journal import SqlJournal
from semmem.background import Tasks
from semmem.backup import lines
from semmem.management.mcp_doors import tools_of
from semmem.management.problems import Denied
from semmem.management.shown import Wanted, cut
from semmem.management.web_tokens import ALGORITHMS, KeysUnavailable, NotValid, VerifiedWebTokens, WebTokenRules
from semmem.memory import Memory, Scope
from tests.core.management.test_api import Api
from tests.core.management.test_roles import Guarded
from tests.core.management.test_web_tokens import jwk
from tests.fuzz.choices import Choices
from tests.support.memories import memory

SECRET = "Quagmire"
"""In everything that bob told, and in nothing else."""
THEIRS, MINE = "mem_theirs", "mem_mine"

METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS", "get", "")
ROUTES = (
    ("GET", "/v1/memory"), ("POST", "/v1/memory"), ("DELETE", "/v1/memory"), ("GET", "/v1/memory/search"),
    ("POST", "/v1/memory/search"), ("POST", "/v1/memory/preview"), ("POST", "/v1/memory/forget"),
    ("POST", "/v1/memory/consolidate"), ("POST", "/v1/memory/summarize"), ("POST", "/v1/sessions/s/end"),
    *((method, f"/v1/memory/{whose}") for method in ("GET", "PUT", "DELETE") for whose in (MINE, THEIRS)),
    *(("GET", f"/v1/memory/{whose}/history") for whose in (MINE, THEIRS)),
    ("POST", f"/v1/memory/{THEIRS}/release"), *(("POST", f"/v1/memory/{whose}/undo") for whose in (MINE, THEIRS)),
    ("POST", "/v1/tokens"), ("DELETE", "/v1/tokens"), ("POST", "/v1/import"), ("POST", "/v1/backup"),
    ("POST", "/v1/memory/reindex"),
)  # fmt: skip
PATHS = (
    "/v1/whoami", "/v1/tokens", "/v1/users", "/v1/export", "/v1/erasures", "/v1/status", "/v1/config", "/v1/health",
    "/openapi.json", "/mcp", "/v1/memory/", "/", "/v1/memory/..", "/v1//memory", "//v1/memory", "/V1/memory",
    "/v1/memory/%2e%2e/tokens", f"/v1/memory/{MINE};x={THEIRS}", f"/v1/memory/{MINE}/../{THEIRS}", "*", "http://a/",
)  # fmt: skip
NAMES = (
    "user_id", "limit", "offset", "page", "cursor", "q", "type", "status", "topic", "project_id", "session_id", "stats",
    "threshold", "strategy", "older_than_days", "after", "query", "content", "key", "metadata", "importance", "types",
    "expires_at", "override_screen", "merge_metadata", "text", "similarity_min", "dry_run", "messages", "role", "label",
)  # fmt: skip
VALUES = (
    "alice", "bob", "1", "-1", "0", "1e400", "nan", "inf", "99999999999999999999", "true", "null", "semantic", "active",
    "factual", "cosine", "2026-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "*", "\x00",
    "\u202e", "\ud83d", "a" * 300, "' or 1=1 --", '"', "%", "../bob", "{}", "[]", SECRET[:4], "mem_theirs", "",
)  # fmt: skip
TOOLS = ("memory_search", "memory_add", "memory_list", "memory_update", "memory_delete", "memory_clear", "none")
FRAGMENTS = (
    *(f'"{name}":'.encode() for name in NAMES),
    *(json.dumps(value).encode() for value in VALUES),
    b"{", b"}", b"[", b"]", b",", b"1", b"-1", b"1e400", b"NaN", b"null", b"true", b"[" * 900, b'{"a":' * 300,
    b"1" * 5000, rb'"\ud83d"', b"\xff", b"\xef\xbb\xbf",
    b'{"role":"user","content":"x"}', b'"metadata":{"standing":"must"}',
    b'{"user_id":"bob","content":"User likes tea"}',
)  # fmt: skip
HEADERS = (
    (b"host", b"localhost"), (b"host", b"evil.example"), (b"origin", b"http://evil.example"), (b"origin", b"null"),
    (b"content-length", b"99999999999999999999"), (b"content-length", b"-1"), (b"transfer-encoding", b"chunked"),
    (b"content-encoding", b"gzip"), (b"x-user-id", b"bob"), (b"X-User-Id", b"bob"), (b"x_user_id", b"bob"),
    (b"authorization", b"Bearer secret-tokem"), (b"authorization", b"\xff"), (b"content-type", b"text/plain"),
    (b"x-http-method-override", b"DELETE"), (b"x-forwarded-for", b"127.0.0.1"), (b"accept", b"text/event-stream"),
    (b"mcp-session-id", b"a"), (b"mcp-protocol-version", b"1"), (b"last-event-id", b"1"), (b"cookie", b"a=b"),
)  # fmt: skip
USUAL = ((b"host", b"localhost"), (b"content-type", b"application/json"), (b"accept", b"*/*"))
CALLERS = ("alice", "alice", "alice", "reader", "operator", "nobody", "made up", "alice")
STATUSES = {200, 201, 202, 204, 307, 400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 421, 422, 429}
LET_IN = {200, 201, 202, 204}


# --- calls of the API ------------------------------------------------------------------------------------------------


@dataclass
class Answer:
    status: int = 0
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()


def call(data: bytes) -> None:
    """The target: one call of the REST API, by nobody or by somebody who may not do everything."""
    choices, world = Choices(data), _world()
    caller = choices.one_of(CALLERS)
    method, path = choices.one_of(ROUTES) if choices.below(4) else (choices.one_of(METHODS), _path(choices))
    query = "&".join(f"{choices.one_of(NAMES)}={_escaped(_value(choices))}" for _ in range(choices.below(4)))
    headers = [choices.one_of(HEADERS) for _ in range(choices.below(3))]
    _judge(world, caller, path, _asked(world, caller, method, path, query, headers, _body(choices)))


def tool(data: bytes) -> None:
    """The target: one message to the tools, of alice's or of nobody's."""
    choices, world = Choices(data), _world()
    caller = choices.one_of(CALLERS)
    if choices.below(4) == 3:
        body = choices.rest() if choices.below(2) == 0 else choices.joined(FRAGMENTS)
    else:
        asked = {choices.one_of((*NAMES, "id", "max_tokens")): _json_value(choices) for _ in range(choices.below(5))}
        method = choices.one_of(("tools/call", "tools/call", "tools/list", "initialize", "ping", "resources/read"))
        params = {"name": choices.one_of(TOOLS), "arguments": asked}
        body = json.dumps({"jsonrpc": "2.0", "id": _json_value(choices), "method": method, "params": params}).encode()
    headers = [choices.one_of(HEADERS) for _ in range(choices.below(2))]
    _judge(world, caller, "/mcp", _asked(world, caller, "POST", "/mcp", "", headers, body))


def _asked(
    world: World, caller: str, method: str, path: str, query: str, more: list[tuple[bytes, bytes]], body: bytes
) -> Answer:
    headers = list(more)
    if token := world.tokens.get(caller):
        headers.append((b"authorization", f"Bearer {token}".encode()))
    for name, value in USUAL:
        if name not in dict(more):
            headers.append((name, value))
    if b"content-length" not in dict(more):
        headers.append((b"content-length", str(len(body)).encode()))
    answer: Answer = _run(world.call(method, path, query.encode("latin-1", "replace"), headers, body))
    return answer


def _judge(world: World, caller: str, path: str, answer: Answer) -> None:
    assert answer.status in STATUSES, (answer.status, world.words.kept)
    assert not world.words.kept, world.words.kept
    assert SECRET.encode() not in answer.body
    assert SECRET.encode() not in b"".join(value for _, value in answer.headers)
    if answer.status >= 400 and path != "/mcp" and answer.body:
        assert b'"code"' in answer.body, answer.body
    if caller in ("nobody", "made up") and path != "/openapi.json":
        assert answer.status not in LET_IN
    world.check_bob()


def _path(choices: Choices) -> str:
    return choices.one_of(PATHS) if choices.below(4) else "/" + choices.text()


def _value(choices: Choices) -> str:
    return choices.one_of(VALUES) if choices.below(4) else choices.text()


def _json_value(choices: Choices) -> Any:
    return choices.one_of((_value(choices), 1, -1, 1e308, True, None, [], {}, ["bob"], {"user_id": "bob"}, 10**30))


def _escaped(value: str) -> str:
    return "".join(f"%{byte:02x}" for byte in value.encode("utf-8", "surrogatepass"))


def _body(choices: Choices) -> bytes:
    match choices.below(4):
        case 0:
            return b""
        case 1:
            return choices.rest()
        case 2:
            return choices.joined(FRAGMENTS)
    told = {choices.one_of(NAMES): _json_value(choices) for _ in range(choices.below(6))}
    return json.dumps(told).encode()


# --- tokens, cursors, lines ------------------------------------------------------------------------------------------

PARTS = (
    b'{"alg":"RS256","kid":"1"}', b'{"alg":"none"}', b'{"alg":"HS256","kid":"1"}', b'{"alg":"RS256"}',
    b'{"alg":"PS256","kid":"2"}', b'{"alg":"RS256","kid":"1","jwk":{},"jku":"http://127.0.0.1:1/k","x5c":["AA"]}',
    b'{"alg":"RS256","kid":"1","b64":false,"crit":["b64"]}', b'{"alg":"RS256","kid":"1","zip":"DEF"}',
    b'{"sub":"bob","iss":"https://id.example","aud":"semmem","exp":4000000000}', b'{"exp":1e400}', b"{}", b"[]",
    b"null", b"[" * 4000, b"\xff", b'{"alg":["RS256"],"kid":[]}', b'{"alg":"RS256","kid":' + b"9" * 4500 + b"}",
)  # fmt: skip
JWK_PARTS: tuple[dict[str, Any], ...] = (
    {"kty": "RSA"}, {"kty": "EC", "crv": "P-256"}, {"kty": "OKP", "crv": "Ed25519"}, {"kty": "oct", "k": "YQ"},
    {"n": "AQAB"}, {"e": "AQAB"}, {"x": "AA"}, {"y": 5}, {"kid": []}, {"alg": "RS256"}, {"alg": ["RS256"]},
    {"use": "enc"}, {"n": ""}, {"e": "AA"}, {"x": "!!"}, {"crv": None}, {"d": "AA"},
)  # fmt: skip


def web_token(data: bytes) -> None:
    """The target: no token that the issuer did not sign names a user, whatever keys are among the issuer's."""
    choices = Choices(data)
    signing = ".".join(_unpadded(_part(choices)) for _ in range(2))
    match choices.below(4):
        case 0:
            signature = choices.take(32)
        case 1:
            signature = hmac.new(_public_pem(), signing.encode(), hashlib.sha256).digest()
        case 2:
            signature = hmac.new(json.dumps(_own_jwk()).encode(), signing.encode(), hashlib.sha256).digest()
        case _:
            signature = b""
    token = f"{signing}.{_unpadded(signature)}" if choices.below(8) else choices.text() + signing
    odd = [_odd_key(choices) for _ in range(choices.below(3))]

    async def keys() -> Mapping[str, Any]:
        return {"keys": [*odd, _own_jwk()]}

    rules = WebTokenRules(issuer="https://id.example", audience="semmem")
    try:
        user = _run(VerifiedWebTokens(keys, rules).user_of(token))
    except (NotValid, KeysUnavailable):
        return
    raise AssertionError(f"{token} is believed to be of {user}")


def _part(choices: Choices) -> bytes:
    return choices.one_of(PARTS) if choices.below(4) else choices.take(choices.below(64))


def _odd_key(choices: Choices) -> Any:
    made: dict[str, Any] = {}
    for _ in range(choices.below(5)):
        made |= choices.one_of(JWK_PARTS)
    return made if choices.below(8) else choices.one_of(("", 1, None, []))


def _unpadded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@functools.cache
def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@functools.cache
def _own_jwk() -> Mapping[str, Any]:
    assert "RS256" in ALGORITHMS["RSA"]
    return jwk(_key(), "1")


@functools.cache
def _public_pem() -> bytes:
    return _key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def cursor(data: bytes) -> None:
    """The target: a cursor shows a part of the list, or is refused."""
    choices = Choices(data)
    listed = [memory("alice", str(number), created_at=float(number)) for number in range(3)]
    raw = (
        choices.rest()
        if choices.below(2) == 0
        else choices.joined([value.encode("utf-8", "replace") for value in VALUES])
    )
    for text in (raw.decode("latin-1"), base64.urlsafe_b64encode(raw).decode()):
        try:
            page, total, _ = cut(listed, Wanted(limit=2, cursor=text))
        except Denied:
            continue
        places = [listed.index(each) for each in page]
        assert places == sorted(set(places))
        assert total == 3


LINES = (
    b'{"kind":"memory","memory":{"id":"m","version":1,"type":"semantic","content":"likes tea","user":"bob"}}',
    b'{"kind":"end","users":1,"memories":1,"versions":0}', b'{"digest":"0000000000000000",', b'"version":-1',
    b'{"kind":"semmem memories","format":1,"taken_at":0,"signature":"","dimension":3}', b'{"kind":"version","memory":',
    b'"uses":[1,2.0]', b'"embedding":"AAAAAA=="', b'"metadata":{"a":', b'"created_at":1e400', b'"expires_at":NaN',
    b'"status":"active"', b'"type":"none"', b'"user":""', b'"user":"\\u0000"', b"{", b"}", b",", b"[" * 500, b"null",
    b"\xff", b'"\\ud800"',
)  # fmt: skip


def import_line(data: bytes) -> None:
    """The target: a line of an import is read or refused, and one that is read can be written again."""
    choices = Choices(data)
    text = choices.rest() if choices.below(2) == 0 else choices.joined(LINES)
    try:
        line = lines.read_line(text)
        if isinstance(line, lines.MemoryLine | lines.VersionLine):
            read = lines.memory_of(line)
            again = lines.read_line(lines.memory_line(read))
            assert isinstance(again, lines.MemoryLine)
            assert replace(lines.memory_of(again), embedding=None) == replace(read, embedding=None)
    except lines.Unreadable as refusal:
        refusal.add_note(str(refusal))  # it can be printed


# --- made once -------------------------------------------------------------------------------------------------------


class _LastWords(logging.Handler):
    """What the last resort of the API, or of the tools, has caught."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.kept = deque[str](maxlen=1)

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append(f"{record.getMessage()} {record.exc_info}")


class World:
    """An API with every file of routes and with tools, where bob has told something and alice something else."""

    def __init__(self, api: Api, journal: SqlJournal) -> None:
        self.guarded = Guarded(api, journal)
        self.words = _LastWords()
        self.tokens = {"made up": "semmem_000000000000_" + "x" * 43}
        self.mine = self.theirs = memory("nobody")
        logging.getLogger("semmem.management.door").addHandler(self.words)

    async def open(self) -> None:
        self.mine = await self._told("alice", MINE, "User likes tea")
        self.theirs = await self._told("bob", THEIRS, f"User likes the {SECRET}")
        for role, user in (("user", "alice"), ("reader", "alice"), ("operator", None)):
            made = await self.guarded.make(role=role, **({"user_id": user} if user else {}))
            self.tokens["alice" if role == "user" else role] = made["token"]

    async def _told(self, user: str, memory_id: str, content: str) -> Memory:
        api = self.guarded.api
        told = await api.add(content, user=user)
        kept = await api.store.get(Scope(user), told["id"])
        assert kept is not None
        renamed = replace(kept, id=memory_id)
        await api.store.forget(Scope(user), kept.id)
        await api.store.put(Scope(user), renamed)
        return renamed

    async def call(
        self, method: str, path: str, query: bytes, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> Answer:
        """Over ASGI, as a server would give it."""
        self.words.kept.clear()
        answer: Answer = Answer()
        left: list[MutableMapping[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> MutableMapping[str, Any]:
            return left.pop() if left else {"type": "http.disconnect"}

        async def send(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                answer.status, answer.headers = message["status"], tuple(message["headers"])
            else:
                answer.body += message.get("body", b"")

        raw = path.encode("utf-8", "replace")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "method": method, "path": path, "raw_path": raw,
            "query_string": query, "headers": [(name.lower(), value) for name, value in headers],
            "server": ("127.0.0.1", 8080), "client": ("127.0.0.1", 1), "http_version": "1.1", "scheme": "http",
            "root_path": "", "app": self.guarded.app, "state": {},
        }  # fmt: skip
        async with asyncio.timeout(10):
            await self.guarded.app(scope, receive, send)
        return answer

    def check_bob(self) -> None:
        """What bob told is as it was; and alice's is there again for the next input."""
        assert _same(_run(self.guarded.api.store.list(Scope("bob"))), [self.theirs])
        if not _same(_run(self.guarded.api.store.list(Scope("alice"))), [self.mine]):
            _run(self._restore())

    async def _restore(self) -> None:
        store = self.guarded.api.store
        listed = await store.list(Scope("alice"), limit=100)
        for each in listed:
            await store.forget(Scope("alice"), each.id)
        await store.put(Scope("alice"), self.mine)


def _same(found: list[Memory], known: list[Memory]) -> bool:
    return [replace(each, embedding=None) for each in found] == [replace(each, embedding=None) for each in known]


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    atexit.register(loop.close)
    return loop


def _run(steps: Coroutine[Any, Any, Any]) -> Any:
    return _loop().run_until_complete(steps)


@functools.cache
def _world() -> World:
    folder = tempfile.TemporaryDirectory(prefix="semmem-fuzz-")
    atexit.register(folder.cleanup)

    async def made() -> World:
        journal = SqlJournal(Path(folder.name) / "journal.db")
        await journal.open()
        api = Api(journal)
        await api.store.open()
        world = World(api, journal)
        await world.open()
        tools, world_tasks = tools_of(world.guarded.app, body_bytes_max=1024 * 1024), Tasks()
        tools.add_to(world.guarded.app)
        world_tasks.spawn("tools", tools.run())
        await tools.ready.wait()
        return world

    world: World = _run(made())
    return world
