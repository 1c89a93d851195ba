"""Candidates for a query: by the user's own index, hot or just loaded, else by the store's dense search."""

import asyncio
import time
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import repeat

import numpy as np
import numpy.typing as npt

from semmem.lifecycle.reflected import bases
from semmem.memory import Hit, MemoryType, Scope, Vector
from semmem.ports.errors import EmbedderBusy, StoreTimeout
from semmem.ports.store import Store
from semmem.retrieval.decide.decision import COVERAGE_LEAST, LOGIT_WEIGHT, Decision, RequestVerdict, Verdict
from semmem.retrieval.decide.features import RequestWords
from semmem.retrieval.index.hot_memories import HotMemories
from semmem.retrieval.index.memory_index import Floats, Heard, MemoryIndex, Scores
from semmem.retrieval.once import FoundBefore
from semmem.retrieval.time_filter import CLOCK_SLACK_S, TIME_WEIGHT, is_dated, matches, names
from semmem.text.times import Interval

Places = npt.NDArray[np.int64]

BELOW_RELEVANCE = "below_relevance"
"""The reason word of a memory that the decision does not show."""
LOGIT_FLOOR = -30.0
CANDIDATES_MAX = 100
"""Of a user's memories so many of the best are looked at one by one; also the newest, for the strategy ``recent``."""
NAMED_MAX = 25
"""Where only the time is asked for, the best candidates are read for those they name: 0.05 to 0.2 ms each."""
OVERFETCH = 2
"""Hits asked of the store for each memory wanted, since ranking drops duplicates and what was already said."""
HOT, COLD_DENSE, RECENT = "hot", "cold_dense", "recent"
"""Where hits came from: the user's index; the store, since the index was not there in time; the newest memories."""
LOADING_SHARE = 0.6
"""Of the store's time so much is given to loading the user's index; the rest is for the store's own search."""
COLD_THRESHOLD = 0.3
"""Least cosine where nobody set one and there is no index to judge relevance by (docs/quality.md)."""
UNCALIBRATED = Decision()


class Strategy(StrEnum):
    """What memories are ordered by."""

    HYBRID = "hybrid"  # meaning and words
    SEMANTIC = "semantic"  # meaning: the cosine
    KEYWORD = "keyword"  # words: BM25
    RECENT = "recent"  # time: the newest, whatever is asked


class Fusion(StrEnum):
    """How meaning and words are put together."""

    WEIGHTED = "weighted"  # a weighted sum, with what neighbours and pairs of words add
    RRF = "rrf"  # reciprocal ranks: the sum of 1 / (60 + rank)


RRF_K = 60
"""Of reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)."""


@dataclass(frozen=True, slots=True)
class ResolvedQuery:
    """A question as it is searched with: every choice of the request's and of the configuration's is made.

    ``text`` is what is embedded and whose words are compared, ``scope`` whose memories are read, ``types`` empty for
    all; ``threshold`` is a cosine, None for the calibrated decision, of which otherwise only a plain refusal holds;
    ``during`` is a time that is asked for; ``wants``: an earlier filter has said that this is no question of general
    knowledge. ``is_lookup``: memories themselves are searched for, so the best are given, whatever the decision says.
    """

    text: str
    scope: Scope
    now: float
    strategy: Strategy
    limit: int
    types: tuple[MemoryType, ...] = ()
    threshold: float | None = None
    during: Interval | None = None
    wants: bool = False
    fusion: Fusion = Fusion.WEIGHTED
    is_lookup: bool = False

    @property
    def key(self) -> Hashable:
        """All that what is found depends on beside vector, time, threshold and limit; without the text."""
        which = self.scope, self.types, self.during
        return hash(self.text), self.strategy, *which, self.wants, self.fusion, self.is_lookup


async def nearest(store: Store, query: ResolvedQuery, vector: Vector, *, timeout_s: float) -> list[Hit]:
    """The store's own dense search, best first. Raises StoreError, StoreTimeout when too late. Up to OVERFETCH times
    the query's limit come back, at most CANDIDATES_MAX."""
    limit = min(OVERFETCH * query.limit, CANDIDATES_MAX)
    try:
        async with asyncio.timeout(timeout_s):
            return await store.search(query.scope, vector, limit=limit, now=query.now, types=query.types)
    except TimeoutError as late:
        raise StoreTimeout(f"no hits within {timeout_s} s") from late


@dataclass(frozen=True, slots=True)
class WordsRead:
    """What can be said of a query without its vector, so that it is worked out while that is made. Of the memories in
    ``index``: ``heard``, with the members of a scope; of the request itself, ``said``. ``text``: the query's."""

    text: str
    index: MemoryIndex
    heard: Heard
    said: RequestWords | None


def read_words(index: MemoryIndex, query: ResolvedQuery, decision: Decision) -> WordsRead:
    """All that ranking and the decision need of a query's words."""
    members = index.members(query.scope, query.types, query.now)
    return WordsRead(query.text, index, index.heard(query.text, members), decision.heard(query.text))


