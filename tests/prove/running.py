"""One suite in a process group of its own, and what came of it."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from demo.processes import Child
from demo.stack import HOME
from tests.prove.suites import Command, Suite

GRACE_S = 60.0
"""For a suite that took too long to end what it has started."""
SHOWN_MAX, CHARS_MAX = 4, 160


@dataclass(frozen=True, slots=True)
class Ran:
    """``verdict``: its own words, empty when it had none; ``short``: what fell short, or why it counts as failed."""

    passed: bool
    seconds: float
    verdict: str
    short: tuple[str, ...]


def judged(suite: Suite, printed: str, code: int | None, seconds: float) -> Ran:
    """``code`` None: it was not at its end in time. Who says no verdict has failed, whatever the exit status is."""
    lines = [line.rstrip() for line in printed.splitlines()]
    verdict = next((line for line in reversed(lines) if re.search(suite.verdict, line)), "")
    short = [" ".join(line.split())[:CHARS_MAX] for line in lines if re.search(suite.falls_short, line)]
    if len(short) > SHOWN_MAX:
        short[SHOWN_MAX:] = [f"and {len(short) - SHOWN_MAX} more"]
    if code is None:
        short.append(f"not at its end after {seconds:.0f} s")
    elif code != 0:
        short.append(f"exit status {code}")
    if not verdict:
        short.append("no verdict")
    return Ran(code == 0 and bool(verdict), seconds, verdict, tuple(short))


def run(
    suite: Suite,
    command: Command,
    log: Path,
    environ: Mapping[str, str],
    started: Callable[[Child], None] = lambda _child: None,
) -> Ran:
    """What it prints goes to ``log``. However this ends, nothing of the suite goes on."""
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    child = Child(suite.name, command.words, log=log, cwd=HOME, environ=environ)
    started(child)
    try:
        code: int | None = child.process.wait(command.seconds_max)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        if child.process.poll() is None:
            child.terminate()
        child.wait(GRACE_S)
    return judged(suite, child.printed(), code, time.monotonic() - began)


def environment(given: Mapping[str, str] = os.environ, *, without: Collection[str] = ()) -> dict[str, str]:
    """Ours, but for what make hands on: `make prove ONLY=faults` says nothing to the `make faults` within."""
    told = {word.partition("=")[0] for word in given.get("MAKEFLAGS", "").split() if "=" in word}
    unwanted = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", *told, *without}
    return {name: value for name, value in given.items() if name not in unwanted} | {"PYTHONUNBUFFERED": "1"}
