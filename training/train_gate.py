"""Trains the gate on the question's vector and writes semmem/retrieval/gate_weights.json.

    DATA=folder [VECTORS=cache.npz] python -m training.train_gate

``folder`` holds signals/clinc150.jsonl, signals/general_facts_*.jsonl and retrieval/bfcl_memory_questions.jsonl;
training/own_sentences.jsonl lies beside this file. Sets that may only measure (``personal_*`` and
``first_person_questions``), where the folder has them, are measured and never trained on. Every figure on a training
set comes from a fold that did not see the text. docs/gate.md says what the figures mean.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

from semmem.backends.embedding.sentence_transformers import SentenceTransformersEmbedder
from semmem.retrieval.decide import gate
from semmem.retrieval.decide.general_facts import is_general_fact
from semmem.retrieval.decide.greetings import is_social

SIGNATURE = "sentence-transformers/all-MiniLM-L6-v2/384/fp32"
CLASSES = ("social", "general", "personal", "task")
WEIGHTS_FILE = Path(gate.__file__).with_name("gate_weights.json")
OWN_FILE = Path(__file__).with_name("own_sentences.jsonl")

SOCIAL_INTENTS = ("greeting", "goodbye", "thank_you")
WORDY_INTENTS = ("definition", "spelling", "measurement_conversion", "translate", "calculator")
"""Tools that answer the same to everybody: general, like a question from a quiz."""
UNLABELLED_INTENTS = ("yes", "no", "maybe")
"""Courtesies or answers to a question, which only the talk before them can tell."""
TASK_STEP, TASK_ROWS_MAX = 3, 30
"""Every third row of each other CLINC intent, and so many at most: enough to know it by without drowning the rest."""
OWN_WEIGHT = 8.0
"""How often an own sentence, or one of BFCL, counts: some hundreds stand against thousands of quiz questions."""
STRENGTH = 10.0
"""scikit-learn's C: the inverse of the penalty on large weights."""
FOLDS = 5
SEED = 7
SHARES = {"social": 0.005, "general": 0.06, "general_guarded": 0.005, "general_sure": 0.005}
"""Of the held-out rows of other classes (for the general cuts: of the personal ones, most of which were written to be
mistaken), how many a cut may skip wrongly."""
FLOORS = {"social": 0.5, "general": 0.4, "general_guarded": 0.6, "general_sure": 0.95}
"""No cut lies lower, however well the held-out rows are told apart: other people's questions are other questions."""

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Row:
    """One text of one set; ``label`` None: measured, never trained on."""

    text: str
    group: str
    label: str | None
    weight: float = 1.0


def rows(folder: Path) -> list[Row]:
    """Every row that may train, each once, and every row that only measures, as often as it occurs."""
    found = [*_own(), *_clinc(folder), *_general(folder), *_personal(folder)]
    once = {(row.group, row.text): row for row in found if row.label is not None}
    return [*once.values(), *(row for row in found if row.label is None)]


def _own() -> Iterator[Row]:
    for line in _lines(OWN_FILE):
        yield Row(line["text"], f"own_{line['class']}", line["class"], OWN_WEIGHT)


def _clinc(folder: Path) -> Iterator[Row]:
    seen: dict[str, int] = {}
    for line in _lines(folder / "signals" / "clinc150.jsonl"):
        intent = line["intent"]
        if intent in SOCIAL_INTENTS:
            yield Row(line["text"], f"clinc_{intent}", "social")
        elif intent not in UNLABELLED_INTENTS:
            seen[intent] = seen.get(intent, 0) + 1
            if seen[intent] % TASK_STEP == 0 and seen[intent] <= TASK_STEP * TASK_ROWS_MAX:
                wordy = intent in WORDY_INTENTS
                yield Row(line["text"], f"clinc_{intent if wordy else 'task'}", "general" if wordy else "task")


def _general(folder: Path) -> Iterator[Row]:
    for file in sorted(folder.glob("signals/general_facts_*.jsonl")):
        for line in _lines(file):
            yield Row(line["text"], file.stem, "general")


def _personal(folder: Path) -> Iterator[Row]:
    for line in _lines(folder / "retrieval" / "bfcl_memory_questions.jsonl"):
        yield Row(line["question"], "bfcl", "personal", OWN_WEIGHT)
    for file in sorted(folder.glob("signals/personal_*.jsonl")):
        for line in _lines(file):
            yield Row(line["text"], file.stem, None)
    questions = folder / "retrieval" / "first_person_questions.jsonl"
    for line in _lines(questions) if questions.exists() else []:
        yield Row(line["question"], "first_person", None)


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


async def vectors(texts: Sequence[str], cache: Path | None) -> Matrix:
    """The embedder's vectors, one row a text; those in ``cache`` are not computed again, and new ones are added."""
    known = _cached(cache)
    missing = [text for text in dict.fromkeys(texts) if text not in known]
    if missing:
        known |= await _embedded(missing)
        if cache is not None:
            np.savez(cache, texts=np.array(list(known)), vectors=np.stack(list(known.values())))
    return np.stack([known[text] for text in texts]).astype(np.float64)


