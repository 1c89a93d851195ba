"""Learn the decision's numbers from labelled requests. Not part of answering any request.

A scene is a person: memories, each with its kind, and requests, each with its class and the places of the memories that
it wants. Beside scenes there are loose requests: of general knowledge or of no more than courtesy, which want nothing
of anybody's memories, and questions with the whole of somebody's memories to answer them from.

The regressions on vectors are learnt first. What they say of a text that they were trained on is too sure, so the
request's regression is learnt from halves: each half, loose requests too, judged by what the other half taught."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

from semmem.memory import Memory, MemoryType, Vector
from semmem.retrieval.decide import features, request_words
from semmem.retrieval.decide.features import Evidence
from semmem.retrieval.decide.trained import CLASSES, KINDS, Floats, Trained
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.text.quoting import unquoted

Embed = Callable[[Sequence[str]], Floats]
"""Texts to vectors (n, d), normalised."""
Labelled = tuple[str, str, float]
"""A text, its class or kind, and how much it counts."""
STRENGTH = 3.0
"""scikit-learn's C, of the regressions on texts: the inverse of the penalty on large weights."""
MEMORY_STRENGTH, REQUEST_STRENGTH = 0.1, 1.0
"""The same of the regressions on features."""
NEAREST = 15
"""Of a large store only so many memories, the nearest, are learnt from beside a person's own."""
CROWDS = (20, 60, 120)
"""Each scene is learnt from twice: alone, and among so many memories of other people's."""
CROWDED_BELOW = 30
STORES_OF_NOBODY = (8, 12, 12, 40, 80, 120)
LOOSE_WEIGHT, LOOSE_WEIGHT_OF_REQUEST = 0.5, 2.0
"""How much a request that wants nothing of anybody counts, for its memories and for itself."""
TEXT_CHARS_MAX = 2000
MEMORY_CUT, REQUEST_CUT = -4.0, -2.3
SEED = 7
_NONE = np.empty(0, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Case:
    """A request before an index, and what speaks for its memories. ``wanted``: places in it. The first ``own``
    memories are the person's. Cases of one ``group`` are never on both sides of a split."""

    group: int
    text: str
    vector: Vector
    index: MemoryIndex
    found: Evidence
    wanted: frozenset[int]
    own: int = 0
    weight: float = 1.0


@dataclass(slots=True)
class Material:
    """Everything to learn from. ``scenes`` are rows as in scenes/*.jsonl. ``classes`` are further texts by
    class. ``loose`` want nothing. ``asking`` are texts that ask for memories or not (a word, see ``ASKS``).
    ``answered``: (memories, [(question, places of what answers it)])."""

    scenes: list[dict[str, Any]]
    classes: list[Labelled] = field(default_factory=list)
    asking: list[tuple[str, bool, float]] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    answered: list[tuple[list[str], list[tuple[str, set[int]]]]] = field(default_factory=list)


def fit(
    material: Material, embed: Embed, signature: str, *, cuts: tuple[float, float] = (MEMORY_CUT, REQUEST_CUT)
) -> Trained:
    """The decision for vectors of the embedder with this signature."""
    embed(list(texts_of(material)))  # at once, for an embedder that keeps them
    cases = list(_cases(material, embed))
    tops: list[tuple[Floats, bool, float]] = []
    for half in (0, 1):
        heads = _heads(_without(material, half), embed, signature)
        weights = _memory_weights([case for case in cases if case.group % 2 != half], heads)
        tops += [_top(case, heads, weights) for case in cases if case.group % 2 == half]
    heads = _heads(material, embed, signature)
    seen, wants, counts = zip(*tops, strict=True)
    request_weights = _logistic(np.stack(seen), np.array(wants), np.array(counts), REQUEST_STRENGTH)
    memory_weights = _memory_weights(cases, heads)
    weighed = replace(heads, memory_weights=memory_weights, request_weights=request_weights)
    return replace(weighed, memory_cut=cuts[0], request_cut=cuts[1])


def _without(material: Material, half: int) -> Material:
    """What the other half holds of everything that the regressions on vectors learn from."""
    return Material(
        [scene for number, scene in enumerate(material.scenes) if number % 2 != half],
        [row for row in material.classes if _group(row[0]) % 2 != half],
        [row for row in material.asking if _group(row[0]) % 2 != half],
    )


def _group(text: str) -> int:
    """Of a text that belongs to no scene."""
    return crc32(text.encode("utf-8", "surrogatepass"))


def index_of(texts: Sequence[str], embed: Embed) -> MemoryIndex:
    """Memories with these contents, in this order."""
    vectors = embed([unquoted(text) for text in texts])  # as they are when they are stored
    numbered, kind = enumerate(zip(texts, vectors, strict=True)), MemoryType.SEMANTIC
    held = (Memory(f"{at:06d}", 1, kind, text, "somebody", embedding=vector) for at, (text, vector) in numbered)
    return MemoryIndex(list(held))


def texts_of(material: Material) -> Iterator[str]:
    """Everything that is embedded to learn from it; some of it more than once."""
    for scene in material.scenes:
        yield from (memory["text"] for memory in scene["memories"])
        yield from (request["text"][:TEXT_CHARS_MAX] for request in scene["requests"])
    yield from (text for text, _, _ in material.classes)
    yield from (text for text, _, _ in material.asking)
    yield from material.loose
    for memories, questions in material.answered:
        yield from memories
        yield from (question for question, _ in questions)


def _cases(material: Material, embed: Embed) -> Iterator[Case]:
    chance = random.Random(SEED)
    others = [
        (number, memory["text"])
        for number, scene in enumerate(material.scenes)
        for memory in scene["memories"]
        if memory["kind"] not in ("must", "style")  # another's allergy or wish could be taken for one's own
    ]
    for number, scene in enumerate(material.scenes):
        own = [memory["text"] for memory in scene["memories"]]
        drawn = chance.sample(others, min(chance.choice(CROWDS), len(others)))
        crowd = [text for other, text in drawn if other != number]
        for texts in [own, own + crowd] if len(own) < CROWDED_BELOW else [own]:
            held = index_of(texts, embed)
            for request in scene["requests"]:
                yield _case(number, request["text"][:TEXT_CHARS_MAX], held, embed, request["wanted"], len(own))
    for memories, questions in material.answered:
        held = index_of(memories, embed)
        for question, wanted in questions:
            yield _case(_group(question), question, held, embed, wanted)
    drawn_for_nobody = [chance.sample(others, min(size, len(others))) for size in STORES_OF_NOBODY]
    nobodys = [index_of([text for _, text in drawn], embed) for drawn in drawn_for_nobody]
    for number, text in enumerate(material.loose):
        yield _case(_group(text), text, nobodys[number % len(nobodys)], embed, (), weight=LOOSE_WEIGHT)


def _case(
    group: int, text: str, held: MemoryIndex, embed: Embed, wanted: Iterable[int], own: int = 0, weight: float = 1.0
) -> Case:
    vector = embed([text])[0]
    found = features.evidence(held.scores(text, vector))
    return Case(group, text, vector, held, found, frozenset(wanted), own, weight)


def _heads(material: Material, embed: Embed, signature: str) -> Trained:
    """The regressions on a text alone, without the others."""
    requests = [request for scene in material.scenes for request in scene["requests"]]
    memories = [memory for scene in material.scenes for memory in scene["memories"]]
    texts = [request["text"][:TEXT_CHARS_MAX] for request in requests]
    classes = [(text, each["class"], 3.0) for text, each in zip(texts, requests, strict=True)] + material.classes
    # a request wants memories, were they only there
    asks = [bool(each["wanted"]) or each["class"] in ("recall", "profile") for each in requests]
    asking = [(text, wants, 2.0) for text, wants in zip(texts, asks, strict=True)] + material.asking
    kinds = [(memory["text"], memory["kind"], 1.0) for memory in memories]
    of_vector, of_words = _asks_weights(asking, embed)
    classes_of, kinds_of = _softmax(classes, CLASSES, embed), _softmax(kinds, KINDS, embed)
    return Trained(signature, classes_of, kinds_of, of_vector, of_words, _NONE, _NONE, 0.0, 0.0)


def _memory_weights(cases: Iterable[Case], heads: Trained) -> Floats:
    rows: list[Floats] = []
    wanted: list[bool] = []
    weights: list[float] = []
    for case in cases:
        request, kinds = _seen(case, heads)
        places = _places(case)
        seen = Evidence(case.found.each[places], case.found.nearest)
        rows.append(features.memory_features(request, seen, kinds[places]).astype(np.float32))
        wanted += [place in case.wanted for place in places]
        weights += [case.weight] * len(places)
    return _logistic(np.concatenate(rows), np.array(wanted), np.array(weights), MEMORY_STRENGTH)


def _places(case: Case) -> list[int]:
    """The memories of a case that are learnt from."""
    nearest = np.argsort(-case.found.each[:, 0])[: NEAREST if case.weight == 1.0 else NEAREST // 3]
    own = range(case.own if case.own < CROWDED_BELOW else 0)
    return sorted({*own, *nearest.tolist(), *case.wanted})


def _top(case: Case, heads: Trained, weights: Floats) -> tuple[Floats, bool, float]:
    request, kinds = _seen(case, heads)
    logits = features.memory_logits(weights, request, case.found, kinds)
    weight = 1.0 if case.weight == 1.0 else LOOSE_WEIGHT_OF_REQUEST
    return features.top_features(request, case.found, logits), bool(case.wanted), weight


def _seen(case: Case, heads: Trained) -> tuple[Floats, Floats]:
    """The features of the request, and the kinds of the memories."""
    return features.request_features(heads, case.text, case.vector), features.kinds(heads, case.index.vectors)


# --- the regressions -------------------------------------------------------------------------------------------------


def _softmax(rows: Sequence[Labelled], labels: Sequence[str], embed: Embed) -> Floats:
    """(labels, d + 1): weights of the vectors, the bias last."""
    vectors, named = embed([text for text, _, _ in rows]), [label for _, label, _ in rows]
    regression = LogisticRegression(C=STRENGTH, max_iter=300)
    regression.fit(vectors, named, sample_weight=[weight for _, _, weight in rows])
    order = [list(regression.classes_).index(label) for label in labels]
    return _with_bias(regression.coef_[order], regression.intercept_[order])


def _asks_weights(rows: Sequence[tuple[str, bool, float]], embed: Embed) -> tuple[Floats, Floats]:
    """A logistic regression of vectors and words together: (d + 1,), the bias last, and (request_words.BUCKETS,)."""
    texts = [text for text, _, _ in rows]
    vectors = embed(texts)
    regression = LogisticRegression(C=STRENGTH, max_iter=300, solver="liblinear")
    _, wants, weights = zip(*rows, strict=True)
    regression.fit(hstack([csr_matrix(vectors), _of_words(texts)]).tocsr(), list(wants), sample_weight=list(weights))
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


def _logistic(rows: Floats, wanted: npt.NDArray[np.bool_], weights: npt.NDArray[np.float64], strength: float) -> Floats:
    """A logistic regression of standardised features, as weights for the features as they are, the bias last."""
    middle, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-3
    regression = LogisticRegression(C=strength, max_iter=600)
    regression.fit((rows - middle) / spread, wanted, sample_weight=weights)
    slopes = regression.coef_[0] / spread
    return np.append(slopes, regression.intercept_[0] - slopes @ middle).astype(np.float32)


def _with_bias(slopes: npt.NDArray[np.float64], bias: npt.NDArray[np.float64]) -> Floats:
    return np.concatenate([slopes, bias[:, None]], axis=1).astype(np.float32)
