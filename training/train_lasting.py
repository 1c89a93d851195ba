"""Trains what tells lasting clauses from others and writes semmem/extraction/lasting/weights.json.

    DATA=folder [VECTORS=cache.npz] python -m training.train_lasting

training/messages.jsonl and training/own_sentences.jsonl lie beside this file; ``folder`` holds signals/clinc150.jsonl
and signals/general_facts_*.jsonl, which hold nothing lasting. Figures come from folds that did not see the message.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

from semmem.extraction.lasting import classifier
from semmem.extraction.lasting.clauses import Clause, clauses, squeezed
from semmem.extraction.lasting.features import features
from semmem.memory import MemoryType, Standing
from training.train_gate import SIGNATURE, vectors

HERE = Path(__file__).parent
WEIGHTS_FILE = Path(classifier.__file__).with_name("weights.json")
TYPES = tuple(kind.value for kind in (MemoryType.SEMANTIC, MemoryType.EPISODIC, MemoryType.PROCEDURAL))
STANDINGS = ("", *(standing.value for standing in Standing))

STRENGTH = 0.3
"""scikit-learn's C."""
OVERLAP_MIN = 0.5
"""A clause is lasting when so much of it, or of what is to be kept, is in both."""
EVERY = 25
"""Of CLINC150 and of the quizzes every so-manieth row: more than enough to know them by."""
NEGATIVE_INTENTS_LEFT_OUT = ("change_user_name", "change_language", "user_name", "yes", "no", "maybe")
"""Intents whose messages may well say something about the user."""
NEGATIVE_WEIGHT = 0.5
OWN = ("messages", "statements", "frames")
FOLDS = 5
SEED = 7

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Row:
    """A clause of one message: what is seen of it, and what it is (``lasting``, type, standing)."""

    message: int
    group: str
    clause: Clause
    seen: list[float]
    lasting: bool
    kind: str = TYPES[0]
    standing: str = ""
    weight: float = 1.0


def rows(folder: Path) -> list[Row]:
    found: list[Row] = []
    for number, (group, line) in enumerate(_messages(folder)):
        text = squeezed(line["text"])
        marked = [_place(text, squeezed(part)) for part in line["keep"]]
        pieces = clauses(text)
        for clause, seen in zip(pieces, features(pieces), strict=True):
            index = next((i for i, place in enumerate(marked) if _overlaps(clause, place)), None)
            if index is None:
                found.append(Row(number, group, clause, seen, False, weight=_weight(group)))
            else:
                standing = line.get("standing", {}).get(str(index), "")
                found.append(Row(number, group, clause, seen, True, line["types"][index], standing))
    return found


def _weight(group: str) -> float:
    return 1.0 if group in OWN else NEGATIVE_WEIGHT


