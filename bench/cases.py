"""What is sent, through which filters, and which words its requests may end with."""

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
REWRITE = ("rewrite.mutate",)
EMBED = ("embed.mutate",)
SEMMEM = ("semmem.mutate",)
SEMMEM_BOTH = ("semmem.mutate", "semmem.observe")
COLD = ("cold.mutate",)

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

_LANDS = (
    "Peru Chile Kenya Ghana Nepal Laos Poland Latvia Serbia Cuba Bolivia Uganda Zambia Jordan Oman Iceland Finland"
    " Bulgaria Romania Albania Estonia Austria Hungary Morocco Tunisia Senegal Namibia Botswana Angola Ecuador Panama"
    " Honduras Paraguay Uruguay Mongolia Bhutan Vietnam Cambodia Malaysia Fiji"
).split()
_OF_A_LAND = (
    "What is the capital of {}", "How large is the population of {}", "Which countries border {}",
    "What is the official language of {}", "When did {} become independent", "What is the highest mountain of {}",
    "Which currency is used in {}", "What is the longest river of {}", "Who was the first president of {}",
    "What is the climate of {} like", "Which is the largest city of {}", "How is the flag of {} described",
    "What does {} export", "Which religion is most common in {}", "How did {} get its name",
)  # fmt: skip
_GENERAL = len(_LANDS) * len(_OF_A_LAND)

SESSIONS = 64
"""Conversations that are under way; each request is the second turn of one."""
KNOWN_QUESTIONS = 20

_SYSTEM = "You are a patient assistant of a travel agency. " + " ".join(
    f"Rule {n}: answer in whole sentences, name your sources, and never promise a price that you have not checked."
    for n in range(1, 11)
)
_EARLIER = "Gladly. Tell me first how long you want to stay and what you would like to see. " * 5


def distinct_question(number: int) -> str:
    """A question that no cache has seen, with an answer among MEMORIES."""
    ask = _FACTS[number % len(_FACTS)][1].format(_PEOPLE[number // len(_FACTS) % len(_PEOPLE)])
    return f"{ask}? I write this down as question number {number} of my list."


def known_question(number: int) -> str:
    return distinct_question(number % KNOWN_QUESTIONS)


def general_question(number: int) -> str:
    """A question that no cache has seen and no user's memory answers."""
    ask = _OF_A_LAND[number % len(_OF_A_LAND)].format(_LANDS[number // len(_OF_A_LAND) % len(_LANDS)])
    return f"{ask}? Answer in at most {20 + number // _GENERAL} words."


def greeting(_number: int) -> str:
    return "Hello, thank you!"


@dataclass(frozen=True, slots=True)
class Case:
    """``outcomes``: the words that semmem may say, empty when it is not asked. ``embeds``: each request costs a
    forward pass. ``floor``: the case whose processor time its own is divided by in the table."""

    name: str
    title: str
    filters: tuple[str, ...]
    question: Callable[[int], str] = distinct_question
    outcomes: tuple[str, ...] = ()
    floor: str = ""
    new_session: bool = False
    embeds: bool = False
    stream: bool = False

    @property
    def sidecar(self) -> str:
        """Who is asked: noop, rewrite, embed, semmem, cold, or nobody (empty)."""
        return self.filters[0].partition(".")[0] if self.filters else ""

    @property
    def is_of_semmem(self) -> bool:
        return bool(self.outcomes)

    def request(self, number: int, user: str = USER) -> bytes:
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
            f"authorization: Bearer demo-{user}\r\n{CASE_HEADER}: {self.name}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


INJECTED = ("injected",)
NOTHING = ("general_fact", "no_hits")
"""Both say that the decision shows nothing; the first, that it plainly is no question about the user."""

REQUEST_CASES = (
    Case("none", "no ext_proc", NONE),
    Case("noop", "no-op mutate", NOOP),
    Case("noop_both", "no-op mutate + observe", NOOP_BOTH, floor="noop"),
    Case("rewrite", "no-op rewrite", REWRITE, floor="noop"),
    Case("embed", "no-op that embeds and rewrites", EMBED, floor="rewrite", embeds=True),
    Case("skip", "rule skip", SEMMEM, greeting, ("greeting",), "noop"),
    Case("skip_new", "rule skip, new session", SEMMEM, greeting, ("greeting",), "noop", new_session=True),
    Case("nothing", "decision: nothing", SEMMEM, general_question, NOTHING, "embed", embeds=True),
    Case("known", "hot search, known question", SEMMEM, known_question, INJECTED, "rewrite"),
    Case("search", "hot search, new question", SEMMEM, outcomes=INJECTED, floor="embed", embeds=True),
    Case("search_both", "the same + observe", SEMMEM_BOTH, outcomes=INJECTED, floor="embed", embeds=True),
    Case("cold", "cold search, new question", COLD, outcomes=INJECTED, floor="embed", embeds=True),
)
STREAM_CASES = (
    Case("none", "no ext_proc", NONE, stream=True),
    Case("noop", "no-op mutate", NOOP, stream=True),
    Case("noop_both", "no-op mutate + observe", NOOP_BOTH, floor="none", stream=True),
    Case(
        "semmem", "semmem, known question, + observe", SEMMEM_BOTH, known_question, INJECTED, "noop_both", stream=True
    ),
)
