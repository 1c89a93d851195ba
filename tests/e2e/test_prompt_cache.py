"""What a session was shown stays where it was, through Envoy: after a restart, by another replica, until erased."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import House, StandInModel, envoy_process, eventually, house, semmem_process
from tests.support.postgres import TestServer
from tests.support.servers import shared_milvus_lite

Json = dict[str, Any]
FACTS = (
    "My budget for the Hawaii trip is $10,000",
    "My sister Ines keeps bees in Ghent",
    "My bicycle is a green Gazelle",
)
QUESTIONS = (
    "What's my budget for the Hawaii trip?",
    "Who keeps bees in my family?",
    "Which bicycle do I have?",
)
OPENING = "<semmem-memory "


class Talk:
    """A client that keeps its history. Each prompt begins with the one before."""

    def __init__(self, home: House, user: str, session: str = "talk") -> None:
        self.home, self.user, self.session = home, user, session
        self.history: list[Json] = [{"role": "system", "content": "Be brief."}]
        self.prompts: list[list[Json]] = []

    def say(self, text: str) -> list[Json]:
        self.history.append({"role": "user", "content": text})
        reply = self.home.chat(self.user, session=self.session, messages=self.history)
        assert reply.status == 200
        self.history.append({"role": "assistant", "content": "Noted."})
        self.prompts.append(reply.messages)
        return reply.messages

    @property
    def is_warm(self) -> bool:
        before, now = self.prompts[-2:]
        return now[: len(before)] == before


def blocks(messages: list[Json]) -> int:
    return sum(str(message["content"]).count(OPENING) for message in messages)


@pytest.fixture
def told(home: House, alice: str) -> Talk:
    for fact in FACTS:
        home.semmem.remember(alice, fact)
    return Talk(home, alice)


def test_each_prompt_of_a_session_begins_with_the_one_before(told: Talk) -> None:
    for number, question in enumerate(QUESTIONS):
        told.say(question)
        assert number == 0 or told.is_warm
    assert blocks(told.prompts[-1]) == 3
    said_twice = [line for line in str(told.prompts[-1]).split("\\n") if line.startswith("- ")]
    assert len(said_twice) == len(set(said_twice)) == 3


def test_what_is_erased_leaves_the_whole_session_and_stays_away(told: Talk) -> None:
    for question in QUESTIONS[:2]:
        told.say(question)
    (budget,) = [one for one in told.home.semmem.memories(told.user) if "budget" in one["content"]]
    before = told.home.semmem.metric("semmem_prompt_prefixes_total", result="erased")
    told.home.semmem.api("DELETE", f"/v1/memory/{budget['id']}", params={"user_id": told.user})
    assert "10,000" not in str(told.say(QUESTIONS[2]))
    assert told.home.semmem.metric("semmem_prompt_prefixes_total", result="erased") > before
    told.say("And who keeps bees?")
    assert told.is_warm
    assert "10,000" not in str(told.prompts[-1])


def test_another_user_of_the_same_session_and_words_is_shown_nothing(told: Talk, bob: str) -> None:
    told.say(QUESTIONS[0])
    other = Talk(told.home, bob)
    other.history = [*told.history]
    assert blocks(other.say(QUESTIONS[1])) == 0


def test_a_restart_changes_no_prompt(model: StandInModel, tmp_path: Path) -> None:
    with house(tmp_path, model) as first:
        for fact in FACTS:
            first.semmem.remember("alice", fact)
        talk = Talk(first, "alice")
        for question in QUESTIONS[:2]:
            talk.say(question)
    with house(tmp_path, model) as second:
        talk.home = second
        talk.say(QUESTIONS[2])
        assert talk.is_warm
        assert blocks(talk.prompts[-1]) == 3


def test_two_replicas_take_turns_the_prompt_stays_warm_and_each_tells_of_all_requests(
    model: StandInModel, tmp_path: Path, postgres: TestServer
) -> None:
    with shared_milvus_lite(tmp_path / "milvus") as address:
        both = {
            "journal": {"url": postgres.url(postgres_name(postgres))},
            "deployment": {"replicas": 2},
            "memory": {"milvus": {"address": address}, "injection": {"fence_key": "k" * 32, "shown_lookup_ms": 5000}},
        }
        with semmem_process(tmp_path / "other", both) as other, house(tmp_path / "one", model, both) as one:
            for fact in FACTS:
                one.semmem.remember("alice", fact)
            with envoy_process(tmp_path, semmem_port=other.grpc_port, upstream=model.url) as door:
                doors = [one, House(model, other, door, one.http)]
                talk = Talk(one, "alice")
                for number, question in enumerate([*QUESTIONS, "And which colour has it?"]):
                    talk.home = doors[number % 2]
                    talk.say(question)
                    time.sleep(0.5)  # blocks are written behind the requests, long before a model has answered
                    assert number == 0 or talk.is_warm
                for each in doors:
                    eventually(partial(knows_all, each), within_s=30, what="it tells of all requests")
        assert blocks(talk.prompts[-1]) >= 3


def knows_all(home: House) -> bool:
    """The log has four requests there, with how their answers ended."""
    told = home.semmem.api("GET", "/v1/requests", params={"user_id": "alice"})["requests"]
    return len(told) == 4 and all(one["answer"] is not None for one in told)


def postgres_name(postgres: TestServer) -> str:
    name = "prompt-cache"
    postgres.create(name)
    return name
