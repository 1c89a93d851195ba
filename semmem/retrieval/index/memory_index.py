"""Everything that ranking needs of one user's live memories: their vectors, their words, their order in time.

Nothing here waits or reads anything: an index is built in a worker thread and asked on the event loop. The formula and
the figures behind the constants are in docs/quality.md, "How memories are ranked"."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from semmem.memory import SUPERSEDED_BY, Memory, MemoryType, Scope, Standing, Vector
from semmem.retrieval.index import sizes
from semmem.retrieval.index.word_index import WordIndex, offered, wanted
from semmem.text.terms import terms
from semmem.text.words import words

Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]

KEYWORD_WEIGHT = 0.4
"""Of the best keyword match, in units of cosine."""
PAIR_WEIGHT = 0.4
"""Of a memory that has all pairs of neighbouring words of the question."""
ANSWER_WEIGHT = 0.1
"""For each kind of answer that the question wants and the memory has."""
SPEAKER_WEIGHT = 0.1
"""Of a line of talk ("Ann: ...") whose speaker the question names."""
ASKS_WEIGHT = 0.1
"""Taken from a memory that ends with a question: what asks does not answer."""
LONG_TERMS = 70
"""A text of so many terms stands for itself: its neighbours say nothing about it, and it holds a relative of any word
by chance. The shorter a text is, the more both count, in proportion."""
NEIGHBOUR_WEIGHTS = (0.5, 0.25)
"""The share of its excess that a memory lends to those beside it, and to those one further."""
TOP_SHARE = 0.1
"""Only what is among this share of the best lends, and only by how much it exceeds the others."""
GAP_S_MAX = 3600.0
"""A longer silence ends a talk."""

NOTHING_SAID: Mapping[str, str] = MappingProxyType({})
_SPEAKER = re.compile(r"([^\W\d_][\w'’-]*(?: [^\W\d_][\w'’-]*)?):\s")
_ENDS_ASKING = re.compile(r"[?？]\s*(?:\[[^\[\]]*\]\s*)?$")
_NAME = re.compile(r"\w+(?:['’-]\w+)*")


@dataclass(frozen=True, slots=True)
class Scores:
    """One row per memory, in the order of ``MemoryIndex.memories``; each array has shape (n,), float32. ``cosine``: in
    [-1, 1], 0 for a memory without an embedding or without a question's vector. ``keyword``: BM25, 0 or more.
    ``coverage``: the share of the question's words, weighted by how rare they are, that the memory holds, 0 to 1.
    ``fused``: what orders the memories, in units of cosine. All are 0 for memories that were not to be ranked."""

    cosine: Floats
    keyword: Floats
    coverage: Floats
    fused: Floats

    def at(self, places: npt.NDArray[np.int64]) -> Scores:
        """Those of some of the memories."""
        return Scores(self.cosine[places], self.keyword[places], self.coverage[places], self.fused[places])


@dataclass(frozen=True, slots=True)
class Heard:
    """What the words of a question alone say of each memory, one row per memory as in ``Scores``. ``members`` (n,) are
    those to rank, all of them where ``is_all``. ``keyword`` and ``coverage`` as in ``Scores``; ``of_pairs`` and
    ``of_words``, in units of cosine, are added to the cosine, ``agreement`` to what comes of that."""

    members: Mask
    is_all: bool
    keyword: Floats
    coverage: Floats
    of_pairs: Floats
    of_words: Floats
    agreement: Floats


class MemoryIndex:
    """One user's memories, ready to be ranked. Immutable; ``memories`` are in the order of their ids.

    Their embeddings are made rows of ``vectors`` (n, dimension), zeros for a memory without a usable one: kept twice,
    these would be two thirds of all that a user takes. ``bytes``: what all of it takes in this process, estimated.
    ``lacks_vectors``: there are some memories, and none of them has an embedding. ``hidden``: the user's memories that
    are not recalled, of which only ``of`` knows. ``around``: what was said around some of them, by their ids, whose
    words count as theirs."""

    def __init__(
        self, memories: Sequence[Memory], hidden: Sequence[Memory] = (), *, around: Mapping[str, str] = NOTHING_SAID
    ) -> None:
        in_order = sorted(memories, key=lambda memory: memory.id)
        self._hidden = {memory.id: memory for memory in hidden}
        self.vectors = _stacked(in_order)
        _share(in_order, self.vectors)
        self.memories = tuple(in_order)
        texts = [memory.content for memory in self.memories]
        said = [words(text) for text in texts]
        documents = [
            terms([*some, *words(around.get(memory.id, ""))]) for some, memory in zip(said, in_order, strict=True)
        ]
        self.lacks_vectors = bool(self.memories) and not self.vectors.any()
        self._words = WordIndex(documents)
        lengths = np.array([len(document) for document in documents], dtype=np.float32)
        self._brevity = np.clip(1.0 - lengths / LONG_TERMS, 0.0, 1.0, dtype=np.float32)
        self._succession = Succession(self.memories)
        self._offers = np.array([offered(*both) for both in zip(texts, said, strict=True)], dtype=np.float32)
        self._asks = np.array([bool(_ENDS_ASKING.search(text)) for text in texts], dtype=np.float32)
        self._rows_of_speaker = _by_speaker(texts)
        membership = Membership(self.memories)
        self.members, self.same_until = membership.within, membership.same_until
        self._said_at = np.array([memory.said_at for memory in self.memories], dtype=np.float64)
        happened = (np.nan if memory.occurred_at is None else memory.occurred_at for memory in self.memories)
        self._occurred_at = np.fromiter(happened, np.float64, len(self.memories))
        of_rows = sizes.ROW_BYTES * len(self.memories) + self.vectors.nbytes + self._words.bytes
        self.bytes = sizes.INDEX_BYTES + of_rows + sum(map(sizes.of_memory, self.memories))

    def of(self, memory_id: str) -> Memory | None:
        """The user's memory of this id, recalled or not."""
        return self._live.get(memory_id) or self._hidden.get(memory_id)

    @cached_property
    def superseding(self) -> Mapping[str, frozenset[str]]:
        """The ids of memories that took the place of others, by the turns that those were learnt from."""
        after = defaultdict[str, set[str]](set)
        for memory in self._hidden.values():
            if memory.source.turn and (successor := memory.metadata.get(SUPERSEDED_BY)):
                after[memory.source.turn].add(str(successor))
        return {turn: frozenset(ids) for turn, ids in after.items()}

    @cached_property
    def in_pairs(self) -> Mapping[str, Sequence[Memory]]:
        """The memories that may contradict each other, by the turns that they were learnt from."""
        named = {other for memory in self.memories for other in memory.unsettled}
        found = defaultdict[str, list[Memory]](list)
        for memory in self.memories:
            if memory.id in named or memory.unsettled:
                found[memory.source.turn].append(memory)
        return found

    @cached_property
    def changing(self) -> tuple[int, ...]:
        """The places of memories with which something ended or changed that always matters."""
        return tuple(place for place, memory in enumerate(self.memories) if memory.changes_standing)

    def is_live(self, memory_id: str) -> bool:
        """Whether it is recalled."""
        return memory_id in self._live

    @cached_property
    def _live(self) -> dict[str, Memory]:
        return {memory.id: memory for memory in self.memories}

    def dated(self, start: float, end: float) -> Mask:
        """Which memories were said, or tell of what happened, from ``start`` up to, not including, ``end``."""
        said = (start <= self._said_at) & (self._said_at < end)
        happened: Mask = (start <= self._occurred_at) & (self._occurred_at < end)
        return said | happened

    def scores(self, query: str, vector: Vector | None, members: Mask | None = None) -> Scores:
        """How well each memory fits the question. ``members`` (n,) are those to rank, all by default. ``vector`` None:
        by words alone. The same memories have the same scores in whatever order they were given."""
        return self.scored(self.heard(query, members), vector)

    def heard(self, query: str, members: Mask | None = None) -> Heard:
        """What ``scores`` needs of a question but for its vector, so that it can be worked out while that is made."""
        chosen = np.ones(len(self.memories), dtype=np.bool_) if members is None else members
        match = self._words.match(terms(words(query)))
        keyword = match.keyword + self._brevity * match.related
        best = float(keyword.max(initial=0.0, where=chosen))
        of_words = np.float32(KEYWORD_WEIGHT / best if best > 0 else 0.0) * keyword
        of_pairs, agreement, is_all = PAIR_WEIGHT * match.pairs, self._agreement(query), bool(chosen.all())
        return Heard(chosen, is_all, match.keyword, match.coverage, of_pairs, of_words, agreement)

    def scored(self, heard: Heard, vector: Vector | None) -> Scores:
        """``heard`` of this index, with the question's vector."""
        cosine = self._cosine(vector)
        similar = cosine + heard.of_pairs + heard.of_words
        fused = similar + self._brevity * self._succession.lent(similar, heard.members) + heard.agreement
        rows = (cosine, heard.keyword, heard.coverage, fused)
        return Scores(*rows) if heard.is_all else Scores(*(np.where(heard.members, row, np.float32(0)) for row in rows))

    def _cosine(self, vector: Vector | None) -> Floats:
        if vector is None or self.vectors.shape[1:] != vector.shape or not np.isfinite(vector).all():
            return np.zeros(len(self.memories), dtype=np.float32)
        cosine: Floats = np.clip(self.vectors @ vector, -1.0, 1.0)
        return cosine

    def _agreement(self, query: str) -> Floats:
        """What speaks for a memory beside its words and meaning."""
        agreement = -ASKS_WEIGHT * self._asks
        if self.memories and (kinds := wanted(query)):
            agreement += ANSWER_WEIGHT * self._offers[:, kinds].sum(axis=1)
        if self._rows_of_speaker:
            for name in set(_NAME.findall(query)):
                agreement[self._rows_of_speaker.get(name, [])] += SPEAKER_WEIGHT
        return agreement


