"""Memory without any embedding model, through a real Envoy: what is told is learnt, found by its words, and erased."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support import forked
from tests.support.harness import SHIPPED_EMBEDDER, House, StandInModel, eventually, house, merged

NO_MODEL = {"memory": {"embedding": {"source": "none"}}}
MANUAL = {"memory": {"embedding": {"source": "local"}, "reindex": {"start": "manual"}}}
TOLD, LEARNT = "My sister Emma lives in Oslo.", "User's sister Emma lives in Oslo"
ASKED, OTHER = "Where does my sister live?", "What is the boiling point of water?"
START_S = 120.0


@pytest.fixture(scope="module")
def plain(model: StandInModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("plain"), model, NO_MODEL, program=SHIPPED_EMBEDDER) as running:
        yield running


def test_what_is_told_is_found_by_its_words_once_and_after_erasure_no_more(plain: House) -> None:
    assert plain.chat("ada", TOLD, session="s1").outcome == "no_hits"
    (memory,) = plain.learnt("ada")
    assert memory["content"] == LEARNT

    asked = plain.chat("ada", ASKED)
    assert asked.outcome == "injected"
    assert LEARNT.encode() in asked.prompt
    assert plain.chat("ada", OTHER).outcome in ("no_hits", "general_fact")
    assert plain.chat("bob", ASKED).outcome == "no_hits"

    plain.chat("ada", TOLD, session="s2")
    plain.chat("ada", "My brother Max lives in Rome.", session="s2")
    plain.learnt("ada", 2)
    eventually(lambda: plain.semmem.waiting("ada") == 0, within_s=60, what="all is learnt from")
    assert plain.semmem.contents("ada") == {LEARNT, "User's brother Max lives in Rome"}
    assert len(plain.semmem.memories("ada")) == 2

    plain.semmem.api("DELETE", f"/v1/memory/{memory['id']}", params={"user_id": "ada"})
    assert LEARNT.encode() not in plain.chat("ada", ASKED).prompt


def test_it_says_what_is_worse(plain: House) -> None:
    printed = plain.semmem.child.printed()
    assert "memories are found by the words that they share with a question" in printed
    assert "what repeats or replaces a memory is told by rules alone" in printed


@pytest.mark.long(15)
def test_what_was_stored_without_a_model_is_found_with_one_after_a_reindex(model: StandInModel, tmp_path: Path) -> None:
    with house(tmp_path, model, NO_MODEL, program=SHIPPED_EMBEDDER) as running:
        running.semmem.remember("ada", LEARNT)
    config = tmp_path / "config.yaml"
    settings = merged(yaml.safe_load(config.read_text()), MANUAL)
    config.write_text(yaml.safe_dump(settings))
    refused = semmem("serve", config)
    assert refused.returncode == 1
    assert "holds vectors of none/words/384" in refused.stderr
    assert semmem("reindex", config).returncode == 0
    with house(tmp_path, model, program=SHIPPED_EMBEDDER) as running:
        asked = running.chat("ada", "In which city does Emma have her home?")
        assert LEARNT.encode() in asked.prompt


def semmem(command: str, config: Path) -> subprocess.CompletedProcess[str]:
    return forked.finished(SHIPPED_EMBEDDER, [command, "--config", config], timeout_s=START_S)
