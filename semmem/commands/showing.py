"""``semmem demo``: the demo that lies beside the package in a clone, as a process of its own."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import semmem
from semmem.commands.command import Command, Parser
from semmem.commands.failure import INTERRUPTED, NOT_DONE, Failure
from semmem.commands.terminal import document

CLONE = Path(semmem.__file__).parents[1]
"""Where the demo lies when this is a clone; nothing of it is installed with the package."""


def _arguments(parser: Parser) -> None:
    parser.add_argument("--stay", action="store_true", help="stay up afterwards, until Ctrl-C")
    parser.add_argument("--upstream", metavar="URL", help="a real model server instead of the stand-in")
    parser.add_argument("--data-dir", type=Path, metavar="FOLDER", help="everything it writes is below it (.demo)")
    parser.add_argument("--port", type=int, metavar="N", help="Envoy's, and the next two for semmem; 0: any free ones")
    parser.add_argument("--envoy", type=Path, metavar="FILE", help="the Envoy binary (.venv-envoy/bin/envoy)")


def _demo(given: argparse.Namespace) -> int:
    if not (CLONE / "demo" / "__main__.py").is_file():
        reason = "the demo is not installed with the package: clone the repository, and run semmem demo from there"
        raise Failure("NO_DEMO", str(CLONE), reason)
    began = time.monotonic()
    status = _played(_options(given), sys.stderr if given.json else None)
    if given.json:
        document({"passed": status == 0, "seconds": round(time.monotonic() - began, 1)})
    return status if status in (0, INTERRUPTED) else NOT_DONE


def _options(given: argparse.Namespace) -> list[str]:
    """Those that were given, as the demo spells them."""
    asked = {"--upstream": given.upstream, "--data-dir": given.data_dir, "--port": given.port, "--envoy": given.envoy}
    told = [word for name, value in asked.items() if value is not None for word in (name, str(value))]
    return [*told, "--stay"] if given.stay else told


def _played(options: list[str], output: object) -> int:
    """Ctrl-C reaches the demo as well, which then ends what it started; this waits for it."""
    path = os.pathsep.join(filter(None, (str(CLONE), os.environ.get("PYTHONPATH"))))
    argv = [sys.executable, "-m", "demo", *options]
    with subprocess.Popen(argv, env=os.environ | {"PYTHONPATH": path}, stdout=output) as demo:  # type: ignore[call-overload]
        try:
            return int(demo.wait())
        except KeyboardInterrupt:
            demo.wait()
            return INTERRUPTED


DEMO = Command(
    name="demo",
    does="play two conversations through a real Envoy, with everything it needs",
    about=(
        "Starts a stand-in model, semmem and Envoy on this machine, tells a fact in one conversation, asks for it in"
        " another, and shows what the model was given. Runs from a clone of the repository; `make demo` installs the"
        " Envoy that it needs."
    ),
    run=_demo,
    arguments=_arguments,
    examples=(
        ("semmem demo", "half a minute, and nothing is left running"),
        ("semmem demo --stay --port 10000", "to try it by hand"),
    ),
    prints="whether it passed, and in how many seconds (what it says goes to standard error)",
    files=((".demo", "what it writes: logs, memories and configuration"),),
    environment=(
        ("FACT, QUESTION, EXPECT, USER_ID", "what is said, asked and expected, and by whom"),
        ("UPSTREAM_MODEL, UPSTREAM_API_KEY", "with --upstream: the model's name, and a key for its server"),
    ),
)
