"""What somebody said a moment ago, in another session's prompt; through a real Envoy, with what is shipped."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.support.harness import SHIPPED_EMBEDDER, House, StandInModel, eventually, house

SHIPPED = {
    "memory": {
        "extraction_batch_size": 10,
        "extraction": {"session_idle_s": 300.0, "answer_wait_s": 60.0, "poll_interval_s": 1.0},
    }
}
TOLD = (
    ("I live in Lisbon.", "Which city do I live in?", "Lisbon"),
    ("My sister Emma lives in Oslo.", "Where does my sister live?", "Oslo"),
    ("I am allergic to peanuts.", "Am I allergic to peanuts?", "peanuts"),
    ("My dog is called Rufus.", "What is my dog called?", "Rufus"),
    ("I work as a nurse.", "What do I work as?", "nurse"),
)
AT_MOST_S = 100.0
"""Long before a session counts as idle: what is known by then was learnt at once."""


@pytest.fixture(scope="module")
def home(model: StandInModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("at-once"), model, SHIPPED, program=SHIPPED_EMBEDDER) as running:
        yield running


def test_what_was_said_a_moment_ago_is_in_another_sessions_prompt(home: House, alice: str) -> None:
    took: list[float] = []
    for number, (said, asked, word) in enumerate(TOLD):
        told = home.chat(alice, said, session=f"told-{number}", stream=True)
        ended = time.monotonic()
        assert told.status == 200

        def is_known(number: int = number, asked: str = asked, word: str = word) -> bool:
            reply = home.chat(alice, asked, session=f"asked-{number}")
            return word in reply.messages[0]["content"]

        eventually(is_known, within_s=AT_MOST_S, what=f"{word} in the prompt")
        took.append(time.monotonic() - ended)
    print("seconds from the end of an answer to another session's prompt:", [f"{each:.2f}" for each in took])
    assert home.semmem.metric("semmem_batches_total") == 0
