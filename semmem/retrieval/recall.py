"""The search for one question, step by step: query, search, decide, rank, render."""

import itertools
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from fnmatch import translate
from functools import partial

from msgspec import Struct, structs

from semmem.memory import PASSAGES, Hit, Injection, MemoryType, Role, Scope, Standing, Vector
from semmem.ports import spans
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderBusy, EmbedderError
from semmem.ports.events import Announce, Searched, nobody_listens
from semmem.request.outcome import Outcome
from semmem.request.question import Question
from semmem.retrieval.begun import Begun, embed_query
from semmem.retrieval.block import NOTHING, Before, Block, block_of
from semmem.retrieval.context import HEADER, HEADER_MORE, render
from semmem.retrieval.decide.decision import Decision, RequestVerdict
from semmem.retrieval.decide.signals import SEARCH, decide
from semmem.retrieval.fence import Fence
from semmem.retrieval.index.hot_memories import HotMemories, Spawn
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.ledger.anchors import goes_on
from semmem.retrieval.ledger.truth import Changes, corrections
from semmem.retrieval.models import QueryWriter, Reranking
from semmem.retrieval.once import FoundBefore
from semmem.retrieval.passages import PassageSearch, own_words
from semmem.retrieval.past_talks import PastTalks
from semmem.retrieval.query.build import build_query
from semmem.retrieval.rank import Ranked, rank
from semmem.retrieval.search import (
    COLD_DENSE,
    Candidates,
    Fusion,
    ResolvedQuery,
    SearchResult,
    Strategy,
    WordsRead,
    find,
    find_by_words,
    read_words,
)
from semmem.retrieval.time_filter import time_filter

KEPT, PASSAGE = "kept", "passage"
"""The reasons of a memory that a preview shows; and of what was said, and of a memory in the place of which that is
shown."""
CORRECTION = "correction"
"""The reason of a memory that a preview shows in place of what an earlier block says."""
TRUTH_SHARE = 0.25
"""Of the store's time so much is waited for a user's memories to compare them with what was shown: the search that
follows waits for the same load, and has all of its time still."""


@dataclass(frozen=True, slots=True)
class RecallRules:
    """How memories are chosen and shown. ``threshold`` is a cosine; None: the calibrated decision. At most ``limit``
    are shown, of which ``standing_max`` standing ones, unless the request has a limit of its own; ``profile_max`` of
    those that a question about the user as a person lists. ``user_role_models`` (names or patterns like ``*/o1-*``)
    refuse a system message.

    ``scope``: ``user`` reads all of the user's memories, ``project`` those of the named project and of none or, when
    none is named, all, ``session`` of these only what was learnt in the session that asks.

    The two timeouts together are the request phase's: the store keeps its own time however long embedding took."""

    limit: int = 5
    standing_max: int = 5
    profile_max: int = 20
    fusion: Fusion = Fusion.WEIGHTED
    threshold: float | None = None
    strategy: Strategy = Strategy.HYBRID
    scope: str = "project"
    tokens_max: int = 2000
    query_chars_max: int = 2000
    embed_timeout_s: float = 0.15
    store_timeout_s: float = 0.2
    role: str = "system"
    position: str = "system"
    user_role_models: tuple[str, ...] = ()


LEFT_MAX = 5
"""So many that were left out are told of."""


class Recalled(Struct, frozen=True):
    """How a search ended, and the blocks for the prompt: first what goes with every answer, for the session's
    beginning. ``compacted``: no earlier block goes with these; together they would have no room. ``left``: the best of
    what was near enough and is not shown; ``purpose``: what the request is about, where that was decided."""

    outcome: Outcome
    blocks: tuple[Block, ...] = ()
    compacted: bool = False
    left: tuple[Ranked, ...] = ()
    purpose: str = ""

    @property
    def block(self) -> Block | None:
        """The one for this turn."""
        return next((block for block in self.blocks if not block.is_start), None)

    @property
    def start(self) -> Block | None:
        return next((block for block in self.blocks if block.is_start), None)

    @property
    def hits(self) -> tuple[Hit, ...]:
        """What the blocks show, best first."""
        return tuple(hit for block in self.blocks for hit in block.hits)


