"""The road that is measured: upstream, no-op sidecar, semmem and one Envoy, each a process of its own on loopback."""

from __future__ import annotations

import copy
import json
import os
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml
from prometheus_client.parser import text_string_to_metric_families

from bench.cases import CASE_HEADER, MEMORIES, USER, Case
from bench.plan import Plan
from demo.envoy import derive
from demo.processes import POLL_S, Children, Failed
from demo.stack import HOME, envoy_argv, wait_for_envoy
from semmem.config import Settings

START_S = 120.0
SETTLED_S = 5.0
"""Milvus Lite writes its buffer into a segment some seconds after the last write; searches are faster from then on."""
STAGES = {
    "request": "semmem_request_seconds",
    "embed": "semmem_embedder_seconds",
    "store": "semmem_store_seconds",
}
"""semmem's own timers of the request path: the whole phase, and two parts of it."""

Config = dict[str, Any]
Sums = dict[str, tuple[float, float]]
"""By stage: seconds in all, and how many times."""


@dataclass
class Road:
    """Everything runs. ``pids`` by name: envoy, noop, semmem, milvus_lite (semmem's child)."""

    port: int
    health_url: str
    pids: dict[str, int]
    http: httpx.Client

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds that each process has used so far, user and system, all of its threads."""
        return {name: cpu_seconds(pid) for name, pid in self.pids.items()}

    def stage_sums(self) -> Sums:
        """semmem's timers so far, whatever the outcome."""
        families = text_string_to_metric_families(self.http.get(f"{self.health_url}/metrics").text)
        samples = [sample for family in families for sample in family.samples if _on_the_way(sample.labels)]
        return {
            stage: (
                sum(sample.value for sample in samples if sample.name == f"{metric}_sum"),
                sum(sample.value for sample in samples if sample.name == f"{metric}_count"),
            )
            for stage, metric in STAGES.items()
        }


def _on_the_way(labels: dict[str, str]) -> bool:
    """Of the store's calls only what a request does: search, and list when there is no embedding in time."""
    return labels.get("operation", "search") in ("search", "list")


def cpu_seconds(pid: int) -> float:
    """The kernel's CPU clock of another process (clock_getcpuclockid(3)): /proc/PID/stat in nanoseconds, not ticks."""
    return time.clock_gettime((~pid << 3) | 2)


