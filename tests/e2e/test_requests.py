"""Why did it say that? A request that went through Envoy, asked for by its x-request-id."""

from __future__ import annotations

from pathlib import Path

from tests.support.harness import ADMIN_TOKEN, House, StandInModel, eventually, house, semmem_process

IN_PROCESS = {"memory": {"backend": "in_process"}}
ADMIN = {"authorization": f"Bearer {ADMIN_TOKEN}"}


def test_a_request_says_what_it_was_shown_and_what_was_learnt_of_it(home: House, alice: str) -> None:
    home.converse(alice, "s1", "I live in Oslo and I am allergic to peanuts.")
    known = {memory["id"] for memory in home.learnt(alice)}
    home.chat(alice, "Which snack could I take along? My sister is called Emma.", headers={"x-request-id": "why-this"})
    told = home.semmem.api("GET", "/v1/requests/why-this")
    assert (told["user_id"], told["api"], told["model"], told["outcome"]) == (alice, "chat", "stand-in", "injected")
    shown = {one["id"] for one in told["in_prompt"]}
    assert all(one in known or one.startswith("psg_") for one in shown)  # or the words it was made of
    assert any("peanuts" in one["content"] for one in told["in_prompt"])
    assert all(one["is_new"] for one in told["in_prompt"])
    assert (told["memories"], told["gone"]) == (len(told["in_prompt"]), 0)
    assert told["tokens"] > 0

    learnt = eventually(
        lambda: home.semmem.api("GET", "/v1/requests/why-this")["learnt"], within_s=30, what="the turn is learnt from"
    )
    assert [one["content"] for one in learnt] == ["User's sister is called Emma"]
    listed = home.semmem.api("GET", "/v1/requests", params={"user_id": alice})["requests"]
    assert listed[0]["id"] == "why-this"
    assert len(listed) == 2
    assert (listed[0]["answer"]["ending"], listed[0]["answer"]["milliseconds"] > 0) == ("answered", True)


def test_requests_are_known_after_a_restart(model: StandInModel, tmp_path: Path) -> None:
    with house(tmp_path, model, IN_PROCESS) as home:
        home.chat("alice", "What is the weather where I live?", headers={"x-request-id": "before"})
        eventually(
            lambda: home.semmem.api("GET", "/v1/requests/before")["answer"], within_s=30, what="its answer ended"
        )
    with semmem_process(tmp_path, IN_PROCESS) as again:
        told = again.api("GET", "/v1/requests/before")
    assert (told["user_id"], sorted(told["steps"])) == ("alice", ["finding", "journalling", "reading", "rewriting"])
    assert told["answer"]["ending"] == "answered"


def test_an_erasure_takes_a_users_requests(home: House, alice: str) -> None:
    home.converse(alice, "s1", "I live in Oslo.")
    home.learnt(alice)
    home.chat(alice, "What is the weather where I live?", headers={"x-request-id": f"of {alice}"})
    assert home.semmem.api("GET", "/v1/requests", params={"user_id": alice})["requests"]
    home.semmem.api("DELETE", "/v1/memory", params={"user_id": alice})
    assert home.semmem.api("GET", "/v1/requests", params={"user_id": alice})["requests"] == []
    gone = home.semmem.http.get(f"{home.semmem.api_url}/v1/requests/of {alice}", headers=ADMIN)
    assert gone.status_code == 404
