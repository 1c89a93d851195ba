"""The houses that faults are tried on, and the run over houses and faults."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo.processes import Child
from demo.stack import HOME
from tests.faults import streams
from tests.faults.body_faults import BODY_BYTES_MAX
from tests.faults.client import differences, late
from tests.faults.counts import NotProven
from tests.faults.forms import JSON, Form
from tests.faults.house import House, house
from tests.faults.loops import LoopThread, loop_thread
from tests.faults.model_faults import Extraction
from tests.faults.proxy import Proxy, proxy
from tests.faults.table import (
    CROWDED,
    EMBEDDED,
    FULL,
    FULL_JOURNAL_ROOM_BYTES,
    SHORT,
    SHORT_CROWD,
    SHORT_OBSERVED_MAX,
    STREAMING,
    STREAMS,
    Run,
    extraction_faults,
    forms_of,
    remote_faults,
)
from tests.faults.upstream import Upstream, upstream
from tests.support.empty_journal import empty_journal_bytes
from tests.support.harness import eventually
from tests.support.ports import free_port

TRIES = 3
Opening = AbstractContextManager[tuple[House, Mapping[str, Run]]]

QUICK: dict[str, Any] = {
    "memory": {
        "extraction": {"session_idle_s": 0.2, "poll_interval_s": 0.1},
        "hot_cache": {"staleness_s": 0},  # every request needs the store, so that its faults are felt
    },
    "limits": {"request_body_bytes_max": BODY_BYTES_MAX, "decoded_bytes_max": 8 * 1024 * 1024},
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


@dataclass
class Result:
    """What came of a run."""

    cells: list[Cell] = field(default_factory=list)
    houses_failed: int = 0
    not_run: int = 0
    """Cells that a failed house did not come to."""

    @property
    def good(self) -> bool:
        return bool(self.cells) and not self.houses_failed and not any(cell.different for cell in self.cells)

    def __str__(self) -> str:
        differ = sum(bool(cell.different) for cell in self.cells)
        return (
            f"faults: {len(self.cells)} cells, {differ} differ; "
            f"{self.houses_failed} houses failed, {self.not_run} cells not run"
        )


def try_out(fault: str, run: Run, on: House, form: Form, *, timed: bool = True) -> Cell:
    """Where all that differs is that something came late it is tried again: a busy moment of the machine comes once,
    and what semmem holds up is late each time."""
    started = time.monotonic()
    for attempt in range(1, TRIES + 1):
        try:
            on.ledger.open()
            trial = run(on, form)
            counted, miscounts = on.ledger.close()
        except NotProven as error:
            return Cell(fault, form, (str(error),), "", time.monotonic() - started)
        different = (*differences(trial.plain, trial.faulted, timed=False), *trial.extra, *miscounts)
        delays = late(trial.plain, trial.faulted) if timed else []
        proof = f"{trial.proof}; {counted}" + (f"; at try {attempt}" if attempt > 1 else "")
        if different or not delays:
            break
    return Cell(fault, form, tuple(dict.fromkeys((*different, *delays))), proof, time.monotonic() - started)


# --- the houses ------------------------------------------------------------------------------------------------------


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


@contextmanager
def _full(loop: LoopThread, model: Upstream, folder: Path) -> Iterator[tuple[House, Mapping[str, Run]]]:
    """A journal with little room."""
    bytes_max = empty_journal_bytes() + FULL_JOURNAL_ROOM_BYTES
    with _plain(loop, model, folder, FULL, QUICK, "--journal-bytes-max", str(bytes_max)) as opened:
        yield opened


def houses(loop: LoopThread, model: Upstream, folder: Path) -> Iterator[tuple[Iterable[str], Opening]]:
    """Each house: the names of its faults, and the context manager that opens it."""
    crowded = {**QUICK, "limits": {"mutate_streams_max": 2}}
    yield EMBEDDED, _plain(loop, model, folder / "embedded", EMBEDDED, QUICK)
    yield CROWDED, _plain(loop, model, folder / "crowded", CROWDED, crowded)
    yield STREAMING, _streaming(loop, model, folder / "streaming")
    yield FULL, _full(loop, model, folder / "full")
    yield remote_faults(Proxy(0)), _remote(loop, model, folder / "remote")
    yield extraction_faults(Extraction(), Proxy(0)), _extracting(loop, model, folder / "extracting")


def run(
    folder: Path, wanted: Callable[[str], bool], say: Callable[[Cell | str], None], *, each_max: int | None = None
) -> Result:
    """Every wanted fault, in all its forms; of each house ``each_max`` cells at most."""
    result = Result()
    with loop_thread() as loop, upstream(loop) as model:
        for names, opening in houses(loop, model, folder):
            planned = [(fault, form) for fault in filter(wanted, names) for form in forms_of(fault)][:each_max]
            if planned:
                run_house(opening, planned, result, say)
    return result


def run_house(
    opening: Opening, planned: Sequence[tuple[str, Form]], result: Result, say: Callable[[Cell | str], None]
) -> None:
    """What is planned for one house. An error that none of its faults expects ends this house, and no other."""
    tried = 0
    try:
        with opening as (running, faults):
            for fault, form in planned:
                result.cells.append(try_out(fault, faults[fault], running, form))
                tried += 1
                say(result.cells[-1])
    except Exception:  # whatever it is, it is told, and counted
        result.not_run += len(planned) - tried
        result.houses_failed += 1
        at = " ".join(map(str, planned[tried])) if tried < len(planned) else "its end"
        say(f"{traceback.format_exc()}A HOUSE FAILED at {at}: {len(planned) - tried} of its cells were not run")


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
    """The short form, on one house; how long an answer takes is for the long one, on a machine that has time."""
    few = {**QUICK, "limits": {**QUICK["limits"], "observe_streams_max": SHORT_OBSERVED_MAX}}
    crowd = streams.many_streams(SHORT_OBSERVED_MAX, streams=100, tokens=5, token_s=0.1)
    faults = {**EMBEDDED, SHORT_CROWD: crowd}
    with loop_thread() as loop, upstream(loop) as model, house(loop, model, folder, few) as running:
        running.remember()
        return [
            try_out(fault, faults[fault], running, form, timed=False)
            for fault, forms in SHORT.items()
            for form in forms
        ]
