"""A call of the API as a span: whose trace it joins, what it is named and says, and that it says nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan

from semmem.background import Tasks
from semmem.management.access import AccessRules
from semmem.management.api import create_api
from semmem.management.mcp_doors import tools_of
from semmem.ports.errors import StoreUnavailable
from semmem.ports.spans import NO_TRACER, Tracer
from tests.core.management.test_api import ADMIN, Api
from tests.core.telemetry.test_tracing import SPAN, TRACE, Traced, id_of, parent_of, trace_of

PLACE = {"traceparent": f"00-{TRACE}-{SPAN}-01"}


class Called(Traced):
    """The API of these memories, whose calls are recorded where the caller records them."""

    def __init__(self, api: Api, tracer: Tracer | None = None) -> None:
        super().__init__(ratio=0.0)
        self.app = create_api(api.memories, AccessRules(admin_token="secret-token"), tracer=tracer or self.tracer)
        transport = httpx.ASGITransport(self.app)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://semmem", headers=ADMIN)

    async def call(self, method: str, path: str, **given: Any) -> int:
        headers = PLACE | given.pop("headers", {})
        return (await self.client.request(method, path, headers=headers, **given)).status_code

    def told(self, span: ReadableSpan) -> dict[str, Any]:
        return {name.rpartition(".")[2]: value for name, value in (span.attributes or {}).items()}


@pytest.fixture
async def called(api: Api) -> AsyncIterator[Called]:
    called = Called(api)
    yield called
    await called.client.aclose()


async def test_a_call_is_a_servers_span_in_the_callers_trace_with_what_was_done_for_it_below(called: Called) -> None:
    assert await called.call("GET", "/v1/memory/mem_0?user_id=alice") == 404
    call, below = called.spans["GET /v1/memory/{memory_id}"], called.spans["get test"]
    assert (trace_of(call), parent_of(call), call.kind.name) == (TRACE, SPAN, "SERVER")
    assert (trace_of(below), parent_of(below)) == (TRACE, id_of(call))
    assert called.attributes("GET /v1/memory/{memory_id}") == {
        "http.request.method": "GET",
        "http.route": "/v1/memory/{memory_id}",
        "http.response.status_code": 404,
    }


@pytest.mark.parametrize(
    ("method", "path", "name", "status"),
    [
        ("GET", "/v1/memory/mem_zibbernut?user_id=alice", "GET /v1/memory/{memory_id}", 404),
        ("POST", "/v1/sessions/zibbernut/end", "POST /v1/sessions/{session_id:path}/end", 401),
        ("GET", "/v1/memory?user_id=zibbernut&limit=0", "GET /v1/memory", 400),
        ("GET", "/zibbernut", "GET", 404),
        ("ZIBBERNUT", "/v1/memory", "HTTP /v1/memory", 405),
    ],
)
async def test_what_a_caller_wrote_is_in_no_span(
    called: Called, method: str, path: str, name: str, status: int
) -> None:
    assert await called.call(method, path) == status
    *below, span = called.exporter.get_finished_spans()
    assert span.name == name
    assert called.told(span)["status_code"] == status
    assert [each.name for each in (*below, span) if "zibbernut" in each.to_json().lower()] == []
    assert span.status.is_ok, "a caller's own mistake is no failure of ours"


async def test_who_is_not_let_in_has_a_span_too_and_a_failure_is_one(
    called: Called, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("User is allergic to zibbernuts")

    assert await called.call("GET", "/v1/memory", headers={"authorization": "Bearer nobody's"}) == 401
    monkeypatch.setattr(api.memories.store, "get", away)
    assert await called.call("GET", "/v1/memory/mem_0?user_id=alice") == 503
    refused, *_, failed = called.exporter.get_finished_spans()
    assert (refused.name, called.told(refused)["status_code"], refused.status.is_ok) == ("GET", 401, True)
    assert (called.told(failed)["type"], failed.status.is_ok) == ("503", False)
    assert "zibbernut" not in failed.to_json()


async def test_the_callers_word_decides_and_two_places_are_none(called: Called) -> None:
    await called.call("GET", "/v1/memory?user_id=a", headers={"traceparent": PLACE["traceparent"][:-1] + "0"})
    twice = [*ADMIN.items(), *PLACE.items(), *PLACE.items()]
    await called.client.get("/v1/memory?user_id=a", headers=twice)
    assert called.spans == {}


async def test_where_nobody_collects_traces_the_caller_is_not_even_read(api: Api) -> None:
    quiet = Called(api, NO_TRACER)
    assert await quiet.call("GET", "/v1/memory?user_id=a") == 200
    assert quiet.spans == {}
    await quiet.client.aclose()


async def test_the_calls_of_a_tool_are_below_the_call_that_asked_for_it(called: Called) -> None:
    tools, tasks = tools_of(called.app, body_bytes_max=1024 * 1024), Tasks()
    tools.add_to(called.app)
    tasks.spawn("tools", tools.run())
    await tools.ready.wait()
    asked = {"name": "memory_list", "arguments": {"user_id": "zibbernut"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
    accepts = {"accept": "application/json, text/event-stream"}
    assert await called.call("POST", "/mcp", json=message, headers=accepts) == 200
    await tasks.cancel()
    outer, inner = called.spans["POST /mcp"], called.spans["GET /v1/memory"]
    assert (parent_of(outer), parent_of(inner), inner.kind.name) == (SPAN, id_of(outer), "INTERNAL")
    assert [name for name, span in called.spans.items() if "zibbernut" in span.to_json()] == []