@contextmanager
def road(folder: Path, cases: Sequence[Case], plan: Plan, *, envoy: Path) -> Iterator[Road]:
    """Start everything, seed the user's memories, and end everything. Raises Failed."""
    children = Children(folder, cwd=HOME)
    environ = os.environ | {"PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    http = httpx.Client(timeout=20, trust_env=False)
    try:
        stream = ["--tokens", str(plan.tokens), "--interval-ms", str(plan.token_interval_ms)]
        upstream = children.start("upstream", [sys.executable, "-m", "bench.upstream", *stream], environ)
        noop = children.start("noop", [sys.executable, "-m", "bench.noop"], environ)
        token = secrets.token_urlsafe(24)
        config = folder / "semmem.yaml"
        config.write_text(yaml.safe_dump(semmem_config(folder / "data", token, plan.patience)))
        semmem = children.start("semmem", [sys.executable, "-m", "semmem", "serve", "--config", str(config)], environ)
        ready = semmem.wait_for(r"^semmem ready grpc=\S+:(\d+) api=(\S+) health=(\S+)$", timeout_s=START_S)
        routed = envoy_config(
            cases,
            semmem_port=int(ready[1]),
            noop_port=_port(noop.wait_for(r"^noop ready (\d+)$", timeout_s=START_S)[1]),
            upstream_port=_port(upstream.wait_for(r"^upstream ready (\d+)$", timeout_s=START_S)[1]),
            patience=plan.patience,
        )
        file, admin_file = folder / "envoy.json", folder / "envoy-admin"
        file.write_text(json.dumps(routed))
        front = children.start("envoy", envoy_argv(envoy.absolute(), str(file), admin_file), environ)
        url = wait_for_envoy(front, http, admin_file, timeout_s=START_S)
        _wait_for_noop(http, admin_file.read_text().strip())
        _seed(http, f"http://{ready[2]}", token)
        pids = {"envoy": front.pid, "noop": noop.pid, "semmem": semmem.pid, "milvus_lite": _milvus_lite(semmem.pid)}
        yield Road(_port(url.rpartition(":")[2]), f"http://{ready[3]}", pids, http)
        children.check_alive()
    finally:
        http.close()
        children.end()


def _port(text: str) -> int:
    return int(text)


def semmem_config(data_dir: Path, admin_token: str, patience: float) -> Config:
    """The shipped defaults on free ports; nothing is learnt while it is measured, at once or by batches."""
    shipped = Settings().deadlines.model_dump()
    any_port = {"address": "127.0.0.1:0"}
    return {
        "data_dir": str(data_dir),
        "memory": {
            "embedding": {"source": "local"},
            "extraction_batch_size": 100,
            "extraction": {"engine": "rules", "session_idle_s": 900, "at_once": False},
        },
        "deadlines": {name: int(milliseconds * patience) for name, milliseconds in shipped.items()},
        "listeners": {"grpc": any_port, "api": {**any_port, "admin_token": admin_token}, "health": any_port},
    }


def envoy_config(
    cases: Sequence[Case], *, semmem_port: int, noop_port: int, upstream_port: int, patience: float = 1.0
) -> Config:
    """The shipped configuration with the no-op's filters beside semmem's, and one route per case."""
    shipped = yaml.safe_load((HOME / "deploy" / "envoy.yaml").read_text(encoding="utf-8"))
    config = derive(
        shipped,
        listener_port=0,
        admin_port=0,
        semmem_port=semmem_port,
        upstream=f"http://127.0.0.1:{upstream_port}",
        show_outcome=True,
    )
    resources = config["static_resources"]
    resources["clusters"].append(_noop_cluster(resources["clusters"], noop_port))
    manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    filters = manager["http_filters"]
    for entry in filters:
        if "message_timeout" in entry["typed_config"]:
            seconds = float(entry["typed_config"]["message_timeout"].removesuffix("s"))
            entry["typed_config"]["message_timeout"] = f"{seconds * patience:g}s"
    after = next(index for index, entry in enumerate(filters) if entry["name"] == "semmem.observe") + 1
    filters[after:after] = [
        _noop_filter(entry) for entry in filters if entry["name"] in ("semmem.mutate", "semmem.observe")
    ]
    host = manager["route_config"]["virtual_hosts"][0]
    host["routes"] = [_route(host["routes"][0], case) for case in cases]
    return config


def _noop_cluster(clusters: list[Config], port: int) -> Config:
    cluster = copy.deepcopy(next(cluster for cluster in clusters if cluster["name"] == "semmem"))
    cluster["name"] = "noop"
    cluster["load_assignment"]["cluster_name"] = "noop"
    endpoint = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]
    endpoint["address"]["socket_address"]["port_value"] = port
    return cluster


def _noop_filter(of_semmem: Config) -> Config:
    entry = copy.deepcopy(of_semmem)
    entry["name"] = entry["name"].replace("semmem", "noop")
    entry["typed_config"]["stat_prefix"] = entry["typed_config"]["stat_prefix"].replace("semmem", "noop")
    entry["typed_config"]["grpc_service"]["envoy_grpc"]["cluster_name"] = "noop"
    return entry


def _route(shipped: Config, case: Case) -> Config:
    route = copy.deepcopy(shipped)
    route["match"]["headers"].append({"name": CASE_HEADER, "string_match": {"exact": case.name}})
    enabled = route.pop("typed_per_filter_config")["semmem.mutate"]
    if case.filters:
        route["typed_per_filter_config"] = dict.fromkeys(case.filters, enabled)
    return route


def _wait_for_noop(http: httpx.Client, admin: str) -> None:
    name = "cluster.noop.membership_healthy"
    deadline = time.monotonic() + START_S
    while f"{name}: 1" not in http.get(f"http://{admin}/stats", params={"filter": name}).text:
        if time.monotonic() > deadline:
            raise Failed("Envoy does not find the no-op sidecar healthy")
        time.sleep(POLL_S)


def _seed(http: httpx.Client, api_url: str, token: str) -> None:
    for content in MEMORIES:
        answer = http.post(
            f"{api_url}/v1/memory",
            json={"user_id": USER, "content": content},
            headers={"authorization": f"Bearer {token}"},
        )
        if not answer.is_success:
            raise Failed(f"cannot seed memories: {answer.status_code} {answer.text[:200]}")
    time.sleep(SETTLED_S)


def _milvus_lite(semmem_pid: int) -> int:
    for children in Path(f"/proc/{semmem_pid}/task").glob("*/children"):
        for pid in children.read_text().split():
            if b"lite_server" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
    raise Failed("semmem has no Milvus Lite child")
