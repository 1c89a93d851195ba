"""What a new fact is to the nearest memories of its user: the same, a contradiction, or something else.

Opinions, closed forms and the trained judge are asked in this order. Nothing is written here.

``Comparing.doubts`` are the pairs that a language model may judge before anything is stored: those between
``grey_threshold`` and ``update_threshold``, and those above where numbers, days, names or a negation differ."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType

import numpy as np

from semmem.extraction.candidate import Candidate
from semmem.extraction.contradiction.pair_model import parts, trained_for
from semmem.extraction.contradiction.verdict import Judged, Verdict, decided, details_differ, may
from semmem.extraction.llm import KEY_PREFIX
from semmem.extraction.model_judge import Doubt, Opinions
from semmem.extraction.screen import same_text
from semmem.extraction.work import IN_THREAD
from semmem.memory import MEMORY_TYPES, Hit, Memory, MemoryType, Scope, Vector
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError, WorkLost, WorkTooSlow
from semmem.ports.store import Store
from semmem.ports.text_work import TextWork
from semmem.text.quoting import unquoted

Judge = Callable[[str, str, float], Verdict | None]
"""What a new text is to an old one, given the cosine of the two; None: it cannot tell. Pure: it runs wherever
``text_work`` has it done."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A memory near a new fact. ``opinion``: what a model thinks the fact is to it, if one was asked. ``dated``: its
    day is known. ``later``: it was said when what the fact tells had happened already."""

    content: str
    type: MemoryType
    cosine: float
    opinion: Verdict | None = None
    dated: bool = False
    later: bool = False


@dataclass(frozen=True, slots=True)
class Weighing:
    """An opinion where it loses nothing, else the closed forms. Pure: it can be done wherever it holds up nobody.
    ``judge`` None: only the nearest memory may be meant by a fact, above ``update_threshold``. ``judge_cosine_min``:
    from where the judge is asked. Both are cosines."""

    judge: Judge | None
    judge_cosine_min: float
    update_threshold: float

    def verdicts(self, neighbours: Sequence[Neighbour], said: str, type: MemoryType) -> list[Judged | None]:
        """In the order of the neighbours, nearest first. None: it is open, for who can tell more than words do."""
        return [self._weighed(each, said, type, nearest=place == 0) for place, each in enumerate(neighbours)]

    def _weighed(self, old: Neighbour, said: str, type: MemoryType, *, nearest: bool) -> Judged | None:
        if same_text(old.content) == same_text(said):
            return Judged(Verdict.SAME)
        if old.opinion is not None and may(old.opinion, old.content, said):
            return Judged(old.opinion)
        verdict = self._verdict(old, said, type, nearest=nearest)
        if verdict is None and old.opinion is None:
            return None
        if verdict is not None and may(verdict, old.content, said):
            return Judged(verdict)
        return Judged(Verdict.DIFFERENT, unsettled=Verdict.CONTRADICTION in (old.opinion, verdict))

    def _verdict(self, old: Neighbour, said: str, type: MemoryType, *, nearest: bool) -> Verdict | None:
        """What happened on a day stays true whatever holds now: only an opinion lets a fact retire such an event. Nor
        does what happened before change what was said to hold afterwards."""
        event = old.type is MemoryType.EPISODIC and type is not MemoryType.EPISODIC
        if (event and old.dated) or old.later:
            return Verdict.SAME
        if self.judge is None:
            meant = nearest and old.cosine > self.update_threshold and not event
            return Verdict.CONTRADICTION if meant else Verdict.DIFFERENT
        return self.judge(old.content, said, old.cosine) if old.cosine >= self.judge_cosine_min else Verdict.DIFFERENT


@dataclass(frozen=True, slots=True)
class Open:
    """A memory that may be repeated or contradicted. ``corrects``: what is said now follows right upon it; ``beside``:
    the same message says both."""

    content: str
    vector: Vector
    corrects: bool = False
    beside: bool = False


@dataclass(frozen=True, slots=True)
class PairJudge:
    """What the closed forms leave open, judged by the trained model: from the two texts, their vectors, and the vectors
    of what is left of each without the words that they share. Judges the nearest ``pairs_max`` memories of a fact, each
    of which costs up to two embeddings where it shares a word with it; further ones stay. Reading is text work and
    embedding is the embedder's, so that nothing holds up the loop. Who cannot be asked has no say, and an ``embedder``
    that no weights were trained for neither: every pair is called different."""

    embedder: Embedder
    text_work: TextWork
    budget_s: float = 1.0
    pairs_max: int = 8

    @property
    def is_trained(self) -> bool:
        return trained_for(self.embedder.signature) is not None

    async def judged(self, said: str, vector: Vector, memories: Sequence[Open]) -> list[Judged]:
        """In the order of the memories, nearest first."""
        asked = list(memories[: self.pairs_max]) if self.is_trained else []
        beside = [Judged(Verdict.DIFFERENT)] * (len(memories) - len(asked))
        try:
            return [*await self._judged(said, vector, asked), *beside] if asked else beside
        except (EmbedderError, WorkTooSlow, WorkLost):
            return [Judged(Verdict.DIFFERENT)] * len(memories)

    async def _judged(self, said: str, vector: Vector, asked: list[Open]) -> list[Judged]:
        left = await self.text_work.run(_parts, [old.content for old in asked], said, budget_s=self.budget_s)
        known = {unquoted(said): vector} | {unquoted(old.content): old.vector for old in asked}
        embedded = known | await self._embedded({text for pair in left for text in pair} - known.keys())
        nothing = np.zeros_like(vector)
        told = [(embedded.get(one, nothing), embedded.get(other, nothing)) for one, other in left]
        work = _decided, self.embedder.signature, asked, told, said, vector
        return await self.text_work.run(*work, budget_s=self.budget_s)

    async def _embedded(self, texts: set[str]) -> dict[str, Vector]:
        """The vector of each that is not empty."""
        some = sorted(text for text in texts if text)
        return dict(zip(some, await asyncio.gather(*map(self.embedder.embed, some)), strict=True))


def _parts(olds: list[str], said: str) -> list[tuple[str, str]]:
    return [parts(old, said) for old in olds]


def _decided(
    signature: str, olds: list[Open], told: list[tuple[Vector, Vector]], said: str, vector: Vector
) -> list[Judged]:
    model = trained_for(signature)
    if model is None:
        return [Judged(Verdict.DIFFERENT)] * len(olds)
    likely = [
        model.likelihoods(old.content, said, (old.vector, vector, *left)) for old, left in zip(olds, told, strict=True)
    ]
    return [decided(old.content, said, each, old.corrects, old.beside) for old, each in zip(olds, likely, strict=True)]


NO_OPINIONS: Opinions = MappingProxyType({})
UNSETTLED_MAX = 5
"""So many memories that it may contradict are noted at a memory."""
DAY_S = 86_400.0
CORRECTED_S = 600.0
"""What is said within ten minutes in the same session may correct what was said before."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A fact's neighbours, nearest first, and what it is to each."""

    hits: Sequence[Hit]
    judged: Sequence[Judged]

    @property
    def same(self) -> Memory | None:
        """The nearest that says what the fact says."""
        return next((hit.memory for hit in self._as(Verdict.SAME)), None)

    @property
    def contradicted(self) -> list[Hit]:
        return self._as(Verdict.CONTRADICTION)

    @property
    def unsettled(self) -> tuple[str, ...]:
        """The ids of those that may be contradicted and yet stay."""
        found = [hit.memory.id for hit, each in zip(self.hits, self.judged, strict=True) if each.unsettled]
        return tuple(found[:UNSETTLED_MAX])

    def _as(self, wanted: Verdict) -> list[Hit]:
        return [hit for hit, each in zip(self.hits, self.judged, strict=True) if each.verdict is wanted]


