"""Envoy reaches semmem by a socket, as in the sidecar and in the compose file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import yaml

from demo.processes import Child
from tests.integration.deploy.manifests import SIDECAR, Json, layout
from tests.support import forked
from tests.support.harness import (
    BAG_OF_WORDS,
    START_S,
    EnvoyProcess,
    envoy_process,
    eventually,
    merged,
    semmem_config,
    stand_in_model,
)


@contextmanager
def semmem_at(socket: Path, folder: Path) -> Iterator[Child]:
    """A semmem that listens there for Envoy."""
    config = folder / "config.yaml"
    settings = merged(semmem_config(folder / "data", {}), {"listeners": {"grpc": {"unix_socket": str(socket)}}})
    settings["listeners"]["grpc"].pop("address")
    config.write_text(yaml.safe_dump(settings))
    child = forked.child(BAG_OF_WORDS, ["serve", "--config", config], log=folder / "semmem.log")
    try:
        child.wait_for(r"^semmem ready grpc=unix:", timeout_s=START_S)
        yield child
    finally:
        child.terminate()
        child.wait(20)


def test_a_question_is_asked_by_the_socket_also_after_a_restart(tmp_path: Path) -> None:
    socket = tmp_path / "extproc.sock"

    def as_in_the_sidecar(config: Json) -> None:
        shipped = yaml.safe_load(layout(SIDECAR).file("envoy.yaml"))
        (theirs,) = [each for each in shipped["static_resources"]["clusters"] if each["name"] == "semmem"]
        endpoint = theirs["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]
        endpoint["address"]["pipe"]["path"] = str(socket)
        clusters = config["static_resources"]["clusters"]
        clusters[:] = [theirs if each["name"] == "semmem" else each for each in clusters]

    with (
        stand_in_model() as model,
        httpx.Client(timeout=30, trust_env=False) as http,
        ExitStack() as envoys,
    ):

        def outcome(envoy: EnvoyProcess) -> str | None:
            body = {"model": "stand-in", "messages": [{"role": "user", "content": "Where do I live?"}]}
            headers = {"authorization": "Bearer demo-ute"}
            answer = http.post(f"{envoy.url}/v1/chat/completions", json=body, headers=headers)
            assert answer.status_code == 200
            word: str | None = answer.headers.get("x-semmem-outcome")
            return word

        with semmem_at(socket, tmp_path):
            envoy = envoys.enter_context(
                envoy_process(tmp_path, semmem_port=1, upstream=model.url, adapt=as_in_the_sidecar)
            )
            assert outcome(envoy) == "no_hits"
        assert outcome(envoy) is None, "nobody is there, and the request passes"
        with semmem_at(socket, tmp_path):
            eventually(lambda: outcome(envoy) == "no_hits", within_s=60, what="semmem is asked again")
