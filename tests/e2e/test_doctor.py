"""``semmem doctor`` on a chain that works, and on a dozen that are broken in one place each: it names that place."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import (
    ADMIN_TOKEN,
    House,
    Json,
    SemmemProcess,
    StandInModel,
    envoy_process,
    eventually,
    house,
    semmem_process,
)

Adapt = Callable[[Json], None]


def asked(config: Path, *options: str, token: str = ADMIN_TOKEN) -> tuple[int, list[Json]]:
    """The exit status and what was found at each link."""
    argv = [sys.executable, "-m", "semmem", "doctor", "--json", "--config", str(config), *options]
    environ = {**os.environ, "TOKEN": token}
    told = subprocess.run(argv, capture_output=True, text=True, timeout=120, env=environ, check=False)
    assert told.stdout, told.stderr
    return told.returncode, json.loads(told.stdout)["links"]


def wrong(config: Path, *options: str, token: str = ADMIN_TOKEN) -> Json:
    """The one link that is wrong; those before it are not."""
    status, links = asked(config, *options, token=token)
    assert status == 1, links
    assert [each["state"] == "WRONG" for each in links] == [*(False for _ in links[1:]), True], links
    found: Json = links[-1]
    assert found["remedy"], found
    return found


def where(semmem: SemmemProcess, admin: str) -> tuple[str, ...]:
    """The addresses of what a test started: the system chose the ports."""
    return (
        *("--health", semmem.health_url, "--api", semmem.api_url),
        *("--token-env", "TOKEN", "--envoy-admin", f"http://{admin}"),
    )


def filters(config: Json) -> dict[str, Json]:
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    return {entry["name"]: entry["typed_config"] for entry in manager["http_filters"]}


def routes(config: Json) -> list[Json]:
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    found: list[Json] = manager["route_config"]["virtual_hosts"][0]["routes"]
    return found


def without_a_filter(name: str) -> Adapt:
    def adapt(config: Json) -> None:
        manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
        manager["http_filters"] = [entry for entry in manager["http_filters"] if entry["name"] != name]
        for route in routes(config):
            route.get("typed_per_filter_config", {}).pop(name, None)

    return adapt


def without_both(config: Json) -> None:
    without_a_filter("semmem.mutate")(config)
    without_a_filter("semmem.observe")(config)


def set_of(name: str, *path: str, to: Any) -> Adapt:
    def adapt(config: Json) -> None:
        *outer, last = path
        inner = filters(config)[name]
        for step in outer:
            inner = inner[step]
        inner[last] = to

    return adapt


def on_no_route(config: Json) -> None:
    for route in routes(config):
        route.pop("typed_per_filter_config", None)


def answers_of_one_route(config: Json) -> None:
    for route in routes(config)[1:]:
        if "typed_per_filter_config" in route:
            route["typed_per_filter_config"] = {
                "semmem.mutate": route["typed_per_filter_config"]["semmem.mutate"],
            }


def at_another_port(config: Json) -> None:
    """The test waits for the cluster of that name: the filters ask another one."""
    clusters = config["static_resources"]["clusters"]
    (cluster,) = (each for each in clusters if each["name"] == "semmem")
    other = copy.deepcopy(cluster) | {"name": "semmem_elsewhere"}
    (endpoint,) = other["load_assignment"]["endpoints"][0]["lb_endpoints"]
    endpoint["endpoint"]["address"]["socket_address"]["port_value"] = 9
    clusters.append(other)
    for name in ("semmem.mutate", "semmem.observe"):
        filters(config)[name]["grpc_service"]["envoy_grpc"]["cluster_name"] = "semmem_elsewhere"


BROKEN: dict[str, tuple[Adapt, str, str]] = {
    "nothing asks semmem": (without_both, "filters", "no ext_proc filter"),
    "answers are not sent": (without_a_filter("semmem.observe"), "filters", "no filter sends answers"),
    "requests fail without semmem": (
        set_of("semmem.mutate", "failure_mode_allow", to=False),
        "filters",
        "fails requests when semmem is away",
    ),
    "bodies in pieces": (
        set_of("semmem.mutate", "processing_mode", "request_body_mode", to="NONE"),
        "filters",
        "does not send requests whole",
    ),
    "answers wait": (set_of("semmem.observe", "observability_mode", to=False), "filters", "no filter sends answers"),
    "answers that belong to nothing": (
        set_of("semmem.observe", "metadata_options", to={}),
        "filters",
        "which request an answer is for",
    ),
    "switched on nowhere": (on_no_route, "routes", "no route switches it on"),
    "answers of one route alone": (answers_of_one_route, "routes", "and answers of /v1/chat/completions"),
    "semmem elsewhere": (at_another_port, "cluster", "127.0.0.1:9"),
}


@pytest.fixture(scope="module")
def semmem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SemmemProcess]:
    """No request comes to it."""
    with semmem_process(tmp_path_factory.mktemp("doctor")) as running:
        yield running


@pytest.fixture(scope="module")
def home(model: StandInModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Trusts no header, so that only metadata says who is asking."""
    identity: Json = {"identity": {"trusted_headers": []}}
    with house(tmp_path_factory.mktemp("doctor-house"), model, identity) as running:
        yield running


