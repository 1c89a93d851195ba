"""An administrator switches memory off for somebody: the next prompt has none, nothing is learnt; and on again."""

from __future__ import annotations

import pytest

from tests.support.harness import House, eventually

FACT = "User's budget for the Hawaii trip is $10,000"
QUESTION = "What's my budget for the Hawaii trip?"
SAID = "I moved to Lisbon in May."


def switch(home: House, user: str, **said: str) -> None:
    home.semmem.api("PUT", f"/v1/users/{user}/memory-switches", json=said)


def texts(home: House, user: str) -> list[str]:
    return [text for text, _ in home.semmem.turns(user)]


@pytest.mark.long(5)
def test_off_means_no_memory_in_the_prompt_and_nothing_learnt_and_on_again_is_as_before(
    home: House, alice: str, bob: str
) -> None:
    home.semmem.remember(alice, FACT)
    counted = home.semmem.metric("semmem_requests_switched_total", what="both")
    switch(home, alice, reading="off", storing="off")
    told = f"{SAID} {QUESTION}"
    off = home.chat(alice, told, session="s")
    home.chat(bob, "I live in Porto.")
    eventually(lambda: texts(home, bob), within_s=60, what="a later turn is journalled")
    assert (off.outcome, [message["role"] for message in off.messages]) == ("switched_off", ["user"])
    assert texts(home, alice) == []
    assert home.semmem.metric("semmem_requests_switched_total", what="both") == counted + 1
    assert [memory["content"] for memory in home.semmem.memories(alice)] == [FACT]

    switch(home, alice)
    history = [{"role": "user", "content": told}, {"role": "assistant", "content": "Noted."}]
    on = home.chat(alice, session="s", messages=[*history, {"role": "user", "content": QUESTION}])
    assert on.outcome == "injected"
    assert any(FACT in str(message["content"]) for message in on.messages)
    eventually(lambda: texts(home, alice), within_s=60, what="the turn is journalled")
    assert texts(home, alice) == [QUESTION]


def test_reading_and_storing_are_switched_apart(home: House, alice: str) -> None:
    home.semmem.remember(alice, FACT)
    switch(home, alice, reading="off")
    written = home.chat(alice, SAID)
    eventually(lambda: texts(home, alice), within_s=60, what="the turn is journalled")
    switch(home, alice, storing="off")
    read = home.chat(alice, QUESTION)
    switch(home, alice, reading="off")
    home.chat(alice, "I like tea.")
    eventually(lambda: len(texts(home, alice)) == 2, within_s=60, what="what comes later is journalled")
    assert (written.outcome, read.outcome) == ("reading_off", "injected")
    assert texts(home, alice) == [SAID, "I like tea."]
