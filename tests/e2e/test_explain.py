"""A client asks which memories its prompt was given, and is told their ids, where the operator allows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.harness import House, Json, StandInModel, house

ASKS = {"x-semmem-explain": "ids"}
QUESTION = "What is my budget for the trip?"
EXPLAIN = {"memory": {"injection": {"explain": True}}, "conversations": {"enabled": True}}


@pytest.fixture(scope="module")
def open_house(model: StandInModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("explain"), model, EXPLAIN) as here:
        yield here


@pytest.mark.parametrize("stream", [False, True])
def test_who_asks_is_told_the_ids_of_what_the_prompt_was_given(open_house: House, stream: bool) -> None:
    user = f"ada{stream}"
    made = open_house.semmem.remember(user, "Ada's budget for the trip is 10,000 dollars.")
    reply = open_house.chat(user, QUESTION, headers=ASKS, stream=stream)
    assert (reply.outcome, reply.headers["x-semmem-memories"]) == ("injected", made["id"])
    assert reply.received is not None
    assert "x-semmem-explain" not in dict(reply.received.headers)
    open_house.semmem.end_session(user, "")


def test_who_does_not_ask_or_has_none_is_told_nothing(open_house: House) -> None:
    open_house.semmem.remember("bea", "Bea's budget for the trip is 10,000 dollars.")
    for user, headers in (("bea", {}), ("bea", {"x-semmem-explain": "all"}), ("carl", ASKS)):
        reply = open_house.chat(user, QUESTION, headers=headers)
        assert "x-semmem-memories" not in reply.headers
    greeting = open_house.chat("bea", "Hello!", headers=ASKS)
    assert "x-semmem-memories" not in greeting.headers


def test_in_a_later_turn_all_that_the_prompt_has_is_told(open_house: House) -> None:
    made = open_house.semmem.remember("dana", "Dana's budget for the trip is 10,000 dollars.")
    history: list[Json] = open_house.converse("dana", "s1", QUESTION)
    reply = open_house.chat("dana", "Thank you!", session="s1", messages=history, headers=ASKS)
    assert reply.headers["x-semmem-memories"] == made["id"]


def test_where_it_is_not_allowed_nobody_is_told(home: House, alice: str) -> None:
    home.semmem.remember(alice, "Alice's budget for the trip is 10,000 dollars.")
    reply = home.chat(alice, QUESTION, headers=ASKS)
    assert reply.outcome == "injected"
    assert "x-semmem-memories" not in reply.headers
