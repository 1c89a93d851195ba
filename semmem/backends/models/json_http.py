"""What all HTTP models have in common: JSON to one URL, bounded answers, httpx's errors as ours, a circuit breaker."""

import asyncio
import email.utils
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from types import MappingProxyType
from typing import TypedDict

import httpx

from semmem.ports.errors import ModelRefused, ModelUnavailable

CONNECT_TIMEOUT_S = 5.0
OVERLOADED = {429, 529}
WORTH_ANOTHER_TRY = {408, 425, 500, 502, 503, 504}


class Unanswered(ModelUnavailable):
    """A failed try that may be repeated, at the server's wish not before ``retry_after_s``."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Overloaded(Unanswered):
    """The server is there, and has too much to do."""


@dataclass(eq=False, repr=False)
class CircuitBreaker:
    """Closed until ``failures_max`` tries in a row failed; then open for ``open_s``; then half open: the next try
    decides, and whoever comes meanwhile is turned away. A try fails by ModelUnavailable or by being cancelled (no
    answer came in time). One that was refused has reached a living server; any other exception says nothing about
    it."""

    _: KW_ONLY
    failures_max: int
    open_s: float
    clock: Callable[[], float]
    _failures: int = field(init=False, default=0)
    _open_until: float = field(init=False, default=-math.inf)
    _probing: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        if self.failures_max < 1 or self.open_s < 0:
            raise ValueError("failures_max must be at least 1 and open_s not negative")

    @property
    def state(self) -> str:
        """``closed``, ``open`` or ``half_open``."""
        if self._failures < self.failures_max:
            return "closed"
        return "open" if self.clock() < self._open_until else "half_open"

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Around one try. Raises ModelUnavailable when it must not be made."""
        state = self.state
        probe = state == "half_open"
        if state == "open" or (probe and self._probing):
            raise ModelUnavailable("circuit open")
        self._probing = self._probing or probe
        try:
            yield
        except (ModelUnavailable, asyncio.CancelledError):
            self._failures += 1
            if self._failures >= self.failures_max:
                self._open_until = self.clock() + self.open_s
            raise
        except ModelRefused:
            self._failures = 0
            raise
        else:
            self._failures = 0
        finally:
            if probe:
                self._probing = False


class HttpOptions(TypedDict, total=False):
    """After ``breaker_failures`` failed tries in a row nothing is sent for ``breaker_open_s``; then one try may."""

    api_key: str | None
    connections_max: int
    breaker_failures: int
    breaker_open_s: float
    clock: Callable[[], float]


class JsonEndpoint:
    """``path`` below ``base_url`` (``/v1`` is added to a URL without a path), which takes a JSON object. Redirects are
    not followed, proxies of the environment are not used. Answers have at most ``answer_bytes_max`` bytes. ``headers``
    are sent with every call. Only connecting has a timeout of its own: callers bound the whole. Raises ValueError for
    what is no URL."""

    def __init__(
        self,
        base_url: str,
        path: str,
        *,
        answer_bytes_max: int,
        headers: Mapping[str, str] = MappingProxyType({}),
        api_key: str | None = None,
        connections_max: int = 8,
        breaker_failures: int = 5,
        breaker_open_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = _url(base_url, path)
        self._answer_bytes_max = answer_bytes_max
        self.breaker = CircuitBreaker(failures_max=breaker_failures, open_s=breaker_open_s, clock=clock)
        own = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
        if api_key:
            own["authorization"] = f"Bearer {api_key.strip()}"
        self._client = httpx.AsyncClient(
            headers={**own, **headers},
            limits=httpx.Limits(max_connections=connections_max, max_keepalive_connections=connections_max),
            follow_redirects=False,
            trust_env=False,
        )

    async def answer(self, body: Mapping[str, object]) -> bytes:
        """The body of an answer with status 200, of one try that the breaker watches. Raises ModelUnavailable,
        ModelRefused."""
        with self.breaker.watch():
            status, headers, content = await self.post(body)
            if status != 200:
                raise failure(status, headers)
            return content

    async def post(self, body: Mapping[str, object]) -> tuple[int, httpx.Headers, bytes]:
        """Status, headers and body of one answer. Raises Unanswered when there is none, ModelRefused when it is too
        large, ModelUnavailable after ``close``."""
        timeout = httpx.Timeout(None, connect=CONNECT_TIMEOUT_S)
        # Lone surrogates, which UTF-8 cannot hold, become question marks.
        sent = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        try:
            async with self._client.stream("POST", self._url, content=sent, timeout=timeout) as response:
                return response.status_code, response.headers, await self._bounded(response)
        except httpx.TimeoutException:
            raise Unanswered("no connection in time") from None
        except httpx.RequestError as error:
            raise Unanswered(f"connection failed: {type(error).__name__}") from None
        except RuntimeError:
            if not self._client.is_closed:
                raise
            raise ModelUnavailable("the model client is closed") from None

    async def close(self) -> None:
        await self._client.aclose()

    async def _bounded(self, response: httpx.Response) -> bytes:
        """The body, read as it is sent: a compressed one could be a thousand times larger than it looks."""
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ModelRefused("a compressed answer that was not asked for")
        content = bytearray()
        async for chunk in response.aiter_raw():
            content += chunk
            if len(content) > self._answer_bytes_max:
                raise ModelRefused(f"an answer of more than {self._answer_bytes_max} bytes")
        return bytes(content)


def _url(base_url: str, path: str) -> str:
    try:
        url = httpx.URL(base_url.rstrip("/"))
    except httpx.InvalidURL:
        raise ValueError("base_url is not a URL") from None
    if url.scheme not in ("http", "https") or not url.host or url.query or url.fragment:
        raise ValueError("base_url must begin with http:// or https://, name a host, and end with its path")
    return f"{url}{path}" if url.path.rstrip("/") else f"{str(url).rstrip('/')}/v1{path}"


def failure(status: int, headers: httpx.Headers) -> ModelUnavailable | ModelRefused:
    if status in OVERLOADED:
        return Overloaded(f"status {status}", _retry_after_s(headers.get("retry-after")))
    if status in WORTH_ANOTHER_TRY or status >= 520:
        return Unanswered(f"status {status}", _retry_after_s(headers.get("retry-after")))
    return ModelRefused(f"status {status}")


def _retry_after_s(value: str | None) -> float | None:
    """Seconds to wait, from either form of RFC 9110 section 10.2.3; None when absent or nonsense."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        date = email.utils.parsedate_tz(value)
        seconds = math.nan if date is None else email.utils.mktime_tz(date) - time.time()
    return max(seconds, 0.0) if math.isfinite(seconds) else None
