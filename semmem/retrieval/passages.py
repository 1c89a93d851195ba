"""What was said, beside memories, for a request that is about something the user has told.

The store finds the nearest passages, and these are ranked and judged as memories are. What a memory holds as well is
shown in the words it was said in, which say more than a clause that was cut out; what no memory holds comes to light.
A passage is left out where a memory is shown that took the place of the one it was made into."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from semmem.memory import PASSAGES, STANDS_FOR, UNSETTLED, Hit, Memory, MemoryType, Vector
from semmem.ports.errors import StoreError
from semmem.ports.store import Store
from semmem.request.question import Question
from semmem.retrieval.begun import within
from semmem.retrieval.decide.decision import Decision
from semmem.retrieval.index.kept import Unsaid
from semmem.retrieval.index.memory_index import GAP_S_MAX, MemoryIndex
from semmem.retrieval.once import FoundBefore
from semmem.retrieval.rank import Stated, statement
from semmem.retrieval.search import ResolvedQuery, SearchResult, best_of
from semmem.text.grounding import content_words
from semmem.text.quoting import unquoted

CANDIDATES_MAX = 96
"""Passages and gists that are asked of the store for one question, about half of them of each kind."""
WORTH_MIN = 0.1
"""Below this probability of saying anything lasting a passage is a bare request ("and now as a list"), or thanks."""
STRICTNESS = 1.0
"""So much surer than of a memory the decision has to be of a passage, which is longer."""
SAYS_SHARE = 0.5
"""A passage says what a memory of its turn says when it has more than this of its content words."""
FOUND_S = 60.0
"""So long what was found for a question serves the same question again. What is said meanwhile is in the history of
the session in which it was said, and what is erased takes the user's index along, by which this is kept."""

Answers = Mapping[str, Sequence[Memory]]
"""The gists that were found, by the session in which they were said."""


@dataclass(frozen=True, slots=True)
class PassageSearch:
    """Within ``timeout_s``. ``hides``: of these users nothing is shown now, since something of theirs is being erased.
    ``looks_back`` tells which questions ask for what was talked about: they are shown the gist of answers too."""

    store: Store
    decision: Decision
    timeout_s: float
    hides: Callable[[str], bool]
    unsaid: Unsaid = field(default_factory=Unsaid)
    looks_back: Callable[[str, Vector], bool] = lambda _question, _vector: False
    before: FoundBefore[list[Hit]] = field(default_factory=FoundBefore)

    async def beside(self, question: Question, found: SearchResult, vector: Vector, kept: Sequence[Hit]) -> list[Hit]:
        """``kept``, the memories that are shown, and what was said, best first; as many as the request may be shown.
        The words of the session that asks are in the prompt, and so are those that this request brings. A store that
        does not answer in time has no passages."""
        query, index, request = found.query, found.index, found.candidates.request
        if index is None or request is None or request.is_general or request.lists_profile:
            return list(kept)
        is_served, other_types = request.is_served, query.types and MemoryType.EPISODIC not in query.types
        if other_types or self.hides(query.scope.user) or self.unsaid.holds(query.scope):
            return list(kept)
        if self.looks_back(query.text, vector):
            query, is_served = replace(query, types=PASSAGES), True
        asked = replace(query, wants=query.wants or is_served)
        stated, floor = Stated(own_words(question)), -1.0 if found.threshold is None else found.threshold
        shown = {hit.memory.id for hit in kept}
        said = [
            hit
            for hit in await self._found(question, asked, index, vector)
            if hit.cosine >= floor
            and shown.isdisjoint(index.superseding.get(hit.memory.source.turn, ()))
            and not stated.holds(statement(hit.memory.content))
        ]
        turns = {hit.memory.source.turn for hit in said}
        rest = [hit for hit in kept if hit.memory.source.turn not in turns]
        return sorted([*rest, *(_in_pairs(hit, index) for hit in said)], key=lambda hit: -hit.score)[: query.limit]

    async def _found(
        self, question: Question, query: ResolvedQuery, index: MemoryIndex, vector: Vector
    ) -> Sequence[Hit]:
        asked = query.key, id(vector), question.scope.session
        known = self.before.get(index, asked, vector, query.now)
        if known is None and (known := await self._searched(question, query, vector)) is not None:
            self.before.put(index, asked, vector, query.now, known, until=query.now + FOUND_S)
        return known or ()

    async def _searched(self, question: Question, query: ResolvedQuery, vector: Vector) -> list[Hit] | None:
        """None where the store does not answer in time, which is not remembered."""
        try:
            async with within(self.timeout_s, question.deadline.at):
                found = await self.store.search(
                    query.scope, vector, limit=CANDIDATES_MAX, now=query.now, types=PASSAGES
                )
        except (StoreError, TimeoutError):
            return None
        if not found:
            self.unsaid.note(query.scope)
        near, said_in = [hit.memory for hit in found], question.scope.session
        others = [passage for passage in _last_said(near) if not said_in or passage.session != said_in]
        if query.types != PASSAGES:
            others = [one for one in others if one.type is MemoryType.PASSAGE and one.importance >= WORTH_MIN]
        return self._judged(others, _answers(near), query, vector) if others else []

    def _judged(self, passages: Sequence[Memory], answers: Answers, query: ResolvedQuery, vector: Vector) -> list[Hit]:
        """Those that the decision shows, by the meaning of these alone, and by the words of what was said around them:
        what somebody answers is often in the words of the question ("How old is he?", "Four")."""
        around = {} if query.types == PASSAGES else {one.id: _around(one, answers) for one in passages}
        of_any_type = replace(query, types=())
        found = best_of(MemoryIndex(passages, around=around), of_any_type, vector, self.decision, cut_too=False)
        cut = self.decision.cut + STRICTNESS
        shown = (hit for hit in found.hits if hit.memory.id not in found.cuts)
        return [hit for hit in shown if hit.logit is None or hit.logit >= cut]


