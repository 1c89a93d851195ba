"""While one user sends the worst, another's requests keep their memory: through a real Envoy, learning included."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.stall.attacks import ATTACKS
from tests.support.harness import House, Json, StandInModel, house

FACT = "User's budget for the Hawaii trip is $10,000"
QUESTION = "What's my budget for the Hawaii trip?"
PHASE_MS, WAIT_MS = 4_000, 5_000
"""Far above what a busy machine needs, far below what the attacks cost where they are not held off."""
DEADLINES = {"message_timeout_ms": WAIT_MS, "phase_ms": PHASE_MS, "store_ms": 2_000, "max_message_timeout_ms": 0}
EACH = {"ten messages of 16 KB": 10}
LARGE_EACH = 2
"""How many bodies each of two attackers sends: a whole batch to learn from, or enough of 15 MB to be busy with."""
EXPECTED = {
    "ten messages of 16 KB": {"no_hits", "general_fact"},
    "500,000 messages in 15 MB": {"oversize"},
    "one message of 15 MB": {"no_hits", "general_fact", "timeout"},
    "15 MB of escapes": {"greeting", "no_hits", "general_fact", "malformed", "timeout"},
}


def waiting(config: Json) -> None:
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    for entry in manager["http_filters"]:
        if "message_timeout" in entry["typed_config"]:
            entry["typed_config"]["message_timeout"] = f"{WAIT_MS // 1000}s"


@pytest.fixture(scope="module")
def home(model: StandInModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    override: dict[str, Any] = {"deadlines": DEADLINES, "memory": {"extraction_batch_size": 10}}
    with house(Path(tmp_path_factory.mktemp("stall")), model, override, waiting) as running:
        yield running


@pytest.mark.long(15)
@pytest.mark.timeout(400)
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_bystander_keeps_their_memory(home: House, alice: str, bob: str, attack: str) -> None:
    home.semmem.remember(bob, FACT)
    assert home.chat(bob, QUESTION).outcome == "injected"
    attacker: Counter[str | None] = Counter()
    each = EACH.get(attack, LARGE_EACH)

    def send() -> None:
        for body in islice(ATTACKS[attack](), each):
            attacker[home.send(body, user=alice, headers={"x-session-id": "s_evil"}).outcome] += 1

    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    outcomes: Counter[str | None] = Counter()
    while any(thread.is_alive() for thread in threads) or outcomes.total() < 20:
        outcomes[home.chat(bob, QUESTION).outcome] += 1
    home.semmem.end_session(alice, "s_evil")
    for _ in range(20):  # while it is learnt from
        outcomes[home.chat(bob, QUESTION).outcome] += 1
    for thread in threads:
        thread.join()

    assert outcomes == {"injected": outcomes.total()}
    assert attacker.total() == 2 * each
    assert attacker.keys() <= EXPECTED[attack]