@dataclass(eq=False, repr=False)
class Comparing:
    """``update_threshold`` and ``grey_threshold`` are cosines; with the grey one above, there is no grey zone.
    ``judge_cosine_min`` is the cosine from which the judge is asked: what replaces a memory may hardly resemble it.
    ``neighbours_max`` memories of the same user are compared; more than the few that matter, because those of other
    projects are sorted out only afterwards. At most ``doubts_per_fact_max`` of them are doubts. ``text_work`` weighs a
    fact and its neighbours, within ``judge_budget_s`` seconds; else all stay, since a double is better than a loss."""

    store: Store
    _: KW_ONLY
    update_threshold: float = 0.9
    grey_threshold: float = 0.55
    neighbours_max: int = 20
    doubts_per_fact_max: int = 5
    judge: Judge | None = None
    judge_cosine_min: float = 0.1
    text_work: TextWork = IN_THREAD
    judge_budget_s: float = 1.0
    pair_judge: PairJudge | None = None

    def __post_init__(self) -> None:
        if not all(0 < cosine <= 1 for cosine in (self.update_threshold, self.grey_threshold, self.judge_cosine_min)):
            raise ValueError("thresholds must be cosines above 0")
        self._weighing = Weighing(self.judge, self.judge_cosine_min, self.update_threshold)

    async def doubts(self, news: Sequence[Candidate]) -> list[Doubt]:
        """Each fact's doubtful neighbours, those among the facts before it included. Raises StoreError."""
        found: list[Doubt] = []
        for place, new in enumerate(news):
            known = [(hit.memory.content, hit.cosine) for hit in await self._neighbours(new)]
            others = [other for other in news[:place] if _comparable(other.fact.type, new.fact.type)]
            known += [(other.fact.content, float(other.vector @ new.vector)) for other in others]
            found += await asyncio.to_thread(self._doubts, new.fact.content, known)
        return found

    async def compared(self, new: Candidate, opinions: Opinions = NO_OPINIONS) -> Compared:
        """The fact and its neighbours, nearest first. An opinion on a pair outweighs the judge's, where it may be
        believed. Raises StoreError."""
        said, neighbours, beside = new.fact.content, await self._neighbours(new), Judged(Verdict.DIFFERENT)
        pairs = [_neighbour(hit, new, opinions.get((hit.memory.content, said))) for hit in neighbours]
        weighed = await self._weighed(pairs, said, new.fact.type)
        found: dict[str, Judged] = {}
        if self.pair_judge is not None and None in weighed:
            asked = [hit for hit, each in zip(neighbours, weighed, strict=True) if each is None]
            opened = [
                Open(hit.memory.content, vector, _follows(new, hit.memory), _beside(new, hit.memory))
                for hit in asked[: self.pair_judge.pairs_max]
                if (vector := await self._vector(hit.memory)) is not None
            ]
            judged = await self.pair_judge.judged(said, new.vector, opened)
            found = dict(zip((old.content for old in opened), judged, strict=True))
        told = [each or found.get(pair.content, beside) for pair, each in zip(pairs, weighed, strict=True)]
        return Compared(neighbours, told)

    def is_update(self, new: Candidate, hit: Hit) -> bool:
        """Whether what replaces a memory is a new version of it. A memory keeps its type: across types the old one is
        superseded."""
        return hit.cosine > self.update_threshold and hit.memory.type is new.fact.type

    async def outdated_by(self, new: Candidate, later: list[Hit]) -> Memory | None:
        """Which of the memories that were said after the fact replaces it: batches of two sessions, or a batch and what
        is learnt at once, do not come in the order in which their turns were said."""
        said = [Neighbour(new.fact.content, new.fact.type, hit.cosine) for hit in later]
        for old, hit in zip(said, later, strict=True):
            judged = (await self._weighed([old], hit.memory.content, hit.memory.type))[0]
            vector = None if judged is not None else await self._vector(hit.memory)
            if vector is not None and self.pair_judge is not None:
                told = Open(new.fact.content, new.vector)
                judged = (await self.pair_judge.judged(hit.memory.content, vector, [told]))[0]
            if judged is not None and judged.verdict is Verdict.CONTRADICTION:
                return hit.memory
        return None

    async def _neighbours(self, new: Candidate) -> list[Hit]:
        """The nearest memories of this user and project. A project's fact never meets a global one, nor a summary,
        which the next one of its session replaces, never a single fact."""
        scope = Scope(new.turn.scope.user, project=new.turn.scope.project or None)
        types = tuple(kind for kind in MEMORY_TYPES if _comparable(kind, new.fact.type))
        limit = self.neighbours_max + len(new.apart)
        hits = await self.store.search(scope, new.vector, limit=limit, now=new.now, types=types, as_of=new.now)
        here = [hit for hit in hits if (hit.memory.project or None) == scope.project and hit.memory.id not in new.apart]
        return [hit for hit in here if not (hit.memory.key or "").startswith(KEY_PREFIX)]

    def _doubts(self, new: str, known: list[tuple[str, float]]) -> list[Doubt]:
        if any(same_text(old) == same_text(new) for old, _ in known):
            return []

        def is_doubtful(old: str, cosine: float) -> bool:
            return details_differ(old, new) if cosine > self.update_threshold else cosine >= self.grey_threshold

        doubtful = [Doubt(old, new, cosine) for old, cosine in known if is_doubtful(old, cosine)]
        return sorted(doubtful, key=lambda doubt: -doubt.cosine)[: self.doubts_per_fact_max]

    async def _weighed(self, pairs: list[Neighbour], said: str, type: MemoryType) -> list[Judged | None]:
        try:
            return await self.text_work.run(self._weighing.verdicts, pairs, said, type, budget_s=self.judge_budget_s)
        except (WorkTooSlow, WorkLost):  # all memories stay, and only a repetition word for word is dropped
            same = [same_text(old.content) == same_text(said) for old in pairs]
            return [Judged(Verdict.SAME if repeated else Verdict.DIFFERENT) for repeated in same]

    async def _vector(self, memory: Memory) -> Vector | None:
        held = await with_vector(self.store, memory)
        return held.embedding if held is not None else None


