"""A Prometheus of Debian's on ports of its own, and what it answers."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from demo.processes import Child
from demo.stack import HOME
from tests.support.harness import eventually
from tests.support.ports import free_port

DEPLOY = HOME / "deploy"
RULES = DEPLOY / "prometheus" / "rules.yaml"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "semmem.json").read_text())
SCRAPE_S = 1


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running server."""

    url: str

    def get(self, path: str, **params: str) -> Any:
        """The data of an answer of its API."""
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=params, trust_env=False)
        return answer.raise_for_status().json()["data"]

    def series(self, expression: str) -> list[dict[str, str]]:
        """The labels of the series that an expression has now, without those that are no number."""
        found = self.get("query", query=expression)["result"]
        return [each["metric"] for each in found if not math.isnan(float(each["value"][1]))]


@contextmanager
def prometheus(folder: Path, *, semmem: str, envoy: str) -> Iterator[Prometheus]:
    """It reads both pages (host:port) every SCRAPE_S, and has the shipped rules."""
    config = {
        "global": {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": f"{SCRAPE_S}s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {"job_name": "semmem", "static_configs": [{"targets": [semmem]}]},
            {"job_name": "envoy", "metrics_path": "/stats/prometheus", "static_configs": [{"targets": [envoy]}]},
        ],
    }
    file, port = folder / "prometheus.yaml", free_port()
    file.write_text(yaml.safe_dump(config))
    argv = [
        "prometheus",
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    child = Child("prometheus", argv, log=folder / "prometheus.log", cwd=HOME, environ=os.environ)
    try:
        server = Prometheus(f"http://127.0.0.1:{port}")
        eventually(lambda: both_are_up(child, server), within_s=30, what="Prometheus reads both pages")
        yield server
    finally:
        child.terminate()
        child.wait(20)


def both_are_up(child: Child, server: Prometheus) -> bool:
    child.check_alive()
    try:
        return len(server.series("up == 1")) == 2
    except (httpx.TransportError, httpx.HTTPStatusError):  # it answers 503 until it is ready
        return False


def queries(rate_interval: str) -> dict[str, str]:
    """The dashboard's expressions by panel and letter, with its variables replaced."""
    return {
        f"{panel['title']} {target['refId']}": target["expr"]
        .replace("$__rate_interval", rate_interval)
        .replace("$envoy_job", "envoy")
        .replace("$job", "semmem")
        for panel in DASHBOARD["panels"]
        for target in panel.get("targets", [])
    }
