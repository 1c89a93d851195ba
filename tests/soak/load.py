"""The load: users who talk in three APIs, some rudely, and what each of them must be answered.

Users, sessions, topics and the length of a conversation are bounded, so that a process that keeps nothing for ever
stops growing: a user has one memory per topic however long the load goes on.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

Json = dict[str, Any]

USERS = 40
SESSIONS = 3  # that a user has open at the same time
TURNS = 6  # after which a session ends and another one begins
TOPICS = "tea coffee cheese bread soup colour flower tree bird river city song book film game sport".split()
PAUSE_S = (0.02, 0.12)  # a client waits this long between two requests
NOTED = "Got it, thank you for telling me."
OPT_OUTS = ({"x-semmem-memory": "off"}, {"x-semmem-memory": "read"}, {"x-semmem-memory": "write"})

ONE_OF_EACH = range(3, 5)
"""Which of a client's requests are of a kind that is not left to chance: six clients meet all seven by two each."""
KINDS = {"json": 35, "sse": 35, "leaves": 10, "opted out": 8, "malformed": 5, "gzip": 5, "anonymous": 2}
"""What clients do, by weight."""
STREAMED = ("sse", "leaves")
REFUSED = ("malformed", "gzip")
"""The stand-in model reads neither, and says so with a 400 of its own: that answer must reach the client."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One API as a client knows it: how to ask, what a whole answer holds, and where a whole stream ends."""

    path: str
    body: Callable[[list[Json]], Json]
    whole: bytes
    last_event: bytes


DIALECTS = {
    "chat": Dialect("/v1/chat/completions", lambda said: {"messages": said}, b'"finish_reason": "stop"', b"[DONE]"),
    "responses": Dialect("/v1/responses", lambda said: {"input": said}, b'"output_text"', b"event: response.completed"),
    "messages": Dialect(
        "/v1/messages", lambda said: {"messages": said, "max_tokens": 64}, b'"end_turn"', b"event: message_stop"
    ),
}


@dataclass(slots=True)
class Tally:
    """What clients saw. ``wrong``: one line for each answer that was not as it should be."""

    requests: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    in_flight: int = 0
    in_flight_max: int = 0

    @property
    def total(self) -> int:
        return self.requests.total()


@dataclass(slots=True)
class Talk:
    """One session of one user: the whole history, as clients send it."""

    user: int
    session: str
    said: list[Json] = field(default_factory=list)

    def ask(self, text: str) -> list[Json]:
        """The messages of the next request; as if the answer were known, the history goes on from here."""
        asked = [*self.said, {"role": "user", "content": text}]
        self.said = [*asked, {"role": "assistant", "content": NOTED}]
        return asked

    @property
    def over(self) -> bool:
        return len(self.said) >= 2 * TURNS


def own_word(user: int) -> str:
    """A word that only this user's memories hold, so that a stranger's memory in an answer is seen."""
    return f"marrow{user:03}"


def sentence(user: int, dice: random.Random) -> str:
    topic = dice.choice(TOPICS)
    if dice.random() < 0.5:
        return f"What is my favourite {topic}?"
    return f"My favourite {topic} is called {own_word(user)}."


