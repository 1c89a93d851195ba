"""What every call of the API passes before anything of its body is read: host, origin, token, then a bounded body.

A browser that was led here (DNS rebinding, another page's script) names a host or an origin that is not ours. A caller
who is nobody costs the reading of a head: the answer is given at once and the connection closed, whatever follows.
"""

import asyncio
import ipaddress
import logging
import re
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from semmem.dialects.parsing import holds_more_than
from semmem.management.access import CALLER, TOUCHED, AccessRules, RateLimits, authenticate
from semmem.management.audit import Audit
from semmem.management.idempotency import Call, Idempotency, Run
from semmem.management.problems import Denied, denial, error
from semmem.ports.events import Announce, ApiAnswered
from semmem.ports.spans import NO_TRACER, NOT_RECORDED, Place, Span, Tracer, current
from semmem.request.head import RequestHead, read_headers

log = logging.getLogger(__name__)

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
OPEN_PATHS = frozenset({"/", "/openapi.json"})
OPEN_FOLDER = "/studio"
"""What anybody may read, without a body: the description of the API and the Studio's files hold nothing of anybody."""
CLOSE = {"connection": "close"}
KEPT_BY_NOBODY = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""On every answer that says nothing of that itself: a cache between this API and a proxy that names users in a header
would tell one what is another's."""

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9_.-]{1,253})(?::[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class DoorRules:
    """``allowed_hosts`` beside the loopback names and the address that a call came to: names without a port, ``*.``
    before one for every name below it. ``allowed_origins`` beside the API's own: ``scheme://host[:port]``.
    ``body_values_max``: members and elements in a JSON body, at any depth."""

    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    body_bytes_max: int = 1024 * 1024
    body_values_max: int = 1000
    body_timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Guards:
    """``limits``: how often a caller may call. ``idempotency``: what knows calls by their keys; None: keys count for
    nothing. ``audit``: who did what, to be read later; None: nobody wants to know."""

    limits: RateLimits = field(default_factory=RateLimits)
    idempotency: Idempotency | None = None
    audit: Audit | None = None

    async def call(self, call: Call, scope: Scope, run: Run, send: Send) -> None:
        """Run a call of a caller who was let in; ``scope`` is that of ASGI. Raises Denied."""
        scope[TOUCHED] = call.users
        once = run if self.idempotency is None else partial(self.idempotency.call, call, run)
        if self.audit is None:
            await once(send)
        else:
            await self.audit.call(call, scope, once, send)


@dataclass(eq=False)
class Door:
    """ASGI middleware. ApiAnswered is announced for every answer; each call is a span of ``tracer``'s."""

    app: ASGIApp
    _: KW_ONLY
    rules: DoorRules
    access: AccessRules
    announce: Announce
    guards: Guards
    tracer: Tracer = NO_TRACER

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # nothing here speaks it, and nobody was asked who they are
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        is_within = CALLER in scope  # a part of the call that made it, which is not the caller's own
        with current().step(OTHER_NAME) if is_within else self.tracer.begin(OTHER_NAME, partial(_place, scope)) as span:
            await self._counted(scope, receive, send, span)

    async def _counted(self, scope: Scope, receive: Receive, send: Send, span: Span) -> None:
        status = 0

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status, told = int(message["status"]), list(message.get("headers", ()))
                said = {name.lower() for name, _ in told}
                told += [(name, value) for name, value in KEPT_BY_NOBODY if name not in said]
                message = {**message, "headers": told}
            await send(message)

        try:
            await self._answer(scope, receive, counted)
        except Exception as failure:  # the one last resort: no stack, no content, the shape of every error
            log.error("an API call failed: %s", type(failure).__name__)
            if not status:
                await error("INTERNAL", "semmem could not answer this", CLOSE)(scope, receive, counted)
        finally:
            end_span(span, scope, status)
            if status:
                self.announce(ApiAnswered(getattr(scope.get("route"), "path", "none"), status))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._let_in(scope, head := head_of(scope))
            body = await read_body(head, receive, self.rules.body_bytes_max, self.rules.body_timeout_s)
            # Before anything makes objects of them: of a megabyte of keys that nobody knows, the validation alone takes
            # seconds, which all requests wait for.
            if holds_more_than(self.rules.body_values_max, body or b""):
                raise Denied("INVALID_REQUEST", f"a body may hold {self.rules.body_values_max} values")
        except Denied as denied:
            await denial(denied, CLOSE)(scope, receive, send)
            return
        if body is None:
            return
        receive, caller = _again(body, receive), scope.get(CALLER)
        run = partial(self.app, scope, receive)
        if caller is None:  # what anybody may read
            await run(send)
            return
        try:
            await self.guards.call(Call(caller, head, scope.get("query_string", b""), body), scope, run, send)
        except Denied as denied:
            await denial(denied)(scope, receive, send)

    async def _let_in(self, scope: Scope, head: RequestHead) -> None:
        """From the head alone. Raises Denied."""
        if not head.path.startswith("/"):
            raise Denied("INVALID_REQUEST", "the request target must be a path")
        if CALLER in scope:  # a call from within, for a caller who passed here with it
            return
        check_host(head, scope.get("server"), self.rules.allowed_hosts)
        check_origin(head, self.rules.allowed_origins)
        limits, client = self.guards.limits, scope.get("client")
        address = str(client[0]) if client else "local"  # what a proxy says of its clients is not believed
        if is_open(head.path) and head.method in ("GET", "HEAD"):
            if has_body(head):
                raise Denied("INVALID_REQUEST", "this takes no body")
            limits.anybody(address)
            return
        limits.before(address, head)
        try:
            scope[CALLER] = await authenticate(self.access, head)
        except Denied as denied:
            if denied.status == 401:
                limits.failed(address)
            raise
        limits.known(scope[CALLER], head)


def is_open(path: str) -> bool:
    """Whether a path, as it came, with its escapes and its query, needs no caller."""
    plain = path.partition("?")[0]
    return plain in OPEN_PATHS or plain == OPEN_FOLDER or plain.startswith(f"{OPEN_FOLDER}/")


def head_of(scope: Scope) -> RequestHead:
    """The head as Envoy's door reads it; the path still has its escapes."""
    headers = read_headers([(name.decode("latin-1"), value) for name, value in scope["headers"]])
    path = scope.get("raw_path") or scope["path"].encode("utf-8", "replace")
    return RequestHead(scope["method"], path.decode("latin-1"), headers)


# --- host and origin -------------------------------------------------------------------------------------------------


def check_host(head: RequestHead, server: Any, allowed: tuple[str, ...]) -> None:
    """``server`` is the address that the connection came to, as ASGI gives it. Raises Denied."""
    host = host_name(head.header("host") or "")
    own = _canonical(str(server[0])) if server else ""
    if host and (host in LOOPBACK_HOSTS or host == own or any(_matches(host, name) for name in allowed)):
        return
    raise Denied("HOST_NOT_ALLOWED", "this host name is not served here; name it in listeners.api.allowed_hosts")


def check_origin(head: RequestHead, allowed: tuple[str, ...]) -> None:
    """Only browsers send one. Raises Denied."""
    if "origin" not in head.headers:
        return
    origin = (head.header("origin") or "").lower()
    scheme, _, authority = origin.partition("://")
    is_own = scheme in ("http", "https") and authority == (head.header("host") or "").lower()
    if not is_own and origin not in allowed:
        reason = "pages of this origin may not call; name it in listeners.api.allowed_origins"
        raise Denied("ORIGIN_NOT_ALLOWED", reason)


def host_name(header: str) -> str:
    """The name in a Host header, lower-case, without port and closing dot; empty for what is none."""
    match = _HOST.fullmatch(header)
    return _canonical(match[1].strip("[]")) if match else ""


def _canonical(host: str) -> str:
    """One spelling of each address; a name as it is, in lower case."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.lower().rstrip(".")
    return str(getattr(address, "ipv4_mapped", None) or address)


def _matches(host: str, allowed: str) -> bool:
    if allowed.startswith("*."):
        return host.endswith(allowed[1:]) and len(host) > len(allowed) - 1
    return host == _canonical(allowed.strip("[]"))


# --- bodies ----------------------------------------------------------------------------------------------------------


def has_body(head: RequestHead) -> bool:
    """Whether the head announces one."""
    return "transfer-encoding" in head.headers or head.headers.get("content-length", ("0",)) != ("0",)


async def read_body(head: RequestHead, receive: Receive, bytes_max: int, timeout_s: float) -> bytes | None:
    """The whole body; None when the caller went away. Raises Denied when it is too large or takes too long."""
    too_large = Denied("BODY_TOO_LARGE", f"a body may have {bytes_max} bytes")
    announced = head.header("content-length") or "0"
    if not (announced.isascii() and announced.isdigit()) or len(announced) > 18 or int(announced) > bytes_max:
        raise too_large
    kept = bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                kept += message.get("body", b"")
                if len(kept) > bytes_max:
                    raise too_large
                if not message.get("more_body", False):
                    return bytes(kept)
    except TimeoutError:
        raise Denied("REQUEST_TIMEOUT", f"the body did not come within {timeout_s:g} s") from None


def _again(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that gives the body that was read, and then what else comes: the caller going away."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return left.pop() if left else await receive()

    return replay


# --- spans -----------------------------------------------------------------------------------------------------------
# What OpenTelemetry's conventions for HTTP servers ask: method, route, status. Never the path or the query, though the
# conventions ask for them: they hold names of users and sessions, and words.

METHOD, ROUTE, STATUS = "http.request.method", "http.route", "http.response.status_code"
METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
"""Any other word is the caller's own."""
OTHER_METHOD, OTHER_NAME = "_OTHER", "HTTP"


def end_span(span: Span, scope: Scope, status: int) -> None:
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
