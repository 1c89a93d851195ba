"""The short forms of ``make fleet``: two replicas that share everything, and two that keep journals to themselves."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

import pytest

from tests.fleet.__main__ import summary
from tests.fleet.alternation import Trials
from tests.fleet.plan import Kind, Size, deeds
from tests.fleet.run import play
from tests.fleet.stack import Parts
from tests.support.harness import BAG_OF_WORDS

LAST_LINE = r"fleet: (\d+) turns, (\d+) lost, (\d+) doubled, (\d+) client errors, (\d+) erased came back"
NO_TRIALS = {"facts": 0, "erasures": 0}


def figures(shown: str) -> list[int]:
    match = re.fullmatch(LAST_LINE, shown.splitlines()[-1])
    assert match, shown
    return [int(figure) for figure in match.groups()]


@pytest.mark.long(60)
@pytest.mark.timeout(600)
def test_replicas_that_share_a_journal_lose_nothing_when_one_is_killed_and_servers_go_away(tmp_path: Path) -> None:
    size, seed = Size(conversations=20, turns=10, clients=5), secrets.randbelow(10**6)

    report = play(tmp_path, Parts(BAG_OF_WORDS, lite=True), size, seed, Trials(20, **NO_TRIALS), lambda _line: None)

    shown = f"seed {seed}\n{summary(report)}"
    turns, lost, doubled, errors, _ = figures(shown)
    beside = sum(
        deed.kind is Kind.FORGET_RACING for user in range(size.users) for deed in deeds(seed, user, size.turns)
    )
    assert (turns, lost, doubled, errors) == (200 + beside, 0, 0, 0), shown
    assert report.alternated is not None, shown
    assert report.alternated.wrong == [], shown
    assert report.unlearnt == 0, shown
    assert report.unlike == [], shown
    assert report.verdict.accepted >= 80, shown
    assert report.erased > 0, shown
    assert report.recall.right > 0, shown


@pytest.mark.long(40)
@pytest.mark.timeout(600)
def test_replicas_with_a_journal_each_are_found_out(tmp_path: Path) -> None:
    size, parts = Size(conversations=8, turns=6, clients=4), Parts(BAG_OF_WORDS, lite=True, own_journals=True)

    report = play(tmp_path, parts, size, 1, Trials(12, **NO_TRIALS), lambda _line: None)

    _, lost, doubled, errors, _ = figures(summary(report))
    assert report.failed
    assert report.alternated is not None
    assert report.alternated.joined == 0
    assert lost
    assert doubled
    assert errors == 0