def config_of(semmem: SemmemProcess) -> Path:
    return semmem.data_dir.parent / "config.yaml"


@pytest.mark.parametrize("name", BROKEN)
def test_the_broken_place_of_an_envoy_is_named(
    name: str, semmem: SemmemProcess, model: StandInModel, tmp_path: Path
) -> None:
    adapt, link, words = BROKEN[name]
    with envoy_process(tmp_path, semmem_port=semmem.grpc_port, upstream=model.url, adapt=adapt) as envoy:
        found = eventually(
            lambda: each if (each := _last(semmem, envoy.admin))["link"] == link else None, within_s=20, what=link
        )
    assert found["state"] == "WRONG"
    assert words in found["seen"]
    assert found["remedy"]


def _last(semmem: SemmemProcess, admin: str) -> Json:
    return asked(config_of(semmem), *where(semmem, admin))[1][-1]


def test_a_configuration_that_is_no_good_comes_first(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("memory: {default_retrieval_limit: many}")
    found = wrong(config)
    assert found["link"] == "configuration"
    assert "default_retrieval_limit" in found["seen"]


def test_a_semmem_that_does_not_run_is_named(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("listeners: {health: {address: '127.0.0.1:9'}}")
    found = wrong(config)
    assert (found["link"], "127.0.0.1:9" in found["seen"]) == ("semmem", True)


def test_an_address_that_is_another_servers_is_named(semmem: SemmemProcess, model: StandInModel) -> None:
    assert wrong(config_of(semmem), "--health", model.url)["link"] == "semmem"
    found = wrong(config_of(semmem), "--health", semmem.health_url, "--envoy-admin", model.url)
    assert found["link"] == "Envoy"
    found = wrong(config_of(semmem), "--health", semmem.health_url, "--envoy-admin", "http://127.0.0.1:9")
    assert (found["link"], "does not answer" in found["seen"]) == ("Envoy", True)


@pytest.mark.parametrize("url", ["http://[", "nonsense", "ftp://127.0.0.1"])
def test_an_address_that_is_none_is_no_traceback(semmem: SemmemProcess, url: str) -> None:
    assert wrong(config_of(semmem), "--health", url)["remedy"]
    assert wrong(config_of(semmem), "--health", semmem.health_url, "--envoy-admin", url)["remedy"]


def test_a_chain_that_works_from_no_request_to_the_first_memory(home: House, alice: str) -> None:
    config, at = config_of(home.semmem), where(home.semmem, home.envoy.admin)
    status, links = asked(config, *at)
    assert status == 0
    states = {each["link"]: each["state"] for each in links}
    assert [link for link, state in states.items() if state == "unknown"] == [
        "requests",
        "outcomes",
        "answers",
        "learning",
    ]
    home.http.get(home.envoy.url + "/elsewhere")
    found = wrong(config, *at)
    assert (found["link"], "semmem none" in found["seen"]) == ("requests", True)

    home.converse(alice, "s", "I live in Oslo.", "My sister is called Emma.")
    home.learnt(alice, 2)
    status, links = asked(config, *at)
    assert status == 0, links
    assert {each["state"] for each in links} == {"works"}

    for _ in range(3):
        home.chat(None, "I live in Bergen.")
    found = wrong(config, *at)
    assert (found["link"], "anonymous 3" in found["seen"]) == ("outcomes", True)
    assert "sub of Envoy's" in found["remedy"]
    found = wrong(config, *at, token="none")
    assert "anonymous 3" in found["seen"]


def test_it_is_told_to_people_in_lines(semmem: SemmemProcess) -> None:
    argv = [sys.executable, "-m", "semmem", "doctor", "--config", str(config_of(semmem))]
    argv += ["--health", semmem.health_url, "--envoy-admin", "http://127.0.0.1:9"]
    told = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert told.returncode == 1
    *_, said, remedy = told.stdout.splitlines()
    assert said.startswith("Envoy          WRONG    http://127.0.0.1:9 does not answer")
    assert "what to do: start Envoy" in remedy
