"""People who tell, change, erase and ask through the API, and know what must be there.

Each thread has people of its own, so that what each of them expects is exact. A call whose answer did not come (semmem
was killed) may have been done or not; what it was about is not judged from then on.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import httpx

ROOMS = 900


@dataclass
class Thing:
    """One memory: where a thing is kept. ``unsure``: nobody knows whether a call about it was done."""

    word: str
    room: int
    id: str = ""
    erased: bool = False
    unsure: bool = False

    @property
    def content(self) -> str:
        return f"User keeps the {self.word} in room {self.room}"


@dataclass
class Person:
    name: str
    things: list[Thing] = field(default_factory=list)


@dataclass
class Counted:
    """What was seen: questions whose answer was judged, those that failed while semmem was away, calls that semmem
    refused, and answers that were wrong, missing, or told of what is erased."""

    asked: int = 0
    failed: int = 0
    refused: int = 0
    wrong: int = 0
    missing: int = 0
    came_back: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, other: Counted) -> None:
        for name in ("asked", "failed", "refused", "wrong", "missing", "came_back"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.examples += other.examples


def people(number: int, things: int, *, seed: int = 1) -> list[Person]:
    """With so many things each, whose words nobody else has."""
    dice = random.Random(seed)
    return [
        Person(
            f"person-{who}",
            [Thing(f"thing{who}x{what}", dice.randrange(ROOMS), id=f"mem_{who}_{what}") for what in range(things)],
        )
        for who in range(number)
    ]


class Traffic:
    """One thread. ``url`` is called as administrator with ``token``; it may change while semmem is away."""

    def __init__(self, mine: list[Person], token: str, *, seed: int, pause_s: float) -> None:
        self._mine = mine
        self._headers = {"authorization": f"Bearer {token}"}
        self._dice = random.Random(seed)
        self._pause_s = pause_s
        self._http = httpx.Client(timeout=20, trust_env=False)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.counted = Counted()
        self.url = ""

    def start(self) -> None:
        self._thread.start()

    def end(self) -> Counted:
        self._stop.set()
        self._thread.join(60)
        self._http.close()
        return self.counted

    def _run(self) -> None:
        acts = [self._ask] * 6 + [self._tell, self._change, self._erase]
        while not self._stop.is_set():
            if self.url:
                self._dice.choice(acts)(self._dice.choice(self._mine))
            time.sleep(self._pause_s)

    def _call(self, method: str, path: str, **asked: Any) -> httpx.Response | None:
        try:
            answer = self._http.request(method, self.url + path, headers=self._headers, **asked)
        except httpx.HTTPError:
            return None
        if not answer.is_success:
            self.counted.refused += 1
            self.counted.examples.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
            return None
        return answer

    # --- what they do ------------------------------------------------------------------------------------------------

    def _ask(self, person: Person) -> None:
        thing = self._dice.choice(person.things)
        asked = {"query": f"Where do I keep the {thing.word}?", "user_id": person.name, "limit": 20}
        answer = self._call("POST", "/v1/memory/search", json=asked)
        if answer is None:
            self.counted.failed += 1
        elif not thing.unsure:
            self._judge(thing, [memory["content"] for memory in answer.json()["memories"]])

    def _judge(self, thing: Thing, told: list[str]) -> None:
        self.counted.asked += 1
        of_it = [content for content in told if f"the {thing.word} in" in content]
        if thing.erased:
            self._count("came_back", bool(of_it), thing, of_it)
        else:
            self._count("wrong", any(content != thing.content for content in of_it), thing, of_it)
            self._count("missing", thing.content not in of_it, thing, of_it)

    def _count(self, what: str, so: bool, thing: Thing, told: list[str]) -> None:
        if so:
            setattr(self.counted, what, getattr(self.counted, what) + 1)
            self.counted.examples.append(f"{what}: {thing} told {told}")

    def _tell(self, person: Person) -> None:
        thing = Thing(f"new{person.name[7:]}x{len(person.things)}", self._dice.randrange(ROOMS))
        person.things.append(thing)
        self._write(person, thing, thing.room)

    def _change(self, person: Person) -> None:
        """A thing that was told through the API has its word as its key."""
        told = [thing for thing in person.things if thing.word.startswith("new") and not thing.erased]
        if told:
            self._write(person, self._dice.choice(told), self._dice.randrange(ROOMS))

    def _write(self, person: Person, thing: Thing, room: int) -> None:
        former = thing.room
        thing.room = room
        told = {"user_id": person.name, "content": thing.content, "key": thing.word}
        answer = self._call("POST", "/v1/memory", json=told)
        if answer is None:
            thing.room, thing.unsure = former, True
        else:
            thing.id = answer.json()["id"]

    def _erase(self, person: Person) -> None:
        there = [thing for thing in person.things if thing.id and not thing.erased and not thing.unsure]
        if len(there) > 3:
            thing = self._dice.choice(there)
            if self._call("DELETE", f"/v1/memory/{thing.id}", params={"user_id": person.name}) is None:
                thing.unsure = True
            else:
                thing.erased = True
