"""The table of faults, the houses they are tried on, and the run over both."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semmem.demo.processes import Child
from semmem.demo.stack import HOME
from tests.e2e.harness import eventually
from tests.faults import answer_faults, body_faults, client_faults, clock_faults, sidecar_faults, store_faults, streams
from tests.faults.client import differences
from tests.faults.counts import NotProven
from tests.faults.forms import EVERY_FORM, JSON, KINDS, PATHS, SSE, Form
from tests.faults.house import House, Trial, house
from tests.faults.loops import LoopThread, loop_thread
from tests.faults.model_faults import Extraction
from tests.faults.proxy import Proxy, proxy
from tests.faults.sidecar import free_port
from tests.faults.upstream import Upstream, upstream
from tests.scripted_llm import Reply

Run = Callable[[House, Form], Trial]
Opening = AbstractContextManager[tuple[House, Mapping[str, Run]]]

QUICK: dict[str, Any] = {
    "memory": {
        "extraction": {"session_idle_s": 0.2, "poll_interval_s": 0.1},
        "hot_cache": {"staleness_s": 0},  # every request needs the store, so that its faults are felt
    },
    "limits": {"request_body_bytes_max": body_faults.BODY_BYTES_MAX, "decoded_bytes_max": 8 * 1024 * 1024},
}
"""What every semmem here is configured with."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault in one form, and what came of it. ``different`` empty: as it should be."""

    fault: str
    form: Form
    different: tuple[str, ...]
    proof: str
    seconds: float

    def __str__(self) -> str:
        verdict = f"DIFFERS: {'; '.join(self.different)}" if self.different else "same"
        return f"{self.fault:36} {self.form} {self.seconds:5.1f} s  {verdict}  [{self.proof or 'not proven'}]"


def try_out(fault: str, run: Run, on: House, form: Form) -> Cell:
    started = time.monotonic()
    try:
        on.ledger.open()
        trial = run(on, form)
        counted, miscounts = on.ledger.close()
        different = (*differences(trial.plain, trial.faulted), *trial.extra, *miscounts)
        proof = f"{trial.proof}; {counted}"
    except NotProven as error:
        different, proof = (str(error),), ""
    return Cell(fault, form, tuple(dict.fromkeys(different)), proof, time.monotonic() - started)


# --- the houses and what is tried on each ----------------------------------------------------------------------------


EMBEDDED: dict[str, Run] = {
    "semmem just died": sidecar_faults.just_died,
    "semmem down": sidecar_faults.down,
    "semmem stopped": sidecar_faults.stopped_before,
    "semmem stopped in mid-request": sidecar_faults.stopped_in_mid_request,
    "semmem stopped in mid-stream": sidecar_faults.stopped_in_mid_stream,
    "semmem stopped in mid-stream, 4 MB": sidecar_faults.stopped_in_mid_stream_of_megabytes,
    "semmem killed in mid-request": sidecar_faults.killed_in_mid_request,
    "semmem killed in mid-stream": sidecar_faults.killed_in_mid_stream,
    "semmem restarted under load": sidecar_faults.restarted_under_load,
    "SIGTERM under load": sidecar_faults.sigterm_under_load,
    "Milvus Lite killed": store_faults.store_killed,
    "Milvus Lite stopped": store_faults.store_stopped,
    "store of another dimension": store_faults.store_of_another_dimension,
    "embedder raises": store_faults.embedder_raises,
    "embedder slow": store_faults.embedder_slow,
    "embedder breaks": store_faults.embedder_breaks,
    "embedder and store down": store_faults.embedder_and_store_down,
    "journal locked": store_faults.journal_locked,
    **body_faults.ODD_BODIES,
    "body beyond gRPC's limit, chunked": body_faults.beyond_grpc,
    "body announced too short": body_faults.announced_too_short,
    "body with line ends for headers": body_faults.hostile_members,
    "client gone before the answer": client_faults.gone_before,
    "client gone during the search": client_faults.gone_in_search,
    "client gone in its own body": client_faults.gone_in_its_body,
    "client gone during the answer": client_faults.gone_during,
    "clients of one session at once": client_faults.at_once,
    "header flood": client_faults.header_flood,
    "header flood beyond Envoy's limit": client_faults.header_flood_beyond,
    "header names nothing, it is too long": client_faults.long_names,
    "header with control characters": client_faults.control_characters,
    "header contradicts itself": client_faults.contradicting_controls,
    "header with two framings": client_faults.two_framings,
    "websocket": client_faults.websocket,
    "websocket refused": client_faults.websocket_refused,
    **answer_faults.MODEL_FAULTS,
    "clock jumps a day ahead": clock_faults.jumps(clock_faults.DAY_S),
    "clock jumps a day back": clock_faults.jumps(-clock_faults.DAY_S),
}

