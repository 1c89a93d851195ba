"""A model elsewhere, by the clusters and the route that docs/attach.md and deploy/README.md show: their addresses and
certificates alone are the test's."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme
import uvicorn
import yaml

from demo.stack import HOME
from tests.support.harness import Json, StandInModel, eventually, house


def blocks(page: str, heading: str) -> list[str]:
    section = (HOME / page).read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [block.partition("```")[0] for block in section.split("```yaml\n")[1:]]


CLUSTER, ROUTE = (yaml.safe_load(block)[0] for block in blocks("docs/attach.md", "Model servers"))
TLS, TO_LLM = blocks("deploy/README.md", "A model over https")
HOST, SAID = "model.example.com", "What is my budget for the trip?"


def changed(config: Json, lines: Json) -> Json:
    """The cluster `llm` with the lines of a page."""
    clusters = config["static_resources"]["clusters"]
    cluster: Json = next(each for each in clusters if each["name"] == "llm")
    cluster.update(lines)
    return cluster


def at(cluster: Json, name: str, port: int) -> None:
    endpoint = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]
    endpoint["address"]["socket_address"].update(address=name, port_value=port)


def routes(config: Json) -> list[Json]:
    filters = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"]
    found: list[Json] = filters[0]["typed_config"]["route_config"]["virtual_hosts"][0]["routes"]
    return found


def asked(model: StandInModel, folder: Path, adapt: Callable[[Json], None]) -> tuple[int, str | None, Json]:
    """Status, outcome and what the model was sent, if it was asked."""
    with house(folder, model, adapt=adapt) as here:
        here.semmem.remember("alice", "Alice's budget for the trip is 10,000 dollars.")
        reply = here.chat("alice", SAID)
        got = reply.received
        seen = {} if got is None else {"path": got.path, "key": got.header("authorization"), "host": got.header("host")}
        assert got is None or b"10,000 dollars" in got.body
        return reply.status, reply.outcome, seen


@pytest.mark.parametrize("kind", ["STRICT_DNS", "STATIC"])
def test_a_server_by_its_name_or_address(model: StandInModel, tmp_path: Path, kind: str) -> None:
    def adapt(config: Json) -> None:
        name = {"STRICT_DNS": "localhost", "STATIC": "127.0.0.1"}[kind]
        at(changed(config, {**CLUSTER, "type": kind}), name, int(model.url.rpartition(":")[2]))

    status, outcome, seen = asked(model, tmp_path, adapt)
    assert (status, outcome, seen["path"]) == (200, "injected", "/v1/chat/completions")


def test_a_prefix_and_a_key_of_the_models_own(
    model: StandInModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-of-the-model")

    def adapt(config: Json) -> None:
        at(changed(config, CLUSTER), "localhost", int(model.url.rpartition(":")[2]))
        routes(config)[0].update(ROUTE)

    status, outcome, seen = asked(model, tmp_path, adapt)
    assert (status, outcome) == (200, "injected")
    assert seen == {"path": "/openai/v1/chat/completions", "key": "Bearer sk-of-the-model", "host": "localhost"}


@contextmanager
def over_tls(issued: trustme.LeafCert) -> Iterator[StandInModel]:
    model = StandInModel(requests_max=100, token_delay_s=0.002)
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    model.url = f"https://127.0.0.1:{listener.getsockname()[1]}"
    with issued.private_key_and_cert_chain_pem.tempfile() as pem:
        config = uvicorn.Config(model.app(), log_level="warning", lifespan="off", ssl_certfile=pem)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            eventually(lambda: server.started, within_s=60, what="the model listens")
            yield model
        finally:
            server.should_exit = True
            thread.join(10)
            listener.close()


@pytest.mark.parametrize("shown", [HOST, "other.example.com"])
def test_a_model_over_https_is_asked_when_its_certificate_names_it(tmp_path: Path, shown: str) -> None:
    ca = trustme.CA()
    (tmp_path / "ca.pem").write_bytes(ca.cert_pem.bytes())
    (lines,) = yaml.safe_load(TLS.replace("/etc/ssl/certs/ca-certificates.crt", str(tmp_path / "ca.pem")))
    (to_llm,) = re.findall(r"route: &to_llm (\{.*\})", TO_LLM)

    def adapt(config: Json) -> None:
        cluster = changed(config, lines)
        at(cluster, "localhost", int(model.url.rpartition(":")[2]))
        for route in routes(config):
            route["route"] = yaml.safe_load(to_llm)

    with over_tls(ca.issue_cert(shown)) as model:
        status, outcome, seen = asked(model, tmp_path, adapt)
    assert outcome == "injected"
    assert (status, seen.get("host")) == ((200, "localhost") if shown == HOST else (503, None))
