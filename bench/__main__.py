"""``python -m bench``: one run, a table, and every figure as JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvloop

from bench.cases import CASES
from bench.machine import machine, versions
from bench.plan import Plan
from bench.report import figures, table
from bench.road import road
from bench.run import Result, run
from demo.processes import Failed, Stopped, signals_raise
from demo.stack import HOME

SCHEMA = 1
MEANT_MIN = 0.95
"""Share of requests that must have ended as their case means, else the figures are of something else: one at a time
this is a failure of the run; with more at a time it may say that the machine was too slow for so many."""


def main(argv: list[str] | None = None) -> int:
    """Exit status: 0 measured, 1 failed or measured something else than was meant."""
    arguments = _parser().parse_args(argv)
    plan = Plan(
        seconds_max=arguments.seconds,
        requests=arguments.requests,
        rounds=min(arguments.rounds, arguments.requests),
        concurrency=arguments.concurrency,
        streams=arguments.streams,
        tokens=arguments.tokens,
        token_interval_ms=arguments.token_interval_ms,
        patience=arguments.patience,
    )
    try:
        with signals_raise():
            report = measure(plan, arguments.envoy)
    except Failed as failure:
        log = f"\n{failure.log.read_text(errors='replace')[-2000:]}" if failure.log else ""
        print(f"bench: {failure}{log}", file=sys.stderr)
        return 1
    except Stopped as stopped:
        return 128 + stopped.signum
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=1) + "\n")
    print(_head(report), table(report["cases"], plan), sep="\n")
    notes, broken = astray(report["cases"])
    for note in [*notes, *broken]:
        print(f"bench: {note}", file=sys.stderr)
    return 1 if broken else 0


def measure(plan: Plan, envoy: Path) -> dict[str, Any]:
    """Start everything, measure, end everything. Raises Failed."""
    started, before, software = datetime.now(UTC), machine(), versions(envoy, HOME)
    with (
        tempfile.TemporaryDirectory(prefix="semmem-bench-") as folder,
        road(Path(folder), CASES, plan, envoy=envoy) as here,
    ):
        try:
            result = uvloop.run(run(here, plan, lambda line: print(line, file=sys.stderr, flush=True)))
        except (TimeoutError, OSError, ExceptionGroup) as error:
            raise Failed(f"a request was not answered: {error!r}") from error
    return {
        "schema": SCHEMA,
        "started": started.isoformat(timespec="seconds"),
        "command": ["python", "-m", "bench", *sys.argv[1:]],
        "versions": software,
        "machine": {**before, "load_average_after": list(os.getloadavg()), "load_by_round": result.loads},
        "plan": {name: getattr(plan, name) for name in Plan.__slots__},
        "rounds": result.rounds,
        "seconds": result.seconds,
        "idle_cpu_us_per_s": _idle(result),
        "cases": figures(result, plan),
    }


def _idle(result: Result) -> dict[str, float]:
    return {name: seconds / result.idle_s * 1e6 for name, seconds in result.idle_cpu_s.items()}


def astray(cases: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Cases that did not measure what they mean, in words: where the machine was too slow, and where it is wrong."""
    notes: list[str] = []
    broken: list[str] = []
    for name, levels in cases.items():
        for level, row in levels.items():
            line = f"{name} {level}: {row['as_meant']:.1%} as meant, {row['outcomes']}, statuses {row['statuses']}"
            if set(row["statuses"]) != {"200"} or (level == "c1" and row["as_meant"] < MEANT_MIN):
                broken.append(line)
            elif row["as_meant"] < MEANT_MIN:
                notes.append(line)
    return notes, broken


def _head(report: dict[str, Any]) -> str:
    on, load = report["machine"], report["machine"]["load_average"][0]
    software = ", ".join(f"{name} {found}" for name, found in report["versions"].items())
    idle = ", ".join(f"{name} {microseconds / 1000:.1f}" for name, microseconds in report["idle_cpu_us_per_s"].items())
    return (
        f"{report['started']}  {on['cores']} cores ({on['processor']}), load average {load:.1f} before,"
        f" {on['load_average_after'][0]:.1f} after; {report['rounds']} rounds in {report['seconds']:.0f} s"
        f"\n{software}\nCPU while idle, ms per second: {idle}"
    )


def _parser() -> argparse.ArgumentParser:
    plan = Plan()
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--out", type=Path, help="write every figure to this file as JSON")
    parser.add_argument("--envoy", type=Path, default=HOME / ".venv-envoy" / "bin" / "envoy")
    parser.add_argument("--seconds", type=float, default=plan.seconds_max, help="measure at most this long")
    parser.add_argument("--requests", type=_count, default=plan.requests, help="per case and concurrency")
    parser.add_argument("--rounds", type=_count, default=plan.rounds, help="in which the cases take turns")
    parser.add_argument("--concurrency", type=_count, default=plan.concurrency, help="requests at a time, beside 1")
    parser.add_argument("--streams", type=_count, default=plan.streams, help="at a time, per case and round")
    parser.add_argument("--tokens", type=_count, default=plan.tokens, help="per stream")
    parser.add_argument("--token-interval-ms", type=float, default=plan.token_interval_ms)
    parser.add_argument(
        "--patience", type=_factor, default=plan.patience, help="deadlines this much longer, for a busy machine"
    )
    return parser


def _factor(text: str) -> float:
    if not 1 <= (value := float(text)) <= 100:
        raise argparse.ArgumentTypeError("a number from 1 to 100")
    return value


def _count(text: str) -> int:
    if not 1 <= (value := int(text)) <= 100_000:
        raise argparse.ArgumentTypeError("a whole number from 1 to 100000")
    return value


if __name__ == "__main__":
    sys.exit(main())