@dataclass(frozen=True, slots=True)
class Preview:
    """What a question would recall, and why. ``reason``: why it would not be searched for, else ``search``.

    ``strategy`` is the one that was used in the end. ``ranked`` has a verdict for each candidate, best first;
    ``budget`` where there was no room left. ``text`` is the block, ``tokens`` its size, estimated. ``request``: what
    was decided of the question as a whole, where that is calibrated. ``unembedded``: EMBEDDER_BUSY or EMBEDDER_DOWN
    where it was searched for by words for want of a vector. ``before``: what is in the prompt already, and is not in
    ``text`` again unless it is ``compacted``: then it would go, for together they have no room."""

    query: str
    reason: str
    strategy: Strategy
    path: str
    ranked: tuple[Ranked, ...]
    text: str
    tokens: int
    request: RequestVerdict | None = None
    unembedded: Outcome | None = None
    before: Before = NOTHING
    compacted: bool = False


@dataclass(frozen=True, slots=True)
class _Composed:
    """``wanted``: what ought to be said, of which the blocks hold what has room; ``corrected``: what of it holds in
    place of what earlier blocks say."""

    wanted: Sequence[Hit]
    corrected: Sequence[Hit]
    blocks: Sequence[Block]
    compacted: bool = False


@dataclass(eq=False, repr=False)
class Recall:
    """Finds what is worth telling the model. Holds no state of any request.

    ``decision`` says which memories a question shows. Searched is announced for every search. ``writer`` and
    ``reranking`` are optional models; both fall back by themselves. ``fence`` marks blocks and recognises them; None:
    with a key that only this object knows. ``spawn`` starts the task that embeds a question while something else is
    done; None: nothing is done meanwhile. ``past``: former conversations, for questions that ask for them; None where
    none are kept. ``passages``: what was said, for questions that memories do not answer. ``changes``: which were said
    back."""

    memories: HotMemories
    embedder: Embedder
    rules: RecallRules
    _: KW_ONLY
    decision: Decision = field(default_factory=Decision)
    announce: Announce = nobody_listens
    writer: QueryWriter | None = None
    reranking: Reranking | None = None
    fence: Fence | None = None
    spawn: Spawn | None = None
    past: PastTalks | None = None
    changes: Changes = field(default_factory=Changes)
    passages: PassageSearch | None = None

    def __post_init__(self) -> None:
        self._before = FoundBefore[Candidates]()
        self._fence = Fence(secrets.token_bytes(32)) if self.fence is None else self.fence
        named = "|".join(translate(each.lower()) for each in self.rules.user_role_models)
        self._user_roles = re.compile(named or r"(?!)")

    def skips(self, question: Question) -> Outcome | None:
        """The reason not to search, as far as the words alone say it; None: search."""
        if not any(message.role is Role.USER and message.text.strip() for message in question.conversation.messages):
            return Outcome.NO_QUESTION
        reason = decide(question.conversation, fact=question.verdicts.fact, tool=question.verdicts.tool)
        return None if reason == SEARCH else Outcome(reason)

    def begin(self, question: Question) -> Begun:
        """Begin to search, or the reason not to, as far as it is known before the turn is. Of its scope only the user
        is asked. To be closed. Where a tool loop goes on nothing is embedded before ``finish``: it may have its block
        already."""
        with spans.step("semmem.decide") as span:
            reason, text = self._reason(question), ""
            if reason is None:
                text = build_query(question.conversation, chars_max=self.rules.query_chars_max)
                reason = None if text else Outcome.NO_HITS
            span.note("semmem.decision", reason or SEARCH)
        begun = Begun(reason, text, self.embedder, timeout_s=self.rules.embed_timeout_s)
        if reason is None:
            self.memories.warm(question.scope.user)  # it is read while the question is embedded
            if self.spawn is not None and not goes_on(question.conversation):
                begun.embed(self.spawn)
        return begun

    async def search(self, question: Question) -> Recalled:
        """The relevant memories: ``begin`` and ``finish``."""
        with self.begin(question) as begun:
            return await self.finish(question, begun)

    async def index(self, user: str, *, share: float = TRUTH_SHARE, is_searched: bool = False) -> MemoryIndex | None:
        """All of the user's memories; None where they cannot be had in this share of the store's time.
        ``is_searched``: this request will search them too. Raises StoreError."""
        return await self.memories.index(user, wait_s=share * self.rules.store_timeout_s, again=is_searched)

    def injection(self, text: str, model: str, at: int = 0) -> Injection:
        """The text as a block for this model: as whom, and where; ``at``: at which of the user's messages."""
        role = "user" if self._user_roles.match(model.lower()) else self.rules.role
        return Injection(text, role=role, position=self.rules.position, at=at)

    async def finish(self, question: Question, begun: Begun, before: Before = NOTHING) -> Recalled:
        """The relevant memories that are not in the prompt. When the question cannot be embedded, what shares words
        with it, or the newest. Raises StoreError. The question's deadline is extended once, before models are called
        that take longer than a search."""
        if begun.outcome is not None:
            return Recalled(begun.outcome)
        query = self._query(question, begun.text, self.rules.strategy)
        try:
            return await self._search_by_meaning(question, query, begun, before)
        except EmbedderError as error:
            with spans.step(spans.SEARCH_MEMORY) as span:
                found = await find_by_words(self.memories, query, timeout_s=self.rules.store_timeout_s)
                _tell(span, found)
            talks, ranked = await self._talks(question, None), self._ranked(question, found)
            outcome = Outcome.EMBEDDER_BUSY if isinstance(error, EmbedderBusy) else Outcome.DEGRADED
            recalled = self._recalled(
                question, [*talks, *_kept(ranked)], outcome, _unembedded(error), before, found.index
            )
            return _explained(recalled, found, ranked)

    async def preview(
        self,
        question: Question,
        *,
        strategy: Strategy | None = None,
        is_lookup: bool = False,
        tokens_max: int | None = None,
        before: Before = NOTHING,
    ) -> Preview:
        """What a request with this question would recall, by the same path, also where it would not be searched for.
        ``is_lookup``: somebody searches the memories themselves, and is given the best of them. ``tokens_max``: another
        budget than the configured one, for ``before`` too. Raises StoreError."""
        text = build_query(question.conversation, chars_max=self.rules.query_chars_max)
        query = self._query(question, text, strategy or self.rules.strategy)
        if is_lookup:
            query = replace(query, is_lookup=True, threshold=question.conversation.controls.threshold)
        reason: str | None = self.skips(question)
        vector: Vector | None = None
        unembedded: Outcome | None = None
        try:
            vector = await embed_query(self.embedder, query.text, timeout_s=self.rules.embed_timeout_s)
            found = await self._found(question, query, vector)
        except EmbedderError as error:
            vector, unembedded = None, _unembedded(error)
            by_words = replace(query, strategy=Strategy.KEYWORD)
            found = await find_by_words(self.memories, by_words, timeout_s=self.rules.store_timeout_s)
        ranked = self._ranked(question, found)
        if not is_lookup:
            if vector is not None:
                ranked = _with_said(ranked, await self._with_passages(question, vector, found, _kept(ranked)))
            talks = await self._talks(question, vector)
            ranked = [*(Ranked(hit, kept=True, reason="conversation") for hit in talks), *ranked]
        room = self.rules.tokens_max if tokens_max is None else tokens_max
        composed = self._composed(question, _kept(ranked), before, found.index, room)
        ranked = _with_corrections(ranked, composed.corrected)
        block = next(iter(composed.blocks), None)
        left_out = _ids(composed.wanted) - _shown(composed.blocks)
        verdicts = (
            structs.replace(one, kept=False, reason="budget") if one.kept and one.id in left_out else one
            for one in ranked
        )
        return Preview(
            found.query.text,
            reason or _refusal(found) or SEARCH,
            found.query.strategy,
            found.path,
            tuple(verdicts),
            "" if block is None else block.injection.text,
            0 if block is None else block.tokens,
            found.candidates.request,
            unembedded,
            before,
            composed.compacted,
        )

    def _reason(self, question: Question) -> Outcome | None:
        """Why nothing is searched for, and nothing is embedded."""
        controls = question.conversation.controls
        if not question.allowed.read:
            return Outcome.WRITE_ONLY
        if self._fence.stands_in(question.conversation.messages, question.scope.user):
            return Outcome.ALREADY_INJECTED
        nothing = self._limit(question) == 0 or controls.types == ()
        return self.skips(question) or (Outcome.NO_HITS if nothing else None)

    def _limit(self, question: Question) -> int:
        limit = question.conversation.controls.limit
        return self.rules.limit if limit is None else limit

    def _query(self, question: Question, text: str, strategy: Strategy) -> ResolvedQuery:
        """The one place where the request's own controls meet the configured rules."""
        rules, controls = self.rules, question.conversation.controls
        return ResolvedQuery(
            text,
            self._reading(question.scope),
            question.now,
            strategy,
            limit=self._limit(question),
            types=controls.types or (),
            threshold=rules.threshold if controls.threshold is None else controls.threshold,
            during=time_filter(question.text, question.now),
            wants=question.verdicts.fact is False,
            fusion=rules.fusion,
        )

    def _reading(self, scope: Scope) -> Scope:
        """Whose memories are read. Those of every agent; an absent project means all of the user's."""
        if self.rules.scope == "user":
            return Scope(scope.user)
        session = (scope.session or "") if self.rules.scope == "session" else None
        return Scope(scope.user, project=scope.project, session=session, reads_common=True)

    async def _talks(self, question: Question, vector: Vector | None) -> list[Hit]:
        """Former conversations that the question asks for. Nobody fails for them."""
        types = question.conversation.controls.types
        if self.past is None or (types and MemoryType.EPISODIC not in types):
            return []
        if (asked := self.past.asked(question.text, vector, question.now)) is None:
            return []
        with spans.step("semmem.conversations") as span:
            scope, session, until = self._reading(question.scope), question.scope.session, question.deadline.at
            found = await self.past.notes(asked, scope, apart_from=session, vector=vector, until=until)
            span.note(spans.RECORD_COUNT, len(found))
        return found

    async def _with_passages(
        self, question: Question, vector: Vector, found: SearchResult, kept: list[Hit]
    ) -> list[Hit]:
        if self.passages is None:
            return kept
        with spans.step("semmem.passages") as span:
            together = await self.passages.beside(question, found, vector, kept)
            span.note(spans.RECORD_COUNT, len(together))
        return together

    async def _search_by_meaning(
        self, question: Question, query: ResolvedQuery, begun: Begun, before: Before
    ) -> Recalled:
        """Raises EmbedderError and StoreError."""
        kept: list[Hit] = []
        status = "error"
        try:
            index = None
            if begun.at_hand is None and query.strategy is not Strategy.RECENT:
                index = self.memories.at_hand(query.scope.user)
            read = None if index is None else read_words(index, query, self.decision)
            vector = await begun.vector()
            with spans.step(spans.SEARCH_MEMORY) as span:
                found = await self._found(question, query, vector, cut_too=False, read=read)
                _tell(span, found)
            ranked = self._ranked(question, found)
            kept = await self._with_passages(question, vector, found, _kept(ranked))
            if question.conversation.controls.limit is None:  # who asks for so many gets no more
                kept = [*self.changes.to_say_back(found.index, query, kept), *kept]
            status = "hit" if kept else "miss"
        finally:
            self.announce(Searched(status, len(kept), time.perf_counter() - begun.at))
        talks = await self._talks(question, vector)
        outcome = Outcome.COLD_DENSE if found.path == COLD_DENSE else Outcome.INJECTED
        otherwise = Outcome(_refusal(found) or Outcome.NO_HITS)
        recalled = self._recalled(question, [*talks, *kept], outcome, otherwise, before, found.index)
        return _explained(recalled, found, ranked)

    async def _found(
        self,
        question: Question,
        query: ResolvedQuery,
        vector: Vector,
        *,
        cut_too: bool = True,
        read: WordsRead | None = None,
    ) -> SearchResult:
        """Candidates for the query as a model improves it, in the order that a model gives them."""
        writer = self._asked_writer(question, query, vector)
        extra_s = (writer.timeout_s if writer else 0.0) + (self.reranking.timeout_s if self.reranking else 0.0)
        if extra_s:
            await question.deadline.extend(extra_s)  # once, for every model still to come
        if writer is not None:
            said, embed_s = question.conversation, self.rules.embed_timeout_s
            text, vector = await writer.improved(said, query.text, vector, self.embedder, embed_timeout_s=embed_s)
            query = replace(query, text=text)
        memories, decision, timeout_s = self.memories, self.decision, self.rules.store_timeout_s
        found = await find(
            memories, query, vector, decision, timeout_s=timeout_s, before=self._before, cut_too=cut_too, read=read
        )
        return await self._reranked(found)

    def _asked_writer(self, question: Question, query: ResolvedQuery, vector: Vector) -> QueryWriter | None:
        """The model, unless what is asked is plainly nothing that memories have to do with: it would be refused after
        the search, and a call of a model is dear."""
        if self.writer is None or not self.writer.wants(question.conversation):
            return None
        alone = self.decision.request_alone(query.text, vector, wants=query.wants)
        return None if alone is not None and alone.is_general else self.writer

    async def _reranked(self, found: SearchResult) -> SearchResult:
        query = found.query
        if self.reranking is None or query.strategy is Strategy.RECENT:
            return found
        fitting = found.fitting
        if len(fitting) <= query.limit:
            return found  # all of them are shown
        ordered = await self.reranking.order(query.text, fitting)
        known = {hit.memory.id for hit in fitting}
        rest = [hit for hit in found.candidates.hits if hit.memory.id not in known]
        return replace(found, candidates=replace(found.candidates, hits=[*ordered, *rest]))

    def _ranked(self, question: Question, found: SearchResult) -> list[Ranked]:
        query, candidates, rules = found.query, found.candidates, self.rules
        said = [] if query.is_lookup else own_words(question)
        own_limit = question.conversation.controls.limit is not None
        lists_profile = candidates.request is not None and candidates.request.lists_profile
        with spans.step("semmem.rank"):
            return rank(
                candidates.hits,
                said=said,
                limit=rules.profile_max if lists_profile and not own_limit else query.limit,
                now=query.now,
                threshold=found.threshold,
                cuts=candidates.cuts,
                standing=candidates.standing,
                standing_max=None if own_limit or lists_profile else rules.standing_max,
            )

    def _recalled(
        self,
        question: Question,
        kept: Sequence[Hit],
        outcome: Outcome,
        otherwise: Outcome,
        before: Before,
        index: MemoryIndex | None,
    ) -> Recalled:
        """``otherwise``: the outcome where there is nothing to show."""
        composed = self._composed(question, kept, before, index, self.rules.tokens_max)
        if not composed.wanted:
            return Recalled(Outcome.REPEATED if kept else otherwise)
        recalled = Recalled(outcome if composed.blocks else otherwise, tuple(composed.blocks), composed.compacted)
        self.changes.said_back(recalled.hits)
        return recalled

    def _composed(
        self, question: Question, kept: Sequence[Hit], before: Before, index: MemoryIndex | None, room: int
    ) -> _Composed:
        """What goes into the prompt beside ``before``, or in its place where the two have no room together."""
        news = [hit for hit in kept if not before.holds(hit.memory)]
        corrected: list[Hit] = []
        if index is not None and before.blocks:
            corrected = corrections(before.blocks, index, question.now, apart_from=news)
        wanted = [*corrected, *news]
        blocks = self._blocks(question, wanted, before, room - before.tokens)
        if before.tokens and (missing := _ids(wanted) - _shown(blocks)):
            anew = self._blocks(question, kept, Before(at=before.at), room)
            there = (_ids(kept) - _ids(news)) | _shown(blocks)
            if missing & _ids(corrected) or _says_more(anew, there, kept):
                return _Composed(kept, corrected, anew, compacted=True)
        return _Composed(wanted, corrected, blocks)

    def _blocks(self, question: Question, hits: Sequence[Hit], before: Before, room: int) -> list[Block]:
        """What goes with every answer in one of its own, where the session begins; then the others."""

        def for_start(hit: Hit) -> bool:
            return before.begins and hit.memory.standing is Standing.STYLE

        blocks: list[Block] = []
        mark, model = partial(self._fence.mark, question.scope.user), question.conversation.model
        for position, some in (
            ("system", [hit for hit in hits if for_start(hit)]),
            (self.rules.position, [hit for hit in hits if not for_start(hit)]),
        ):
            if not some:
                continue
            with spans.step("semmem.render") as span:
                header = HEADER_MORE if before.blocks or blocks else HEADER
                text, shown, tokens = render(some, tokens_max=room, mark=mark, header=header)
                span.note(spans.RECORD_COUNT, len(shown))
                span.note("semmem.tokens", tokens)
            if text is not None:
                injection = replace(self.injection(text, model, before.at), position=position)
                blocks.append(block_of(injection, shown, tokens, is_start=position != self.rules.position))
                room -= tokens
        return blocks