def _answers(near: Iterable[Memory]) -> Answers:
    answers = defaultdict[str, list[Memory]](list)
    for gist in near:
        if gist.type is MemoryType.GIST and gist.session:
            answers[gist.session].append(gist)
    return answers


def _around(passage: Memory, answers: Answers) -> str:
    """What the assistant said last before it, and in answer to it, as far as that was found."""
    said = answers.get(passage.session or "", ())
    own = [gist.content for gist in said if gist.source.turn == passage.source.turn]
    before = [gist for gist in said if 0 < passage.said_at - gist.said_at <= GAP_S_MAX]
    return " ".join([*(gist.content for gist in sorted(before, key=lambda gist: gist.said_at)[-1:]), *own])


def own_words(question: Question) -> list[str]:
    """The user's own messages of this request, oldest first."""
    return [each.text for each in question.conversation.messages if each.is_own(question.scope.user)]


def _last_said(passages: Iterable[Memory]) -> Iterable[Memory]:
    """Of those with the same words the last one: many answers begin alike."""
    last: dict[str, Memory] = {}
    for passage in passages:
        if passage.said_at >= last.setdefault(passage.content, passage).said_at:
            last[passage.content] = passage
    return last.values()


def _in_pairs(said: Hit, index: MemoryIndex) -> Hit:
    """What was said stands for the memories of its turn, where these may contradict others, as far as it says them."""
    passage, pairs = said.memory, index.in_pairs.get(said.memory.source.turn, ())
    told = [memory for memory in pairs if _says(passage, memory)] if passage.type is MemoryType.PASSAGE else []
    if not told:
        return said
    others = list(dict.fromkeys(other for one in told for other in one.unsettled))
    metadata = {**passage.metadata, STANDS_FOR: [one.id for one in told], UNSETTLED: others}
    return replace(said, memory=replace(passage, metadata=metadata))


def _says(passage: Memory, memory: Memory) -> bool:
    words, others = (content_words(unquoted(one.content)) for one in (passage, memory))
    return len(words & others) > SAYS_SHARE * len(others)
