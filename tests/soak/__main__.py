"""``python -m tests.soak [--seconds 600] [--clients 6] [--seed N] [--keep FOLDER]``: mixed load with faults.

Exit status 1 when an answer was not as it should be, something grew, or a turn was held for ever.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from demo.processes import signals_raise
from tests.soak.run import HEADER, Report, grown, soak

SHOWN_MAX = 20


def main() -> int:
    options = _options()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    print(f"soak: seed {seed}, {options.clients} clients\n{HEADER}", flush=True)
    with signals_raise(), tempfile.TemporaryDirectory(prefix="semmem-soak-") as temporary:
        report = soak(
            (options.keep or Path(temporary)).resolve(),
            seconds=options.seconds,
            clients=options.clients,
            seed=seed,
            fault_interval_s=options.fault_seconds,
            sample_interval_s=min(options.sample_seconds, options.seconds / 16),  # a short run has quarters too
            say=lambda line: print(line, flush=True),
        )
    report.wrong += grown(report)
    print(summary(report))
    return 1 if report.wrong or report.tally.wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="of load")
    parser.add_argument("--clients", type=int, default=6, choices=range(1, 33), metavar="N", help="at the same time")
    parser.add_argument("--seed", type=int, default=None, help="what clients do and say; chosen and shown by default")
    parser.add_argument("--fault-seconds", type=float, default=60.0, help="between two faults")
    parser.add_argument("--sample-seconds", type=float, default=5.0, help="between two samples")
    parser.add_argument("--keep", type=Path, default=None, help="an empty folder for logs and data")
    return parser.parse_args()


def summary(report: Report) -> str:
    """The table at the end; its last line has the figures."""
    tally, growths = report.tally, report.growths()
    rss, files = growths["semmem rss"], growths["semmem files"]
    return "\n".join(
        [
            f"requests   {_counted(tally.requests)}",
            f"in flight  at most {tally.in_flight_max}",
            f"outcomes   {_counted(tally.outcomes)}",
            f"faults     {_counted(Counter(report.faults))}",
            f"journal    {_counted(Counter(report.journal))}",
            *(f"{name:12} {g.before:8.1f} -> {g.after:8.1f}  {g.share:+.1%}" for name, g in growths.items()),
            *(f"WRONG: {line}" for line in [*report.wrong, *tally.wrong[:SHOWN_MAX]]),
            f"soak: {report.seconds:.0f} seconds, {tally.total} requests, {len(tally.wrong)} failed, "
            f"rss {rss.share:+.1%}, files {files.absolute:+.0f}",
        ]
    )


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts.most_common())


if __name__ == "__main__":
    sys.exit(main())