class Clients:
    """``number`` clients that ask one request after the other until they are told to stop; ``seed`` fixes what."""

    def __init__(self, url: str, *, number: int, seed: int, timeout_s: float = 30.0) -> None:
        self._url = url
        self._number = number
        self._seed = seed
        self._timeout_s = timeout_s
        self.tally = Tally()

    async def run(self, seconds: float) -> None:
        limits = httpx.Limits(max_connections=self._number)
        async with (
            httpx.AsyncClient(base_url=self._url, timeout=self._timeout_s, trust_env=False, limits=limits) as http,
            asyncio.TaskGroup() as group,
        ):
            for client in range(self._number):
                group.create_task(self._client(http, client, time.monotonic() + seconds))

    async def _client(self, http: httpx.AsyncClient, client: int, until: float) -> None:
        dice = random.Random(f"{self._seed}-{client}")
        for number, talk in enumerate(self._talks(client, dice)):
            if time.monotonic() > until:
                return
            kind = dice.choices(list(KINDS), list(KINDS.values()))[0]
            if number in ONE_OF_EACH:  # a short run meets every kind too, whatever the dice say
                kind = list(KINDS)[(client + number) % len(KINDS)]
            await self._one(http, talk, dice, kind, f"{client}-{number}")
            await asyncio.sleep(dice.uniform(*PAUSE_S))

    def _talks(self, client: int, dice: random.Random) -> Iterator[Talk]:
        """Sessions in turn; each belongs to one client, so that its requests come one after the other."""
        users = range(client, USERS, self._number)
        begun = 0
        talks: dict[tuple[int, int], Talk] = {}
        while True:
            place = dice.choice(users), dice.randrange(SESSIONS)
            if place not in talks or talks[place].over:
                talks[place] = Talk(place[0], f"s-{client}-{begun}")
                begun += 1
            yield talks[place]

    async def _one(self, http: httpx.AsyncClient, talk: Talk, dice: random.Random, kind: str, name: str) -> None:
        api = dice.choice(list(DIALECTS))
        streamed = kind in STREAMED or (kind not in REFUSED and dice.random() < 0.5)
        request = built(http, talk, dice, kind, DIALECTS[api], streamed)
        what = f"{api} {kind}"
        self.tally.requests[what] += 1
        self.tally.in_flight += 1
        self.tally.in_flight_max = max(self.tally.in_flight_max, self.tally.in_flight)
        try:
            wrong = await self._answered(http, request, kind, DIALECTS[api], talk.user, streamed)
        except httpx.HTTPError as error:
            wrong = f"{type(error).__name__} {error}"
        finally:
            self.tally.in_flight -= 1
        if wrong:
            self.tally.wrong.append(
                f"{time.strftime('%H:%M:%S')} {name} {what} {'SSE' if streamed else 'JSON'}: {wrong}"
            )

    async def _answered(
        self, http: httpx.AsyncClient, request: httpx.Request, kind: str, dialect: Dialect, user: int, streamed: bool
    ) -> str:
        """What is wrong with the answer; nothing, as a rule."""
        response = await http.send(request, stream=True)
        try:
            self.tally.outcomes[response.headers.get("x-semmem-outcome", "none")] += 1
            expected = 400 if kind in REFUSED else 200
            if response.status_code != expected:
                return f"status {response.status_code}, not {expected}"
            if kind == "leaves":
                return "" if await first_chunk(response.aiter_raw()) else "no byte of an answer"
            body = await response.aread()
        finally:
            await response.aclose()
        return wrong_with(body, kind, dialect.last_event if streamed else dialect.whole, user)


async def first_chunk(chunks: AsyncIterator[bytes]) -> bytes:
    async for chunk in chunks:
        return chunk
    return b""


def built(
    http: httpx.AsyncClient, talk: Talk, dice: random.Random, kind: str, dialect: Dialect, streamed: bool
) -> httpx.Request:
    headers = {"content-type": "application/json", "x-session-id": talk.session}
    if kind != "anonymous":
        headers["authorization"] = f"Bearer demo-soak-{talk.user}"
    if kind == "opted out":
        headers |= dice.choice(OPT_OUTS)
    body: Json = {"model": "stand-in", "stream": streamed, **dialect.body(talk.ask(sentence(talk.user, dice)))}
    content = json.dumps(body).encode()
    if kind == "malformed":
        content = content[: dice.randrange(len(content) // 2, len(content))]
    if kind == "gzip":
        content, headers["content-encoding"] = gzip.compress(content, 1), "gzip"
    return http.build_request("POST", dialect.path, content=content, headers=headers)


def wrong_with(body: bytes, kind: str, whole: bytes, user: int) -> str:
    """What is wrong with a body that came to its end."""
    strangers = set(re.findall(rb"marrow\d+", body)) - {own_word(user).encode()}
    if strangers:
        return "another user's memory"
    return "" if kind in REFUSED or whole in body else f"cut short at {len(body)} bytes"
