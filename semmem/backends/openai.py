"""A language model behind any OpenAI-compatible chat completions endpoint, over httpx."""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx

from semmem.backends.circuit_breaker import CircuitBreaker
from semmem.memory import Message
from semmem.ports import ModelRefused, ModelUnavailable

JSON_MODES = ("json_schema", "json_object+schema", "json_object", "none")
"""From strict to free. The second is what llama.cpp's Python server takes in place of the first."""

_FORMAT_WORDS = ("response_format", "json_schema", "json_object", "grammar", "schema")
_MAY_MEAN_FORMAT = {400, 415, 422, 500, 501}
_WORTH_ANOTHER_TRY = {408, 425, 429, 500, 502, 503, 504, 529}


class OpenAIModel:
    """One model of one server. Implements LanguageModel.

    ``base_url`` is what precedes ``/chat/completions`` (``/v1`` is added to a URL without a path). An answer has at
    most ``max_tokens`` tokens and its body ``answer_bytes_max`` bytes. A failed try is repeated up to ``retries`` times
    within the caller's timeout, after ``backoff_s`` doubled each time up to ``backoff_max_s``, half of it random, or
    after what the server's Retry-After says. After ``breaker_failures`` failed tries in a row nothing is sent for
    ``breaker_open_s``; then one call may try. Redirects are not followed, proxies of the environment are not used.

    A server that refuses a JSON mode is asked in the next freer one from then on. The prompt must therefore describe
    the JSON it wants by itself.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        max_tokens: int = 500,
        max_tokens_name: str = "max_tokens",
        temperature: float | None = 0.0,
        connections_max: int = 8,
        connect_timeout_s: float = 5.0,
        answer_bytes_max: int = 256 * 1024,
        retries: int = 2,
        backoff_s: float = 0.5,
        backoff_max_s: float = 8.0,
        breaker_failures: int = 5,
        breaker_open_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = _endpoint(base_url)
        self._options: dict[str, object] = {"model": model, max_tokens_name: max_tokens}
        if temperature is not None:
            self._options["temperature"] = temperature
        self._connect_timeout_s = connect_timeout_s
        self._answer_bytes_max = answer_bytes_max
        self._retries = retries
        self._backoff_s = backoff_s
        self._backoff_max_s = backoff_max_s
        self._breaker = CircuitBreaker(failures_max=breaker_failures, open_s=breaker_open_s, clock=clock)
        self._mode = 0
        self._mode_proven = False
        self._client = httpx.AsyncClient(
            headers=_headers(api_key),
            limits=httpx.Limits(max_connections=connections_max, max_keepalive_connections=connections_max),
            follow_redirects=False,
            trust_env=False,
        )

    async def complete(
        self, messages: Sequence[Message], *, timeout_s: float, json_schema: dict[str, object] | None = None
    ) -> str:
        """One answer's text. Raises ModelUnavailable or ModelRefused; their messages never hold content."""
        body = {**self._options, "messages": [{"role": m.role.value, "content": m.text} for m in messages]}
        try:
            async with asyncio.timeout(timeout_s) as deadline:
                return await self._with_retries(body, json_schema, deadline)
        except TimeoutError:
            raise ModelUnavailable("no answer within the deadline") from None

    async def close(self) -> None:
        await self._client.aclose()

    async def _with_retries(
        self, body: dict[str, object], schema: dict[str, object] | None, deadline: asyncio.Timeout
    ) -> str:
        for attempt in range(self._retries + 1):
            try:
                return await self._in_json_mode(body, schema)
            except _Unavailable as error:
                pause_s = error.retry_after_s if error.retry_after_s is not None else self._backoff(attempt)
                if attempt == self._retries or pause_s >= _remaining(deadline):
                    raise ModelUnavailable(str(error)) from None
                await asyncio.sleep(pause_s)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _in_json_mode(self, body: dict[str, object], schema: dict[str, object] | None) -> str:
        """Ask in the strictest JSON mode that the server was not seen to refuse."""
        if schema is None:
            return await self._send(body)
        for mode in range(self._mode, len(JSON_MODES)):
            try:
                answer = await self._send({**body, **_response_format(JSON_MODES[mode], schema)})
            except _FormatRefused:
                continue
            self._mode, self._mode_proven = mode, True
            return answer
        raise AssertionError("unreachable: without a JSON mode there is none to refuse")

    async def _send(self, body: dict[str, object]) -> str:
        """One try, watched by the breaker."""
        with self._breaker.watch():
            status, headers, content = await self._exchange(body)
            if status == 200:
                return _text_of(content)
            if "response_format" in body and self._refuses_format(status, content):
                raise _FormatRefused
            raise _failure(status, headers)

    def _refuses_format(self, status: int, content: bytes) -> bool:
        """A server that never answered in this mode gets the benefit of the doubt for any reason it gives."""
        return status in _MAY_MEAN_FORMAT and (not self._mode_proven or _names_format(content))

    async def _exchange(self, body: dict[str, object]) -> tuple[int, httpx.Headers, bytes]:
        """Where httpx's errors become ours."""
        timeout = httpx.Timeout(None, connect=self._connect_timeout_s)
        try:
            async with self._client.stream("POST", self._url, content=_json(body), timeout=timeout) as response:
                return response.status_code, response.headers, await self._bounded(response)
        except httpx.TimeoutException:
            raise _Unavailable("no connection in time") from None
        except httpx.RequestError as error:
            raise _Unavailable(f"connection failed: {type(error).__name__}") from None
        except RuntimeError:
            if not self._client.is_closed:
                raise
            raise ModelUnavailable("the model client is closed") from None

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

    def _backoff(self, attempt: int) -> float:
        whole_s = min(self._backoff_s * 2.0**attempt, self._backoff_max_s)
        return whole_s * random.uniform(0.5, 1.0)


