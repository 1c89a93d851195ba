"""semmem as it is shipped, on fixed ports so that it can be ended and started again, behind a real Envoy."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from demo.processes import Child
from tests.faults.sidecar import Sidecar
from tests.support import forked
from tests.support.harness import PATIENT, EnvoyProcess, eventually, merged, semmem_config

HEALTH_INTERVAL = "0.3s"
"""Of Envoy's health checks: shorter than shipped, so that a restarted semmem is soon used again."""
QUIET_S = 0.5
"""How long users pause before semmem is ended in peace; a kill comes without a pause."""

AUDIT = "audit.jsonl"
"""Where in data_dir the audit log is."""
ENGINES = ("rules", "llm")
"""How facts are found, in turn from one start of semmem to the next."""


def config(extractor: str, collector: str) -> dict[str, Any]:
    """For all starts. A busy machine shall not look like a hole: what fails open is neither a leak nor a
    return. What a kill interrupted is soon gone on with. ``extractor`` is the URL of semmem's own language
    model, ``collector`` that of a collector of traces."""
    model: dict[str, Any] = {
        "model_role": "memory_extraction",
        "llm_endpoint": {"url": extractor},
        "llm_model_name": "scripted",
    }
    model["llm_timeout_seconds"] = 4
    learning = {"lease_s": 10.0, "contradiction_check": False}
    return {
        "deadlines": PATIENT,
        "memory": {"extraction": learning},
        "external_models": [model],
        "listeners": {"api": {"mcp": True, "audit": {"to": AUDIT}, "rate_limit": {"calls_per_s": 0}}},
        "conversations": {"enabled": True, "flush_s": 0.2},
        "tracing": {"endpoint": collector, "user_hmac_secret": "a-key-of-this-run-alone"},
    }


class ShippedSidecar(Sidecar):
    """``semmem serve``, where Sidecar has parts that break; the next one of ``engines`` with each start.

    ``program``: SHIPPED_EMBEDDER or BAG_OF_WORDS.
    """

    def __init__(
        self, folder: Path, override: Mapping[str, Any], program: str, engines: Sequence[str] = ENGINES
    ) -> None:
        super().__init__(folder, override)
        self._program = program
        self._engines = engines

    def launch(self, override: Mapping[str, Any] | None = None, *extra: str) -> Child:
        self.starts += 1
        ports = {"grpc": self.grpc_port, "api": self._api_port, "health": self._health_port}
        listeners = {name: {"address": f"127.0.0.1:{port}"} for name, port in ports.items()}
        file = self.folder / "config.yaml"
        engine = {"memory": {"extraction": {"engine": self._engines[(self.starts - 1) % len(self._engines)]}}}
        whole = merged(merged(merged(self._override, engine), override or {}), {"listeners": listeners})
        file.write_text(yaml.safe_dump(semmem_config(self.data_dir, whole)))
        words = ["serve", "--config", file, *extra]
        return forked.child(self._program, words, log=self.folder / f"semmem-{self.starts}.log")


def soon_healthy(config: dict[str, Any]) -> None:
    """Envoy looks after semmem more often than shipped; in place."""
    clusters = {cluster["name"]: cluster for cluster in config["static_resources"]["clusters"]}
    clusters["semmem"]["health_checks"][0].update(interval=HEALTH_INTERVAL, no_traffic_interval=HEALTH_INTERVAL)


class Stack:
    """``up`` is set while semmem may be asked; ``changes`` counts its goings and comings."""

    def __init__(self, sidecar: Sidecar, envoy: EnvoyProcess) -> None:
        self.sidecar = sidecar
        self.envoy = envoy
        self.up = asyncio.Event()
        self.changes = 0
        self.up.set()

    @property
    def api_url(self) -> str:
        return self.sidecar.semmem.api_url

    @property
    def health_url(self) -> str:
        return self.sidecar.semmem.health_url

    def logs(self) -> list[Path]:
        return [*sorted(self.sidecar.folder.glob("semmem-*.log")), self.envoy.child.log]

    @asynccontextmanager
    async def away(self, signum: signal.Signals) -> AsyncIterator[None]:
        """semmem is ended by a signal, and is back behind the block. Nobody begins anything meanwhile."""
        self.up.clear()
        if signum is not signal.SIGKILL:
            await asyncio.sleep(QUIET_S)
        self.changes += 1
        await asyncio.to_thread(self.sidecar.end, signum)
        yield
        await asyncio.to_thread(self.sidecar.start)
        await asyncio.to_thread(self._wait_healthy)
        self.changes += 1
        self.up.set()

    def _wait_healthy(self) -> None:
        name = "cluster.semmem.membership_healthy"
        eventually(lambda: self.envoy.stat(name) == 1, within_s=30, what="Envoy finds semmem healthy")
