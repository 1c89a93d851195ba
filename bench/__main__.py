"""``python -m bench``: one run, a table of verdicts, and every figure as JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.blocks import MEANT_MIN
from bench.keys import verdict_table, verdicts
from bench.machine import machine, versions
from bench.parts import PARTS, Part
from bench.plan import FULL, QUICK, Place, Plan, Say, changed
from demo.processes import Failed, Stopped, signals_raise
from demo.stack import HOME

SCHEMA = 2
LOG_CHARS = 2000

Json = dict[str, Any]


def main(argv: list[str] | None = None) -> int:
    """Exit status: 0 measured, whether or not the targets are met; 1 failed or measured something else than meant."""
    arguments = _parser().parse_args(argv)
    try:
        plan = changed(QUICK if arguments.quick else FULL, arguments.set)
    except ValueError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    parts = [part for part in PARTS if part.name in arguments.only or (not arguments.only and _is_in(part, arguments))]
    try:
        with signals_raise():
            report = run(parts, plan, arguments.envoy, _say)
    except Failed as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    except Stopped as stopped:
        return 128 + stopped.signum
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=1) + "\n")
    print(shown(report))
    notes, broken = astray(report["parts"])
    for note in [*notes, *broken]:
        print(f"bench: {note}", file=sys.stderr)
    return 1 if broken else 0


def _is_in(part: Part, arguments: argparse.Namespace) -> bool:
    return part.quick or not arguments.quick


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def run(parts: Sequence[Part], plan: Plan, envoy: Path, say: Say) -> Json:
    """Every part in turn, each with what it starts itself. Raises Failed."""
    started, before, software = datetime.now(UTC), machine(), versions(envoy, HOME)
    began = time.monotonic()
    measured: Json = {}
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="semmem-bench-") as folder:
            part_began = time.monotonic()
            found = _measured(part, plan, Place(envoy, Path(folder)), say)
            measured[part.name] = {"took_s": time.monotonic() - part_began, **found}
    return {
        "schema": SCHEMA,
        "started": started.isoformat(timespec="seconds"),
        "command": ["python", "-m", "bench", *sys.argv[1:]],
        "seconds": time.monotonic() - began,
        "versions": software,
        "machine": {**before, "load_average_after": list(os.getloadavg())},
        "plan": asdict(plan),
        "verdicts": verdicts(measured),
        "parts": measured,
    }


def _measured(part: Part, plan: Plan, place: Place, say: Say) -> Json:
    """Raises Failed, with the end of the log before the folder goes that it lies in."""
    try:
        return part.measure(plan, place, say)
    except Failed as failure:
        log = failure.log.read_text(errors="replace")[-LOG_CHARS:] if failure.log else ""
        raise Failed(f"{part.name}: {failure}\n{log}") from failure
    except (TimeoutError, OSError, ExceptionGroup) as error:
        raise Failed(f"{part.name}: a request was not answered: {error!r}") from error


def shown(report: Json) -> str:
    """For people."""
    on, load = report["machine"], report["machine"]["load_average"][0]
    took = ", ".join(f"{name} {part['took_s']:.0f}" for name, part in report["parts"].items())
    head = (
        f"{report['started']}  {on['cores']} cores ({on['processor']}), load average {load:.1f} before,"
        f" {on['load_average_after'][0]:.1f} after; {report['seconds']:.0f} s ({took})\n"
        + ", ".join(f"{name} {found}" for name, found in report["versions"].items())
    )
    tables = [part.table(report["parts"][part.name]) for part in PARTS if part.table and part.name in report["parts"]]
    met = sum(bool(one["met"]) for one in report["verdicts"])
    last = f"bench: {met} of {len(report['verdicts'])} targets met, in parts {', '.join(report['parts'])}"
    return "\n".join([head, *tables, "", verdict_table(report["verdicts"]), last])


def astray(parts: Json) -> tuple[list[str], list[str]]:
    """Cases that did not measure what they mean, in words: where the machine was too slow, and where it is wrong."""
    notes: list[str] = []
    broken: list[str] = []
    rows = (
        (f"{name}: {case} {level}", level, row)
        for name, part in parts.items()
        for case, levels in part.get("cases", {}).items()
        for level, row in levels.items()
    )
    for title, level, row in rows:
        line = f"{title}: {row['as_meant']:.1%} as meant, {row['outcomes']}, statuses {row['statuses']}"
        if set(row["statuses"]) != {"200"} or (level == "c1" and row["as_meant"] < MEANT_MIN):
            broken.append(line)
        elif row["as_meant"] < MEANT_MIN:
            notes.append(line)
    return notes, broken


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under five minutes")
    parser.add_argument("--out", type=Path, help="write every figure to this file as JSON")
    parser.add_argument("--envoy", type=Path, default=HOME / ".venv-envoy" / "bin" / "envoy")
    parser.add_argument("--only", type=_parts, default=(), metavar="PARTS", help=", ".join(part.name for part in PARTS))
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"of the plan, repeatable: {', '.join(Plan.__slots__)} (several values with commas)",
    )
    return parser


def _parts(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := set(names) - {part.name for part in PARTS}:
        raise argparse.ArgumentTypeError(f"no such part: {', '.join(sorted(unknown))}")
    return names


if __name__ == "__main__":
    sys.exit(main())