EVERY_API = {
    "semmem stopped",
    "semmem stopped in mid-stream",
    "semmem killed in mid-stream",
    "Milvus Lite killed",
    "Milvus Lite stopped",
    "embedder raises",
    "embedder breaks",
    "body beyond gRPC's limit, chunked",
    "body announced too short",
    "body with line ends for headers",
    "client gone before the answer",
    "client gone during the search",
    "client gone in its own body",
    "client gone during the answer",
    "clients of one session at once",
    *body_faults.ODD_BODIES,
    *answer_faults.MODEL_FAULTS,
}
"""Faults that each API's own code meets; the others are tried with chat completions."""
ONE_FORM = {"websocket": (JSON,), "2,000 streams at once": (SSE,)}


def forms_of(fault: str) -> tuple[Form, ...]:
    return ONE_FORM.get(fault, EVERY_FORM if fault in EVERY_API else KINDS)


CROWDED: dict[str, Run] = {"more requests than semmem takes": sidecar_faults.crowded}
STREAMS = 2000
OBSERVED_MAX = 1024
"""limits.observe_streams_max as shipped."""
STREAMING: dict[str, Run] = {"2,000 streams at once": streams.many_streams(OBSERVED_MAX, streams=STREAMS)}
FULL: dict[str, Run] = {"journal full": store_faults.journal_full}
JOURNAL_BYTES_MAX = 200 * 1024


def remote_faults(way: Proxy) -> dict[str, Run]:
    behind = store_faults.store_behind
    return {
        "store slow": behind(way, "slow", "store_timeout"),
        "store hangs": behind(way, "hang", "store_timeout"),
        "store cuts connections": behind(way, "reset", "store_down", "store_timeout"),
        "store refuses connections": behind(way, "refuse", "store_down", "store_timeout"),
        "store down at start": store_faults.store_down_at_start(way),
    }


def extraction_faults(model: Extraction, way: Proxy) -> dict[str, Run]:
    return {
        "extraction LLM down": model.unreachable(way),
        "extraction LLM slow": model.fails(Reply(hang=True), "postponed", "ModelUnavailable"),
        "extraction LLM talks garbage": model.fails("As a large language model", "extraction_failed", "ok"),
        "extraction LLM answers no JSON": model.fails(Reply(raw=b"<html>"), "extraction_failed", "ModelRefused"),
        "extraction LLM answers 429": model.fails(Reply(status=429), "postponed", "ModelUnavailable"),
        "extraction LLM answers 500": model.fails(Reply(status=500), "postponed", "ModelUnavailable"),
        "extraction LLM answers 401": model.fails(Reply(status=401), "extraction_failed", "ModelRefused"),
    }


SHORT_CROWD = "100 streams at once"
SHORT_OBSERVED_MAX = 40
SHORT: dict[str, tuple[Form, ...]] = {
    "semmem stopped": KINDS,
    "semmem stopped in mid-stream": tuple(Form(api, sse=True) for api in PATHS),
    "semmem killed in mid-stream": KINDS,
    "Milvus Lite killed": KINDS,
    "Milvus Lite stopped": KINDS,
    "embedder raises": KINDS,
    "journal locked": KINDS,
    "body with a key twice": KINDS,
    "body over the cap": KINDS,
    "body a gzip bomb": (SSE,),
    "body with line ends for headers": (Form("responses"),),
    "clients of one session at once": (SSE,),
    "header flood": (SSE,),
    "header with control characters": (JSON,),
    "header with two framings": (JSON,),
    "websocket": (JSON,),
    "model answers 429": KINDS,
    "model answers 204": (JSON,),
    "model redirects, 302": (JSON,),
    "model resets in mid-stream": EVERY_FORM,
    "model sends trailers": (SSE,),
    "model announces too little": (Form("messages"),),
    "model answers a gzip bomb": KINDS,
    "clock jumps a day back": (SSE,),
    SHORT_CROWD: (SSE,),
}
"""The faults of the short form: all on one house, one or two of each kind."""


@contextmanager
def _lite(folder: Path) -> Iterator[int]:
    """A Milvus Lite server that is not semmem's own; its port."""
    port = free_port()
    folder.mkdir(parents=True)
    start = "import sys; from milvus_lite.cmdline import main; main(sys.argv[1:])"
    argv = [sys.executable, "-c", start, "server", "--data-dir", str(folder / "data")]
    argv += ["--host", "127.0.0.1", "--port", str(port)]
    child = Child("milvus-lite", argv, log=folder / "log", cwd=HOME, environ=os.environ)
    try:
        eventually(lambda: _connects(port), within_s=60, what="Milvus Lite listens")
        yield port
    finally:
        child.terminate()
        child.wait(10)


def _connects(port: int) -> bool:
    import socket

    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def remote(loop: LoopThread, model: Upstream, folder: Path) -> Iterator[tuple[House, Proxy, Mapping[str, Run]]]:
    """A house whose store is at an address, its way there, and what can be tried on them."""
    with _lite(folder / "lite") as port, proxy(loop, port) as way:
        override = {**QUICK, "memory": {**QUICK["memory"], "milvus": {"address": f"127.0.0.1:{way.port}"}}}
        with house(loop, model, folder, override) as running:
            running.remember()
            yield running, way, remote_faults(way)


