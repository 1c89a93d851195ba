"""The shipped Envoy with a second listener beside the first: the same routes to the same model, without semmem."""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from demo.envoy import derive
from demo.processes import Child
from demo.stack import HOME, envoy_argv
from tests.support.harness import ENVOY, SHIPPED_ENVOY, START_S, EnvoyProcess, eventually

HEALTH_INTERVAL = "0.3s"
"""Of Envoy's health checks: shorter than shipped, so that a restarted semmem is soon used again."""
CLOSE_S = "0.3s"
"""How long Envoy keeps an observed stream whose client left: shorter than shipped, so that its end is soon counted."""
SHIPPED_CLOSE_S = "5s"
"""Where no answer may be missed on a machine that holds semmem up for so long."""
WEBSOCKETS = "/v1/realtime"
"""The path on which websockets are let through, as an operator would add it. As shipped, Envoy refuses them."""


@dataclass(frozen=True)
class Front:
    """``port`` leads through semmem, ``plain_port`` past it."""

    envoy: EnvoyProcess
    port: int
    plain_port: int

    def wait_healthy(self, wanted: bool = True) -> None:
        name = "cluster.semmem.membership_healthy"
        what = f"Envoy finds semmem {'healthy' if wanted else 'gone'}"
        eventually(lambda: self.envoy.stat(name) == int(wanted), within_s=30, what=what)

    def mutate(self, name: str) -> int:
        """A counter of the filter that asks semmem about requests."""
        return self.envoy.stat(f"http.llm.ext_proc.semmem_mutate.{name}")


def two_listeners(semmem_port: int, upstream: str, close_s: str) -> dict[str, Any]:
    config = derive(
        yaml.safe_load(SHIPPED_ENVOY.read_text()),
        listener_port=0,
        admin_port=0,
        semmem_port=semmem_port,
        upstream=upstream,
        show_outcome=True,
    )
    resources = config["static_resources"]
    clusters = {cluster["name"]: cluster for cluster in resources["clusters"]}
    clusters["semmem"]["health_checks"][0].update(interval=HEALTH_INTERVAL, no_traffic_interval=HEALTH_INTERVAL)
    manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    observe = next(entry for entry in manager["http_filters"] if entry["name"] == "semmem.observe")
    observe["typed_config"]["deferred_close_timeout"] = close_s
    _let_through(manager, clusters["llm"])
    resources["listeners"].append(_plain(resources["listeners"][0]))
    return config


def _let_through(manager: dict[str, Any], model: dict[str, Any]) -> None:
    """What Envoy keeps from clients unless it is told otherwise: trailers of HTTP/1, and websockets."""
    manager["http_protocol_options"] = {"enable_trailers": True}
    options = next(iter(model["typed_extension_protocol_options"].values()))
    options["explicit_http_config"]["http_protocol_options"]["enable_trailers"] = True
    routes = manager["route_config"]["virtual_hosts"][0]["routes"]
    upgrading = {"cluster": "llm", "timeout": "0s", "upgrade_configs": [{"upgrade_type": "websocket"}]}
    routes.insert(0, {"match": {"path": WEBSOCKETS}, "route": upgrading})


def _plain(listener: dict[str, Any]) -> dict[str, Any]:
    plain = copy.deepcopy(listener)
    plain["name"] = "plain"
    manager = plain["filter_chains"][0]["filters"][0]["typed_config"]
    manager["stat_prefix"] = "plain"
    kept = ("semmem.strip_identity", "demo.authentication", "envoy.filters.http.router")
    manager["http_filters"] = [entry for entry in manager["http_filters"] if entry["name"] in kept]
    for route in manager["route_config"]["virtual_hosts"][0]["routes"]:
        route.pop("typed_per_filter_config", None)
    return plain


@contextmanager
def front(folder: Path, *, semmem_port: int, upstream: str, close_s: str = CLOSE_S) -> Iterator[Front]:
    """A running Envoy; it does not wait for semmem."""
    folder.mkdir(parents=True, exist_ok=True)
    file, admin_file = folder / "envoy.json", folder / "envoy-admin"
    file.write_text(json.dumps(two_listeners(semmem_port, upstream, close_s)))
    argv = envoy_argv(ENVOY, str(file), admin_file)
    child = Child("envoy", argv, log=folder / "envoy.log", cwd=HOME, environ=os.environ)
    try:
        admin, ports = _listening(child, admin_file)
        yield Front(EnvoyProcess(child, f"http://127.0.0.1:{ports['llm']}", admin), ports["llm"], ports["plain"])
    finally:
        child.terminate()
        child.wait(10)


def _listening(child: Child, admin_file: Path) -> tuple[str, dict[str, int]]:
    deadline = time.monotonic() + START_S
    with httpx.Client(trust_env=False) as http:
        while time.monotonic() < deadline:
            child.check_alive()
            admin = admin_file.read_text().strip() if admin_file.exists() else ""
            ports = _ports(http, admin) if admin else {}
            if len(ports) == 2 and all(ports.values()):
                return admin, ports
            time.sleep(0.05)
    raise AssertionError(f"Envoy does not listen\n{child.printed()[-4000:]}")


def _ports(http: httpx.Client, admin: str) -> dict[str, int]:
    try:
        page = http.get(f"http://{admin}/listeners", params={"format": "json"}).json()
    except (httpx.TransportError, ValueError):
        return {}
    return {
        entry["name"]: entry["local_address"]["socket_address"]["port_value"]
        for entry in page.get("listener_statuses", [])
    }
