"""The short forms of ``make canary``: a real run, and one with holes made on purpose."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

import pytest

from tests.canary.__main__ import failed, summary
from tests.canary.doors import DOORS
from tests.canary.run import Plan, play
from tests.support.examples import examples
from tests.support.harness import BAG_OF_WORDS

LAST_LINE = r"canary: (\d+) operations, (\d+) leaks, (\d+) returns"


def figures(shown: str) -> tuple[int, int, int]:
    match = re.fullmatch(LAST_LINE, shown.splitlines()[-1])
    assert match, shown
    operations, leaks, returns = map(int, match.groups())
    return operations, leaks, returns


@pytest.mark.long(30)
@pytest.mark.timeout(1800)
def test_nobody_meets_anothers_words_and_what_was_erased_stays_away(tmp_path: Path) -> None:
    plan = Plan(examples(650), users=30, seed=secrets.randbelow(10**6), restarts=1, program=BAG_OF_WORDS)

    report = play(tmp_path, plan, lambda _line: None)

    shown = summary(report)
    assert figures(shown)[1:] == (0, 0), f"seed {plan.seed}\n{shown}"
    assert not failed(report), f"seed {plan.seed}\n{shown}"
    assert figures(shown)[0] >= plan.operations
    assert set(report.tally.doors) == set(DOORS)
    assert report.erased > 30
    assert report.restarts == 1
    assert report.tally.outcomes["injected"]
    assert report.asked["facts"]
    assert min(report.looked.values()) > 0, shown


@pytest.mark.long(20)
@pytest.mark.timeout(600)
def test_a_planted_leak_and_a_planted_return_are_found(tmp_path: Path) -> None:
    plan = Plan(
        200, users=16, seed=secrets.randbelow(10**6), restarts=0, plants=("leak", "return"), program=BAG_OF_WORDS
    )

    report = play(tmp_path, plan, lambda _line: None)

    shown = summary(report)
    _, *returned = report.planted["return"]
    assert report.planted["leak"] in report.findings.leaks, f"seed {plan.seed}\n{shown}"
    assert tuple(returned) in report.findings.returns, f"seed {plan.seed}\n{shown}"
    assert failed(report)
    assert min(figures(shown)) >= 1
