"""A language model behind any OpenAI-compatible chat completions endpoint."""

from __future__ import annotations

import asyncio
import copy
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

from cachetools import LRUCache

from semmem.backends.models.json_http import HttpOptions, JsonEndpoint, Unanswered, failure
from semmem.memory import Message
from semmem.ports.errors import ModelRefused, ModelUnavailable
from semmem.ports.models import OWN_CALL_HEADERS

ANSWER_BYTES_MAX = 256 * 1024
BACKOFF_MAX_S = 8.0
NEWER_TOKENS_NAME = "max_completion_tokens"
COMPLAINT_BYTES = 4096
"""Of an answer that refuses, so much is looked at for the option that it refuses."""

NAMES_MAX = 64
"""Models of other names that are remembered: how they fail and which JSON modes they take."""

_FORMAT_WORDS = ("response_format", "json_schema", "json_object", "grammar", "schema")
_MAY_MEAN_FORMAT = {400, 415, 422, 500, 501}


class OpenAIModel:
    """One model of one server. Implements ServedModel. An answer has at most ``max_tokens`` tokens. A failed try is
    repeated up to ``retries`` times within the caller's timeout, after ``backoff_s`` doubled each time up to
    ``BACKOFF_MAX_S``, half of it random, or after what the server's Retry-After says. A server that refuses a JSON mode
    is asked in the next freer one from then on. The prompt must therefore describe the JSON it wants by itself. A model
    that refuses ``max_tokens`` or a temperature is asked in the way it takes."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        max_tokens: int = 500,
        temperature: float | None = 0.0,
        retries: int = 2,
        backoff_s: float = 0.5,
        **options: Unpack[HttpOptions],
    ) -> None:
        self._options: dict[str, object] = {"model": model, "max_tokens": max_tokens}
        if temperature is not None:
            self._options["temperature"] = temperature
        self._retries = retries
        self._backoff_s = backoff_s
        self._mode = 0
        self._mode_proven = False
        self._endpoint = JsonEndpoint(
            base_url, "/chat/completions", answer_bytes_max=ANSWER_BYTES_MAX, headers=OWN_CALL_HEADERS, **options
        )
        self._breaker = self._endpoint.breaker
        self._named: LRUCache[str, OpenAIModel] = LRUCache(maxsize=NAMES_MAX)

    def named(self, name: str) -> OpenAIModel:
        """The model of another name behind the same endpoint, and over its connections. Whether it answers, and in
        which JSON mode, is its own affair."""
        model = self._named.get(name)
        if model is None:
            model = self._named[name] = copy.copy(self)
            model._options = {**self._options, "model": name}
            model._breaker = replace(self._breaker)  # a closed one with the same limits
            model._mode, model._mode_proven = 0, False
        return model

    async def complete(
        self, messages: Sequence[Message], *, timeout_s: float, json_schema: dict[str, object] | None = None
    ) -> str:
        """One answer's text. Raises ModelUnavailable or ModelRefused; their messages never hold content."""
        body = {**self._options, "messages": [{"role": m.role.value, "content": m.text} for m in messages]}
        deadline = asyncio.get_running_loop().time() + timeout_s
        try:
            async with asyncio.timeout_at(deadline):
                return await self._with_retries(body, json_schema, deadline)
        except TimeoutError:
            raise ModelUnavailable("no answer within the deadline") from None

    async def close(self) -> None:
        await self._endpoint.close()

    async def _with_retries(self, body: dict[str, object], schema: dict[str, object] | None, deadline: float) -> str:
        for attempt in range(self._retries + 1):
            try:
                return await self._in_json_mode(body, schema)
            except Unanswered as error:
                whole_s = min(self._backoff_s * 2.0**attempt, BACKOFF_MAX_S)
                pause_s = whole_s * random.uniform(0.5, 1.0) if error.retry_after_s is None else error.retry_after_s
                if attempt == self._retries or asyncio.get_running_loop().time() + pause_s >= deadline:
                    raise ModelUnavailable(str(error)) from None
                await asyncio.sleep(pause_s)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _in_json_mode(self, body: dict[str, object], schema: dict[str, object] | None) -> str:
        """Ask in the strictest JSON mode that the server was not seen to refuse."""
        if schema is None:
            return await self._send(body)
        modes, mode = _json_modes(schema), self._mode
        while True:
            try:
                answer = await self._send({**body, **modes[mode]})
            except _FormatRefused:
                mode += 1
            else:
                self._mode, self._mode_proven = mode, True
                return answer

    async def _send(self, body: dict[str, object]) -> str:
        """One try, watched by the breaker."""
        with self._breaker.watch():
            status, headers, content = await self._endpoint.post(body)
            if status == 400 and (adapted := self._without_refused_options(body, content)) is not None:
                status, headers, content = await self._endpoint.post(adapted)
            if status == 200:
                return _text_of(content)
            if "response_format" in body and self._refuses_format(status, content):
                raise _FormatRefused
            raise failure(status, headers)

    def _without_refused_options(self, body: dict[str, object], content: bytes) -> dict[str, object] | None:
        """The body as the model wants it, from now on, where it says which of the options it does not take: reasoning
        models know only ``max_completion_tokens``, and no temperature."""
        complaint = content[:COMPLAINT_BYTES].decode("utf-8", "replace")
        adapted = _adapted(body, complaint)
        if adapted == body:
            return None
        self._options = _adapted(self._options, complaint)  # which another call may have adapted since
        return adapted

    def _refuses_format(self, status: int, content: bytes) -> bool:
        """A server that never answered in this mode gets the benefit of the doubt for any reason it gives."""
        text = content.decode("utf-8", "replace").casefold()
        return status in _MAY_MEAN_FORMAT and (not self._mode_proven or any(word in text for word in _FORMAT_WORDS))


class _FormatRefused(Exception):
    """The server does not take, or seems not to take, the JSON mode."""


def _adapted(options: dict[str, object], complaint: str) -> dict[str, object]:
    adapted = dict(options)
    if NEWER_TOKENS_NAME in complaint and "max_tokens" in adapted:
        adapted[NEWER_TOKENS_NAME] = adapted.pop("max_tokens")
        adapted.pop("temperature", None)  # which the same models refuse, in another answer
    elif "temperature" in complaint:
        adapted.pop("temperature", None)
    return adapted


def _json_modes(schema: dict[str, object]) -> Sequence[dict[str, object]]:
    """What is added to a body, from strict to free. The second is what llama.cpp's Python server takes in place of the
    first; the last has nothing to refuse."""
    named = {"name": "answer", "strict": True, "schema": schema}
    return [
        {"response_format": {"type": "json_schema", "json_schema": named}},
        {"response_format": {"type": "json_object", "schema": schema}},
        {"response_format": {"type": "json_object"}},
        {},
    ]


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
