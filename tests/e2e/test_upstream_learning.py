"""Learning by the model that the conversation itself went to, called through the same Envoy: it never loops."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from demo.answering import Json
from tests.support.harness import House, StandInModel, eventually, house, stand_in_model
from tests.support.ports import free_port

KEEPS_BEES = "User keeps bees on a roof in Graz"
"""Not as the rules would say it."""

OPERATOR = "semmem"
"""Whose key semmem has at Envoy. A name like any user's: not being known must not be what keeps the calls apart."""


class LearningModel(StandInModel):
    """Answers its clients as the stand-in does, and extracts one fact from whatever it is asked to extract."""

    def says(self, messages: list[Json]) -> str:
        if '"facts"' not in messages[0]["content"]:
            return super().says(messages)
        return json.dumps({"facts": [{"turn": 1, "type": "semantic", "content": KEEPS_BEES}]})


@pytest.fixture
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    port = free_port()

    def listen_there(config: Json) -> None:
        config["static_resources"]["listeners"][0]["address"]["socket_address"]["port_value"] = port

    override = {
        "memory": {
            "extraction_batch_size": 1,
            "extraction": {"engine": "llm", "model": "upstream", "episodic_summary": False, "at_once": False},
        },
        "external_models": [
            {
                "model_role": "memory_extraction",
                "llm_endpoint": {"address": "127.0.0.1", "port": port},
                "llm_model_name": "never asked here",
                "api_key": f"demo-{OPERATOR}",
            }
        ],
    }
    with (
        stand_in_model(LearningModel) as model,
        house(tmp_path_factory.mktemp("upstream"), model, override, listen_there) as running,
    ):
        yield running


def journalled(upstream: House) -> list[tuple[str, str]]:
    """Whose turns there are, whoever they are of."""
    with closing(sqlite3.connect(f"file:{upstream.semmem.data_dir / 'journal.db'}?mode=ro", uri=True)) as journal:
        return [(str(user), str(text)) for user, text in journal.execute("select user_id, user_text from turns")]


def test_a_turn_is_learnt_through_envoy_by_the_model_it_went_to_and_that_call_is_no_turn(upstream: House) -> None:
    said = "I keep bees on the roof in Graz"
    upstream.semmem.remember(OPERATOR, "User keeps bees on the roof in Graz as well, says the operator")
    assert upstream.chat("alice", said, session="s", model="clever-9b").status == 200
    eventually(
        lambda: upstream.semmem.turns("alice") and not upstream.semmem.waiting("alice"), within_s=60, what="learnt"
    )
    assert upstream.semmem.contents("alice") == {KEEPS_BEES}

    [turn, extraction] = upstream.model.received
    assert json.loads(turn.body)["model"] == json.loads(extraction.body)["model"] == "clever-9b"
    assert extraction.header("x-request-id"), "Envoy gives one to every request that has none"
    assert extraction.header("authorization") == f"Bearer demo-{OPERATOR}"
    assert extraction.header("x-semmem-memory") is None
    assert "says the operator" not in extraction.body.decode()

    assert upstream.semmem.metric("semmem_requests_total", outcome="opted_out") == 1
    assert journalled(upstream) == [("alice", said)]
    assert len(upstream.model.received) == 2
