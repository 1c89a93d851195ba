"""A suite is judged by its exit status and its own words, and nothing of it goes on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.prove.running import environment, judged, run
from tests.prove.suites import Command, Suite


def nothing(_places: object) -> Command:
    return Command((), 1)


SUITE = Suite("any", "tests", r"^any: \d+ tried, \d+ wrong$", None, nothing)
SAID = "seed 5\nany: 3 tried, 0 wrong\n"


def test_a_suite_that_ends_well_and_says_so_has_passed() -> None:
    ran = judged(SUITE, SAID, 0, 12.0)
    assert (ran.passed, ran.verdict, ran.short) == (True, "any: 3 tried, 0 wrong", ())


@pytest.mark.parametrize(
    ("printed", "code", "short"),
    [
        ("", 0, ("no verdict",)),
        ("all is well\n", 0, ("no verdict",)),
        ("so any: 3 tried, 0 wrong\n", 0, ("no verdict",)),
        (SAID, 1, ("exit status 1",)),
        (SAID, None, ("not at its end after 12 s",)),
        ("WRONG: it rains\nany: 3 tried, 1 wrong\n", 1, ("WRONG: it rains", "exit status 1")),
    ],
)
def test_a_suite_that_says_no_verdict_or_ends_otherwise_has_failed(
    printed: str, code: int | None, short: tuple[str, ...]
) -> None:
    ran = judged(SUITE, printed, code, 12.0)
    assert (ran.passed, ran.short) == (False, short)


def test_of_much_that_fell_short_the_beginning_is_told() -> None:
    ran = judged(SUITE, "".join(f"LEAK: {number}\n" for number in range(9)) + SAID, 1, 1.0)
    assert ran.short == ("LEAK: 0", "LEAK: 1", "LEAK: 2", "LEAK: 3", "and 5 more", "exit status 1")


def said(program: str, tmp_path: Path, within_s: float = 60.0) -> tuple[bool, tuple[str, ...]]:
    command = Command((sys.executable, "-c", program), within_s)
    ran = run(SUITE, command, tmp_path / "logs" / "any.log", environment())
    return ran.passed, ran.short


def test_a_process_is_run_and_what_it_prints_is_kept(tmp_path: Path) -> None:
    assert said(f"print({SAID!r})", tmp_path) == (True, ())
    assert "seed 5" in (tmp_path / "logs" / "any.log").read_text()
    assert said("pass", tmp_path) == (False, ("no verdict",))


def test_a_suite_that_does_not_end_is_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    program = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(3600)"
    passed, short = said(program, tmp_path, within_s=2.0)
    assert (passed, short[-1]) == (False, "no verdict")
    assert short[0].startswith("not at its end after")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_what_make_was_told_is_not_told_to_the_make_within() -> None:
    given = {
        "MAKEFLAGS": "w -- ONLY=faults N=5",
        "MAKELEVEL": "1",
        "ONLY": "faults",
        "N": "5",
        "HOME": "/h",
        "DATA": "d",
    }
    assert environment(given, without=("DATA",)) == {"HOME": "/h", "PYTHONUNBUFFERED": "1"}
