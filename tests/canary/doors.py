"""One method for each way into semmem. Every request is counted by its door, and every answer is judged."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import httpx

from tests.canary.ledger import NOBODY, Fact, Ledger
from tests.canary.model import Asked, Prompts
from tests.soak.load import DIALECTS
from tests.support.harness import ADMIN_TOKEN, EnvoyProcess

Json = dict[str, Any]

TOOK = frozenset(
    {
        "injected",
        "cold_dense",
        "no_hits",
        "greeting",
        "general_fact",
        "no_question",
        "degraded",
        "embedder_busy",
        "repeated",
    }
)
"""Outcomes of requests that semmem had read and whose turn it keeps."""
LATER = frozenset({409, 503})
"""What an erasure may answer that is to be asked for again."""
TOLD = {"NOT_FOUND": 404, "BUSY": 409, "ERASURE_PENDING": 503, "NOT_AVAILABLE": 503}
"""What a tool says of a refusal, and the status that the API has for it."""
ERASED_WITHIN_S = 90.0
AGAIN_S = 0.2
WRONG_MAX = 200

DOORS = (
    *DIALECTS, "create", "list", "get", "search", "preview", "history", "end of session", "delete by id",
    "delete by project", "delete by session", "delete by user", "consolidate", "summarize", "health", "metrics",
    "tools", "export", "engine",
)  # fmt: skip


class Place(Protocol):
    """Where the doors are. ``up`` is set while semmem may be asked; ``changes`` counts its goings and comings."""

    @property
    def up(self) -> asyncio.Event: ...
    @property
    def changes(self) -> int: ...
    @property
    def envoy(self) -> EnvoyProcess: ...
    @property
    def api_url(self) -> str: ...
    @property
    def health_url(self) -> str: ...


@dataclass(slots=True)
class Tally:
    """How often each door was used, how the requests to the model went, and what was answered as it should not be.

    ``failures`` of requests to the model are among the ``wrong``.
    """

    doors: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    outcomes: Counter[str] = field(default_factory=Counter)
    later: Counter[str] = field(default_factory=Counter)
    interrupted: int = 0
    failures: int = 0
    wrong: list[str] = field(default_factory=list)

    def took(self, door: str, since: float) -> None:
        self.seconds[door] += time.monotonic() - since

    @property
    def operations(self) -> int:
        return self.doors.total()

    def say(self, line: str) -> None:
        if len(self.wrong) < WRONG_MAX:
            self.wrong.append(line)


@dataclass(frozen=True, slots=True)
class Answer:
    """Of the API. ``sent`` is when it was asked for; ``numbers``: the user's canaries in it."""

    status: int
    sent: float
    text: str
    numbers: frozenset[int] = frozenset()

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def json(self) -> Json:
        found: Json = json.loads(self.text)
        return found


