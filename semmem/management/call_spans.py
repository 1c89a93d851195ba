"""A span for each call of the API, with what OpenTelemetry's conventions for HTTP servers ask: method, route, status.

Never the path or the query, though the conventions ask for them: they hold names of users and sessions, and words.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from functools import partial
from typing import Any

from semmem.ports.spans import NOT_RECORDED, Place, Span, Tracer, current

METHOD, ROUTE, STATUS = "http.request.method", "http.route", "http.response.status_code"
METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
"""Any other word is the caller's own."""
OTHER_METHOD, OTHER_NAME = "_OTHER", "HTTP"

Scope = MutableMapping[str, Any]


def begin(tracer: Tracer, scope: Scope, *, is_within: bool) -> Span:
    """``scope`` is that of ASGI. ``is_within``: a part of the call that made it, which is not the caller's own."""
    return current().step(OTHER_NAME) if is_within else tracer.begin(OTHER_NAME, partial(_place, scope))


def end(span: Span, scope: Scope, status: int) -> None:
    """What is known when the answer is out. ``status`` 0: the caller went away before."""
    if span is NOT_RECORDED:
        return
    method = scope["method"] if scope["method"] in METHODS else OTHER_METHOD
    route = getattr(scope.get("route"), "path", "")
    span.named(f"{method if method in METHODS else OTHER_NAME} {route}".rstrip())
    span.note(METHOD, method)
    if route:
        span.note(ROUTE, route)
    if status:
        span.note(STATUS, status)
    if status >= 500:
        span.failed(str(status))


def _place(scope: Scope) -> Place:
    """Where the caller stands: nowhere, where they say so more than once."""
    given: dict[bytes, list[str]] = {b"traceparent": [], b"tracestate": []}
    for name, value in scope["headers"]:
        if name in given:
            given[name].append(value.decode("latin-1"))
    parents = given[b"traceparent"]
    return Place(parents[0].strip() if len(parents) == 1 else "", ",".join(given[b"tracestate"]))
