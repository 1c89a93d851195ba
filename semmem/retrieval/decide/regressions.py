"""The regressions that the decision is learnt by. Not part of answering any request."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

from semmem.retrieval.decide import request_words
from semmem.retrieval.decide.trained import Floats

Embed = Callable[[Sequence[str]], Floats]
"""Texts to vectors (n, d), normalised."""
Labelled = tuple[str, str, float]
"""A text, its class or kind, and how much it counts."""
STRENGTH = 3.0
"""scikit-learn's C, of the regressions on texts: the inverse of the penalty on large weights."""


def softmax(rows: Sequence[Labelled], labels: Sequence[str], embed: Embed) -> Floats:
    """(labels, d + 1): weights of the vectors, the bias last."""
    vectors, named = embed([text for text, _, _ in rows]), [label for _, label, _ in rows]
    regression = LogisticRegression(C=STRENGTH, max_iter=300)
    regression.fit(vectors, named, sample_weight=[weight for _, _, weight in rows])
    order = [list(regression.classes_).index(label) for label in labels]
    return _with_bias(regression.coef_[order], regression.intercept_[order])


def asks(rows: Sequence[tuple[str, bool, float]], embed: Embed) -> tuple[Floats, Floats]:
    """A logistic regression of vectors and words together: (d + 1,), the bias last, and (request_words.BUCKETS,)."""
    texts = [text for text, _, _ in rows]
    vectors = embed(texts)
    regression = LogisticRegression(C=STRENGTH, max_iter=300, solver="liblinear")
    regression.fit(
        hstack([csr_matrix(vectors), _of_words(texts)]).tocsr(),
        [wants for _, wants, _ in rows],
        sample_weight=[weight for _, _, weight in rows],
    )
    of_vector, of_words = np.split(regression.coef_, [vectors.shape[1]], axis=1)
    return _with_bias(of_vector, regression.intercept_)[0], of_words[0].astype(np.float32)


def _of_words(texts: Sequence[str]) -> csr_matrix:
    """One row a text, as ``features.request_features`` weighs its words."""
    found = [request_words.places(text) for text in texts]
    values = [1 / max(len(places), 1) ** 0.5 for places in found for _ in places]
    ends = np.cumsum([0, *map(len, found)])
    return csr_matrix(
        (values, [place for places in found for place in places], ends), (len(texts), request_words.BUCKETS)
    )


def logistic(rows: Floats, wanted: npt.NDArray[np.bool_], weights: npt.NDArray[np.float64], strength: float) -> Floats:
    """A logistic regression of standardised features, as weights for the features as they are, the bias last."""
    middle, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-3
    regression = LogisticRegression(C=strength, max_iter=600)
    regression.fit((rows - middle) / spread, wanted, sample_weight=weights)
    slopes = regression.coef_[0] / spread
    return np.append(slopes, regression.intercept_[0] - slopes @ middle).astype(np.float32)


def _with_bias(slopes: npt.NDArray[np.float64], bias: npt.NDArray[np.float64]) -> Floats:
    return np.concatenate([slopes, bias[:, None]], axis=1).astype(np.float32)
