"""What the fleet promises, and what a run has shown of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.fleet.clients import VISIBLE_S
from tests.fleet.report import Report

LATE_SHARE_MAX = 0.01
"""Of the questions. That a turn is learnt from as soon as its answer has ended is no promise in seconds; a machine that
runs all of this alone is slower now and then."""


@dataclass(frozen=True, slots=True)
class Promise:
    """``broken``: a line for each time that it was not kept."""

    name: str
    told: str
    broken: Sequence[str] = ()

    def __str__(self) -> str:
        return f"{'BROKEN' if self.broken else 'kept  '} {self.name}: {self.told}"


def promises(report: Report) -> list[Promise]:
    """Those that the run has put to the test."""
    return [*_of_the_load(report), *_of_alternation(report), *_of_the_store(report)]


def _of_the_load(report: Report) -> Iterator[Promise]:
    verdict, recall, tally, found = report.verdict, report.recall, report.tally, report.findings
    yield Promise("no client error", f"{tally.failures} of {verdict.turns} turns", tally.wrong)
    unlearnt = [f"{report.unlearnt} turns were not learnt from in the end"] if report.unlearnt else []
    yield Promise(
        "what was accepted is learnt, and answers are lost in flight alone",
        f"{verdict.accepted} turns, {verdict.facts} facts; of answers {verdict.answers_in_flight} lost in flight at the"
        f" kill, {verdict.answers_unwritten} on their way to the journal, {verdict.answers_unnoticed} sent to the one"
        " that was gone",
        [*verdict.lost, *unlearnt],
    )
    yield Promise("nothing is there twice", f"{len(verdict.doubled)} are", [*verdict.doubled, *report.histories])
    yield Promise(
        "recall is right where semmem was asked",
        f"{recall.right} of {recall.learnt} right ({recall.right / max(1, recall.learnt):.1%});"
        f" {recall.failed_open} more failed open, {recall.early} came early",
        recall.wrong,
    )
    late = len(recall.late) / max(1, recall.due)
    yield Promise(
        f"what is told is learnt within {VISIBLE_S:.0f} s",
        f"{1 - late:.1%} of {recall.due} questions found it learnt",
        recall.late if late > LATE_SHARE_MAX else [],
    )
    yield Promise(
        "two facts about different things are both kept",
        f"{len(verdict.superseded)} of {verdict.facts} superseded",
        verdict.superseded,
    )
    yield Promise(
        "nothing erased comes back", f"{len(found.returns)} of {report.erased} did", list(found.returns.values())
    )
    yield Promise("nobody gets another's memories", f"{len(found.leaks)} did", list(found.leaks.values()))
    yield Promise("replicas list the same", f"{len(report.unlike)} differences", report.unlike)


def _of_alternation(report: Report) -> Iterator[Promise]:
    if (seen := report.alternated) is None:
        return
    yield Promise(
        "answers find their turns on another replica", f"{seen.joined} of {seen.trials.answers}", seen.unjoined
    )
    yield Promise("what one replica is told is known on the other within a second", seen.delays_told, seen.late)
    yield Promise(
        "what one replica erases stays erased on the other",
        f"{seen.undone} of {seen.trials.erasures} undone",
        seen.returned,
    )


def _of_the_store(report: Report) -> Iterator[Promise]:
    if report.stalled is not None:
        yield Promise("nobody waits for a store that hangs", str(report.stalled), report.stalled.wrong)
