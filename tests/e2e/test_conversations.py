"""Through a real Envoy: what is said and answered is read again as a conversation, and gone when its user is erased."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.harness import House, StandInModel, eventually, house

Json = dict[str, Any]


@pytest.fixture(scope="module")
def recording(model: StandInModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    rules = {"memory": {"backend": "in_process"}, "conversations": {"enabled": True, "flush_s": 0.1}}
    with house(tmp_path_factory.mktemp("recording"), model, rules) as running:
        yield running


def listed(running: House, user: str) -> list[Json]:
    found: list[Json] = running.semmem.api("GET", "/v1/conversations", params={"user_id": user})["conversations"]
    return found


def read(running: House, user: str, number: int) -> Json:
    """The one conversation of the user's, as soon as it has so many messages."""

    def whole() -> Json | None:
        found = listed(running, user)
        if not found or found[0]["messages"] < number:
            return None
        return running.semmem.api("GET", f"/v1/conversations/{found[0]['id']}", params={"user_id": user})

    told: Json = eventually(whole, within_s=60, what=f"{number} messages are recorded")
    return told


def test_a_conversation_is_recorded_and_goes_with_its_user(recording: House, alice: str, bob: str) -> None:
    first = recording.chat(alice, "How far is Quokkaland?", session="trip")
    answer = json.loads(first.body)["choices"][0]["message"]["content"]
    recording.chat(bob, "Something else", session="trip")
    history = [{"role": "user", "content": "How far is Quokkaland?"}, {"role": "assistant", "content": answer}]
    recording.chat(alice, "And by train?", session="trip", stream=True, messages=history)
    recording.chat(alice, "Not for the record", session="trip", headers={"x-semmem-memory": "read"})

    told = read(recording, alice, 4)

    assert told["conversation"]["title"] == "How far is Quokkaland?"
    *said, last = [(message["role"], message["content"]) for message in told["messages"]]
    assert said == [
        ("user", "How far is Quokkaland?"),
        ("assistant", answer),
        ("user", "And by train?"),
    ]
    assert last[0] == "assistant"
    assert last[1]
    assert {message["model_asked"] for message in told["messages"]} == {"stand-in"}
    recording.chat(alice, "One more", session="other")  # its halves may still wait when the user is erased
    gone = recording.semmem.api("DELETE", "/v1/memory", params={"user_id": alice})
    assert gone["receipt"]["messages"] >= 4
    assert listed(recording, alice) == []
    assert len(read(recording, bob, 2)["messages"]) == 2
    assert listed(recording, alice) == []
    text = recording.semmem.metrics_text()
    assert "semmem_conversations_written_total" in text
    assert "Quokkaland" not in text
