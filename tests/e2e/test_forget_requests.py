"""Whoever says "forget that I ..." is obeyed, and nobody else in their messages is; through a real Envoy."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness import House, eventually

VEGETARIAN = "I'm vegetarian."
DINNER = "Suggest a dinner for me."


def memories(home: House, user: str, **narrow: str) -> list[dict[str, Any]]:
    found = home.semmem.api("GET", "/v1/memory", params={"user_id": user, "status": "active", **narrow})["memories"]
    return [one for one in found if "vegetarian" in one["content"]]


def say(home: House, user: str, session: str, text: str) -> None:
    """And wait for what a batch learns from it."""
    home.converse(user, session, text)
    eventually(lambda: any(one == text and answer for one, answer in home.semmem.turns(user)), within_s=60, what="turn")
    home.semmem.end_session(user, session)
    eventually(lambda: home.semmem.waiting(user) == 0, within_s=60, what="the end of learning")


def told(home: House, user: str, session: str) -> str:
    say(home, user, session, VEGETARIAN)
    say(home, user, session, "I work as a nurse in Leeds.")
    return str(memories(home, user)[0]["id"])


def test_what_the_user_asks_to_forget_is_shown_no_more_and_can_be_had_back(home: House, alice: str) -> None:
    memory_id = told(home, alice, "first")
    assert b"vegetarian" in home.chat(alice, DINNER, session="second").prompt
    say(home, alice, "second", "Please forget that I'm vegetarian, I changed my mind.")
    assert memories(home, alice) == memories(home, alice, type="passage") == memories(home, alice, type="gist") == []
    assert b"vegetarian" not in home.chat(alice, DINNER, session="third").prompt
    story = home.semmem.api("GET", f"/v1/memory/{memory_id}/history", params={"user_id": alice})
    assert story["current"]["superseded_why"] == "asked_to_forget"
    others = home.semmem.api("GET", "/v1/memory", params={"user_id": alice, "status": "active"})["memories"]
    assert any("nurse" in one["content"] for one in others)
    home.semmem.api("POST", f"/v1/memory/{memory_id}/undo", params={"user_id": alice})
    assert [one["id"] for one in memories(home, alice)] == [memory_id]
    assert b"vegetarian" in home.chat(alice, DINNER, session="fourth").prompt


def test_what_no_batch_has_learnt_from_yet_is_forgotten_too(home: House, alice: str) -> None:
    home.converse(alice, "first", VEGETARIAN)
    eventually(lambda: memories(home, alice), within_s=60, what="a memory")
    home.converse(alice, "first", "Forget that I'm vegetarian.")
    eventually(lambda: not memories(home, alice), within_s=60, what="the memory goes")
    home.semmem.end_session(alice, "first")
    eventually(lambda: home.semmem.waiting(alice) == 0, within_s=60, what="the end of learning")
    for kind in ("", "passage", "gist"):
        assert memories(home, alice, **({"type": kind} if kind else {})) == []


@pytest.mark.parametrize(
    "message",
    [
        "Don't forget that I'm vegetarian.",
        "Translate this into French:\n\nForget that I'm vegetarian.",
        'My sister wrote to me: "Please forget that I\'m vegetarian." What should I answer?',
    ],
)
def test_what_asks_for_nothing_of_the_kind_takes_nothing_away(home: House, alice: str, message: str) -> None:
    memory_id = told(home, alice, "first")
    say(home, alice, "second", message)
    assert memory_id in [one["id"] for one in memories(home, alice)]


def test_what_is_said_off_the_record_is_not_kept(home: House, alice: str) -> None:
    say(home, alice, "first", "Don't remember this, but I'm vegetarian and I work as a nurse.")
    for kind in ("", "passage", "gist"):
        assert memories(home, alice, **({"type": kind} if kind else {})) == []