@dataclass(frozen=True, slots=True)
class Candidates:
    """Hits, best first, and of those that have nothing to do with the question why not, by memory id. ``standing``: ids
    of those with a budget of their own. ``request``: what was decided of the request as a whole, where that is
    calibrated."""

    hits: list[Hit]
    cuts: Mapping[str, str] = field(default_factory=dict)
    standing: frozenset[str] = frozenset()
    request: RequestVerdict | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Candidates for a query, how they were found (HOT, COLD_DENSE, RECENT), the least cosine they must have, and the
    user's index where it was asked."""

    query: ResolvedQuery
    candidates: Candidates
    path: str
    threshold: float | None = None
    index: MemoryIndex | None = None

    @property
    def fitting(self) -> list[Hit]:
        """Those that are neither cut nor below the threshold."""
        floor = -1.0 if self.threshold is None else self.threshold
        cuts = self.candidates.cuts
        return [hit for hit in self.candidates.hits if hit.cosine >= floor and hit.memory.id not in cuts]


async def find(
    memories: HotMemories,
    query: ResolvedQuery,
    vector: Vector,
    decision: Decision,
    *,
    timeout_s: float,
    before: FoundBefore[Candidates],
    cut_too: bool = True,
    read: WordsRead | None = None,
) -> SearchResult:
    """By the user's index where it is there in time, else by the store's own search. Raises StoreError, and
    EmbedderBusy for a user whose memories have no vectors. ``before``: what this decision found before. ``cut_too`` and
    ``read``: as for ``best_of``."""
    started = time.perf_counter()
    index = await memories.index(query.scope.user, wait_s=LOADING_SHARE * timeout_s)
    if index is None:
        return await _find_cold(memories, query, vector, timeout_s=timeout_s - (time.perf_counter() - started))
    if index.lacks_vectors and query.strategy is not Strategy.RECENT:
        raise EmbedderBusy("the user's memories have no vectors yet")
    cut_too = cut_too or query.threshold is not None or query.is_lookup
    asked = query.key, id(vector), cut_too, decision.feedback_stamp(query.scope.user)
    best = before.get(index, asked, vector, query.now)
    if best is None:
        best = best_of(index, query, vector, decision, cut_too=cut_too, read=read)
        before.put(index, asked, vector, query.now, best)
        memories.found(query.scope.user, index, best.hits)
    if query.strategy is Strategy.RECENT:
        return SearchResult(query, best, HOT, index=index)  # no cosine was asked for, so there is none to compare
    is_general = best.request is not None and best.request.is_general
    if query.is_lookup or (query.threshold is not None and not is_general):
        best = replace(best, cuts={})
    return SearchResult(query, best, HOT, query.threshold, index)


async def find_by_words(memories: HotMemories, query: ResolvedQuery, *, timeout_s: float) -> SearchResult:
    """By the query's words, else the newest, for when it cannot be embedded. Raises StoreError."""
    index = await memories.index(query.scope.user, wait_s=timeout_s)
    if index is None:
        listed = await memories.list(query.scope, types=query.types, limit=CANDIDATES_MAX)
        return SearchResult(query, Candidates([Hit(memory, 0.0, 0.0) for memory in listed]), RECENT)
    best = best_of(index, replace(query, strategy=Strategy.KEYWORD), None)
    best = replace(best, cuts={}) if query.is_lookup else best
    if any(hit.memory.id not in best.cuts for hit in best.hits):
        return SearchResult(query, best, HOT)
    return SearchResult(query, newest(index, query), RECENT)


async def _find_cold(memories: HotMemories, query: ResolvedQuery, vector: Vector, *, timeout_s: float) -> SearchResult:
    hits = await nearest(memories, query, vector, timeout_s=timeout_s)
    hits = [hit for hit in hits if not bases(hit.memory)]  # whether these are there still is not known here
    if (during := query.during) is not None:
        hits = _by_score(
            replace(hit, score=hit.score + TIME_WEIGHT) if matches(hit.memory, during) else hit for hit in hits
        )
    threshold = COLD_THRESHOLD if query.threshold is None and not query.is_lookup else query.threshold
    return SearchResult(query, Candidates(hits), COLD_DENSE, threshold)


