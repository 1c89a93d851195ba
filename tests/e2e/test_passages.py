"""What somebody said comes to light where no memory holds it, and goes with them, through a real Envoy."""

from __future__ import annotations

from typing import Any

from tests.support.harness import House, eventually

SAID = "There was an old man at the harbour who had the key of the blue boat shed."
QUESTION = "Who had the key of the boat shed at the harbour?"


def said(home: House, user: str, **narrow: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = home.semmem.api("GET", "/v1/memory", params={"user_id": user, **narrow})["memories"]
    return found


def tell(home: House, user: str, session: str, text: str) -> None:
    home.converse(user, session, text)
    home.semmem.end_session(user, session)
    eventually(lambda: said(home, user, type="passage"), within_s=60, what="a passage")
    eventually(lambda: home.semmem.waiting(user) == 0, within_s=60, what="the end of learning")


def test_it_is_found_in_a_later_session_in_the_words_it_was_said_in(home: House, alice: str, bob: str) -> None:
    tell(home, alice, "first", SAID)
    assert said(home, alice) == [], "no memory was made of it"
    asked = home.chat(alice, QUESTION, session="second")
    assert SAID.encode() in asked.prompt
    assert home.chat(bob, QUESTION, session="third").outcome == "no_hits"


def test_what_was_pasted_is_no_passage(home: House, alice: str) -> None:
    tell(home, alice, "first", SAID)
    home.converse(alice, "first", 'Translate this letter: "Dear Tom, I live in Oslo and keep bees. Yours, Kim"')
    home.semmem.end_session(alice, "first")
    eventually(lambda: home.semmem.waiting(alice) == 0, within_s=60, what="the end of learning")
    assert [one["content"] for one in said(home, alice, type="passage")] == [f'"{SAID}"']


def test_whoever_is_erased_is_quoted_no_more(home: House, alice: str) -> None:
    tell(home, alice, "first", SAID)
    assert SAID.encode() in home.chat(alice, QUESTION, session="second").prompt
    receipt = home.semmem.api("DELETE", "/v1/memory", params={"user_id": alice})["receipt"]
    assert receipt["passages"] >= 1
    assert said(home, alice, type="passage") == []
    for session in ("second", "third"):
        assert SAID.encode() not in home.chat(alice, QUESTION, session=session).prompt


def test_the_preview_says_that_it_was_said(home: House, alice: str) -> None:
    tell(home, alice, "first", SAID)
    seen = home.semmem.api("POST", "/v1/memory/preview", json={"user_id": alice, "query": QUESTION})
    assert {one["content"]: one["reason"] for one in seen["memories"]} == {f'"{SAID}"': "passage"}
