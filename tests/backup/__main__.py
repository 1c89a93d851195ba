"""``python -m tests.backup [--people 40] [--questions 200]``: back up a busy semmem, and restore it elsewhere.

Exit status 1 when a question is answered otherwise there, or a memory, a vector or a version is not as it was.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from demo.processes import signals_raise
from tests.support.copies import answers, ask, body, configured, questions, run, writing, written
from tests.support.harness import semmem_process


def main() -> int:
    options = _options()
    with signals_raise(), tempfile.TemporaryDirectory(prefix="semmem-backup-") as temporary:
        differing, lost, took = _differences(Path(temporary), options.people, options.questions)
    seconds = ", ".join(f"{name} {value:.1f} s" for name, value in took.items())
    print(f"{seconds}\nbackup: {options.questions} questions, {differing} answered otherwise, {lost} lines differ")
    return 1 if differing or lost else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.backup", description=__doc__)
    parser.add_argument("--people", type=int, default=40)
    parser.add_argument("--questions", type=int, default=200)
    return parser.parse_args()


def _differences(place: Path, people: int, number: int) -> tuple[int, int, dict[str, float]]:
    asked, took = questions(number, people), dict[str, float]()

    def timed(name: str, *words: object) -> None:
        began = time.monotonic()
        done = run(*words) if name == "restore" else ask(semmem, *words)
        took[name] = time.monotonic() - began
        if done.code:
            raise SystemExit(f"{name}: {done.err}")

    with semmem_process(place / "old") as semmem:
        timed("import", "import", written(place / "people.jsonl", people, many=100))
        expected = answers(semmem, asked)
        with writing(semmem):
            timed("backup", "backup", place / "backup")
        timed("export", "export", place / "old.jsonl")
    timed("restore", "restore", place / "backup", "--config", configured(place / "new"))
    with semmem_process(place / "new") as semmem:
        found = answers(semmem, asked)
        timed("second export", "export", place / "new.jsonl")
    differing = sum(one != other for one, other in zip(expected, found, strict=True))
    return differing, len(_of_people(place / "old.jsonl") ^ _of_people(place / "new.jsonl")), took


def _of_people(path: Path) -> set[bytes]:
    """Not of those who were written to meanwhile."""
    return {line for line in body(path) if b'"user":"person-' in line}


if __name__ == "__main__":
    sys.exit(main())
