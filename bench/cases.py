"""What is sent, through which filters, and what its figures are divided by."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

USER = "bench"
CASE_HEADER = "x-bench-case"
"""Chooses Envoy's route, and with it the filters."""

NONE: tuple[str, ...] = ()
NOOP = ("noop.mutate",)
NOOP_BOTH = ("noop.mutate", "noop.observe")
SEMMEM = ("semmem.mutate",)
SEMMEM_BOTH = ("semmem.mutate", "semmem.observe")

_PEOPLE = ("sister", "brother", "mother", "father", "cousin", "aunt", "uncle", "neighbour", "colleague", "landlord")
_FACTS = (
    ("lives in {}", "Where does my {} live these days", "Lyon Oslo Porto Ghent Turin Bergen Graz Cork Malmo Basel"),
    ("works as a {}", "What does my {} do for work", "baker nurse pilot welder tailor judge florist tiler vet chef"),
    ("plays the {}", "Which instrument does my {} play", "cello flute harp oboe viola banjo tuba lute piano organ"),
    ("is allergic to {}", "What is my {} allergic to", "nuts milk eggs soy wheat shrimp sesame celery kiwi mustard"),
    ("drives a {} car", "What colour is the car of my {}", "red blue green white black grey yellow brown pink silver"),
    ("was born in {}", "When was my {} born", "1951 1948 1963 1977 1985 1990 1969 1958 1944 1981"),
    ("has a dog named {}", "What is the dog of my {} called", "Rex Fido Luna Bella Max Milo Otto Ruby Coco Nala"),
    ("drinks {} every morning", "What does my {} drink every morning", "tea mocha cocoa mate cider juice water milk"
     " coffee chai"),
    ("collects {}", "What does my {} collect", "stamps coins maps shells clocks books dolls masks pens kites"),
    ("learns {} on Fridays", "Which language does my {} learn", "Greek Welsh Thai Danish Hindi Czech Swahili Korean"
     " Dutch Basque"),
)  # fmt: skip
MEMORIES = tuple(
    f"The user's {person} {fact.format(words.split()[number])}."
    for fact, _, words in _FACTS
    for number, person in enumerate(_PEOPLE)
)
"""One hundred facts about ten people."""

SESSIONS = 64
"""Conversations that are under way; each request is the second turn of one."""
CACHED_QUESTIONS = 20

_SYSTEM = "You are a patient assistant of a travel agency. " + " ".join(
    f"Rule {n}: answer in whole sentences, name your sources, and never promise a price that you have not checked."
    for n in range(1, 11)
)
_EARLIER = "Gladly. Tell me first how long you want to stay and what you would like to see. " * 5


def distinct_question(number: int) -> str:
    """A question that no cache has seen, with an answer among MEMORIES."""
    ask = _FACTS[number % len(_FACTS)][1].format(_PEOPLE[number // len(_FACTS) % len(_PEOPLE)])
    return f"{ask}? I write this down as question number {number} of my list."


def cached_question(number: int) -> str:
    return distinct_question(number % CACHED_QUESTIONS)


def greeting(_number: int) -> str:
    return "Hello, thank you!"


@dataclass(frozen=True, slots=True)
class Case:
    """``outcome``: the word that semmem must say, empty when it is not asked. ``floors``: names of other cases."""

    name: str
    title: str
    filters: tuple[str, ...]
    question: Callable[[int], str] = distinct_question
    outcome: str = ""
    floors: tuple[str, ...] = ()
    new_session: bool = False
    stream: bool = False

    @property
    def sidecar(self) -> str:
        """Who is asked: noop, semmem, or nobody (empty)."""
        return self.filters[0].partition(".")[0] if self.filters else ""

    def request(self, number: int) -> bytes:
        """The whole HTTP request of a number; the same number asks the same."""
        session = f"number {number}" if self.new_session else f"session {number % SESSIONS}"
        messages = [
            {"role": "system", "content": _SYSTEM},
            {"role": "user", "content": f"I would like to plan a journey for my family, {session}."},
            {"role": "assistant", "content": _EARLIER},
            {"role": "user", "content": self.question(number)},
        ]
        body = json.dumps({"model": "bench", "messages": messages, "stream": self.stream}).encode()
        head = (
            "POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
            f"authorization: Bearer demo-{USER}\r\n{CASE_HEADER}: {self.name}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


JSON_CASES = (
    Case("none", "no ext_proc", NONE),
    Case("noop", "no-op mutate", NOOP, floors=("none",)),
    Case("noop_both", "no-op mutate + observe", NOOP_BOTH, floors=("none", "noop")),
    Case("skip", "semmem, rule skip", SEMMEM, greeting, "greeting", ("noop",)),
    Case("skip_new", "semmem, rule skip, new session", SEMMEM, greeting, "greeting", ("noop", "skip"), True),
    Case("cached", "semmem, search, known question", SEMMEM, cached_question, "injected", ("noop", "skip")),
    Case("search", "semmem, search, new question", SEMMEM, outcome="injected", floors=("noop", "cached")),
    Case("search_both", "semmem, search, + observe", SEMMEM_BOTH, outcome="injected", floors=("noop_both", "search")),
)
STREAM_CASES = (
    Case("stream_none", "no ext_proc", NONE, stream=True),
    Case("stream_noop", "no-op mutate", NOOP, floors=("stream_none",), stream=True),
    Case("stream_noop_both", "no-op mutate + observe", NOOP_BOTH, floors=("stream_none",), stream=True),
    Case(
        "stream_semmem",
        "semmem, search, + observe",
        SEMMEM_BOTH,
        outcome="injected",
        floors=("stream_none", "stream_noop_both"),
        stream=True,
    ),
)
CASES = JSON_CASES + STREAM_CASES
