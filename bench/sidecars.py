"""The processes that Envoy asks, and what is asked of them beside Envoy: configuration, memories, metrics."""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import yaml
from prometheus_client.parser import text_string_to_metric_families
from pymilvus import MilvusClient

from bench.cases import MEMORIES, USER, distinct_question
from bench.kernel import age_s, children
from bench.plan import Plan
from demo.processes import Child, Children, Failed
from semmem.config import Settings

START_S = 120.0
ENVIRON = {"PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
TIMERS = {
    "request": "semmem_request_seconds",
    "embed": "semmem_embedder_seconds",
    "list": "semmem_store_seconds",
    "search": "semmem_store_seconds",
}
"""semmem's own timers of the request path: the whole phase, and its parts; of the store's calls the two that a request
may need."""
LAG = "semmem_loop_lag_seconds_bucket"
NOT_LEARNING = {"at_once": False, "drift_threshold": 0, "session_idle_s": 3600, "answer_wait_s": 3600}
"""Of extraction, longer than any run."""

Config = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Counts:
    """What a semmem has counted. ``timers`` by name: seconds in all, and how many times; ``lags`` by upper bound in
    seconds: how many looks at its event loop met no greater lag."""

    timers: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    lags: Mapping[float, float] = field(default_factory=dict)

    def since(self, before: Counts) -> Counts:
        timers = {
            name: (seconds - before.timers[name][0], times - before.timers[name][1])
            for name, (seconds, times) in self.timers.items()
        }
        return Counts(timers, {bound: count - before.lags[bound] for bound, count in self.lags.items()})


def counts_in(page: str) -> Counts:
    """From a page of metrics."""
    samples = [sample for family in text_string_to_metric_families(page) for sample in family.samples]

    def total(timer: str, suffix: str) -> float:
        return sum(
            sample.value
            for sample in samples
            if sample.name == TIMERS[timer] + suffix and sample.labels.get("operation", timer) == timer
        )

    return Counts(
        {timer: (total(timer, "_sum"), total(timer, "_count")) for timer in TIMERS},
        {float(sample.labels["le"]): sample.value for sample in samples if sample.name == LAG},
    )


@dataclass
class Semmem:
    """A running semmem. ``ready_s``: from the start of the process to its word that it is ready, which is looked for
    every POLL_S."""

    child: Child
    config: Path
    token: str
    http: httpx.Client
    ready_s: float = 0.0
    grpc_port: int = 0
    api_url: str = ""
    health_url: str = ""

    @property
    def pid(self) -> int:
        return self.child.pid

    def wait(self) -> None:
        """Until it is ready. Raises Failed."""
        began = time.monotonic() - age_s(self.pid)
        ready = self.child.wait_for(r"^semmem ready grpc=\S+:(\d+) api=(\S+) health=(\S+)$", timeout_s=START_S)
        self.ready_s = time.monotonic() - began
        self.grpc_port, self.api_url, self.health_url = int(ready[1]), f"http://{ready[2]}", f"http://{ready[3]}"

    def counts(self) -> Counts:
        return counts_in(self.http.get(f"{self.health_url}/metrics").text)

    def lite(self) -> tuple[int, str] | None:
        """Process id and URI of its Milvus Lite; None where it keeps memories on a server."""
        for pid, argv in children(self.pid).items():
            if any("lite_server" in argument for argument in argv):
                return pid, f"http://127.0.0.1:{argv[-1]}"
        return None

    def post(self, path: str, body: Config) -> Any:
        """Raises Failed where it is refused."""
        answer = self.http.post(self.api_url + path, json=body, headers={"authorization": f"Bearer {self.token}"})
        if not answer.is_success:
            raise Failed(f"{path}: {answer.status_code} {answer.text[:200]}", self.child.log)
        return answer.json()

    def seed(
        self, users: Iterable[str] = (USER,), memories: int = len(MEMORIES), known: Sequence[str] = MEMORIES
    ) -> None:
        """Give each user so many memories, ``known`` from the first on. Raises Failed."""
        for user in users:
            for content in islice(cycle(known), memories):
                self.post("/v1/memory", {"user_id": user, "content": content})

    def injected_bytes(self) -> int:
        """By how much a question makes the prompt longer, in the median of twenty."""
        blocks = (
            self.post("/v1/memory/preview", {"user_id": USER, "query": distinct_question(number)})["block"]
            for number in range(20)
        )
        return int(median(len(json.dumps("\n\n" + block)) - 2 for block in blocks))


def start_semmem(
    running: Children,
    folder: Path,
    http: httpx.Client,
    plan: Plan,
    *,
    name: str = "semmem",
    hot: bool = True,
    learns: bool = False,
) -> Semmem:
    """Begin to start one with a folder of its own; what is in it already, it finds."""
    token = secrets.token_urlsafe(24)
    config = folder / f"{name}.yaml"
    config.write_text(yaml.safe_dump(semmem_config(folder / name, token, plan, hot=hot, learns=learns)))
    argv = [sys.executable, "-m", "semmem", "serve", "--config", str(config)]
    return Semmem(running.start(name, argv, os.environ | ENVIRON), config, token, http)


def semmem_config(data_dir: Path, admin_token: str, plan: Plan, *, hot: bool = True, learns: bool = False) -> Config:
    """The shipped defaults on free ports.

    ``hot`` False: no user's memories stay in process, each search reads them. ``learns`` False: nothing is learnt, at
    once or by batches: topics are not looked at, and most turns wait for an answer that nobody observes.
    """
    learning = {} if learns else {"extraction_batch_size": 100}
    extraction = {} if learns else NOT_LEARNING
    shipped = Settings().deadlines.model_dump()
    any_port = {"address": "127.0.0.1:0"}
    milvus = {"address": plan.milvus, "collection": f"bench_{secrets.token_hex(6)}"} if plan.milvus else {}
    return {
        "data_dir": str(data_dir),
        "memory": {
            "milvus": milvus,
            "embedding": {"source": "local"},
            "hot_cache": {} if hot else {"staleness_s": 0},
            "extraction": {"engine": "rules", **extraction},
            **learning,
        },
        "deadlines": {name: int(milliseconds * plan.patience) for name, milliseconds in shipped.items()},
        "listeners": {"grpc": any_port, "api": {**any_port, "admin_token": admin_token}, "health": any_port},
    }


def drop_collection(config: Path) -> None:
    """What a run has made on a Milvus server; of Milvus Lite the folder goes."""
    milvus = yaml.safe_load(config.read_text())["memory"]["milvus"]
    if milvus:
        client = MilvusClient(uri=f"http://{milvus['address']}", timeout=START_S)
        client.drop_collection(milvus["collection"], timeout=START_S)
        client.close()


def start_python(running: Children, name: str, module: str, *arguments: str) -> Child:
    """A part of the benchmark, in a process of its own."""
    return running.start(name, [sys.executable, "-m", module, *arguments], os.environ | ENVIRON)


def port_of(child: Child) -> int:
    """The port that it says it listens on. Raises Failed."""
    return int(child.wait_for(r"^\w+ ready (\d+)", timeout_s=START_S)[1])
