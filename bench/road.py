"""The road that is measured: upstream, sidecars and one Envoy, each a process of its own on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from bench.bare import LINE_BYTES_MAX
from bench.cases import MEMORIES, USER, Case
from bench.kernel import cpu_seconds
from bench.plan import Place, Plan
from bench.routes import envoy_config
from bench.sidecars import ENVIRON, START_S, Semmem, drop_collection, port_of, start_python, start_semmem
from demo.processes import POLL_S, Child, Children, Failed
from demo.stack import HOME, envoy_argv, wait_for_envoy

NO_OPS = ("noop", "rewrite", "embed")
BARE_S = 120.0
"""A block of bare work, at most."""


@dataclass
class Road:
    """Everything runs. ``pids`` by name: envoy, upstream, client (this process), each of NO_OPS that is asked, bare,
    each semmem, and ``lite of`` it, its Milvus Lite where it has one."""

    port: int
    pids: dict[str, int]
    semmems: Mapping[str, Semmem]
    bare_port: int = 0
    grown_bytes: int = 0
    _bare: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = field(default=None, init=False)

    @property
    def semmem(self) -> Semmem:
        return self.semmems["semmem"]

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds that each process has used so far, user and system, all of its threads."""
        return {name: cpu_seconds(pid) for name, pid in self.pids.items()}

    async def bare(self, work: str, **asked: Any) -> dict[str, Any]:
        """What the process says that has neither Envoy nor semmem: see bare.py. Raises TimeoutError and OSError."""
        if self._bare is None:
            self._bare = await asyncio.open_connection("127.0.0.1", self.bare_port, limit=LINE_BYTES_MAX)
        reader, writer = self._bare
        writer.write(json.dumps({"do": work, **asked}).encode() + b"\n")
        async with asyncio.timeout(BARE_S):
            line = await reader.readline()
        if not line:
            raise ConnectionError("the bare process has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def processes(folder: Path) -> Iterator[tuple[Children, httpx.Client]]:
    """What a part starts: ended together, with its HTTP client."""
    children = Children(folder, cwd=HOME)
    http = httpx.Client(timeout=20, trust_env=False)
    try:
        yield children, http
        children.check_alive()
    finally:
        http.close()
        children.end()


@contextmanager
def road(
    place: Place,
    cases: Sequence[Case],
    plan: Plan,
    *,
    users: Sequence[str] = (USER,),
    memories: int = len(MEMORIES),
    known: Sequence[str] = MEMORIES,
    bare: bool = False,
    learns: bool = False,
    model: Callable[[Children], Child] | None = None,
) -> Iterator[Road]:
    """Start what the cases need, give each of ``users`` so many memories, and end everything. Raises Failed.

    ``known``: what the memories say, from the first on. ``model`` starts what stands in the upstream's place.
    ``learns``: as shipped, from every turn. The semmems ``cold`` and ``second`` are there where a case asks them.
    ``bare``: with the process that embeds, and asks the Milvus of the cold semmem, or else of the hot one.
    """
    asked = {case.sidecar for case in cases}
    with processes(place.folder) as (children, http):
        stream = ("--tokens", str(plan.tokens), "--interval-ms", str(plan.token_interval_ms))
        upstream = model(children) if model else start_python(children, "upstream", "bench.upstream", *stream)
        others = {"upstream": upstream}
        names = ["semmem", *(name for name in ("second", "cold") if name in asked)]
        start = partial(start_semmem, children, place.folder, http, plan, learns=learns)
        semmems = {name: start(name=name, hot=name != "cold") for name in names}
        try:
            for semmem in semmems.values():
                semmem.wait()
                semmem.seed(users, memories, known)
            time.sleep(plan.pause_s)
            grown = semmems["semmem"].injected_bytes() if "rewrite" in asked else 0
            others["noop"] = start_python(children, "noop", "bench.noop")
            if grown:
                others["rewrite"] = start_python(children, "rewrite", "bench.noop", "--grow", str(grown))
            if "embed" in asked:
                config = str(semmems["semmem"].config)
                others["embed"] = start_python(children, "embed", "bench.noop", "--grow", str(grown), "--embed", config)
            if bare:
                others["bare"] = _start_bare(children, semmems[names[-1]], plan)
            ports = {name: port_of(child) for name, child in others.items()}
            sidecars = {name: port for name, port in ports.items() if name in NO_OPS}
            sidecars |= {name: semmem.grpc_port for name, semmem in semmems.items()}
            front, port = _start_envoy(children, http, place, cases, sidecars, ports["upstream"], plan)
            pids = {"envoy": front.pid, "client": os.getpid(), **{name: child.pid for name, child in others.items()}}
            yield Road(port, pids | _pids(semmems), semmems, ports.get("bare", 0), grown)
        finally:
            for semmem in semmems.values():
                with suppress(Exception):  # a server that is away must not hide why the run failed
                    drop_collection(semmem.config)


def _pids(semmems: Mapping[str, Semmem]) -> dict[str, int]:
    lites = {f"lite of {name}": lite[0] for name, semmem in semmems.items() if (lite := semmem.lite()) is not None}
    return {name: semmem.pid for name, semmem in semmems.items()} | lites


def _start_bare(children: Children, semmem: Semmem, plan: Plan) -> Child:
    lite = semmem.lite()
    uri = f"http://{plan.milvus}" if lite is None else lite[1]
    return start_python(children, "bare", "bench.bare", "--config", str(semmem.config), "--milvus", uri)


def _start_envoy(
    children: Children,
    http: httpx.Client,
    place: Place,
    cases: Sequence[Case],
    sidecars: Mapping[str, int],
    upstream_port: int,
    plan: Plan,
) -> tuple[Child, int]:
    """Envoy, and its listener's port, when it finds every sidecar healthy."""
    config = envoy_config(cases, sidecars=sidecars, upstream_port=upstream_port, patience=plan.patience)
    file, admin_file = place.folder / "envoy.json", place.folder / "envoy-admin"
    file.write_text(json.dumps(config))
    argv = envoy_argv(place.envoy.absolute(), str(file), admin_file)
    front = children.start("envoy", argv, os.environ | ENVIRON)
    url = wait_for_envoy(front, http, admin_file, timeout_s=START_S)
    for name in sidecars:
        wait_until_healthy(http, admin_file.read_text().strip(), name)
    return front, int(url.rpartition(":")[2])


def wait_until_healthy(http: httpx.Client, admin: str, cluster: str) -> None:
    """Raises Failed when Envoy does not find the cluster's only host healthy in time."""
    name = f"cluster.{cluster}.membership_healthy"
    deadline = time.monotonic() + START_S
    while f"{name}: 1" not in http.get(f"http://{admin}/stats", params={"filter": name}).text:
        if time.monotonic() > deadline:
            raise Failed(f"Envoy does not find the sidecar {cluster} healthy")
        time.sleep(POLL_S)