def _stacked(memories: Sequence[Memory]) -> Floats:
    """The vectors, shape (n, dimension); zeros for a memory without a finite one of the commonest length. One NaN would
    otherwise reach the best score, by which every other memory is measured."""
    lengths = [memory.embedding.size for memory in memories if memory.embedding is not None]
    dimension = max(set(lengths), key=lambda length: (lengths.count(length), length), default=0)
    vectors = np.zeros((len(memories), dimension), dtype=np.float32)
    for row, memory in enumerate(memories):
        if memory.embedding is not None and memory.embedding.size == dimension:
            vectors[row] = memory.embedding
    vectors[~np.isfinite(vectors).all(axis=1)] = 0.0
    vectors.flags.writeable = False
    return vectors


def _share(memories: Sequence[Memory], vectors: Floats) -> None:
    """Let memories whose embeddings are rows of ``vectors`` (n, d), number by number, use these rows. It changes no
    value, so it is done in place: what is remembered of a memory object (``OncePerMemory``) stays, and making others
    would take half as long again as all the rest of an index."""
    for place in np.flatnonzero(vectors.any(axis=1)).tolist():
        object.__setattr__(memories[place], "embedding", vectors[place])


def _by_speaker(texts: Sequence[str]) -> dict[str, list[int]]:
    """Rows of the lines of talk, by the names of who says them."""
    rows: dict[str, list[int]] = {}
    for row, text in enumerate(texts):
        if line := _SPEAKER.match(text):
            rows.setdefault(line[1], []).append(row)
    return rows


