"""The API's door: what is looked at before a body is read, as ASGI and as bytes on a socket."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from semmem.background import Tasks
from semmem.management.access import AccessRules
from semmem.management.api import create_api
from semmem.management.door import DoorRules, host_name
from semmem.management.server import HttpListener, create_health
from tests.core.management.test_api import ADMIN, Api
from tests.support.cpu_time import of_this_machine

TOKEN = (b"authorization", b"Bearer secret-token")
LOCAL = (b"host", b"localhost:8080")
MIB = 1024 * 1024
Headers = Sequence[tuple[bytes, bytes]]


class Call:
    """One call of an ASGI application: what it was given of the body, and what it answered."""

    def __init__(self) -> None:
        self.reads = 0
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.body = b""

    @property
    def code(self) -> str:
        code: str = json.loads(self.body)["error"]["code"]
        return code


async def call(
    app: Any,
    headers: Headers,
    *,
    method: str = "GET",
    path: str = "/v1/memory",
    query: bytes = b"",
    chunks: Sequence[bytes] = (),
    endless: bool = False,
    server: tuple[str, int] = ("127.0.0.1", 8080),
) -> Call:
    made, left = Call(), list(chunks)

    async def receive() -> dict[str, Any]:
        made.reads += 1
        if endless:
            await asyncio.sleep(0)
            return {"type": "http.request", "body": b"[" * 65536, "more_body": True}
        return {"type": "http.request", "body": left.pop(0) if left else b"", "more_body": bool(left)}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            made.status, made.headers = message["status"], dict(message["headers"])
        else:
            made.body += message.get("body", b"")

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": list(headers),
        "server": server,
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
    }
    await app(scope, receive, send)
    return made


# --- who calls, before what is said ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ((b"authorization", b"Bearer wrong"),),
        (TOKEN, TOKEN),
        (TOKEN, (b"Authorization", b"Bearer other")),
        ((b"authorization", b"\xff\xfe"),),
        ((b"x-user-id", b"alice"), (b"x-user-id", b"mallory")),
        ((b"x-user-id", b"a" * 257),),
        ((b"x-user-id", b"a\x7fb"),),
        ((b"x-forwarded-user", b"alice"),),
    ],
    ids=["nobody", "wrong", "twice", "two", "bytes", "named twice", "long", "control", "other header"],
)
async def test_the_body_of_nobody_is_not_read(api: Api, headers: Headers) -> None:
    made = await call(api.app, (LOCAL, *headers), method="POST", endless=True)
    assert (made.status, made.code, made.reads) == (401, "UNAUTHENTICATED", 0)
    assert made.headers[b"connection"] == b"close"
    assert made.headers[b"www-authenticate"] == b"Bearer"


async def test_a_body_without_end_stops_at_the_limit(api: Api) -> None:
    for headers in ((), ((b"transfer-encoding", b"chunked"),)):
        made = await call(api.app, (LOCAL, TOKEN, *headers), method="POST", endless=True)
        assert (made.status, made.code) == (413, "BODY_TOO_LARGE")
        assert made.reads <= MIB // 65536 + 1
        assert made.headers[b"connection"] == b"close"


@pytest.mark.parametrize("length", [b"1048577", b"9" * 30, b"-1", b"1e3", "²".encode()])
async def test_a_body_that_is_announced_too_long_is_not_read(api: Api, length: bytes) -> None:
    made = await call(api.app, (LOCAL, TOKEN, (b"content-length", length)), method="POST", endless=True)
    assert (made.status, made.reads) == (413, 0)


async def test_the_longest_body_is_read_whole_and_in_pieces(api: Api) -> None:
    content = json.dumps({"content": "User likes tea", "user_id": "alice"}).encode().ljust(MIB)
    chunks = [content[at : at + 70_000] for at in range(0, MIB, 70_000)]
    head = (LOCAL, TOKEN, (b"content-type", b"application/json"))
    assert (await call(api.app, head, method="POST", chunks=chunks)).status == 201
    assert (await call(api.app, head, method="POST", chunks=[*chunks, b" "])).status == 413


def extra(number: int) -> bytes:
    return json.dumps({"content": "x", **{f"k{at}": 1 for at in range(number)}}, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "body",
    [
        extra(90_000),
        b'{"metadata": {"a": [' + b"[]," * 300_000 + b"1]}}",
        b'{"messages": [{' + b'"a":1,' * 100_000,
        b"[" * 1_000_000,
        b'"' + b'\\"' * 500_000,
        b'"' * 1_000_000 + b"\\",
        b'{"a":' * 200_000,
    ],
    ids=["keys", "lists", "messages", "deep", "quotes", "more quotes", "deep objects"],
)
async def test_the_worst_bodies_are_refused_without_holding_up_others(api: Api, body: bytes) -> None:
    head = (LOCAL, TOKEN, (b"content-type", b"application/json"))
    assert len(body) <= MIB
    took = []
    for _ in range(3):  # the least: a collection or a busy machine is nobody's body
        started = time.process_time()
        made = await call(api.app, head, method="POST", chunks=[body])
        took.append(time.process_time() - started)
        assert (made.status, made.code) == (400, "INVALID_REQUEST")
    assert min(took) < of_this_machine(0.4)  # where every key became an object and an error: 0.8 s


async def test_an_answer_names_a_few_of_many_wrong_fields(api: Api) -> None:
    head = (LOCAL, TOKEN, (b"content-type", b"application/json"))
    made = await call(api.app, head, method="POST", chunks=[extra(900)])
    assert b"896 more" in made.body
    assert len(made.body) < 800


async def test_values_are_counted_and_commas_in_texts_are_none(api: Api) -> None:
    head = (LOCAL, TOKEN, (b"content-type", b"application/json"))
    said = json.dumps({"query": 'a, "b", ' * 2000, "user_id": "alice"}).encode()
    assert (await call(api.app, head, method="POST", path="/v1/memory/preview", chunks=[said])).status == 200
    for number, word in ((999, b"Extra inputs"), (1000, b"may hold 1000 values")):
        assert word in (await call(api.app, head, method="POST", chunks=[extra(number)])).body


async def test_what_has_no_comma_beside_it_is_a_value_too(api: Api) -> None:
    head = (LOCAL, TOKEN, (b"content-type", b"application/json"))
    deep = b'{"content":"x","metadata":{"a":[' + b"[" * 1000 + b"]" * 1000 + b"]}}"
    assert b"may hold 1000 values" in (await call(api.app, head, method="POST", chunks=[deep])).body


async def test_a_body_that_does_not_come_is_not_waited_for(api: Api) -> None:
    app = create_api(api.memories, AccessRules(admin_token="secret-token"), door=DoorRules(body_timeout_s=0.05))
    answered: list[Any] = []

    async def never() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        answered.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/memory", "headers": [LOCAL, TOKEN], "query_string": b""}
    await app(scope | {"server": ("127.0.0.1", 1)}, never, send)
    assert answered[0]["status"] == 408
    assert json.loads(answered[1]["body"])["error"]["code"] == "REQUEST_TIMEOUT"


async def test_a_failure_nobody_expected_has_the_shape_of_every_error(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("alice likes tea")

    api.store.get = broken  # type: ignore[method-assign]
    response = await api.client.get("/v1/memory/mem_1", params={"user_id": "alice"}, headers=ADMIN)
    assert (response.status_code, response.json()["error"]["code"]) == (500, "INTERNAL")
    assert "RuntimeError" in caplog.text
    assert "alice" not in caplog.text + response.text
    counted = {"route": "/v1/memory/{memory_id}", "status": "500"}
    assert api.metrics.registry.get_sample_value("semmem_api_requests_total", counted) == 1


async def test_the_description_is_open_to_all_but_takes_no_body(api: Api) -> None:
    assert (await call(api.app, (LOCAL,), path="/openapi.json")).status == 200
    for more in ((b"content-length", b"5"), (b"transfer-encoding", b"chunked")):
        made = await call(api.app, (LOCAL, more), path="/openapi.json", endless=True)
        assert (made.status, made.reads) == (400, 0)
    assert (await call(api.app, (LOCAL,), path="/openapi.json", method="POST")).status == 401
    assert (await call(api.app, (LOCAL,), path="/openapi.json/../v1/memory")).status == 401


async def test_a_websocket_is_closed(api: Api) -> None:
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    await api.app({"type": "websocket", "path": "/v1/memory", "headers": []}, receive, send)
    assert said == [{"type": "websocket.close", "code": 1008}]


# --- identity --------------------------------------------------------------------------------------------------------


async def test_a_name_is_read_as_envoys_door_reads_it(api: Api) -> None:
    await api.add("User likes tea", user="jürgen")
    head = (LOCAL, (b"x-user-id", "jürgen".encode()))
    made = await call(api.app, head, query=b"user_id=j%C3%BCrgen")
    assert [memory["user_id"] for memory in json.loads(made.body)["memories"]] == ["jürgen"]
    assert json.loads((await call(api.app, head, method="DELETE")).body)["deleted"] == 1


async def test_no_header_is_believed_unless_this_listener_says_so(api: Api) -> None:
    app = create_api(api.memories, AccessRules(admin_token="secret-token"))
    for name in (b"x-user-id", b"x-authz-user-id", b"x-jwt-sub", b"x-forwarded-user"):
        assert (await call(app, (LOCAL, (name, b"alice")))).status == 401


# --- host and origin -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost", "localhost"),
        ("LOCALHOST.:8080", "localhost"),
        ("127.0.0.1:1", "127.0.0.1"),
        ("[::1]:8080", "::1"),
        ("[0:0:0:0:0:0:0:1]", "::1"),
        ("[::ffff:127.0.0.1]:80", "127.0.0.1"),
        ("evil.example", "evil.example"),
        ("::1", ""),
        ("localhost:8080:1", ""),
        ("user@localhost", ""),
        ("localhost/", ""),
        ("localhost evil.example", ""),
        ("localhost,evil.example", ""),
        ("", ""),
    ],
)
def test_the_name_in_a_host_header(header: str, name: str) -> None:
    assert host_name(header) == name


@pytest.mark.parametrize(
    "host", [b"localhost", b"127.0.0.1:8080", b"[::1]:8080", b"10.1.2.3:8080", b"a.internal", b"svc"]
)
async def test_calls_to_this_machine_its_address_and_allowed_names_are_served(api: Api, host: bytes) -> None:
    rules = DoorRules(allowed_hosts=("*.internal", "svc"))
    app = create_api(api.memories, AccessRules(admin_token="secret-token"), door=rules)
    made = await call(app, ((b"host", host), TOKEN), query=b"user_id=a", server=("10.1.2.3", 8080))
    assert made.status == 200


@pytest.mark.parametrize(
    "hosts",
    [
        (b"evil.example",),
        (b"localhost.evil.example",),
        (b"internal",),
        (b"evilinternal",),
        (b"localhost", b"localhost"),
        (b"localhost@evil.example",),
        (b"10.1.2.4",),
        (b"",),
        (),
    ],
)
async def test_calls_to_any_other_host_are_misdirected(api: Api, hosts: tuple[bytes, ...]) -> None:
    rules = DoorRules(allowed_hosts=("*.internal",))
    app = create_api(api.memories, AccessRules(admin_token="secret-token"), door=rules)
    head = [TOKEN, *((b"host", host) for host in hosts)]
    made = await call(app, head, method="POST", endless=True, server=("10.1.2.3", 8080))
    assert (made.status, made.code, made.reads) == (421, "HOST_NOT_ALLOWED", 0)


@pytest.mark.parametrize(
    ("origins", "status"),
    [
        ((b"http://localhost:8080",), 200),
        ((b"https://LOCALHOST:8080",), 200),
        ((b"https://studio.internal",), 200),
        ((b"http://studio.internal",), 403),
        ((b"http://localhost:3000",), 403),
        ((b"http://localhost",), 403),
        ((b"https://evil.example",), 403),
        ((b"null",), 403),
        ((b"",), 403),
        ((b"file://localhost:8080",), 403),
        ((b"http://localhost:8080", b"http://localhost:8080"), 403),
    ],
)
async def test_only_pages_of_its_own_and_of_allowed_origins_may_call(
    api: Api, origins: tuple[bytes, ...], status: int
) -> None:
    rules = DoorRules(allowed_origins=("https://studio.internal",))
    app = create_api(api.memories, AccessRules(admin_token="secret-token"), door=rules)
    head = [LOCAL, TOKEN, *((b"origin", origin) for origin in origins)]
    assert (await call(app, head, query=b"user_id=a")).status == status


async def test_the_target_of_a_call_is_a_path(api: Api) -> None:
    for target in ("http://evil.example/v1/memory", "*", "localhost:8080"):
        made = await call(api.app, (LOCAL, TOKEN), path=target)
        assert (made.status, made.code) == (400, "INVALID_REQUEST")


# --- on a socket -----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def listening(app: Any, **limits: Any) -> AsyncIterator[tuple[str, int]]:
    listener = HttpListener(app, "127.0.0.1:0", **limits)
    host, _, port = listener.bind().rpartition(":")
    tasks = Tasks()
    serving = tasks.spawn("listener", listener.serve())
    try:
        while not listener._server.started:
            await asyncio.sleep(0.01)
        yield host, int(port)
    finally:
        listener.stop()
        await asyncio.wait({serving}, timeout=60.0)
        listener.close()


async def said_to(where: tuple[str, int], sent: bytes, *, within_s: float = 20.0) -> bytes:
    """Everything that is answered until the other side closes."""
    reader, writer = await asyncio.open_connection(*where)
    try:
        async with asyncio.timeout(within_s):
            try:
                writer.write(sent)
                await writer.drain()
            except ConnectionError:
                pass
            return await until_closed(reader)
    finally:
        writer.close()


async def until_closed(reader: asyncio.StreamReader) -> bytes:
    kept = bytearray()
    try:
        while piece := await reader.read(65536):
            kept += piece
    except ConnectionError:
        pass
    return bytes(kept)


def no_page(_accept: str) -> tuple[bytes, str]:
    return b"", "text/plain"


CREATE = b"POST /v1/memory HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
LIST = b"GET /v1/memory?user_id=alice HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer secret-token\r\n\r\n"
SIGNED = CREATE + b"authorization: Bearer secret-token\r\n"


@pytest.mark.parametrize("framing", [b"content-length: 209715200\r\n\r\n", b"transfer-encoding: chunked\r\n\r\n"])
async def test_200_megabytes_of_nobody_are_answered_and_not_read(api: Api, framing: bytes) -> None:
    async with (
        listening(api.app) as where,
        listening(create_health(dict, no_page)) as health,
        httpx.AsyncClient(base_url=f"http://{health[0]}:{health[1]}", trust_env=False) as probe,
    ):
        before_mib, peak_mib = rss_mib(), 0
        pouring = Tasks().spawn("pour", asyncio.to_thread(pour, where, CREATE + framing))
        while not pouring.done():
            assert (await probe.get("/healthz")).status_code == 200
            peak_mib = max(peak_mib, rss_mib())
            await asyncio.sleep(0.01)
        poured, answer = pouring.result()
    print(f"\npoured {poured / MIB:.1f} MiB, memory {peak_mib - before_mib:+} MiB")
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert poured < 20 * MIB
    assert peak_mib - before_mib < 50


def pour(where: tuple[str, int], head: bytes) -> tuple[int, bytes]:
    """Send as a plain client does, whatever is said meanwhile; how much went, and the answer."""
    poured, chunk = 0, b"10000\r\n" + b"[" * 65536 + b"\r\n"
    with socket.create_connection(where, timeout=30) as sending:
        sending.sendall(head)
        try:
            while poured < 200 * MIB:
                poured += sending.send(chunk)
        except ConnectionError:
            pass
        return poured, sending.recv(4096)


def rss_mib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 // MIB


@pytest.mark.parametrize(
    ("sent", "statuses"),
    [
        (CREATE + b"content-length: 5\r\n\r\n" + LIST, [401]),
        (CREATE + b"content-length: 0\r\n\r\n" + LIST, [401]),
        (CREATE + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n" + LIST, [401]),
        (SIGNED + b"content-length: 2\r\n\r\n{}" + LIST[:-2] + b"connection: close\r\n\r\n", [400, 200]),
        (SIGNED + b"content-length: 2000000\r\n\r\n" + LIST, [413]),
        (SIGNED + b"transfer-encoding: chunked\r\n\r\nzz\r\n" + LIST, [400]),
        (SIGNED + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}" + LIST, [400]),
        (SIGNED + b"content-length: 2\r\nhost: evil\r\n\r\n{}" + LIST, [400]),
        (LIST.replace(b"host: localhost\r\n", b""), [400]),
        (LIST.replace(b"HTTP/1.1\r\nhost: localhost", b"HTTP/1.0\r\nx: y"), [421]),
        (LIST.replace(b"HTTP/1.1", b"HTTP/1.0"), [200]),
        (LIST.replace(b" /v1", b" http://evil.example/v1")[:-2] + b"\r\n", [400]),
        (LIST.replace(b"Bearer secret-token", b"Bearer\r\n secret-token")[:-2] + b"connection: close\r\n\r\n", [200]),
        (LIST.replace(b"authorization: Bearer secret-token", b"authorization : Bearer secret-token"), [400]),
        (LIST[:-2] + b"authorization: Bearer secret-token\r\n\r\n", [401]),
        (LIST[:-2] + b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: a\r\n\r\n", []),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400]),
        (b"GET /" + b"a" * 100_000, [400]),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", [400]),
    ],
)
async def test_what_is_smuggled_is_answered_once_and_never_as_somebody(
    api: Api, sent: bytes, statuses: list[int]
) -> None:
    async with listening(api.app, head_timeout_s=0.5) as where:
        answered = await said_to(where, sent)
    seen = [int(part[:3]) for part in answered.split(b"HTTP/1.1 ")[1:]]
    if statuses:
        assert seen == statuses
    else:  # an upgrade is not understood: an ordinary call, or none
        assert b"101" not in answered
    for part in answered.split(b"HTTP/1.1 ")[1:]:
        if not part.startswith(b"200"):
            assert set(json.loads(part.partition(b"\r\n\r\n")[2])["error"]) == {"code", "message"}


async def test_a_caller_that_expects_100_continue_is_told_before_it_sends(api: Api) -> None:
    async with listening(api.app) as where:
        answered = await said_to(where, CREATE + b"expect: 100-continue\r\ncontent-length: 209715200\r\n\r\n")
    assert answered.startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("sent", [b"", b"GET /v1/mem", LIST + b"GET /v1/mem", b"\r\n"])
async def test_a_connection_without_a_head_is_closed(api: Api, sent: bytes) -> None:
    async with listening(api.app, head_timeout_s=0.2) as where:
        answered = await said_to(where, sent)
    assert answered.count(b"HTTP/1.1 200") == sent.count(LIST)


async def test_a_head_that_comes_byte_by_byte_does_not_keep_a_connection(api: Api) -> None:
    async with listening(api.app, head_timeout_s=0.3) as where:
        reader, writer = await asyncio.open_connection(*where)
        async with asyncio.timeout(20):
            try:
                for byte in b"GET /v1/memory HTTP/1.1\r\nx: " + b"y" * 10_000:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(0.02)
                raise AssertionError("it was kept")
            except ConnectionError:
                pass
        assert await until_closed(reader) == b""
        writer.close()


async def test_a_call_that_takes_long_is_not_cut_off(api: Api) -> None:
    class Slow:
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await asyncio.sleep(1.0)
            await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
            await send({"type": "http.response.body", "body": b"done"})

    async with listening(Slow(), head_timeout_s=0.2) as where:
        assert (await said_to(where, LIST)).endswith(b"done\r\n0\r\n\r\n")


async def test_more_connections_than_allowed_are_closed_and_the_others_served(api: Api) -> None:
    async with listening(api.app, connections_max=3) as where:
        kept = [await asyncio.open_connection(*where) for _ in range(3)]
        async with asyncio.timeout(20):
            while (await said_to(where, LIST)) != b"":
                await asyncio.sleep(0.05)
        reader, writer = kept[0]
        writer.write(LIST)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        for _, each in kept:
            each.close()
        async with asyncio.timeout(20):
            while not (await said_to(where, LIST[:-2] + b"connection: close\r\n\r\n")).startswith(b"HTTP/1.1 200"):
                await asyncio.sleep(0.05)


async def test_health_takes_no_body() -> None:
    app = create_health(dict, no_page)
    for framing in (b"content-length: 209715200\r\n\r\n", b"transfer-encoding: chunked\r\n\r\n"):
        for method in (b"GET", b"POST"):
            async with listening(app) as where:
                answered = await said_to(where, method + b" /healthz HTTP/1.1\r\nhost: pod\r\n" + framing)
            assert answered.startswith(b"HTTP/1.1 413 ")


async def test_an_ipv6_address_is_its_own_host(api: Api) -> None:
    listener = HttpListener(api.app, "[::1]:0")
    port = int(listener.bind().rpartition(":")[2])
    tasks = Tasks()
    serving = tasks.spawn("listener", listener.serve())
    while not listener._server.started:
        await asyncio.sleep(0.01)
    asked = LIST.replace(b"localhost", f"[::1]:{port}".encode())[:-2] + b"connection: close\r\n\r\n"
    assert (await said_to(("::1", port), asked)).startswith(b"HTTP/1.1 200 ")
    listener.stop()
    await asyncio.wait({serving}, timeout=60.0)
    listener.close()
