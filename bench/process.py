"""One semmem process: how soon it is ready, what it holds after work, what it does when there is none."""

from __future__ import annotations

import compileall
import itertools
import time
from pathlib import Path
from typing import Any

import uvloop

import semmem
from bench.blocks import ending, run_block
from bench.cases import REQUEST_CASES, Case
from bench.client import connect
from bench.figures import over_rounds
from bench.kernel import children, cpu_seconds, resident_mb
from bench.plan import Place, Plan, Say
from bench.road import Road, processes, road
from bench.sidecars import drop_collection, start_semmem

Json = dict[str, Any]

CASE: Case = next(case for case in REQUEST_CASES if case.name == "search_both")
AT_ONCE = 4
LOOK_S = 1.0
QUIET_CPU = 0.05
"""Share of a core below which what was to be done behind the requests is done."""
QUIET_LOOKS = 5
"""So many times in a row."""
QUIET_S_MAX = 60.0


def measure(plan: Plan, place: Place, say: Say) -> Json:
    """As it is shipped: it learns from every turn. Raises Failed, TimeoutError and OSError."""
    # As where it is installed: a compiler's work costs time and memory once, at set-up.
    compileall.compile_dir(Path(semmem.__file__).parent, quiet=2)
    ready_s = _starts(plan, place)
    say(f"process: ready after {', '.join(f'{seconds:.1f}' for seconds in ready_s)} s")
    users = [f"bench{number}" for number in range(plan.users)]
    with road(place, (CASE,), plan, users=users, memories=plan.memories, learns=True) as here:
        ended = uvloop.run(_ask(here, plan, users))
        say(f"process: {plan.requests} requests sent")
        waited_s = _wait_until_quiet(here.semmem.pid)
        resident = _resident(here)
        idle = [_cpu_of_a_second(here) for _ in range(max(1, round(plan.idle_s / LOOK_S)))]
    own = sum(of["rss"] for name, of in resident.items() if name != "milvus_lite")
    return {
        "ready_s": ready_s,
        "resident_mb": resident,
        "waited_until_quiet_s": waited_s,
        "idle_cpu_ms_per_s": {name: over_rounds([second[name] for second in idle]) for name in idle[0]},
        "cases": {CASE.name: {f"c{AT_ONCE}": ended}},
        "keys": {
            "rss_mb": {"value": own, "quartiles": None},
            "ready_s": over_rounds(ready_s),
            "idle_ms": over_rounds([second["semmem"] for second in idle]) | {"value": _mean(idle, "semmem")},
        },
    }


def _starts(plan: Plan, place: Place) -> list[float]:
    """Seconds of each; in Milvus Lite the first makes the collection, and the others find it."""
    folder = place.folder / "starts"
    folder.mkdir()
    ready_s = []
    for _ in range(plan.starts):
        with processes(folder) as (running, http):
            started = start_semmem(running, folder, http, plan, learns=True)
            started.wait()
            ready_s.append(started.ready_s)
        drop_collection(started.config)
    return ready_s


async def _ask(here: Road, plan: Plan, users: list[str]) -> Json:
    connections = await connect(here.port, AT_ONCE)
    pairs = itertools.islice(zip(itertools.count(), itertools.cycle(users), strict=False), plan.requests)
    try:
        block = await run_block(here, CASE, connections, (CASE.request(number, user) for number, user in pairs))
    finally:
        for connection in connections:
            connection.close()
    return {"requests": len(block.replies), **ending(CASE, block.replies)}


def _wait_until_quiet(pid: int) -> float:
    """Until the process has had little to do for some seconds, or for QUIET_S_MAX. How long."""
    began, quiet = time.monotonic(), 0
    while quiet < QUIET_LOOKS and time.monotonic() - began < QUIET_S_MAX:
        before = cpu_seconds(pid)
        time.sleep(LOOK_S)
        quiet = quiet + 1 if cpu_seconds(pid) - before < QUIET_CPU * LOOK_S else 0
    return time.monotonic() - began


def _resident(here: Road) -> dict[str, dict[str, float]]:
    """Of semmem, of its Milvus Lite, and of any other child, by what it runs."""
    pid_of_semmem, lite = here.semmem.pid, here.semmem.lite()
    found = {"semmem": resident_mb(pid_of_semmem)}
    for pid, argv in children(pid_of_semmem).items():
        is_lite = lite is not None and pid == lite[0]
        found["milvus_lite" if is_lite else f"child {pid} {' '.join(argv[1:3])}"] = resident_mb(pid)
    return found


def _cpu_of_a_second(here: Road) -> dict[str, float]:
    """Milliseconds by process."""
    before = here.cpu_s()
    time.sleep(LOOK_S)
    return {name: (now - before[name]) / LOOK_S * 1000 for name, now in here.cpu_s().items()}


def _mean(seconds: list[dict[str, float]], name: str) -> float:
    """Not the median: what is done once in ten seconds counts."""
    return sum(second[name] for second in seconds) / len(seconds)


def table(found: Json) -> str:
    """For people."""
    resident = ", ".join(
        f"{name} {of['rss']:.0f} (shared in parts: {of['pss']:.0f})" for name, of in found["resident_mb"].items()
    )
    idle = ", ".join(f"{name} {of['value']:.1f}" for name, of in found["idle_cpu_ms_per_s"].items())
    starts = ", ".join(f"{seconds:.2f}" for seconds in found["ready_s"])
    return (
        f"\nProcess\nready after s: {starts}\nresident MB: {resident}\nCPU while idle, ms per second, medians: {idle}"
    )
