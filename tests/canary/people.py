"""The users, and what each of them remembers of his own conversations."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

TALKS_MAX = 2
TURNS_MAX = 4
KNOWN_MAX = 40
NAMELESS_SHARE = 0.2
"""Of the sessions: semmem names these by itself."""


@dataclass(slots=True)
class Talk:
    """One conversation, whose whole history goes with every request."""

    session: str
    project: str
    said: list[Json] = field(default_factory=list)
    over: bool = False

    def headers(self) -> dict[str, str]:
        named = {"x-session-id": self.session, "x-project-id": self.project}
        return {name: value for name, value in named.items() if value}


@dataclass(slots=True)
class Person:
    """A user. ``known``: ids of memories that were listed for this user lately; ``token``: one of the user's own, once
    it was made."""

    user: int
    name: str
    talks: list[Talk] = field(default_factory=list)
    begun: int = 0
    token: str = ""
    known: deque[str] = field(default_factory=lambda: deque(maxlen=KNOWN_MAX))

    @property
    def projects(self) -> tuple[str, str, str]:
        return "", f"garden-{self.name}", f"harbour-{self.name}"

    def talk(self, dice: random.Random, *, project: str | None = None) -> Talk:
        """One that goes on, or a new one; the oldest is given up."""
        going = [t for t in self.talks if not t.over and len(t.said) < 2 * TURNS_MAX and project in (None, t.project)]
        if len(going) == TALKS_MAX or (going and dice.random() < 0.6):
            return dice.choice(going)
        self.begun += 1
        session = "" if dice.random() < NAMELESS_SHARE else f"s{self.begun}-{self.name}"
        talk = Talk(session, dice.choice(self.projects) if project is None else project)
        self.talks = [*self.talks[1 - TALKS_MAX :], talk]
        return talk
