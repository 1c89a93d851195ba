"""The I/O: one call of the API, by a client that blocks or by one that awaits, tried again where that helps."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Mapping
from typing import Any, TypeVar

import httpx

from semmem_langgraph.calls import OFTEN, Answer, Call, Steps
from semmem_langgraph.errors import Unavailable

T = TypeVar("T")

TRIES = 4
"""How often a call is made in all, where semmem says that it comes too early."""
PAUSE_S, PAUSE_MAX_S = 0.2, 5.0
"""Between two of them, where semmem does not say how long, and at most."""


class Client:
    """``at_once``: calls under way at once in one event loop. ``token`` None: a proxy on the way says who calls."""

    def __init__(
        self, url: str, token: str | None, *, timeout_s: float, at_once: int, headers: Mapping[str, str]
    ) -> None:
        known = {} if token is None else {"authorization": f"Bearer {token}"}
        self._made: dict[str, Any] = {
            "base_url": url.rstrip("/"),
            "headers": {"accept": "application/json", **known, **headers},
            "timeout": timeout_s,
        }
        self._at_once = at_once
        self._blocking: httpx.Client | None = None
        self._awaiting: weakref.WeakKeyDictionary[
            asyncio.AbstractEventLoop, tuple[httpx.AsyncClient, asyncio.Semaphore]
        ] = weakref.WeakKeyDictionary()

    def run(self, steps: Steps[T]) -> T:
        """Every step, one after another. Raises what the steps raise."""
        answer: Answer | None = None
        while True:
            try:
                call = steps.send(answer)  # type: ignore[arg-type]  # None begins
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answer = self._answer(call)

    async def arun(self, steps: Steps[T]) -> T:
        """As ``run``."""
        answer: Answer | None = None
        while True:
            try:
                call = steps.send(answer)  # type: ignore[arg-type]
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answer = await self._aanswer(call)

    def close(self) -> None:
        """Connections of the blocking client; the store may be used again."""
        if self._blocking is not None:
            self._blocking.close()
            self._blocking = None

    async def aclose(self) -> None:
        """Connections of the running event loop."""
        made = self._awaiting.pop(asyncio.get_running_loop(), None)
        if made is not None:
            await made[0].aclose()

    def _answer(self, call: Call) -> Answer:
        if self._blocking is None:
            self._blocking = httpx.Client(**self._made)
        for tried in range(TRIES):
            try:
                answer = read(self._blocking.request(call.method, call.path, params=call.params, json=call.body))
            except httpx.HTTPError as error:
                raise _unreached(error) from error
            if answer.code not in OFTEN or tried == TRIES - 1:
                break
            time.sleep(pause_s(answer))
        return answer

    async def _aanswer(self, call: Call) -> Answer:
        client, room = self._of_this_loop()
        for tried in range(TRIES):
            try:
                async with room:
                    answer = read(await client.request(call.method, call.path, params=call.params, json=call.body))
            except httpx.HTTPError as error:
                raise _unreached(error) from error
            if answer.code not in OFTEN or tried == TRIES - 1:
                break
            await asyncio.sleep(pause_s(answer))
        return answer

    def _of_this_loop(self) -> tuple[httpx.AsyncClient, asyncio.Semaphore]:
        """A connection belongs to the loop that made it, and graphs are run in more than one."""
        loop = asyncio.get_running_loop()
        if loop not in self._awaiting:
            self._awaiting[loop] = httpx.AsyncClient(**self._made), asyncio.Semaphore(self._at_once)
        return self._awaiting[loop]


def read(response: httpx.Response) -> Answer:
    """What does not come from semmem (a proxy's page, say) has no code, and is no success."""
    try:
        body = response.json()
    except ValueError:
        body = None
    is_ours = isinstance(body, dict)
    status = response.status_code if is_ours or not response.is_success else 502
    return Answer(status, body if is_ours else {}, _seconds(response.headers.get("retry-after", "")))


def pause_s(answer: Answer) -> float:
    return min(answer.retry_after_s or PAUSE_S, PAUSE_MAX_S)


def _seconds(told: str) -> float:
    return float(told) if told.isascii() and told.isdigit() else 0.0


def _unreached(error: httpx.HTTPError) -> Unavailable:
    return Unavailable("semmem", f"did not answer ({type(error).__name__})")