@contextmanager
def _remote(loop: LoopThread, model: Upstream, folder: Path) -> Iterator[tuple[House, Mapping[str, Run]]]:
    with remote(loop, model, folder) as (running, _, faults):
        yield running, faults


@contextmanager
def _extracting(loop: LoopThread, model: Upstream, folder: Path) -> Iterator[tuple[House, Mapping[str, Run]]]:
    llm = Extraction()
    loop.run(llm.server.__aenter__())
    try:
        port = int(llm.server.base_url.rpartition(":")[2].removesuffix("/v1"))
        with proxy(loop, port) as way:
            endpoint = {
                "model_role": "memory_extraction",
                "llm_endpoint": {"url": f"http://127.0.0.1:{way.port}/v1"},
                "llm_model_name": "any",
                "llm_timeout_seconds": 1.5,
            }
            memory = {"backend": "in_process", "extraction": {**QUICK["memory"]["extraction"], "engine": "llm"}}
            with house(loop, model, folder, {**QUICK, "memory": memory, "external_models": [endpoint]}) as running:
                yield running, extraction_faults(llm, way)
    finally:
        loop.run(llm.server.__aexit__(None, None, None))


@contextmanager
def _plain(
    loop: LoopThread,
    model: Upstream,
    folder: Path,
    faults: Mapping[str, Run],
    override: Mapping[str, Any],
    *extra: str,
) -> Iterator[tuple[House, Mapping[str, Run]]]:
    with house(loop, model, folder, override, extra) as running:
        running.remember()
        yield running, faults


@contextmanager
def _streaming(loop: LoopThread, model: Upstream, folder: Path) -> Iterator[tuple[House, Mapping[str, Run]]]:
    """As shipped, but that nothing is learnt meanwhile: all of the machine is there for the streams."""
    streams.raise_files_limit(STREAMS)
    with _plain(loop, model, folder, STREAMING, {"memory": {"extraction": {"session_idle_s": 3600}}}) as opened:
        yield opened


def houses(loop: LoopThread, model: Upstream, folder: Path) -> Iterator[tuple[Iterable[str], Opening]]:
    """Each house: the names of its faults, and the context manager that opens it."""
    crowded = {**QUICK, "limits": {"mutate_streams_max": 2}}
    yield EMBEDDED, _plain(loop, model, folder / "embedded", EMBEDDED, QUICK)
    yield CROWDED, _plain(loop, model, folder / "crowded", CROWDED, crowded)
    yield STREAMING, _streaming(loop, model, folder / "streaming")
    small = ("--journal-bytes-max", str(JOURNAL_BYTES_MAX))
    yield FULL, _plain(loop, model, folder / "full", FULL, QUICK, *small)
    yield remote_faults(Proxy(0)), _remote(loop, model, folder / "remote")
    yield extraction_faults(Extraction(), Proxy(0)), _extracting(loop, model, folder / "extracting")


def run(folder: Path, wanted: Callable[[str], bool], say: Callable[[Cell], None]) -> list[Cell]:
    """Every wanted fault, in all its forms."""
    cells: list[Cell] = []
    with loop_thread() as loop, upstream(loop) as model:
        for names, opening in houses(loop, model, folder):
            if not any(map(wanted, names)):
                continue
            with opening as (running, faults):
                for fault in filter(wanted, faults):
                    for form in forms_of(fault):
                        cells.append(try_out(fault, faults[fault], running, form))
                        say(cells[-1])
    return cells


def envoys_own_413(folder: Path) -> str:
    """What only Envoy does: to read a body it must be held whole, so a chunked one beyond its buffer is refused."""
    body = JSON.question(padding="x" * (17 * 1024 * 1024))
    with loop_thread() as loop, upstream(loop) as model, house(loop, model, folder / "apart", QUICK) as running:
        refused = running.ask(JSON, body=body, chunked=True)
        announced = running.ask(JSON, body=body)
        plain = running.ask(JSON, plain=True, body=body, chunked=True)
    return (
        f"apart: a body of 17 MiB, beyond Envoy's buffer of 16 MiB: {refused.status} when chunked (Envoy's own), "
        f"{announced.status} when its length is announced, {plain.status} on a route without semmem's filters"
    )


def run_short(folder: Path) -> list[Cell]:
    """The short form, on one house."""
    few = {**QUICK, "limits": {**QUICK["limits"], "observe_streams_max": SHORT_OBSERVED_MAX}}
    crowd = streams.many_streams(SHORT_OBSERVED_MAX, streams=100, tokens=5, token_s=0.1)
    faults = {**EMBEDDED, SHORT_CROWD: crowd}
    with loop_thread() as loop, upstream(loop) as model, house(loop, model, folder, few) as running:
        running.remember()
        return [try_out(fault, faults[fault], running, form) for fault, forms in SHORT.items() for form in forms]