def _cached(cache: Path | None) -> dict[str, npt.NDArray[np.float32]]:
    if cache is None or not cache.exists():
        return {}
    with np.load(cache) as stored:
        return dict(zip(stored["texts"].tolist(), stored["vectors"], strict=True))


async def _embedded(texts: Sequence[str]) -> dict[str, npt.NDArray[np.float32]]:
    embedder = SentenceTransformersEmbedder()
    if embedder.signature != SIGNATURE:
        raise SystemExit(f"the weights are for {SIGNATURE}, the embedder is {embedder.signature}")
    await embedder.open()
    try:
        return {text: await embedder.embed(text) for text in texts}
    finally:
        await embedder.close()


def fit(points: Matrix, labels: npt.NDArray[np.int64], weights: Matrix) -> LogisticRegression:
    return LogisticRegression(C=STRENGTH, max_iter=500).fit(points, labels, sample_weight=weights)


def held_out(points: Matrix, labels: npt.NDArray[np.int64], weights: Matrix) -> Matrix:
    """Each training row's probabilities, by a model that has not seen it."""
    fold = np.random.default_rng(SEED).integers(0, FOLDS, len(points))
    found = np.zeros((len(points), len(CLASSES)))
    for number in range(FOLDS):
        rest = fold != number
        found[~rest] = fit(points[rest], labels[rest], weights[rest]).predict_proba(points[~rest])
    return found


def cuts(training: Sequence[Row], found: Matrix) -> dict[str, float]:
    """For each cut the least hundredth, not below its floor, that skips no more held-out rows than SHARES allows."""
    both = list(zip(training, found, strict=True))
    others = [p[0] for row, p in both if row.label != "social" and gate.is_courteous(row.text)]
    chosen = {"social": _cut("social", others, sum(row.label != "social" for row in training))}
    personal = [(p[1], gate.suspicion(row.text)) for row, p in both if row.label == "personal"]
    for name in ("general", "general_guarded", "general_sure"):
        chosen[name] = _cut(name, [p for p, suspicion in personal if suspicion == name], len(personal))
    return chosen


def _cut(name: str, probabilities: Sequence[float], rows_all: int) -> float:
    grid = [step / 100 for step in range(round(100 * FLOORS[name]), 100)]
    return next((cut for cut in grid if sum(p >= cut for p in probabilities) <= SHARES[name] * rows_all), 0.99)


def report(found: Sequence[tuple[Row, Sequence[float]]], chosen: dict[str, float]) -> str:
    """Percent of each group that is skipped, by the rules alone and by rules and vector."""
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for row, probabilities in found:
        word = gate.decision(row.text, probabilities[0], probabilities[1], chosen)
        rule = "greeting" if is_social(row.text) else "general_fact" if is_general_fact(row.text) else gate.SEARCH
        groups.setdefault(row.group, []).append((row.text, rule, word if rule == gate.SEARCH else rule))
    lines = [f"{'set':32}{'rows':>6}{'rules':>8}{'greeting':>10}{'general':>9}"]
    for name, words in sorted(groups.items()):
        share = [
            100 * sum(word == wanted for *_, word in words) / len(words)
            for wanted in (gate.GREETING, gate.GENERAL_FACT)
        ]
        rules = 100 * sum(rule != gate.SEARCH for _, rule, _ in words) / len(words)
        lines.append(f"{name:32}{len(words):>6}{rules:>8.1f}{share[0]:>10.2f}{share[1]:>9.2f}")
    return "\n".join(lines) + "\n"


def save(model: LogisticRegression, chosen: dict[str, float]) -> None:
    trained = {
        "signature": SIGNATURE,
        "classes": CLASSES,
        "cuts": chosen,
        "bias": np.round(model.intercept_, 4).tolist(),
        "weights": np.round(model.coef_, 4).tolist(),
    }
    WEIGHTS_FILE.write_text(json.dumps(trained).replace("], [", "],\n[") + "\n", encoding="utf-8")


async def main() -> None:
    cache = Path(os.environ["VECTORS"]) if os.environ.get("VECTORS") else None
    everything = rows(Path(os.environ["DATA"]))
    points = await vectors([row.text for row in everything], cache)
    trained = np.array([row.label is not None for row in everything])
    training = [row for row in everything if row.label is not None]
    labels = np.array([CLASSES.index(str(row.label)) for row in training])
    weights = np.array([row.weight for row in training])
    found = held_out(points[trained], labels, weights)
    chosen = cuts(training, found)
    model = fit(points[trained], labels, weights)
    save(model, chosen)
    measured = [row for row in everything if row.label is None]
    pairs: list[tuple[Row, Sequence[float]]] = list(zip(training, found.tolist(), strict=True))
    if measured:
        pairs += zip(measured, model.predict_proba(points[~trained]).tolist(), strict=True)
    sys.stdout.write(f"cuts {json.dumps(chosen)}\n{report(pairs, chosen)}")


if __name__ == "__main__":
    asyncio.run(main())
