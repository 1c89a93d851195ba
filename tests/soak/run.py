"""One soak: a house, its load, a fault now and then, a sample every few seconds, and the verdict."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.sidecar import child_that_serves_milvus, stopped
from tests.soak.load import Clients, Tally
from tests.soak.samples import Growth, Sample, files_grew, growth, held, journal_mb, journal_states, memory_grew
from tests.support.harness import SHIPPED_EMBEDDER, House, eventually, house, stand_in_model

STOPPED_S = 1.0
LEASE_S = 20.0
STALLED_S, SETTLE_S = 120.0, 900.0
"""After the load. So long nothing may change before what is left counts as held for ever: some leases, and the time
a killed store needs to be back, so that what it interrupted is claimed and learnt from. And the longest wait: a slow
machine has minutes of turns to learn from."""
TOKEN_DELAY_S = 0.02
"""A streamed answer takes about 0.2 s, time enough to leave in its middle."""

CONFIG: dict[str, Any] = {
    "memory": {"extraction": {"session_idle_s": 2.0, "lease_s": LEASE_S, "attempts_max": 100}},
}


@dataclass(slots=True)
class Report:
    """What was seen. ``wrong``: one line for each thing that is not as it should be, answers to clients apart."""

    seconds: float
    tally: Tally
    samples: list[Sample] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    journal: dict[str, int] = field(default_factory=dict)
    streams: float = 0.0
    door_errors: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def growths(self) -> dict[str, Growth]:
        """Raises ValueError when there were too few samples."""
        figures: dict[str, list[float]] = {
            "semmem rss": [sample.semmem.rss_mb for sample in self.samples],
            "semmem files": [sample.semmem.files for sample in self.samples],
            "envoy rss": [sample.envoy.rss_mb for sample in self.samples],
            "envoy files": [sample.envoy.files for sample in self.samples],
        }
        return {name: growth(values) for name, values in figures.items()}


def soak(
    folder: Path,
    *,
    seconds: float,
    clients: int,
    seed: int,
    fault_interval_s: float,
    sample_interval_s: float,
    say: Callable[[str], None],
    program: str = SHIPPED_EMBEDDER,
) -> Report:
    """Load for ``seconds``; then wait until the journal is at rest. Judges all but growth."""
    with stand_in_model() as model, house(folder, model, CONFIG, as_shipped=True, program=program) as home:
        model.token_delay_s = TOKEN_DELAY_S
        load = Clients(home.envoy.url, number=clients, seed=seed)
        report = Report(seconds, load.tally)
        asyncio.run(_load(home, load, report, fault_interval_s, sample_interval_s, say))
        _at_rest(home, report)
    return report


async def _load(
    home: House,
    load: Clients,
    report: Report,
    fault_interval_s: float,
    sample_interval_s: float,
    say: Callable[[str], None],
) -> None:
    async with asyncio.TaskGroup() as group:
        beside = [
            group.create_task(_faults(home, report, fault_interval_s, say)),
            group.create_task(_samples(home, report, sample_interval_s, say)),
        ]
        await load.run(report.seconds)
        for task in beside:
            task.cancel()


async def _faults(home: House, report: Report, interval_s: float, say: Callable[[str], None]) -> None:
    for fault in itertools.cycle((_kill_store, _stop_semmem)):
        await asyncio.sleep(interval_s)
        done = await asyncio.to_thread(fault, home)
        report.faults.append(done)
        say(f"        fault: {done}")


def _kill_store(home: House) -> str:
    store = eventually(lambda: child_that_serves_milvus(home.semmem.child.pid), within_s=30, what="semmem has a store")
    os.kill(store, signal.SIGKILL)
    return "store killed"


def _stop_semmem(home: House) -> str:
    with stopped(home.semmem.child.pid):
        time.sleep(STOPPED_S)
    return "semmem stopped for a second"


async def _samples(home: House, report: Report, interval_s: float, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    while True:
        report.samples.append(await asyncio.to_thread(_sample, home, time.monotonic() - began, report.tally.total))
        say(row(report.samples[-1]))
        await asyncio.sleep(interval_s)


def _sample(home: House, at_s: float, requests: int) -> Sample:
    return Sample(
        at_s=at_s,
        semmem=held(home.semmem.child.pid),
        envoy=held(home.envoy.child.pid),
        store_mb=_store_mb(home),
        journal_mb=journal_mb(home.semmem.data_dir),
        streams=home.semmem.metric("semmem_extproc_streams"),
        requests=requests,
    )


def _store_mb(home: House) -> float:
    store = child_that_serves_milvus(home.semmem.child.pid)
    try:
        return held(store).rss_mb if store else 0.0
    except OSError:  # killed meanwhile
        return 0.0


HEADER = f"{'':8}{'requests':>10}{'semmem: MB':>12}{'files':>7}{'threads':>9}" + (
    f"{'Envoy: MB':>12}{'files':>7}{'threads':>9}{'store: MB':>11}{'journal MB':>12}{'streams':>9}"
)


def row(sample: Sample) -> str:
    semmem, envoy = sample.semmem, sample.envoy
    return f"{sample.at_s:6.0f} s{sample.requests:10}{semmem.rss_mb:12.1f}{semmem.files:7}{semmem.threads:9}" + (
        f"{envoy.rss_mb:12.1f}{envoy.files:7}{envoy.threads:9}{sample.store_mb:11.1f}{sample.journal_mb:12.2f}{sample.streams:9.0f}"
    )


def _at_rest(home: House, report: Report) -> None:
    """Wait until nothing is leased, waiting or open; whatever is leased or open after that is held for ever."""
    began = moved = time.monotonic()
    left = None
    while True:
        report.journal = journal_states(home.semmem.data_dir)
        report.streams = home.semmem.metric("semmem_extproc_streams")
        busy = report.journal["leased"] + report.journal["waiting"] + report.streams
        now = time.monotonic()
        left, moved = (busy, now) if busy != left else (left, moved)
        if not busy or now - moved > STALLED_S or now - began > SETTLE_S:
            break
        time.sleep(0.2)
    report.door_errors = home.semmem.metric("semmem_extproc_errors_total")
    leased = report.journal["leased"]
    waiting = report.journal["waiting"]
    report.wrong += [f"{leased} turns leased"] if leased else []
    report.wrong += [f"{waiting} turns not learnt"] if waiting else []
    report.wrong += [f"{report.streams:.0f} streams open"] if report.streams else []
    report.wrong += [f"{report.door_errors:.0f} failures nobody expected"] if report.door_errors else []


def grown(report: Report) -> list[str]:
    """What grew during the load."""
    found = []
    for name, figure in report.growths().items():
        too_much = files_grew(figure) if name.endswith("files") else memory_grew(figure)
        if too_much:
            found.append(f"{name} grew from {figure.before:.1f} to {figure.after:.1f}")
    return found
