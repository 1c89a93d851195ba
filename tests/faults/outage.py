"""``python -m tests.faults.outage [SECONDS]``: the store is gone under load, half the time hanging, half refusing.

Requests must pass unaltered and within the phase's deadline, and memory must come back by itself.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from demo.processes import signals_raise
from tests.faults.client import Seen, differences
from tests.faults.forms import JSON
from tests.faults.house import House
from tests.faults.loops import loop_thread
from tests.faults.store_faults import behaving
from tests.faults.suite import remote
from tests.faults.upstream import Script, upstream

CLIENTS = 4
PAUSE_S = 0.1
"""Of each client between two requests: load that the machine can carry, so that waiting is semmem's and not its."""
DEADLINE_S = 0.35
MARGIN_S = 0.15
"""What client, Envoy and model take, on a busy machine."""
QUICK = Script(tokens=2, token_ms=0)


@dataclass(frozen=True)
class Phase:
    """What the clients saw in one stretch of time."""

    name: str
    seen: list[Seen]
    wrong: list[str]

    @property
    def p99_s(self) -> float:
        return statistics.quantiles([one.seconds for one in self.seen], n=100)[98]

    def __str__(self) -> str:
        outcomes = Counter(one.outcome or "none" for one in self.seen)
        p50_s = statistics.median(one.seconds for one in self.seen)
        words = ", ".join(f"{word} {count}" for word, count in outcomes.most_common())
        times = f"p50 {p50_s * 1000:.0f} ms, p99 {self.p99_s * 1000:.0f} ms"
        return f"{self.name:24} {len(self.seen):5} requests, {times}; {words}; {len(self.wrong)} altered"


def under_load(on: House, name: str, seconds: float, *, plain: bool = False) -> Phase:
    """Ask without an end for so long. Altered is what differs from an answer without semmem, but for its time."""
    model_answer = on.ask(JSON, plain=True, script=QUICK)
    seen: list[Seen] = []
    until = time.monotonic() + seconds

    def keep_asking() -> None:
        while time.monotonic() < until:
            seen.append(on.ask(JSON, script=QUICK, plain=plain))
            time.sleep(PAUSE_S)

    clients = [threading.Thread(target=keep_asking) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(seconds + 60)
    return Phase(name, seen, [text for one in seen for text in differences(model_answer, one)])


def outage(seconds: float, folder: Path, say: Callable[[str], None]) -> list[str]:
    """What was not as it should be."""
    problems: list[str] = []
    with loop_thread() as loop, upstream(loop) as model, remote(loop, model, folder) as (on, way, _):
        say(str(under_load(on, "without semmem", 3.0, plain=True)))
        say(str(under_load(on, "the store is there", 3.0)))
        for mode in ("hang", "refuse"):
            with behaving(on, way, mode):
                phase = under_load(on, f"the store {mode}s", seconds / 2)
            say(str(phase))
            problems += [f"{phase.name}: {text}" for text in phase.wrong]
            if phase.p99_s > DEADLINE_S + MARGIN_S:
                problems.append(f"{phase.name}: p99 {phase.p99_s:.3f} s")
            if any(one.outcome == "injected" for one in phase.seen[CLIENTS:]):
                problems.append(f"{phase.name}: memory was found, so the store was there")
            gone = time.monotonic()
            on.recovered()
            say(f"memory is back {time.monotonic() - gone:.1f} s after the store")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.outage")
    parser.add_argument("seconds", type=float, nargs="?", default=60.0)
    options = parser.parse_args()
    with signals_raise(), tempfile.TemporaryDirectory(prefix="semmem-outage-") as temporary:
        problems = outage(options.seconds, Path(temporary) / "house", lambda text: print(text, flush=True))
    for problem in problems:
        print(problem)
    print(f"outage: {options.seconds:.0f} s without the store, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
