"""Every new message of a request is learnt from, and one that passed while semmem was away, through a real Envoy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.support.harness import House, StandInModel, envoy_process, eventually, semmem_process
from tests.support.ports import free_port

FACT = "My budget for the Hawaii trip is $10,000"
SEAT = "I prefer window seats on long flights."
HOME = "I live in Porto"
FOR_AT_MOST_S = 90
SLOW_TO_LEARN = {"memory": {"backend": "in_process", "extraction": {"session_idle_s": 3600.0, "answer_wait_s": 3600.0}}}


class Road:
    """A house whose semmem goes and comes back, on the same port and with the same data."""

    def __init__(self, folder: Path, model: StandInModel, stack: ExitStack) -> None:
        address = {"grpc": {"address": f"127.0.0.1:{free_port()}"}}
        self._folder, self._override = folder, {**SLOW_TO_LEARN, "listeners": address}
        self._semmem = ExitStack()
        stack.callback(self._semmem.close)
        semmem = self._semmem.enter_context(semmem_process(folder, self._override))
        envoy = stack.enter_context(envoy_process(folder, semmem_port=semmem.grpc_port, upstream=model.url))
        http = stack.enter_context(httpx.Client(timeout=30, trust_env=False))
        self.house = House(model, semmem, envoy, http)

    def semmem_goes(self) -> None:
        self._semmem.close()
        self._until_healthy(0)

    def semmem_comes_back(self) -> None:
        self.house.semmem = self._semmem.enter_context(semmem_process(self._folder, self._override))
        self._until_healthy(1)

    def _until_healthy(self, number: int) -> None:
        healthy = "cluster.semmem.membership_healthy"
        eventually(lambda: self.house.envoy.stat(healthy) == number, within_s=FOR_AT_MOST_S, what="Envoy knows")


@pytest.fixture
def road(model: StandInModel, tmp_path: Path) -> Iterator[Road]:
    with ExitStack() as stack:
        yield Road(tmp_path, model, stack)


def texts(house: House, user: str, count: int) -> list[str]:
    """The user's turns, as soon as there are ``count``."""
    eventually(lambda: len(house.semmem.turns(user)) >= count, within_s=FOR_AT_MOST_S, what=f"{count} turns")
    return [text for text, _ in house.semmem.turns(user)]


def test_three_new_messages_of_one_request_are_learnt(home: House, alice: str) -> None:
    reply = home.chat(alice, FACT, SEAT, HOME, session="s")
    assert reply.status == 200
    assert texts(home, alice, 3) == [FACT, SEAT, HOME]
    eventually(lambda: home.semmem.turns(alice)[-1][1], within_s=FOR_AT_MOST_S, what="the answer is at the last")
    contents = " ".join(memory["content"] for memory in home.learnt(alice, 3, within_s=FOR_AT_MOST_S))
    assert all(word in contents for word in ("10,000", "window seats", "Porto"))


@pytest.mark.long(9)
@pytest.mark.timeout(300)
def test_what_was_said_while_semmem_was_away_is_recovered_from_the_next_request(road: Road, alice: str) -> None:
    house = road.house
    history: list[dict[str, object]] = []

    def say(text: str, **headers: str) -> str | None:
        history.append({"role": "user", "content": text})
        reply = house.chat(alice, session="s", messages=history, headers=headers)
        assert reply.status == 200
        history.append(json.loads(reply.body)["choices"][0]["message"])
        return reply.outcome

    say(FACT)
    assert say("My PIN is 4711", **{"x-semmem-memory": "off"}) == "opted_out"
    say("I own two cats")
    assert texts(house, alice, 2) == [FACT, "I own two cats"]
    road.semmem_goes()
    assert say(SEAT) is None  # nobody was there to say an outcome
    begun: list[dict[str, object]] = [{"role": "user", "content": "My sister Emma lives in Oslo"}]
    assert house.chat("ben", messages=begun).status == 200
    road.semmem_comes_back()
    begun += [{"role": "assistant", "content": "Noted."}, {"role": "user", "content": "My brother Max lives in Rome"}]
    assert house.chat("ben", messages=begun).status == 200
    assert texts(house, "ben", 2) == ["My sister Emma lives in Oslo", "My brother Max lives in Rome"]
    say(HOME)
    assert texts(house, alice, 4) == [FACT, "I own two cats", SEAT, HOME]
    assert dict(house.semmem.turns(alice))[SEAT] == history[7]["content"]
    say("Bye for now")
    assert texts(house, alice, 5) == [FACT, "I own two cats", SEAT, HOME, "Bye for now"]
    assert house.semmem.metric("semmem_history_messages_total", result="recovered") == 2