class Doors:
    """Everything a user or an operator may do, against one stack."""

    def __init__(self, http: httpx.AsyncClient, stack: Place, ledger: Ledger, prompts: Prompts, tally: Tally) -> None:
        self.tally = tally
        self._http = http
        self._stack = stack
        self._ledger = ledger
        self._prompts = prompts

    # --- to the model ------------------------------------------------------------------------------------------------

    async def ask(
        self, user: int, said: list[Json], *, api: str, stream: bool, headers: dict[str, str], fact: Fact | None = None
    ) -> Asked:
        """One request to the model, which must be answered with the model's own bytes."""
        await self._stack.up.wait()
        changes, request_id = self._stack.changes, secrets.token_hex(8)
        asked = self._prompts.under_way[request_id] = Asked(user, time.monotonic(), fact)
        self._ledger.repeats(user, "\n".join(message["content"] for message in said))
        dialect = DIALECTS[api]
        named = {"authorization": f"Bearer demo-{self._ledger.words.word(user, 0)}", "x-request-id": request_id}
        body: Json = {"model": "stand-in", "stream": stream, **dialect.body(said)}
        self.tally.doors[api] += 1
        try:
            answer = await self._http.post(self._stack.envoy.url + dialect.path, json=body, headers=named | headers)
        except httpx.HTTPError as error:
            self._failed(asked, api, f"{type(error).__name__} {error}")
            return asked
        finally:
            self.tally.took(api, asked.began)
            del self._prompts.under_way[request_id]
        self._ledger.saw(
            user, f"{answer.headers}\n{answer.text}", own="", began=asked.began, where=f"an answer of {api}"
        )
        if answer.status_code != 200 or (dialect.last_event if stream else dialect.whole) not in answer.content:
            self._failed(asked, api, f"status {answer.status_code}, {len(answer.content)} bytes: no whole answer")
        elif asked.received is None or asked.received.answer != answer.content:
            self._failed(asked, api, "other bytes than the model's")
        asked.outcome = answer.headers.get("x-semmem-outcome")
        self.tally.outcomes[asked.outcome or ("none" if changes == self._stack.changes else "none, restarting")] += 1
        return asked

    def _failed(self, asked: Asked, api: str, failure: str) -> None:
        asked.failure = failure
        self.tally.failures += 1
        self.tally.say(f"{api}: {failure}")

    # --- the API -----------------------------------------------------------------------------------------------------

    async def call(
        self,
        door: str,
        method: str,
        path: str,
        user: int,
        *,
        query: Json | None = None,
        body: Json | None = None,
        token: str = ADMIN_TOKEN,
        once: str = "",
    ) -> Answer | None:
        """One call, as administrator unless ``token`` is another's; None when semmem went away meanwhile. The answer
        is judged, what it repeats of the question left out. ``once``: the key under which it is done once."""
        await self._stack.up.wait()
        changes, sent = self._stack.changes, time.monotonic()
        self.tally.doors[door] += 1
        caller = {"authorization": f"Bearer {token}"} | ({"idempotency-key": once} if once else {})
        try:
            got = await self._http.request(
                method, self._stack.api_url + path, params=query, json=body, headers=caller, timeout=60.0
            )
        except httpx.HTTPError as error:
            if changes == self._stack.changes:
                self.tally.say(f"{door}: {type(error).__name__} {error}")
            self.tally.interrupted += 1
            return None
        self.tally.took(door, sent)
        if got.status_code in LATER:
            self.tally.later[f"{door} {got.status_code}"] += 1
        if got.status_code >= 500 and changes == self._stack.changes and not door.startswith("delete"):
            self.tally.say(f"{door}: {got.status_code} {got.text[:200]}")
        text = _without_question(door, got)
        seen = self._ledger.saw(user, f"{got.headers}\n{text}", began=sent, where=f"an answer of {door}")
        return Answer(got.status_code, sent, got.text, frozenset(seen))

    async def delete(self, door: str, path: str, user: int, *, query: Json) -> Answer | None:
        """An erasure, asked for until it is done; None when there was nothing to erase, or it could not be done."""
        return await self._until_done(door, lambda: self.call(door, "DELETE", path, user, query=query))

    async def clear(self, user: int, token: str) -> Answer | None:
        """The same of everything, by the tool for it."""
        return await self._until_done("tools", lambda: self.tool(user, token, "memory_clear", {}))

    async def _until_done(self, door: str, ask: Callable[[], Awaitable[Answer | None]]) -> Answer | None:
        """An erasure that was to be asked for again may be done when it is: then nothing is left to be found."""
        until, begun = time.monotonic() + ERASED_WITHIN_S, False
        while time.monotonic() < until:
            answer = await ask()
            if answer is not None and answer.status == 404:
                return answer if begun else None
            begun = True
            if answer is not None and answer.ok:
                return answer
            if answer is not None and answer.status not in LATER:
                self.tally.say(f"{door}: {answer.status} {answer.text[:200]}")
                return None
            await asyncio.sleep(AGAIN_S)
        self.tally.say(f"{door}: not done within {ERASED_WITHIN_S:.0f} s")
        return None

    async def tool(self, user: int, token: str, name: str, arguments: Json) -> Answer | None:
        """One call of a tool, with a token of the user's own; ``status`` as the API would have it."""
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        answer = await self.call("tools", "POST", "/mcp", user, body=asked, token=token)
        if answer is None or not answer.ok or not answer.json["result"]["isError"]:
            return answer
        status = next((number for word, number in TOLD.items() if word in answer.text), 400)
        if status in LATER:
            self.tally.later[f"tools {status}"] += 1
        return replace(answer, status=status)

    async def look(self, door: str, path: str, *, of_api: bool = False) -> None:
        """A page in which nobody's words belong: that anybody may see, or, ``of_api``, an operator."""
        await self._stack.up.wait()
        changes = self._stack.changes
        self.tally.doors[door] += 1
        try:
            page = await self._page(path, of_api=of_api)
        except httpx.HTTPError as error:
            if changes == self._stack.changes:
                self.tally.say(f"{door}: {type(error).__name__} {error}")
            return
        if page.status_code != 200 and changes == self._stack.changes:
            self.tally.say(f"{door}: {path} answers {page.status_code}")
        self._ledger.saw(NOBODY, f"{page.headers}\n{page.text}", began=0.0, where=path)

    async def _page(self, path: str, *, of_api: bool) -> httpx.Response:
        if not of_api:
            return await self._http.get(self._stack.health_url + path)
        return await self._http.get(self._stack.api_url + path, headers={"authorization": f"Bearer {ADMIN_TOKEN}"})


def _without_question(door: str, got: httpx.Response) -> str:
    """The answer's text without the client's own words, which a preview repeats."""
    if door != "preview" or got.status_code != 200:
        return got.text
    return json.dumps({**got.json(), "query": ""})
