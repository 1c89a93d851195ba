"""Trains what tells questions for former conversations from others, and writes semmem/retrieval/query/looks_back.npz.

    [VECTORS=cache.npz] python -m training.train_looks_back

Beside this file lie questions and near misses of our own (looks_back.jsonl); the questions that retrieval's decision
is trained on ask for none, but for those whose form says so, which are left out. Figures come from folds that did not
see the question, and the cut from them: of near misses 10 % are taken for one. Those cost a search, and are shown
conversations only where these hold most of their words.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

from semmem.ports.embedder import learnt_for
from semmem.retrieval.decide import scenes
from semmem.retrieval.query.past_conversations import (
    BUCKETS,
    SHIPPED,
    WORDS_SCALE,
    LooksBack,
    flags_of,
    has_form,
    places,
)
from training.train_decision import Vectors

OWN_FILE = Path(__file__).with_name("looks_back.jsonl")
SCENES = Path(scenes.__file__).parent
STRENGTH = 3.0
"""scikit-learn's C."""
FALSE_MAX = 0.1
OTHERS_WEIGHT = 0.5
FOLDS, SEED = 5, 11

Matrix = npt.NDArray[np.float64]


def main() -> int:
    texts, asks, weights = material()
    file = os.environ.get("VECTORS")
    embed = Vectors(Path(file) if file else None)
    rows = matrix(texts, embed(texts))
    own = weights == 1.0
    logits = out_of_fold(rows, asks, weights)
    cut = float(np.quantile(logits[own & ~asks], 1 - FALSE_MAX))
    found, taken = (logits[asks] >= cut).mean(), (logits[own & ~asks] >= cut).mean()
    others = (logits[~own] >= cut).mean()
    told = f"{asks.sum()} of {len(texts)} ask; found {found:.1%}, near misses taken {taken:.1%}, others {others:.1%}"
    sys.stdout.write(f"{told}\n")
    model = fitted(rows, asks, weights)
    learnt, dimension = model.coef_[0], embed(texts[:1]).shape[1]
    LooksBack(
        embed.signature,
        vector=learnt[:dimension].astype(np.float32),
        words=learnt[dimension : dimension + BUCKETS].astype(np.float32),
        flags=learnt[dimension + BUCKETS :].astype(np.float32),
        bias=float(model.intercept_[0]),
        cut=cut,
    ).save(learnt_for(SHIPPED, embed.signature))
    return 0


def material() -> tuple[list[str], npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """Texts, which of them ask, and what each weighs."""
    own = [json.loads(line) for line in OWN_FILE.read_text(encoding="utf-8").splitlines()]
    others = [
        row["text"]
        for name in ("sentences.jsonl", "sentences_more.jsonl")
        for row in map(json.loads, (SCENES / name).read_text(encoding="utf-8").splitlines())
        if not has_form(row["text"])
    ]
    texts = [row["text"] for row in own] + others
    asks = np.array([row["asks"] for row in own] + [False] * len(others))
    return texts, asks, np.array([1.0] * len(own) + [OTHERS_WEIGHT] * len(others))


def matrix(texts: Sequence[str], vectors: npt.NDArray[np.float32]) -> Matrix:
    words = np.zeros((len(texts), BUCKETS))
    for row, text in enumerate(texts):
        said = places(text)
        words[row, said] = WORDS_SCALE / max(len(said), 1) ** 0.5
    flags = np.stack([flags_of(text, in_form=has_form(text)) for text in texts])
    return np.hstack([vectors, words, flags])


def out_of_fold(rows: Matrix, asks: npt.NDArray[np.bool_], weights: npt.NDArray[np.float64]) -> Matrix:
    fold = np.random.default_rng(SEED).permutation(len(rows)) % FOLDS
    logits = np.zeros(len(rows))
    for each in range(FOLDS):
        seen = fold != each
        logits[~seen] = fitted(rows[seen], asks[seen], weights[seen]).decision_function(rows[~seen])
    return logits


def fitted(rows: Matrix, asks: npt.NDArray[np.bool_], weights: npt.NDArray[np.float64]) -> LogisticRegression:
    return LogisticRegression(C=STRENGTH, max_iter=2000).fit(rows, asks, sample_weight=weights)


if __name__ == "__main__":
    raise SystemExit(main())