def _ids(hits: Sequence[Hit]) -> set[str]:
    return {hit.memory.id for hit in hits}


def _explained(recalled: Recalled, found: SearchResult, ranked: Sequence[Ranked]) -> Recalled:
    left = tuple(itertools.islice((one for one in ranked if not one.kept), LEFT_MAX))
    verdict = found.candidates.request
    return structs.replace(recalled, left=left, purpose="" if verdict is None else verdict.purpose)


def _shown(blocks: Sequence[Block]) -> set[str]:
    return {each for block in blocks for each in block.ids}


def _says_more(anew: Sequence[Block], without: set[str], kept: Sequence[Hit]) -> bool:
    """Whether more of what is needed stands in the prompt where the earlier blocks go, or more of what always matters:
    to give them up for less would do so again in the next turn."""
    must = _ids([hit for hit in kept if hit.memory.standing is Standing.MUST])
    here, there = _shown(anew), without & _ids(kept)
    return (len(here & must), len(here)) > (len(there & must), len(there))


def _kept(ranked: Sequence[Ranked]) -> list[Hit]:
    return [one.hit for one in ranked if one.kept]


def _with_said(ranked: Sequence[Ranked], shown: Sequence[Hit]) -> list[Ranked]:
    """What is shown first, in its order: memories, and what was said beside them or in their place."""
    first = [Ranked(hit, kept=True, reason=PASSAGE if hit.memory.type in PASSAGES else KEPT) for hit in shown]
    rest = (one for one in ranked if one.id not in _ids(shown))
    return [*first, *(structs.replace(one, kept=False, reason=PASSAGE) if one.kept else one for one in rest)]


