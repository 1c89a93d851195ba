"""Replicas, the servers that they share, and one Envoy that has all of them as endpoints."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.canary.run import Say
from tests.canary.stack import ShippedSidecar, soon_healthy
from tests.fleet.journals import Journals, OwnJournals, SharedJournal
from tests.fleet.milvus import StoreServer, milvus_lite, milvus_server
from tests.fleet.verdict import Away
from tests.support.endpoints import another_endpoint
from tests.support.harness import PATIENT, EnvoyProcess, envoy_process, eventually
from tests.support.servers import PostgresServer, ValkeyServer, postgres_server, valkey_server

Json = dict[str, Any]

LEASE_S = 10.0
"""What a killed replica was at is gone on with by another one after this time."""
HEALTHY_S = 60.0


@dataclass(frozen=True, slots=True)
class Parts:
    """What the fleet is made of. ``lite``: one Milvus Lite that replicas share, where no Milvus server is to run;
    ``own_journals``: a SQLite journal of each replica; ``override``: of both replicas' configuration."""

    program: str
    replicas: int = 2
    lite: bool = False
    own_journals: bool = False
    staleness_s: float | None = None


@dataclass(slots=True)
class Troubles:
    """What went away, by time.monotonic: moments around the kills of replicas; from when to when servers were away."""

    kills: list[float] = field(default_factory=list)
    outages: list[tuple[float, float]] = field(default_factory=list)
    events: list[tuple[float, str]] = field(default_factory=list)

    @property
    def gone(self) -> Away:
        return Away(self.kills, self.outages)

    def say(self, word: str) -> None:
        self.events.append((time.monotonic(), word))

    def when(self, at: float) -> str:
        """A moment as the time since the event before it."""
        before = [(then, word) for then, word in self.events if then <= at]
        return f"{at - before[-1][0]:.1f} s after {before[-1][1]!r}" if before else "before anything went away"


class Fleet:
    """``doors``: an Envoy of each replica alone. ``away`` says how many things are gone at this moment. ``store``: the
    server of the store that they share."""

    def __init__(
        self,
        replicas: list[ShippedSidecar],
        envoy: EnvoyProcess,
        doors: list[EnvoyProcess],
        journals: Journals,
        postgres: PostgresServer | None,
        valkey: ValkeyServer,
        store: StoreServer,
    ) -> None:
        self.replicas, self.envoy, self.doors, self.journals = replicas, envoy, doors, journals
        self.postgres, self.valkey, self.store = postgres, valkey, store
        self.up = asyncio.Event()
        self.up.set()
        self.troubles = Troubles()
        self.away = 0
        self._changes = itertools.count()
        self._turn = itertools.count()

    @property
    def changes(self) -> int:
        """Never twice the same while something is away: what fails then is no surprise."""
        return next(self._changes) if self.away else -1

    @property
    def running(self) -> list[ShippedSidecar]:
        return [replica for replica in self.replicas if replica.is_running]

    @property
    def next_replica(self) -> ShippedSidecar:
        """One that runs, each in its turn."""
        running = self.running
        return running[next(self._turn) % len(running)]

    @property
    def api_url(self) -> str:
        return self.next_replica.semmem.api_url

    @property
    def health_url(self) -> str:
        return self.next_replica.semmem.health_url

    def wait_healthy(self) -> None:
        name = "cluster.semmem.membership_healthy"
        eventually(
            lambda: self.envoy.stat(name) == len(self.replicas),
            within_s=HEALTHY_S,
            what="Envoy finds every replica healthy",
        )


@contextmanager
def fleet(folder: Path, parts: Parts, model: str, say: Say) -> Iterator[Fleet]:
    """Everything runs within the block. ``model`` is the URL of the model."""
    with ExitStack() as stack:
        (folder / "milvus").mkdir(parents=True, exist_ok=True)
        store = stack.enter_context((milvus_lite if parts.lite else milvus_server)(folder / "milvus"))
        say(f"the store is ready at {store.address}")
        valkey = stack.enter_context(valkey_server(folder / "valkey"))
        postgres = None if parts.own_journals else stack.enter_context(postgres_server(folder / "postgres"))
        url = postgres.create("semmem") if postgres else ""
        override = config(parts, store.address, url, valkey.url if url else "")
        replicas = [
            ShippedSidecar(folder / f"semmem-{number}", override, parts.program, ("rules",))
            for number in range(parts.replicas)
        ]
        for replica in replicas:
            stack.callback(replica.end)
            replica.start()
        ports = [replica.grpc_port for replica in replicas]
        envoy = stack.enter_context(_envoy(folder / "envoy", ports, model))
        doors = [stack.enter_context(_envoy(folder / f"envoy-{port}", [port], model)) for port in ports]
        journals = SharedJournal(url) if url else OwnJournals([replica.data_dir for replica in replicas])
        found = Fleet(replicas, envoy, doors, journals, postgres, valkey, store)
        found.wait_healthy()
        yield found


def config(parts: Parts, milvus: str, journal: str, news: str) -> Json:
    """Of both replicas, which tell each other of changes by ``news``, or by the journal's server where that is empty.
    A busy machine shall not look like a fault: deadlines are patient."""
    memory: Json = {
        "milvus": {"address": milvus},
        "extraction": {"lease_s": LEASE_S},
        "injection": {"fence_key": secrets.token_hex(32)},
    }
    memory["hot_cache"] = {"redis": {"url": news}}
    if parts.staleness_s is not None:
        memory["hot_cache"]["staleness_s"] = parts.staleness_s
    shared: Json = {"deployment": {"replicas": parts.replicas}, "journal": {"url": journal}} if journal else {}
    return {"deadlines": PATIENT, "memory": memory, **shared}


@contextmanager
def _envoy(folder: Path, ports: list[int], model: str) -> Iterator[EnvoyProcess]:
    """Streams go to the ``ports`` in turn."""

    def adapt(config: Json) -> None:
        soon_healthy(config)
        for port in ports[1:]:
            another_endpoint(config, port)

    with envoy_process(folder, semmem_port=ports[0], upstream=model, adapt=adapt) as envoy:
        yield envoy
