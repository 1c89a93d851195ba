"""A long session through a real Envoy, in each dialect: its state and its last turns reach the model, until erased."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from semmem.retrieval.context import strip_block
from tests.core.compression.histories import APIS, Spoken
from tests.support.harness import House, Json, StandInModel, eventually, house

SETTINGS: Json = {
    "compression": {
        "enabled": True,
        "from_tokens": 1000,
        "turns_kept": 3,
        "renew_turns": 4,
        "state_tokens_max": 300,
        "lookup_ms": 4000,
    }
}
FILLER = "Tell me more about that, in plain words, please, and leave nothing out that may matter. "
HEADER = "x-semmem-compression"


@pytest.fixture(scope="module")
def compressing(model: StandInModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("compressing"), model, SETTINGS) as running:
        yield running


class Talk:
    """A client with a long history."""

    def __init__(self, home: House, user: str, api: str) -> None:
        self.home, self.user, self.api, self.session = home, user, APIS[api], f"talk-{api}"
        self.turns: list[Spoken] = []

    def say(self, text: str, **headers: str) -> tuple[Json, list[Json]]:
        """The body that was sent, and the elements that the model received."""
        body = self.api.body([*self.turns, Spoken(text, answer=None)])
        sent = {"x-session-id": self.session, **{name.replace("_", "-"): value for name, value in headers.items()}}
        reply = self.home.send(json.dumps(body).encode(), user=self.user, headers=sent, path=self.api.path)
        assert reply.status == 200
        assert reply.received is not None
        assert reply.received.header(HEADER) is None
        self.turns.append(Spoken(text, answer=FILLER * 4))
        return body, json.loads(reply.received.body)[self.api.member]

    def talk(self, first: int, turns: int) -> tuple[Json, list[Json]]:
        for number in range(first, first + turns):
            sent = self.say(f"My locker number {number} has the code {4000 + number}. {FILLER * 3}")
            eventually(lambda: self.home.semmem.metric("semmem_session_states_waiting") == 0, within_s=60, what="made")
        return sent

    def state(self) -> Json:
        return self.home.semmem.api("GET", f"/v1/sessions/{self.session}/state", params={"user_id": self.user})


def as_sent(element: Json) -> Json:
    """Without memories, which may have come beside it."""
    content = element.get("content")
    return element | {"content": strip_block(content)} if isinstance(content, str) else element


def is_state(element: Json) -> bool:
    return "stands for messages that are left out" in str(element.get("content"))


@pytest.mark.long(12)
@pytest.mark.parametrize("api", APIS)
def test_the_model_receives_the_state_and_the_last_turns_until_its_user_is_erased(
    compressing: House, alice: str, api: str
) -> None:
    talk = Talk(compressing, alice, api)
    body, received = talk.talk(0, 8)
    (state,) = [element for element in received if is_state(element)]
    assert "has the code 4000" in state["content"]
    kept = [as_sent(element) for element in received if not is_state(element)]
    assert len(kept) < len(body[talk.api.member])
    assert body[talk.api.member][-len(kept) :] == kept

    shown = talk.state()
    assert shown["session_id"] == talk.session
    assert any("has the code 4000" in line for line in shown["facts"])
    asked = {"user_id": alice, "query": "And now?", "session_id": talk.session}
    preview = compressing.semmem.api("POST", "/v1/memory/preview", json=asked)
    assert preview["session_state"] == state["content"]

    assert not any(map(is_state, talk.say("And now?", x_semmem_compression="off")[1]))
    assert any(map(is_state, talk.say("And then?")[1]))
    compressing.semmem.api("DELETE", "/v1/memory", params={"user_id": alice})
    assert compressing.semmem.metric("semmem_long_requests_total", result="compressed") > 0
    assert not any(map(is_state, talk.talk(8, 6)[1]))
