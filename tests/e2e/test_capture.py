"""Answers captured by other ways than the second filter, each through a real Envoy configured for it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from demo.envoy import derive
from demo.processes import Child
from demo.stack import HOME, envoy_argv, wait_for_envoy
from tests.support.harness import (
    ENVOY,
    SHIPPED_ENVOY,
    START_S,
    EnvoyProcess,
    House,
    StandInModel,
    eventually,
    patient,
    semmem_process,
)

FACT = "My budget for the Hawaii trip is $10,000"
FOR_AT_MOST_S = 10


def single_filter(config: dict[str, Any]) -> None:
    """Put the shipped fragment where its head says it goes."""
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    fragment = yaml.safe_load((HOME / "deploy" / "envoy-single-filter.yaml").read_text())
    filters = [entry for entry in manager["http_filters"] if entry["name"] != "semmem.observe"]
    manager["http_filters"] = [fragment if entry["name"] == "semmem.mutate" else entry for entry in filters]
    only_request_side(config)


def without_observe(config: dict[str, Any]) -> None:
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    manager["http_filters"] = [entry for entry in manager["http_filters"] if entry["name"] != "semmem.observe"]
    only_request_side(config)


def only_request_side(config: dict[str, Any]) -> None:
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    for route in manager["route_config"]["virtual_hosts"][0]["routes"]:
        route.get("typed_per_filter_config", {}).pop("semmem.observe", None)


@contextmanager
def running(folder: Path, model: StandInModel, mode: str) -> Iterator[House]:
    override = {
        "capture": {"mode": mode},
        "memory": {"backend": "in_process", "extraction": {"session_idle_s": 3600.0, "answer_wait_s": 3600.0}},
    }
    with semmem_process(folder / "semmem", override) as semmem, httpx.Client(timeout=20, trust_env=False) as http:
        shipped = json.loads(json.dumps(yaml.safe_load(SHIPPED_ENVOY.read_text())))  # no shared anchors
        config = derive(
            shipped,
            listener_port=0,
            admin_port=0,
            semmem_port=semmem.grpc_port,
            upstream=model.url,
            show_outcome=True,
        )
        (single_filter if mode == "single_filter" else without_observe)(config)
        patient(config)
        file, admin = folder / "envoy.json", folder / "envoy-admin"
        file.write_text(json.dumps(config))
        envoy = Child("envoy", envoy_argv(ENVOY, str(file), admin), log=folder / "log", cwd=HOME, environ=os.environ)
        try:
            url = wait_for_envoy(envoy, http, admin, timeout_s=START_S)
            yield House(model, semmem, EnvoyProcess(envoy, url, admin.read_text().strip()), http)
        finally:
            envoy.terminate()
            envoy.wait(10)


def answers(house: House, user: str, count: int) -> list[str | None]:
    """The answers of the user's turns, as soon as there are ``count`` turns."""
    found: list[tuple[str, str | None]] = eventually(
        lambda: t if len(t := house.semmem.turns(user)) >= count else None, within_s=FOR_AT_MOST_S, what="turns"
    )
    return [answer for _, answer in found]


@pytest.fixture(scope="module")
def single(model: StandInModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with running(tmp_path_factory.mktemp("single"), model, "single_filter") as house:
        yield house


@pytest.mark.parametrize("stream", [False, True])
def test_one_filter_captures_the_answer_and_changes_no_byte_of_it(single: House, alice: str, stream: bool) -> None:
    reply = single.chat(alice, FACT, stream=stream)
    unwatched = single.chat(None, FACT, stream=stream)  # nobody known: semmem does not look at this answer
    assert reply.status == 200
    assert shape(reply.body, stream) == shape(unwatched.body, stream)
    eventually(lambda: all(answers(single, alice, 1)), within_s=FOR_AT_MOST_S, what="the answer in the journal")
    assert single.envoy.stat(r"http.*ext_proc.*failure_mode_allowed") == 0


def test_one_filter_recalls_as_two_do(single: House, alice: str) -> None:
    single.semmem.remember(alice, "User's budget for the Hawaii trip is $10,000")
    reply = single.chat(alice, "What's my budget for the Hawaii trip?")
    assert reply.outcome == "injected"
    assert b"10,000" in reply.prompt


@pytest.mark.long(8)
def test_from_history_an_answer_is_captured_with_the_next_request(
    model: StandInModel, tmp_path: Path, alice: str
) -> None:
    with running(tmp_path, model, "history") as house:
        house.converse(alice, "s", FACT, "Thank you!")
        eventually(lambda: answers(house, alice, 2)[0], within_s=FOR_AT_MOST_S, what="the first answer")
        assert answers(house, alice, 2)[1] is None


@pytest.mark.long(8)
def test_without_capture_the_users_words_are_learnt_at_once(model: StandInModel, tmp_path: Path, alice: str) -> None:
    with running(tmp_path, model, "off") as house:
        house.converse(alice, "s", FACT, "I prefer window seats on long flights.", "I live in Porto")
        assert len(house.learnt(alice, 3)) == 3  # the third turn makes a batch, though no answer was ever seen
        assert answers(house, alice, 3) == [None, None, None]


def shape(body: bytes, stream: bool) -> list[Any]:
    """An answer without what every answer has anew (its id and time)."""
    texts = [line[6:] for line in body.decode().splitlines() if line.startswith("data: {")] if stream else [body]
    return [{k: v for k, v in json.loads(text).items() if k not in ("id", "created")} for text in texts]