async def with_vector(store: Store, found: Memory) -> Memory | None:
    """A store may leave the vectors out of what it finds; a version written without would have lost its own."""
    return found if found.embedding is not None else await store.get(Scope(found.user), found.id)


def _neighbour(hit: Hit, new: Candidate, opinion: Verdict | None) -> Neighbour:
    memory, happened = hit.memory, new.fact.occurred_at
    before = happened is not None and new.fact.type is MemoryType.EPISODIC and happened < memory.said_at - DAY_S
    dated = memory.occurred_at is not None
    return Neighbour(memory.content, memory.type, hit.cosine, opinion, dated=dated, later=before)


def _follows(new: Candidate, memory: Memory) -> bool:
    """Whether the fact was said right after the memory, in the same session."""
    session = new.turn.scope.session
    return bool(session) and session == memory.session and 0 <= new.turn.opened_at - memory.said_at <= CORRECTED_S


def _beside(new: Candidate, memory: Memory) -> bool:
    """Whether one message says both; what was imported or written by hand is of no message."""
    return bool(new.turn.id) and new.turn.id == memory.source.turn


def _comparable(one: MemoryType, other: MemoryType) -> bool:
    """What is known and what happened may say the same or exclude each other; how-tos stand apart. What
    was said is never dropped for a reflection, which ends by itself when it is contradicted."""
    return one is other or not {MemoryType.PROCEDURAL, MemoryType.REFLECTIVE} & {one, other}