class Membership:
    """Of ``memories``, in their order: until when they may be shown, and where they belong, as arrays."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        ends = (np.inf if memory.expires_at is None else memory.expires_at for memory in memories)
        self._ends = np.fromiter(ends, np.float64, len(memories))
        self._musts = np.fromiter((memory.standing is Standing.MUST for memory in memories), np.bool_, len(memories))
        self._types = _Names(memory.type for memory in memories)
        self._projects = _Names(memory.project or "" for memory in memories)
        self._agents = _Names(memory.agent or "" for memory in memories)
        self._sessions = _Names(memory.session or "" for memory in memories)

    def within(self, scope: Scope, types: Sequence[MemoryType], now: float) -> Mask:
        """A mask (n,) of the memories that may be recalled in this scope now; ``types`` empty means all."""
        inside: Mask = self._ends > now
        if types:
            inside &= np.logical_or.reduce([self._types.are(one) for one in types])
        if scope.projects is not None:
            here = np.logical_or.reduce([self._projects.are(one) for one in scope.projects])
            inside &= here | self._musts if scope.reads_common else here
        for names, name in ((self._agents, scope.agent), (self._sessions, scope.session)):
            if name is not None:
                inside &= names.are(name)
        return inside

    def same_until(self, now: float) -> float:
        """When the next memory expires: until then ``within`` says the same. Infinite where none does."""
        return float(self._ends.min(initial=np.inf, where=self._ends > now))


class _Names:
    """One name per memory, each different one as a number."""

    def __init__(self, names: Iterable[str]) -> None:
        self._numbers: dict[str, int] = {}
        numbers = [self._numbers.setdefault(name, len(self._numbers)) for name in names]
        self._rows = np.array(numbers, dtype=np.int32)

    def are(self, name: str) -> Mask:
        same: Mask = self._rows == self._numbers.get(name, -1)
        return same


class Succession:
    """Memories of each talk in the order in which they were said, ties by id. What was said next to a good hit is often
    the rest of the answer: "Where did you go?" holds the question's words, "To Rome, with Ann" does not."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        in_order = sorted(
            range(len(memories)), key=lambda row: (memories[row].session or "", memories[row].said_at, memories[row].id)
        )
        self._order = np.array(in_order, dtype=np.int64)
        self._talk = np.fromiter(_talks([memories[row] for row in in_order]), np.int64, len(memories))
        self._shares = _shares(self._talk)

    def lent(self, similar: Floats, members: Mask) -> Floats:
        """What each memory's neighbours among the members add to it, in the units of ``similar`` (n,)."""
        lent = np.zeros(len(similar), dtype=np.float32)
        order, all_shares = self._order, self._shares
        if not members.all():
            is_ranked = members[order]
            order, all_shares = order[is_ranked], _shares(self._talk[is_ranked])
        if not len(order):
            return lent
        in_order = similar[order]
        excess = np.maximum(in_order - _bar(in_order), np.float32(0))
        received = np.zeros(len(order), dtype=np.float32)
        for distance, shares in enumerate(all_shares, start=1):
            received[distance:] += shares * excess[:-distance]
            received[:-distance] += shares * excess[distance:]
        lent[order] = received
        return lent