def _messages(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in OWN:
        yield from ((name, line) for line in _lines(HERE / f"{name}.jsonl"))
    yield from (("own", {**line, "keep": []}) for line in _lines(HERE / "own_sentences.jsonl"))
    clinc = (line for line in _lines(folder / "signals" / "clinc150.jsonl"))
    allowed = [line for line in clinc if line["intent"] not in NEGATIVE_INTENTS_LEFT_OUT]
    yield from (("clinc", {**line, "keep": []}) for line in allowed[::EVERY])
    for file in sorted(folder.glob("signals/general_facts_*.jsonl")):
        yield from (("quiz", {**line, "keep": []}) for line in list(_lines(file))[::EVERY])


def _place(text: str, part: str) -> tuple[int, int]:
    start = text.find(part)
    if start < 0:
        raise SystemExit(f"not in its message: {part!r}")
    return start, start + len(part)


def _overlaps(clause: Clause, place: tuple[int, int]) -> bool:
    both = min(clause.end, place[1]) - max(clause.start, place[0])
    return both > 0 and both >= OVERLAP_MIN * min(clause.end - clause.start, place[1] - place[0])


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


def fit(points: Matrix, labels: Sequence[Any], weights: Matrix) -> LogisticRegression:
    return LogisticRegression(C=STRENGTH, max_iter=3000).fit(points, labels, sample_weight=weights)


def held_out(found: Sequence[Row], points: Matrix) -> Matrix:
    """Each clause's probability of being lasting, by a model that has not seen its message."""
    message = np.array([row.message for row in found])
    fold = np.random.default_rng(SEED).integers(0, FOLDS, message.max() + 1)[message]
    lasting, weights = _lasting(found), _weights(found)
    probabilities = np.zeros(len(found))
    for number in range(FOLDS):
        rest = fold != number
        model = fit(points[rest], lasting[rest], weights[rest])
        probabilities[~rest] = model.predict_proba(points[~rest])[:, 1]
    return probabilities


def _lasting(found: Sequence[Row]) -> npt.NDArray[np.int64]:
    return np.array([int(row.lasting) for row in found])


def _weights(found: Sequence[Row]) -> Matrix:
    return np.array([row.weight for row in found])


def report(found: Sequence[Row], probabilities: Matrix) -> str:
    """Precision and recall of the messages' clauses at several cuts, and how many of the others' are taken."""
    group = np.array([row.group for row in found])
    lasting = _lasting(found).astype(bool)
    lines = [f"{'cut':>5}" + "".join(f"{name:>20}" for name in OWN) + f"{'others taken':>14}"]
    for cut in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
        taken = probabilities >= cut
        line = f"{cut:>5}"
        for name in OWN:
            right = (taken & lasting & (group == name)).sum()
            precision = right / max(1, (taken & (group == name)).sum())
            line += f"{100 * precision:>14.1f}{100 * right / (lasting & (group == name)).sum():>6.1f}"
        others = ~np.isin(group, OWN)
        lines.append(f"{line}{100 * (taken & others).sum() / others.sum():>14.2f}")
    return "\n".join(lines) + "\n"


def inputs(found: Sequence[Row], vectors: Matrix | None) -> tuple[Matrix, Matrix]:
    """``points`` and ``plain_points`` of every clause, message by message."""
    seen = np.array([row.seen for row in found])
    messages = [list(group) for _, group in groupby(range(len(found)), key=lambda index: found[index].message)]
    both = [
        [make(seen[group], None if vectors is None else vectors[group]) for group in messages]
        for make in (classifier.points, classifier.plain_points)
    ]
    return np.vstack(both[0]), np.vstack(both[1])


def trained(found: Sequence[Row], points: Matrix, few: Matrix) -> dict[str, Any]:
    """The three heads; type and standing learn from the lasting clauses alone."""
    lasting = np.array([row.lasting for row in found])
    chosen = [row for row in found if row.lasting]
    ones = np.ones(len(chosen))
    return {
        "lasting": _plain(fit(points, _lasting(found), _weights(found))),
        "type": _plain(fit(few[lasting], [TYPES.index(row.kind) for row in chosen], ones)),
        "standing": _plain(fit(few[lasting], [STANDINGS.index(row.standing) for row in chosen], ones)),
    }


def _plain(model: LogisticRegression) -> dict[str, Any]:
    return {"weights": np.round(model.coef_, 3).tolist(), "bias": np.round(model.intercept_, 3).tolist()}


async def main() -> None:
    cache = Path(os.environ["VECTORS"]) if os.environ.get("VECTORS") else None
    found = rows(Path(os.environ["DATA"]))
    made = await vectors([row.clause.text for row in found], cache)
    weights: dict[str, Any] = {"signature": SIGNATURE, "types": TYPES, "standings": STANDINGS}
    for name, given in (("without_vector", None), ("with_vector", made)):
        points, few = inputs(found, given)
        sys.stdout.write(f"{name}\n{report(found, held_out(found, points))}")
        weights[name] = trained(found, points, few)
    WEIGHTS_FILE.write_text(json.dumps(weights).replace("], [", "],\n[") + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