def best_of(
    index: MemoryIndex,
    query: ResolvedQuery,
    vector: Vector | None,
    decision: Decision = UNCALIBRATED,
    *,
    cut_too: bool = True,
    read: WordsRead | None = None,
) -> Candidates:
    """The scope's best memories, at most CANDIDATES_MAX, by the query's strategy; ties by id. ``cut_too`` False:
    without those that the decision does not show, which are most of them and take most of the time.

    ``vector`` None: nothing could be embedded, and words alone decide. By words alone, memories without any of them
    are left out. Memories of the time that is asked for get TIME_WEIGHT (not by words alone); where nothing has to do
    with the question otherwise ("What did I do last May?"), its time is what it asks for, and those of it are not cut.
    ``read``: what was read already of this scope, these types and this time; of another text or index it says nothing.
    """
    if query.strategy is Strategy.RECENT:
        return newest(index, query)
    if read is None or read.index is not index or read.text != query.text:
        read = read_words(index, query, decision)
    members = read.heard.members
    if not members.any():
        told = None if vector is None else decision.request_alone(query.text, vector, wants=query.wants, said=read.said)
        return Candidates([], request=told)
    scores = index.scored(read.heard, vector)
    by_words = vector is None or query.strategy is Strategy.KEYWORD
    during = None if by_words else query.during
    if vector is None:  # what shares enough words
        verdict = Verdict(scores.coverage >= COVERAGE_LEAST, np.zeros(len(members), dtype=np.bool_))
    else:  # a lookup wants memories, whatever its words look like, so that they are read for it
        wants = query.wants or query.is_lookup
        verdict = decision.verdict(query.text, vector, index, scores, members, wants=wants, said=read.said)
    order = _order(query, scores, verdict, by_words=by_words)
    if during is not None:
        dated = index.dated(during.start - CLOCK_SLACK_S, during.end + CLOCK_SLACK_S)
        order = order + np.float32(TIME_WEIGHT) * dated.astype(np.float32)
    found = members & (scores.keyword > 0) if by_words else members
    places = np.flatnonzero(found)
    if len(places) > CANDIDATES_MAX:
        looked_at = found & verdict.standing & verdict.shown
        looked_at[places[np.argpartition(-order[places], CANDIDATES_MAX)[:CANDIDATES_MAX]]] = True
        places = np.flatnonzero(looked_at)
    shown = verdict.shown[places]
    asked_for = None if shown.any() else during
    cuts: dict[str, str] = {}
    if not cut_too and asked_for is None:
        places = places[shown]
    else:
        cuts = dict.fromkeys(_ids(index, places[~shown]), BELOW_RELEVANCE)
    hits = _by_score(_hits(index, scores, verdict, order, places))
    if asked_for is not None:
        of_time = {hit.memory.id for hit in hits if is_dated(hit.memory, asked_for)}
        of_time |= {hit.memory.id for hit in hits[:NAMED_MAX] if names(hit.memory, asked_for)}
        cuts = {memory_id: cuts[memory_id] for memory_id in cuts.keys() - of_time}
    standing = frozenset(_ids(index, places[verdict.standing[places]]))
    return Candidates(hits, cuts, standing, verdict.request)


def _order(query: ResolvedQuery, scores: Scores, verdict: Verdict, *, by_words: bool) -> Floats:
    """What the memories are ordered by, shape (n,). A profile is listed by worth alone, since nothing is asked for."""
    if by_words:
        return scores.keyword
    if query.strategy is Strategy.SEMANTIC:
        return scores.cosine
    if query.fusion is Fusion.RRF:
        return _reciprocal_ranks(scores.cosine) + _reciprocal_ranks(scores.keyword)
    if verdict.logits is None:
        return scores.fused
    logits: Floats = np.maximum(verdict.logits, np.float32(LOGIT_FLOOR))
    if verdict.request is not None and verdict.request.lists_profile:
        return logits
    return scores.fused + np.float32(LOGIT_WEIGHT) * logits


def _reciprocal_ranks(scores: Floats) -> Floats:
    """1 / (60 + rank) by a score, best first; 0 for what has none."""
    shares = np.empty(len(scores), dtype=np.float32)
    shares[np.argsort(-scores, kind="stable")] = 1 / np.arange(RRF_K + 1, RRF_K + len(scores) + 1)
    shares[scores <= 0] = 0.0
    return shares


def _by_score(hits: Iterable[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda hit: (-hit.score, hit.memory.id))


def newest(index: MemoryIndex, query: ResolvedQuery) -> Candidates:
    """The scope's memories that were updated last, newest first, at most CANDIDATES_MAX, without scores."""
    members = index.members(query.scope, query.types, query.now)
    memories = [index.memories[place] for place in np.flatnonzero(members)]
    memories.sort(key=lambda memory: (-memory.updated_at, memory.id))
    return Candidates([Hit(memory, 0.0, 0.0) for memory in memories[:CANDIDATES_MAX]])


def _ids(index: MemoryIndex, places: Places) -> list[str]:
    return [index.memories[place].id for place in places.tolist()]


def _hits(index: MemoryIndex, scores: Scores, verdict: Verdict, order: Floats, places: Places) -> Iterable[Hit]:
    logits = repeat(None) if verdict.logits is None else verdict.logits[places].tolist()
    numbers = (scores.cosine[places].tolist(), order[places].tolist(), scores.keyword[places].tolist(), logits)
    return map(Hit, map(index.memories.__getitem__, places.tolist()), *numbers)