def _with_corrections(ranked: Sequence[Ranked], corrected: Sequence[Hit]) -> list[Ranked]:
    """What holds now in place of what is in the prompt goes first."""
    scored, fixes = {one.id: one.hit for one in ranked}, _ids(corrected)
    first = [Ranked(scored.get(hit.memory.id, hit), kept=True, reason=CORRECTION) for hit in corrected]
    return [*first, *(one for one in ranked if one.id not in fixes)]


def _tell(span: spans.Span, found: SearchResult) -> None:
    hits = found.candidates.hits
    span.note(spans.RECORD_COUNT, len(hits))
    span.note("semmem.path", found.path)
    span.told(spans.QUERY_TEXT, lambda: found.query.text)
    span.told(spans.RECORDS, lambda: [{"id": hit.memory.id, "content": hit.memory.content} for hit in hits])


def _unembedded(error: EmbedderError) -> Outcome:
    return Outcome.EMBEDDER_BUSY if isinstance(error, EmbedderBusy) else Outcome.EMBEDDER_DOWN


def _refusal(found: SearchResult) -> str:
    """The word for a question that plainly has nothing to do with anybody's memories; empty for any other."""
    request = found.candidates.request
    if request is None or not request.is_general:
        return ""
    return Outcome.GREETING if request.purpose == "courtesy" else Outcome.GENERAL_FACT
