"""``python -m tests.peers FOLDER [--only TEXT] [--keep FOLDER]``: two other systems' scenarios, step by step.

Exit status 0 when those steps differ that docs/peers.md lists, and no other; 2 without scenarios.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from demo.processes import signals_raise
from tests.peers.known import Verdict, judge, listed
from tests.peers.play import play
from tests.peers.steps import NoSteps, read


def main(argv: list[str] | None = None) -> int:
    options = _options(argv)
    try:
        steps = read(options.folder)
    except NoSteps as missing:
        print(f"peers: {missing}", file=sys.stderr)
        return 2
    chosen = [step for step in steps if re.search(options.only, step.id)]
    known = listed()
    with signals_raise(), tempfile.TemporaryDirectory(prefix="semmem-peers-") as temporary:
        found = play((options.keep or Path(temporary)).resolve(), chosen, lambda step, wrong: show(step, wrong, known))
    verdict = judge(found, known, only=bool(options.only))
    print(summary(verdict))
    return verdict.exit_code


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.peers", description=__doc__)
    parser.add_argument("folder", type=Path, help="of *_scenarios.jsonl")
    parser.add_argument("--only", default="", help="steps whose id matches this regular expression")
    parser.add_argument("--keep", type=Path, default=None, help="an empty folder for logs and data")
    return parser.parse_args(argv)


def show(step: str, wrong: list[str], known: Mapping[str, str]) -> None:
    if wrong:
        print(f"{step:32} differs: {'; '.join(wrong)}  [{'' if step in known else 'not '}listed]", flush=True)


def summary(verdict: Verdict) -> str:
    """What is not as it is listed, and last the figures."""
    new = [f"NOT LISTED: {step}" for step in verdict.new]
    mended = [f"LISTED, BUT DOES NOT DIFFER: {step}" for step in verdict.mended]
    return "\n".join([*new, *mended, verdict.last_line])


if __name__ == "__main__":
    sys.exit(main())
