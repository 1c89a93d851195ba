"""Houses of Envoy, semmem and a scripted model: one at default settings, and one for each step that has its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from quality.wiring import notes_in
from tests.peers.steps import Json
from tests.support.harness import ADMIN_TOKEN, SHIPPED_EMBEDDER, House, Reply, StandInModel, eventually, house, merged

FACT_HEADER = "x-peer-fact"
"""How an earlier filter says that a question is of general knowledge."""
USER_HEADER = "x-authz-user-id"
LEARN_S = 60.0
TURN_S = 3.0
_BLOCK = re.compile(r"<semmem-memory[^<>]*>\n(.*?)</semmem-memory>", re.DOTALL)

BASE: Json = {
    # a session ends when the step after it belongs to another, so that no clock says what is learnt from what
    "memory": {"extraction_batch_size": 10, "extraction": {"session_idle_s": 300}},
    "signals": {"fact_header": FACT_HEADER},
    "listeners": {"api": {"trusted_headers": [USER_HEADER]}},
}
CONFIGURED = {
    "enabled": ("memory", "enabled"),
    "max_inject_tokens": ("memory", "injection", "max_inject_tokens"),
    "position": ("memory", "injection", "position"),
    "strategy": ("memory", "retrieval_strategy"),
}
"""What a step may configure, and where that is in config.yaml."""


def configured(wanted: Mapping[str, Any]) -> Json:
    """config.yaml of a step. Raises KeyError for a setting that semmem has not."""
    config = BASE
    for name, value in wanted.items():
        for key in reversed(CONFIGURED[name]):
            value = {key: value}
        config = merged(config, value)
    return config


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as its client sent it, and what came of it."""

    body: Json
    reply: Reply

    @property
    def received(self) -> Json:
        """What the model received."""
        found: Json = json.loads(self.reply.prompt)
        return found

    @property
    def notes(self) -> list[str]:
        """The memories that semmem added."""
        return [note for text in texts(self.received) for block in _BLOCK.findall(text) for note in notes_in(block)]

    @property
    def wrong(self) -> list[str]:
        """Whether it reached the model, and the model's answer the client."""
        if self.reply.received is None or self.reply.status != 200:
            return [f"status {self.reply.status}"]
        return [] if self.reply.body == self.reply.received.answer else ["another answer"]


def texts(value: Any) -> Iterator[str]:
    """All texts in a JSON value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)


@dataclass(slots=True)
class World:
    """One house and what steps do in it."""

    house: House

    def send(
        self, user: str, body: Json, *, path: str = "/v1/chat/completions", headers: Mapping[str, str] | None = None
    ) -> Sent:
        """One request through Envoy."""
        reply = self.house.send(json.dumps(body).encode(), user=user, headers=headers, path=path)
        return Sent(body, reply)

    def scripted(self, answer: str) -> None:
        """What the model answers next, instead of something that fits its prompt."""
        self.house.model.scripted.append(answer)

    def call(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **kwargs: Any
    ) -> httpx.Response:
        """One call of the management API: of an administrator, unless headers say who."""
        admin = {"authorization": f"Bearer {ADMIN_TOKEN}"}
        semmem = self.house.semmem
        return semmem.http.request(method, semmem.api_url + path, headers=headers or admin, **kwargs)

    def give(self, user: str, memories: Sequence[Json]) -> list[str]:
        """Store memories through the API, in order; the ids of those that semmem takes."""
        told = [self.call("POST", "/v1/memory", json={"user_id": user, **_known_fields(memory)}) for memory in memories]
        taken = [answer.json()["id"] for answer in told if answer.is_success]
        eventually(
            lambda: set(taken) <= {memory["id"] for memory in self.memories(user)},
            within_s=60,
            what="what was given is stored",
        )
        return taken

    def memories(self, user: str) -> list[Json]:
        """Those that may be retrieved, newest first."""
        listed = self.house.semmem.memories(user)
        return [memory for memory in listed if memory["status"] == "active"]

    def settle(self, user: str, session: str, turns: int) -> None:
        """Have semmem learn from a session that ends here, after so many of the user's turns."""
        semmem = self.house.semmem
        with suppress(AssertionError):  # an empty message is no turn
            eventually(lambda: len(semmem.turns(user)) >= turns, within_s=TURN_S, what="the turns are journalled")
        semmem.end_session(user, session)
        eventually(lambda: not semmem.waiting(user), within_s=LEARN_S, what="a session is learnt from")

    def forget(self, user: str) -> None:
        self.call("DELETE", "/v1/memory", params={"user_id": user}).raise_for_status()


@contextmanager
def world(folder: Path, model: StandInModel, config: Json) -> Iterator[World]:
    with house(folder, model, config, program=SHIPPED_EMBEDDER) as running:
        yield World(running)


def _known_fields(memory: Json) -> Json:
    return {name: memory[name] for name in ("content", "type", "key") if name in memory}
