"""The README's way to a first memory, through a real Envoy: its configuration, an API key, and its command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from semmem.cli import main
from tests.support.harness import House, Reply, StandInModel, eventually, house
from tests.support.readme import README, SECRET, written_configuration

KEY_VARIABLE = "OPENAI_API_KEY"
TOLD, LEARNT, ASKED = "My sister Emma lives in Oslo.", "User's sister Emma lives in Oslo", "Where does my sister live?"


@pytest.fixture(scope="module")
def home(model: StandInModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """With the configuration that the README has its reader write; only ports, deadlines and pauses are the tests'."""
    settings = yaml.safe_load(written_configuration())
    with house(tmp_path_factory.mktemp("reader"), model, settings) as running:
        yield running


def say(home: House, key: str, text: str) -> Reply:
    body = {"model": "your-model", "messages": [{"role": "user", "content": text}]}
    return home.send(json.dumps(body).encode(), headers={"authorization": f"Bearer {key}"})


def test_the_first_memory_comes_by_the_readmes_recipe(
    home: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert TOLD in README
    assert LEARNT in README
    assert ASKED in README
    monkeypatch.setenv(KEY_VARIABLE, "sk-your-key")
    command = ["memories", "--api-key-env", KEY_VARIABLE, "--api", home.semmem.api_url]
    command += ["--config", str(Path(home.semmem.data_dir).parent / "config.yaml")]

    def listed() -> str:
        assert main(command) == 0
        return capsys.readouterr().out

    told = say(home, "sk-your-key", TOLD)
    assert told.outcome == "no_hits"
    assert told.received is not None
    assert told.received.header("authorization") == "Bearer sk-your-key"
    shown = eventually(lambda: out if LEARNT in (out := listed()) else None, within_s=60, what="the first memory")
    assert shown.startswith("user: key_")
    assert shown.endswith("1 of 1 memories\n")
    assert SECRET not in shown

    asked = say(home, "sk-your-key", ASKED)
    assert asked.outcome == "injected"
    assert LEARNT.encode() in asked.prompt
    assert say(home, "sk-of-somebody-else", ASKED).outcome == "no_hits"
