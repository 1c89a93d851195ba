"""Each promise is broken by what contradicts it, and by nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.canary.doors import Tally
from tests.canary.ledger import CONVERSATION, Fact, Findings
from tests.fleet.alternation import Alternated, Trials
from tests.fleet.clients import Recall
from tests.fleet.plan import Size
from tests.fleet.promises import promises
from tests.fleet.report import Report
from tests.fleet.stalled import SHARE_MIN, Stalled
from tests.fleet.verdict import Verdict

FACT = Fact(0, 1, "", CONVERSATION, "", "", began=1.0, settled=1.0, ended=1.0)


def kept() -> Report:
    """A run in which everything went well."""
    report = Report(Size(2, 3, 1), Tally(), Findings(), Verdict(turns=6, accepted=6, facts=2), Recall(2, 2))
    report.alternated = Alternated(Trials(2, 1, 1), joined=2, delays=[0.4])
    report.stalled = Stalled(30.0, 0.01, seconds=[0.2] * 100, back_s=1.0)
    return report


def store(**fields: object) -> Callable[[Report], None]:
    def change(report: Report) -> None:
        assert report.stalled is not None
        for name, value in fields.items():
            setattr(report.stalled, name, value)

    return change


def alternation(**fields: object) -> Callable[[Report], None]:
    def change(report: Report) -> None:
        assert report.alternated is not None
        for name, value in fields.items():
            setattr(report.alternated, name, value)

    return change


def test_a_run_in_which_everything_went_well_keeps_every_promise() -> None:
    made = promises(kept())
    assert len(made) == 13
    assert [promise.broken for promise in made if promise.broken] == []
    assert all(str(promise).startswith("kept ") for promise in made)


def test_what_was_left_out_is_not_promised() -> None:
    report = kept()
    report.alternated = report.stalled = None
    assert len(promises(report)) == 9


@pytest.mark.parametrize(
    ("change", "which"),
    [
        (lambda report: report.tally.wrong.append("500"), "no client error"),
        (lambda report: report.verdict.lost.append("turn 1"), "what was accepted"),
        (lambda report: setattr(report, "unlearnt", 1), "what was accepted"),
        (lambda report: report.verdict.doubled.append("turn 1"), "nothing is there twice"),
        (lambda report: report.recall.missed.append((FACT, "no_hits")), "recall is right"),
        (lambda report: report.recall.late.append("no_hits"), "what is told is learnt within"),
        (lambda report: report.verdict.superseded.append("tea: by coffee"), "two facts"),
        (lambda report: report.unlike.append("tea"), "replicas list the same"),
        (alternation(joined=1), "answers find their turns"),
        (alternation(delays=[3.0]), "what one replica is told"),
        (alternation(undone=1), "what one replica erases"),
        (store(altered=["alice"]), "nobody waits"),
        (store(seconds=[0.2, 0.9]), "nobody waits"),
        (store(seconds=[]), "nobody waits"),
        (store(forgotten=1), "nobody waits"),
        (store(back_s=None), "nobody waits"),
    ],
)
def test_each_promise_is_broken_by_what_contradicts_it(change: Callable[[Report], None], which: str) -> None:
    report = kept()
    change(report)
    [broken] = [promise for promise in promises(report) if promise.broken]
    assert broken.name.startswith(which)
    assert str(broken).startswith("BROKEN ")


def test_what_is_learnt_late_is_no_wrong_answer_and_one_in_a_hundred_may_be() -> None:
    report = kept()
    report.recall = Recall(100, 99, late=["no_hits"])
    made = {promise.name: promise for promise in promises(report)}
    assert not any(promise.broken for promise in made.values())
    assert made["recall is right where semmem was asked"].told.startswith("99 of 99 right")
    assert made["what is told is learnt within 8 s"].told.startswith("99.0% of 100")


def test_a_few_requests_in_a_hundred_may_be_late() -> None:
    assert Stalled(30.0, seconds=[0.1] * 96 + [0.9] * 4, back_s=1.0).in_time >= SHARE_MIN
