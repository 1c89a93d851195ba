"""Evidence, time and tokens, counted by hand."""

from __future__ import annotations

from collections import Counter

from quality.agent_memory.datasets import Question, Said, Session, Story
from quality.agent_memory.figures import recall, report, table
from quality.agent_memory.talking import Asked, Given, Told

SESSIONS = tuple(
    Session(f"D{number}", tuple(Said(f"D{number}:{turn}", "a", "words") for turn in (1, 2))) for number in (1, 2)
)


def given(*turns: str, seconds: float = 0.01, tokens: int = 10, untraced: int = 0) -> Given:
    lines = len(turns) + untraced
    outcome = "injected" if lines else "no_hits"
    return Given(seconds, seconds / 2, outcome, tokens if lines else 0, lines, untraced, frozenset(turns), [])


def question(name: str, kind: str, *evidence: str) -> Question:
    return Question(name, "Who?", kind, frozenset(evidence), "somebody")


def told() -> Told:
    asked = [
        (question("1", "one", "D1:1"), (given("D1:1", "D2:2"), given())),
        (question("2", "one", "D1:1", "D2:1"), (given("D1:1"), given("D1:2"))),
        (question("3", "two", "D2:2"), (given("D2:1", seconds=0.2), given(untraced=1))),
        (question("4", "two"), (given("D1:1"), given())),
    ]
    story = Story("s", ("a", "b"), SESSIONS, tuple(one for one, _ in asked))
    return Told(
        story, Counter(injected=5, no_hits=3), 5, frozenset({"D1:1", "D2:1"}), tuple(Asked("s", *one) for one in asked)
    )


def test_recall_is_the_share_of_the_evidence_that_was_in_any_of_the_prompts() -> None:
    found = recall([told()])

    assert list(found) == ["one", "two", "all"]
    one, two = found["one"], found["two"]
    assert (one.questions, one.evidence, one.any, one.every) == (2, 75.0, 100.0, 50.0)
    assert (two.questions, two.evidence, two.any, two.every) == (1, 0.0, 0.0, 0.0)
    assert (one.sessions, two.sessions) == (75.0, 100.0)
    assert (one.learnt, two.learnt) == (100.0, 0.0)
    assert round(found["all"].evidence, 1) == 50.0


def test_the_rest_is_counted_of_prompts_and_accuracy_only_where_it_was_judged() -> None:
    figures = report([told()], None)

    assert (figures["prompts"], figures["turns"]) == (8, 8)
    assert figures["outcomes_of_telling"] == {"injected": 5, "no_hits": 3}
    assert (figures["lines"], figures["lines_untraced"]) == (7, 1)
    assert figures["latency_ms"] == {"p50": 10.0, "p90": 200.0, "p99": 200.0}
    assert figures["tokens"] == {"p50": 10, "p90": 10, "p99": 10, "mean": 7.5}
    assert figures["tokens_per_question"] == 15.0
    assert figures["without_evidence"] == {"questions": 1, "given_something": 1}
    assert figures["outcomes"] == {"injected": 6, "no_hits": 2}
    assert "not reported" in table(figures)
    judged = {"right": 3, "judged": 4, "unjudged": 0, "model": "m", "judge": "j"}
    assert "3 of 4 right, 0 not judged (answers: m, judge: j)" in table(report([told()], judged))


def test_nothing_asked_is_no_division_by_nothing() -> None:
    figures = report([Told(Story("s", ("a",), SESSIONS, ()), Counter(), 0, frozenset(), ())], None)

    assert figures["recall"] == {}
    assert figures["latency_ms"] == {}
    assert table(figures)
