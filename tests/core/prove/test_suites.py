"""The table of long suites: nobody is left out, and what its rows say is so."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as bench
from demo.stack import HOME
from quality.report import TARGETS, summed
from tests.faults.crashes import Tally
from tests.faults.suite import Result
from tests.prove.suites import SUITES, Places, Suite
from tests.stall.__main__ import verdict
from tests.stranger.__main__ import Walk
from tests.stranger.__main__ import verdict as strangers

MAKEFILE = (HOME / "Makefile").read_text()
ITSELF = "tests/prove"
NOWHERE = Places(Path("/nowhere"), Path("/nowhere"))
BY_NAME = {suite.name: suite for suite in SUITES}


def test_every_folder_of_tests_that_is_a_program_is_a_suite() -> None:
    programs = {str(file.parent.relative_to(HOME)) for file in (HOME / "tests").rglob("__main__.py")}
    assert programs - {ITSELF} <= {suite.folder for suite in SUITES}


def test_every_suite_is_there_and_has_a_name_of_its_own() -> None:
    assert [suite.folder for suite in SUITES if not (HOME / suite.folder).exists()] == []
    assert max(Counter(suite.name for suite in SUITES).values()) == 1


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_a_suite_is_run_whole_by_what_make_lists(suite: Suite) -> None:
    words = suite.long(NOWHERE).words
    assert words[0] == "make"
    assert re.search(rf"^{words[2]}: .*## ", MAKEFILE, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("faults", lambda: str(Result())),
        ("crashes", lambda: str(Tally())),
        ("stall", lambda: verdict([Counter(injected=3)])[0]),
        ("stranger", lambda: strangers([Walk(9, 40.6), Walk()])),
        ("quality", lambda: summed(dict.fromkeys(TARGETS, None))),
        ("bench", lambda: bench.shown(EMPTY).splitlines()[-1]),
    ],
)
def test_what_a_suite_says_is_known_as_its_verdict(name: str, said: Callable[[], str]) -> None:
    assert re.search(BY_NAME[name].verdict, said())


EMPTY: dict[str, Any] = {
    "machine": {"load_average": [0.0], "load_average_after": [0.0], "cores": 2, "processor": "any"},
    "parts": {},
    "started": "now",
    "seconds": 1.0,
    "versions": {},
    "verdicts": [],
}


def test_a_suite_whose_folders_are_not_there_says_so() -> None:
    short = {suite.name: suite.short(NOWHERE) for suite in SUITES if suite.short}
    assert short["peers"].missing == "no nowhere at " + str(Path("../" * len(HOME.parts[1:])) / "nowhere")
    assert BY_NAME["quality"].long(NOWHERE).missing
    assert not short["quality"].missing
    assert "/nowhere" not in short["quality"].words


def test_a_bystander_without_memory_or_without_a_question_is_a_broken_promise() -> None:
    kept = Counter(injected=3)
    assert verdict([kept, kept]) == ("stall: 2 attacks, 6 questions of a bystander, 0 without memory", True)
    assert verdict([kept, Counter(injected=2, timeout=1)])[1] is False
    assert verdict([kept, Counter[str]()])[1] is False
    assert verdict([])[1] is False
