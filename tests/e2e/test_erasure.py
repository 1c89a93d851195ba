"""Erased is erased, through a real Envoy: at once after an answer, and across a kill -9 of semmem."""

from __future__ import annotations

import os
import secrets
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.e2e.test_degradation import store_process
from tests.support.harness import ADMIN_TOKEN, House, SemmemProcess, StandInModel, eventually, house, semmem_process

FACT = "My budget for the Hawaii trip is $10,000"
ROUNDS = 40
ADMIN = {"authorization": f"Bearer {ADMIN_TOKEN}"}


def erase(semmem: SemmemProcess, user: str) -> httpx.Response:
    """The answer, whatever it says."""
    url = f"{semmem.api_url}/v1/memory"
    return semmem.http.delete(url, params={"user_id": user}, headers=ADMIN, timeout=60)


def test_forty_erasures_at_once_after_the_answer_are_forty(home: House) -> None:
    users = [f"erased-{number}-{secrets.token_hex(4)}" for number in range(ROUNDS)]
    for user in users:
        assert home.chat(user, FACT).status == 200
        assert erase(home.semmem, user).status_code == 200
    later = users[0]
    home.chat(later, "I prefer window seats on long flights.")
    assert "window" in home.learnt(later, within_s=60)[0]["content"]
    time.sleep(3)  # a pause of one second is learnt from here
    assert [user for user in users[1:] if home.semmem.memories(user) or home.semmem.turns(user)] == []
    assert [text for text, _ in home.semmem.turns(later) if "Hawaii" in text] == []


@pytest.mark.long(10)
def test_an_erasure_that_a_kill_interrupts_is_hidden_and_finished_after_the_restart(
    model: StandInModel, tmp_path: Path, alice: str
) -> None:
    quick = {"erasure": {"answer_s": 3, "retry_s": 1}}
    with house(tmp_path, model, quick) as running:
        semmem = running.semmem
        semmem.remember(alice, "User's budget for the Hawaii trip is $10,000")
        running.chat(alice, "I prefer window seats on long flights.")
        store = store_process(semmem.child.pid)
        os.kill(store, signal.SIGSTOP)
        try:
            answer = erase(semmem, alice)
            assert answer.status_code == 503
            assert (answer.json()["error"]["code"], answer.json()["outlives_restart"]) == ("ERASURE_PENDING", True)
            assert semmem.metric("llm_memory_erasures_total", result="pending") == 1
            assert semmem.metric("semmem_erasures_pending") == 1
            os.kill(semmem.child.pid, signal.SIGKILL)
        finally:
            os.kill(store, signal.SIGKILL)
    with semmem_process(tmp_path, {"erasure": {"retry_s": 1}}) as again:
        assert again.memories(alice) == []
        eventually(
            lambda: again.metric("llm_memory_erasures_total", result="finished"),
            within_s=60,
            what="the erasure is finished",
        )
        assert again.metric("semmem_erasures_pending") == 0
        assert (again.memories(alice), again.turns(alice)) == ([], [])


def test_sixty_creates_of_one_key_at_once_are_one_memory_in_sixty_versions(home: House, alice: str) -> None:
    said = [f"User lives in house number {number}" for number in range(60)]
    create = f"{home.semmem.api_url}/v1/memory"

    def told(text: str) -> int:
        body = {"user_id": alice, "content": text, "key": "home"}
        return home.semmem.http.post(create, json=body, headers=ADMIN, timeout=60).status_code

    started = time.monotonic()
    with ThreadPoolExecutor(60) as callers:
        statuses = list(callers.map(told, said))
    print(f"60 creates of one key: {time.monotonic() - started:.1f} s")
    assert set(statuses) == {201}
    [memory] = home.semmem.memories(alice)
    history = home.semmem.api("GET", f"/v1/memory/{memory['id']}/history", params={"user_id": alice})
    assert memory["version"] == 60
    assert sorted(each["content"] for each in [*history["versions"], history["current"]]) == sorted(said)