class _Unavailable(ModelUnavailable):
    """A failed try that may be repeated, at the server's wish not before ``retry_after_s``."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class _FormatRefused(Exception):
    """The server does not take, or seems not to take, the JSON mode."""


def _endpoint(base_url: str) -> str:
    try:
        url = httpx.URL(base_url.rstrip("/"))
    except httpx.InvalidURL:
        raise ValueError("base_url is not a URL") from None
    if url.scheme not in ("http", "https") or not url.host or url.query or url.fragment:
        raise ValueError("base_url must begin with http:// or https://, name a host, and end with its path")
    return f"{url}/chat/completions" if url.path.rstrip("/") else f"{str(url).rstrip('/')}/v1/chat/completions"


def _headers(api_key: str | None) -> dict[str, str]:
    headers = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
    return {**headers, "authorization": f"Bearer {api_key.strip()}"} if api_key else headers


def _json(body: dict[str, object]) -> bytes:
    """Lone surrogates, which UTF-8 cannot hold, become question marks."""
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _response_format(mode: str, schema: dict[str, object]) -> dict[str, object]:
    match mode:
        case "json_schema":
            named = {"name": "answer", "strict": True, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": named}}
        case "json_object+schema":
            return {"response_format": {"type": "json_object", "schema": schema}}
        case "json_object":
            return {"response_format": {"type": "json_object"}}
    return {}


def _failure(status: int, headers: httpx.Headers) -> ModelUnavailable | ModelRefused:
    if status in _WORTH_ANOTHER_TRY or status >= 520:
        return _Unavailable(f"status {status}", _retry_after_s(headers.get("retry-after")))
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


def _names_format(content: bytes) -> bool:
    text = content.decode("utf-8", "replace").casefold()
    return any(word in text for word in _FORMAT_WORDS)


def _text_of(content: bytes) -> str:
    """The first choice's text. Raises ModelRefused when there is none."""
    try:
        answer: Any = json.loads(content)
        text = answer["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ModelRefused("the answer is not a chat completion") from None
    if not isinstance(text, str) or not text.strip():
        raise ModelRefused("the answer has no text")
    return text


def _remaining(deadline: asyncio.Timeout) -> float:
    when = deadline.when()
    return math.inf if when is None else when - asyncio.get_running_loop().time()
