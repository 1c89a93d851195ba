"""``python -m tests.prove [--only a,b] | --smoke | --check``: every long suite, in processes of their own.

Whole, one after another, which takes hours: docs/proof.md has a row for each afterwards. Who is interrupted goes on
with what has not passed at this commit. ``--smoke``: the shortest honest form of each, in minutes; the page stays as it
is. ``--check`` says which rows of the page are older than semmem/. Exit status 1 when a suite failed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue

from bench.machine import commit
from demo.processes import Child, Stopped, signals_raise
from demo.stack import HOME
from tests.prove import page, running
from tests.prove.page import Row
from tests.prove.suites import SUITES, Command, Places, Suite

FOLDER = HOME / ".prove"
AT_ONCE = 2
SHOWN_LINES = 25
FIRST_PORTS = 10
"""Of the ports that test processes choose from: two suites at a time have their own, and not those of `make test`."""


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    if options.check:
        return check()
    places = Places(options.data.resolve(), options.peers.resolve())
    try:
        with signals_raise():
            return smoke(options.only, places) if options.smoke else prove(options.only, places)
    except Stopped as stopped:
        return 128 + stopped.signum


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.prove", description=__doc__)
    parser.add_argument(
        "--only", type=_suites, default=(), help="suites, comma between them, whether they passed or not"
    )
    parser.add_argument("--smoke", action="store_true", help="the short form of each")
    parser.add_argument("--check", action="store_true", help="what on the page is older than the code; runs nothing")
    parser.add_argument("--data", type=Path, default=Places().data, help="folder of labelled data")
    parser.add_argument("--peers", type=Path, default=Places().peers, help="folder of other systems' scenarios")
    return parser.parse_args(argv)


def _suites(text: str) -> tuple[str, ...]:
    names = tuple(name for name in text.split(",") if name)
    if unknown := set(names) - {suite.name for suite in SUITES}:
        raise argparse.ArgumentTypeError(f"no such suite: {', '.join(sorted(unknown))}")
    return names


def check() -> int:
    """Nobody fails for an old page: it says itself how old it is."""
    rows = page.rows_of()
    stale = page.older([rows.get(suite.name, Row(suite.name)) for suite in SUITES], page.changes_since)
    print("\n".join(stale))
    print(f"proof: {len(SUITES) - len(stale)} of {len(SUITES)} rows are of today's code")
    return 0


# --- short -----------------------------------------------------------------------------------------------------------


def smoke(only: Sequence[str], places: Places) -> int:
    """First those that judge times, each alone; then the others, two at a time."""
    began = time.monotonic()
    chosen = [(suite, suite.short(places)) for suite in SUITES if suite.short and (not only or suite.name in only)]
    can = [(suite, command) for suite, command in chosen if not command.missing]
    for suite, command in chosen:
        if command.missing:
            print(f"{suite.name:9} not here: {command.missing}", flush=True)
    children: list[Child] = []
    ports: SimpleQueue[int] = SimpleQueue()
    for number in range(AT_ONCE):
        ports.put(FIRST_PORTS + number)

    def one(suite: Suite, command: Command) -> bool:
        worker = ports.get()
        log = FOLDER / "smoke" / f"{suite.name}.log"
        try:
            environ = running.environment() | {"PYTEST_XDIST_WORKER": f"gw{worker}"}
            ran = running.run(suite, command, log, environ, children.append)
        finally:
            ports.put(worker)
        _tell(suite, ran, log)
        return ran.passed

    passed = [one(suite, command) for suite, command in can if suite.alone]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        try:
            passed += threads.map(lambda each: one(*each), [each for each in can if not each[0].alone])
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            for child in children:
                child.terminate()
            raise
    absent = len(chosen) - len(can)
    took, failed = time.monotonic() - began, len(passed) - sum(passed)
    print(f"{sum(passed)} passed, {failed} failed, {absent} not here in {took:.0f} s")
    return 0 if passed and all(passed) else 1


def _tell(suite: Suite, ran: running.Ran, log: Path) -> None:
    word = "passed" if ran.passed else "FAILED"
    lines = [f"{suite.name:9} {word} {ran.seconds:5.0f} s  {ran.verdict or 'no verdict'}"]
    if not ran.passed:
        tail = log.read_text(errors="replace").splitlines()[-SHOWN_LINES:]
        lines += [*(f"    {line}" for line in ran.short), f"    the end of {log.relative_to(HOME)}:"]
        lines += [f"    {line}" for line in tail]
    print("\n".join(lines), flush=True)


# --- whole -----------------------------------------------------------------------------------------------------------


def prove(only: Sequence[str], places: Places) -> int:
    """One after another. The page is written after each, so that nothing is lost with whoever interrupts."""
    this = commit(HOME)
    state = FOLDER / f"{this}.json"
    state.parent.mkdir(exist_ok=True)
    is_known = state.exists() and "+" not in this  # what is not committed may have changed again
    done: list[str] = json.loads(state.read_text()) if is_known else []
    failed = []
    for suite in SUITES:
        if suite.name not in only if only else suite.name in done:
            continue
        command = suite.long(places)
        if command.missing:
            print(f"{suite.name:9} not here: {command.missing}", flush=True)
            continue
        log = FOLDER / f"{suite.name}.log"
        print(f"{suite.name:9} runs; {log.relative_to(HOME)}", flush=True)
        ran = running.run(suite, command, log, running.environment(without=("ONLY", "DATA", "PEERS")))
        _tell(suite, ran, log)
        _write(suite, ran, this)
        if ran.passed:
            done.append(suite.name)
            state.write_text(json.dumps(sorted(set(done))) + "\n")
        else:
            failed.append(suite.name)
    print(
        f"prove: {len(done)} of {len(SUITES)} suites passed at {this}"
        + (f"; failed: {', '.join(failed)}" if failed else "")
    )
    return 1 if failed else 0


def _write(suite: Suite, ran: running.Ran, this: str) -> None:
    row = Row(
        suite.name,
        this,
        datetime.now(UTC).strftime("%Y-%m-%d"),
        page.here(),
        f"{ran.seconds:.0f}",
        ran.verdict or "no verdict",
        "; ".join(ran.short) or "-",
    )
    rows = page.rows_of() | {suite.name: row}
    page.PAGE.write_text(page.written([each.name for each in SUITES], rows, page.changes_since))


if __name__ == "__main__":
    sys.exit(main())
