"""Figures over what was asked: evidence found, time and tokens, as a table and as JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quality.agent_memory.talking import Asked, Told

Json = dict[str, Any]

ALL = "all"
PERCENTILES = (50, 90, 99)


@dataclass(frozen=True, slots=True)
class Recall:
    """Over questions that have evidence, in percent: ``evidence`` is the share of it that was in the prompt (mean over
    questions), ``any`` and ``every`` the questions of which some or all was there; ``sessions`` as ``evidence``, of
    sessions of which some turn was there; ``learnt`` as ``evidence``, of what there is a memory of at all."""

    questions: int
    evidence: float
    any: float
    every: float
    sessions: float
    learnt: float

    def shown(self) -> Json:
        figures = {name: round(getattr(self, name), 1) for name in ("evidence", "any", "every", "sessions", "learnt")}
        return {"questions": self.questions, **figures}


def recall(told: Sequence[Told]) -> Mapping[str, Recall]:
    """By kind of question, and over ALL."""
    rows = [(one, asked) for one in told for asked in one.asked if asked.question.evidence]
    kinds = sorted({asked.question.kind for _, asked in rows})
    by_kind = {kind: _recall([row for row in rows if row[1].question.kind == kind]) for kind in kinds}
    return {**by_kind, ALL: _recall(rows)} if rows else {}


def _recall(rows: Sequence[tuple[Told, Asked]]) -> Recall:
    def share(of: Callable[[Told, Asked], float]) -> float:
        return 100 * sum(of(one, asked) for one, asked in rows) / len(rows)

    def found(_: Told, asked: Asked) -> float:
        return _part(asked.question.evidence, asked.turns)

    def sessions(one: Told, asked: Asked) -> float:
        where = one.story.session_of()
        return _part({where[turn] for turn in asked.question.evidence}, {where[turn] for turn in asked.turns})

    return Recall(
        questions=len(rows),
        evidence=share(found),
        any=share(lambda one, asked: float(found(one, asked) > 0)),
        every=share(lambda one, asked: float(found(one, asked) == 1)),
        sessions=share(sessions),
        learnt=share(lambda one, asked: _part(asked.question.evidence, one.learnt)),
    )


def _part(wanted: Iterable[str], found: Iterable[str]) -> float:
    wanted = set(wanted)
    return len(wanted & set(found)) / len(wanted)


def report(told: Sequence[Told], accuracy: Mapping[str, Any] | None) -> Json:
    """Everything, by name; ``accuracy`` where a model judged."""
    asked = [each for one in told for each in one.asked]
    given = [one for each in asked for one in each.given]
    unanswerable = [each for each in asked if not each.question.evidence]
    return {
        "conversations": len(told),
        "users": sum(len(one.story.users) for one in told),
        "turns": sum(one.turns for one in told),
        "memories": sum(one.memories for one in told),
        "questions": len(asked),
        "recall": {kind: figures.shown() for kind, figures in recall(told).items()},
        "without_evidence": {
            "questions": len(unanswerable),
            "given_something": sum(1 for each in unanswerable if any(one.lines for one in each.given)),
        },
        "prompts": len(given),
        "lines": sum(one.lines for one in given),
        "lines_untraced": sum(one.untraced for one in given),
        "tokens": {**_percentiles(one.tokens for one in given), "mean": _mean(one.tokens for one in given)},
        "tokens_per_question": _mean(sum(one.tokens for one in each.given) for each in asked),
        "latency_ms": _percentiles(1000 * one.seconds for one in given),
        "latency_without_memory_ms": _percentiles(1000 * one.plain_s for one in given),
        "outcomes": dict(Counter(one.outcome for one in given).most_common()),
        "outcomes_of_telling": dict(sum((one.outcomes for one in told), Counter[str]()).most_common()),
        "accuracy": accuracy,
    }


def _percentiles(values: Iterable[float]) -> Json:
    """By the nearest rank: each is a value that was there."""
    ordered = sorted(values)
    if not ordered:
        return {}
    return {f"p{p}": round(ordered[max(0, math.ceil(p / 100 * len(ordered)) - 1)], 1) for p in PERCENTILES}


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return round(sum(listed) / len(listed), 1) if listed else None


def table(figures: Json) -> str:
    """For a terminal."""
    head = f"{figures['conversations']} conversations, {figures['users']} users, {figures['turns']} turns told, "
    lines = [f"{head}{figures['memories']} memories, {figures['questions']} questions", ""]
    lines += [
        f"{'evidence in the prompt, %':28}{'questions':>10}{'found':>8}{'any':>8}{'all':>8}{'session':>9}{'learnt':>8}"
    ]
    for kind, row in figures["recall"].items():
        cells = f"{row['evidence']:8}{row['any']:8}{row['every']:8}{row['sessions']:9}{row['learnt']:8}"
        lines += [f"{kind[:27]:28}{row['questions']:10}{cells}"]
    nothing = figures["without_evidence"]
    lines += [f"{'without evidence':28}{nothing['questions']:10}   given something: {nothing['given_something']}", ""]
    for name, title in (
        ("tokens", "tokens injected (estimated)"),
        ("latency_ms", "latency through Envoy, ms"),
        ("latency_without_memory_ms", "  the same, memory off"),
    ):
        lines += [f"{title:28}" + "  ".join(f"{key} {value}" for key, value in figures[name].items())]
    lines += [f"{'lines injected':28}{figures['lines']}, {figures['lines_untraced']} of no known turn"]
    for name, title in (("outcomes", "outcomes"), ("outcomes_of_telling", "  while it was told")):
        lines += [f"{title:28}" + ", ".join(f"{word} {count}" for word, count in figures[name].items())]
    accuracy = figures["accuracy"]
    told = "not reported: no model answers and judges" if accuracy is None else _accuracy(accuracy)
    return "\n".join([*lines, f"{'accuracy':28}{told}"])


def _accuracy(accuracy: Mapping[str, Any]) -> str:
    return (
        f"{accuracy['right']} of {accuracy['judged']} right, {accuracy['unjudged']} not judged"
        f" (answers: {accuracy['model']}, judge: {accuracy['judge']})"
    )
