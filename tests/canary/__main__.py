"""``python -m tests.canary [--operations 100000] [--users 300] [--seed N] [--plant leak|return] [--keep FOLDER]``

Exit status 1 when a canary leaked or returned, a door had less than one operation in a hundred, or an operation failed
that should not have.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from demo.processes import signals_raise
from tests.canary.doors import DOORS, Tally
from tests.canary.plants import PLANTS
from tests.canary.run import CONNECTIONS, Plan, Report, play
from tests.canary.words import USERS_MAX

SHOWN_MAX = 20


def main() -> int:
    options = _options()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    plan = Plan(options.operations, options.users, seed, options.restarts, tuple(options.plant))
    print(f"canary: seed {seed}, {plan.users} users, {CONNECTIONS} connections", flush=True)
    with signals_raise(), tempfile.TemporaryDirectory(prefix="semmem-canary-") as temporary:
        report = play((options.keep or Path(temporary)).resolve(), plan, lambda line: print(line, flush=True))
    print(summary(report))
    return 1 if failed(report) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.canary", description=__doc__)
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--users", type=int, default=300, choices=range(2, USERS_MAX + 1), metavar="N")
    parser.add_argument("--seed", type=int, default=None, help="what users do and say; chosen and shown by default")
    parser.add_argument("--restarts", type=int, default=4, help="of semmem: a kill, then a peaceful one, and so on")
    parser.add_argument("--plant", action="append", default=[], choices=list(PLANTS), help="a hole, to be found")
    parser.add_argument("--keep", type=Path, default=None, help="an empty folder for logs and data")
    return parser.parse_args()


def failed(report: Report) -> bool:
    """Whether something is not as it should be. What was lost is told, and is the business of other tests."""
    return bool(report.findings.leaks or report.findings.returns or report.tally.wrong or report.rare)


def summary(report: Report) -> str:
    """The table at the end; its last line has the figures."""
    tally, found = report.tally, report.findings
    rate = tally.operations / report.seconds if report.seconds else 0.0
    return "\n".join(
        [
            *(_door(tally, name) for name in DOORS),
            f"outcomes   {counted(tally.outcomes)}",
            f"asked for again later  {counted(tally.later) or 'nothing'}; interrupted by restarts {tally.interrupted}",
            f"facts      {report.told} told, {report.erased} erased, {report.free} either way",
            f"own model  {counted(report.asked) or 'not asked'}",
            f"after it   {counted(report.looked)} looked through",
            f"time       {report.seconds:.0f} s, {rate:.0f} operations a second, {report.restarts} restarts",
            *shown("WRONG", tally.wrong),
            *shown("RARE", report.rare),
            *shown("LEAK", found.leaks.values()),
            *shown("RETURN", found.returns.values()),
            *shown("LOST", found.lost.values()),
            f"{found.sightings} sightings of leaks and returns, {len(found.lost)} lost",
            f"canary: {tally.operations} operations, {len(found.leaks)} leaks, {len(found.returns)} returns",
        ]
    )


def _door(tally: Tally, name: str) -> str:
    number = tally.doors[name]
    mean_ms = 1000 * tally.seconds[name] / max(1, number)
    return f"{name:18}{number:8}{number / max(1, tally.operations):8.1%}{mean_ms:9.1f} ms"


def shown(title: str, lines: Iterable[str]) -> list[str]:
    found = [f"{title}: {line}" for line in lines]
    more = len(found) - SHOWN_MAX
    return [*found[:SHOWN_MAX], *([f"{title}: and {more} more"] if more > 0 else [])]


def counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts.most_common())


if __name__ == "__main__":
    sys.exit(main())