def _shares(talk: npt.NDArray[np.int64]) -> list[Floats]:
    """By distance: what of a memory's excess goes to the one so much further, given the talk of each."""
    return [
        np.float32(weight) * (talk[:-distance] == talk[distance:])
        for distance, weight in enumerate(NEIGHBOUR_WEIGHTS, start=1)
    ]


def _talks(in_order: Sequence[Memory]) -> Iterator[int]:
    """A number for each memory, the same for those of one talk."""
    talk, last = 0, None
    for memory in in_order:
        if last is not None and not _follows(memory, last):
            talk += 1
        yield talk
        last = memory


def _follows(memory: Memory, last: Memory) -> bool:
    """Whether it was said after the other, in the same talk. Of what has the same time nobody knows what came first,
    unless it comes of one turn."""
    silence_s = memory.said_at - last.said_at
    if memory.session != last.session or silence_s > GAP_S_MAX:
        return False
    return silence_s > 0 or (memory.source.turn != "" and memory.source.turn == last.source.turn)


def _bar(similar: Floats) -> float:
    """The value that the best TOP_SHARE exceed, between two of the values where it falls between them."""
    place, part = divmod((1.0 - TOP_SHARE) * (len(similar) - 1), 1.0)
    lower, upper = int(place), min(int(place) + 1, len(similar) - 1)
    ordered = np.partition(similar, (lower, upper))
    return float(ordered[lower] + part * (ordered[upper] - ordered[lower]))
