"""The request phase's search as one object: gate, query, search, rank, render."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial

from semmem.memory import Conversation, Hit, Role, Scope, Vector
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError
from semmem.ports.events import Announce, Searched, nobody_listens
from semmem.retrieval.context import render
from semmem.retrieval.decide.signals import SEARCH, decide
from semmem.retrieval.fence import Fence
from semmem.retrieval.index.hot_memories import HotMemories
from semmem.retrieval.query.build import build_query
from semmem.retrieval.query.rewrite import QueryWriter
from semmem.retrieval.rank import Ranked, rank
from semmem.retrieval.rerank import Reranking
from semmem.retrieval.search import (
    CANDIDATES_MAX,
    Candidates,
    Strategy,
    best_of,
    embed_query,
    in_time,
    nearest,
    newest,
)
from semmem.retrieval.time_filter import time_filter

NO_QUESTION = "no_question"
SEARCH_STATUSES = ("hit", "miss", "error")
"""How a search can end. A request that the gate kept from searching is none."""
HOT, COLD_DENSE, RECENT = "hot", "cold_dense", "recent"
"""Where hits came from: the user's index; the store, since the index was not there in time; the newest memories."""
LOADING_SHARE = 0.6
"""Of the store's time so much is given to loading the user's index; the rest is for the store's own search."""
COLD_THRESHOLD = 0.3
"""Least cosine where nobody set one and there is no index to judge relevance by (docs/quality.md)."""


ExtendDeadline = Callable[[float], Awaitable[None]]
"""Asks for so many seconds on top of the request phase."""


async def no_extension(_extra_s: float) -> None:
    """Where there is no deadline to extend."""


@dataclass(frozen=True, slots=True)
class RecallRules:
    """How memories are chosen and shown. ``threshold`` is a cosine; None: the calibrated rule of relevance.py.
    ``user_role_models`` (names or patterns like ``*/o1-*``) refuse a system message.

    ``scope``: ``user`` reads all of the user's memories, ``project`` those of the named project or, when none is
    named, all, ``session`` only what was learnt in the session that asks.

    The two timeouts together are the request phase's: the store keeps its own time however long embedding took.
    """

    limit: int = 5
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


@dataclass(frozen=True, slots=True)
class Recalled:
    """What goes into the prompt, as whom and where. ``path``: how it was found."""

    text: str
    role: str
    position: str
    hits: tuple[Hit, ...]
    tokens: int
    path: str = HOT


@dataclass(frozen=True, slots=True)
class Preview:
    """What a question would recall, and why. ``reason``: why it would not be searched for, else ``search``.

    ``strategy`` is the one that was used in the end. ``ranked`` has a verdict for each candidate, best first;
    ``budget`` where there was no room left. ``text`` is the block, ``tokens`` its size, estimated.
    """

    query: str
    reason: str
    strategy: Strategy
    path: str
    ranked: tuple[Ranked, ...]
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class _Found:
    candidates: Candidates
    path: str
    threshold: float | None

    @property
    def fitting(self) -> list[Hit]:
        """Those that are neither cut nor below the threshold."""
        floor = -1.0 if self.threshold is None else self.threshold
        return [
            hit for hit in self.candidates.hits if hit.cosine >= floor and hit.memory.id not in self.candidates.cuts
        ]


class Recall:
    """Finds what is worth telling the model. Holds no state of any request.

    ``gate`` judges a question by its text and its vector: a reason not to search, in one word, or SEARCH. Without
    it only the rules decide. Searched is announced for every search. ``writer`` and ``reranking`` are optional models;
    both fall back by themselves. ``fence`` marks blocks and recognises them; None: with a key that only this object
    knows.
    """

    def __init__(
        self,
        memories: HotMemories,
        embedder: Embedder,
        rules: RecallRules,
        *,
        gate: Callable[[str, Vector], str] | None = None,
        announce: Announce = nobody_listens,
        writer: QueryWriter | None = None,
        reranking: Reranking | None = None,
        fence: Fence | None = None,
    ) -> None:
        self._memories = memories
        self._embedder = embedder
        self._rules = rules
        self._gate = gate
        self._announce = announce
        self._writer = writer
        self._reranking = reranking
        self._fence = Fence(secrets.token_bytes(32)) if fence is None else fence

    def skips(self, conversation: Conversation, *, fact: bool | None = None, tool: bool | None = None) -> str | None:
        """The reason not to search, in one word, or None. ``fact`` and ``tool``: an earlier filter's verdicts."""
        if not any(message.role is Role.USER and message.text.strip() for message in conversation.messages):
            return NO_QUESTION
        reason = decide(conversation, fact=fact, tool=tool)
        return None if reason == SEARCH else reason

    def has_shown(self, conversation: Conversation, user: str) -> bool:
        """Whether memories of this user's are in the prompt already, where semmem would have put them."""
        return self._fence.stands_in(conversation.messages, user)

    async def search(
        self,
        conversation: Conversation,
        scope: Scope,
        now: float,
        *,
        fact: bool | None = None,
        extend_deadline: ExtendDeadline = no_extension,
    ) -> Recalled | str | None:
        """The relevant memories, None, or the gate's reason not to search. Raises EmbedderError and StoreError.

        ``extend_deadline`` is asked for once, before models are called that take longer than a search.
        """
        limit = self._limit(conversation)
        query = build_query(conversation, chars_max=self._rules.query_chars_max)
        if limit == 0 or conversation.controls.types == () or not query:
            return None
        started = time.perf_counter()
        kept: list[Hit] = []
        found: _Found | None = None
        status = "error"
        try:
            self._memories.warm(scope.user)  # it is read while the question is embedded
            vector = await embed_query(self._embedder, query, timeout_s=self._rules.embed_timeout_s)
            reason = self._judged(conversation, query, vector, fact)
            if reason != SEARCH:
                status = reason
                return reason
            query, vector = await self._improved(conversation, query, vector, extend_deadline)
            found = await self._found(conversation, scope, query, vector, self._rules.strategy, now)
            kept = _kept(self._ranked(conversation, found, limit, now))
            status = "hit" if kept else "miss"
        finally:
            if status in SEARCH_STATUSES:
                self._announce(Searched(status, len(kept), time.perf_counter() - started))
        return self._rendered(conversation, scope, kept, found.path)

    async def without_vector(self, conversation: Conversation, scope: Scope, now: float) -> Recalled | None:
        """By the question's words, else the newest memories, for when it cannot be embedded. Raises StoreError."""
        query = build_query(conversation, chars_max=self._rules.query_chars_max)
        found = await self._found_by_words(conversation, scope, query, now)
        kept = _kept(self._ranked(conversation, found, self._limit(conversation), now))
        return self._rendered(conversation, scope, kept, found.path)

    async def preview(
        self,
        conversation: Conversation,
        scope: Scope,
        now: float,
        *,
        strategy: Strategy | None = None,
        said: Sequence[str] | None = None,
    ) -> Preview:
        """What a request with this conversation would recall, by the same path; the gate is asked but not obeyed.

        ``said``: texts that no memory needs to repeat; None: those of the conversation. Raises StoreError.
        """
        used, limit = strategy or self._rules.strategy, self._limit(conversation)
        query = build_query(conversation, chars_max=self._rules.query_chars_max)
        reason = self.skips(conversation)
        try:
            vector = await embed_query(self._embedder, query, timeout_s=self._rules.embed_timeout_s)
            reason = reason or self._judged(conversation, query, vector, None)
            query, vector = await self._improved(conversation, query, vector, no_extension)
            found = await self._found(conversation, scope, query, vector, used, now)
        except EmbedderError:
            used = Strategy.KEYWORD
            found = await self._found_by_words(conversation, scope, query, now)
        ranked = self._ranked(conversation, found, limit, now, said)
        text, shown, tokens = self._block(scope, _kept(ranked))
        fitting = {hit.memory.id for hit in shown}
        verdicts = (
            replace(one, kept=False, reason="budget") if one.kept and one.hit.memory.id not in fitting else one
            for one in ranked
        )
        return Preview(query, reason or SEARCH, used, found.path, tuple(verdicts), text or "", tokens)

    # --- steps -------------------------------------------------------------------------------------------------------

    async def _improved(
        self, conversation: Conversation, query: str, vector: Vector, extend_deadline: ExtendDeadline
    ) -> tuple[str, Vector]:
        writer = self._writer if self._writer is not None and self._writer.wants(conversation) else None
        extra_s = (writer.timeout_s if writer else 0.0) + (self._reranking.timeout_s if self._reranking else 0.0)
        if extra_s:
            await extend_deadline(extra_s)
        if writer is None:
            return query, vector
        return await writer.improved(
            conversation, query, vector, self._embedder, embed_timeout_s=self._rules.embed_timeout_s
        )

    async def _found(
        self, conversation: Conversation, scope: Scope, query: str, vector: Vector, strategy: Strategy, now: float
    ) -> _Found:
        found = await self._candidates(conversation, scope, query, vector, strategy, now)
        fitting = found.fitting
        if self._reranking is None or strategy is Strategy.RECENT or len(fitting) <= self._limit(conversation):
            return found  # by time, or all of them are shown
        ordered = await self._reranking.order(query, fitting)
        known = {hit.memory.id for hit in fitting}
        rest = [hit for hit in found.candidates.hits if hit.memory.id not in known]
        return replace(found, candidates=replace(found.candidates, hits=[*ordered, *rest]))

    async def _candidates(
        self, conversation: Conversation, scope: Scope, query: str, vector: Vector, strategy: Strategy, now: float
    ) -> _Found:
        controls, limit_s = conversation.controls, self._rules.store_timeout_s
        threshold = self._rules.threshold if controls.threshold is None else controls.threshold
        reading, types, during = self._reading(scope), controls.types or (), time_filter(_asked(conversation), now)
        started = time.perf_counter()
        index = await self._memories.index(scope.user, wait_s=LOADING_SHARE * limit_s)
        if index is None:
            left_s = limit_s - (time.perf_counter() - started)
            hits = await nearest(
                self._memories, reading, vector, limit=self._limit(conversation), types=types, now=now, timeout_s=left_s
            )
            hits = hits if during is None else in_time(hits, during)
            return _Found(Candidates(hits), COLD_DENSE, COLD_THRESHOLD if threshold is None else threshold)
        best = best_of(index, query, vector, strategy=strategy, scope=reading, types=types, now=now, during=during)
        if strategy is Strategy.RECENT:
            return _Found(best, HOT, None)  # no cosine was asked for, so there is none to compare
        return _Found(best if threshold is None else replace(best, cuts={}), HOT, threshold)

    async def _found_by_words(self, conversation: Conversation, scope: Scope, query: str, now: float) -> _Found:
        reading, types = self._reading(scope), conversation.controls.types or ()
        index = await self._memories.index(scope.user, wait_s=self._rules.store_timeout_s)
        if index is None:
            memories = await self._memories.list(reading, types=types, limit=CANDIDATES_MAX)
            return _Found(Candidates([Hit(memory, 0.0, 0.0) for memory in memories]), RECENT, None)
        best = best_of(index, query, None, strategy=Strategy.KEYWORD, scope=reading, types=types, now=now)
        if any(hit.memory.id not in best.cuts for hit in best.hits):
            return _Found(best, HOT, None)
        return _Found(newest(index, scope=reading, types=types, now=now), RECENT, None)

    def _judged(self, conversation: Conversation, query: str, vector: Vector, fact: bool | None) -> str:
        """The gate's word. It knows single questions: not one that was given terms of what came before."""
        if self._gate is None or query != _asked(conversation).strip():
            return SEARCH
        reason = self._gate(query, vector)
        if reason == "general_fact" and fact is False:
            return SEARCH  # an earlier filter has said that it is not
        return reason

    def _ranked(
        self,
        conversation: Conversation,
        found: _Found,
        limit: int,
        now: float,
        said: Sequence[str] | None = None,
    ) -> list[Ranked]:
        candidates = found.candidates
        if said is None:
            said = [message.text for message in conversation.messages]
        return rank(candidates.hits, said=said, limit=limit, now=now, threshold=found.threshold, cuts=candidates.cuts)

    def _block(self, scope: Scope, kept: Sequence[Hit]) -> tuple[str | None, list[Hit], int]:
        return render(kept, tokens_max=self._rules.tokens_max, mark=partial(self._fence.mark, scope.user))

    def _rendered(self, conversation: Conversation, scope: Scope, kept: Sequence[Hit], path: str) -> Recalled | None:
        text, shown, tokens = self._block(scope, kept)
        if text is None:
            return None
        return Recalled(
            text=text,
            role="user" if self._refuses_system(conversation.model) else self._rules.role,
            position=self._rules.position,
            hits=tuple(shown),
            tokens=tokens,
            path=path,
        )

    def _reading(self, scope: Scope) -> Scope:
        """Whose memories are read. Those of every agent; an absent project means all of the user's."""
        if self._rules.scope == "user":
            return Scope(scope.user)
        session = (scope.session or "") if self._rules.scope == "session" else None
        return Scope(scope.user, project=scope.project, session=session)

    def _limit(self, conversation: Conversation) -> int:
        asked = conversation.controls.limit
        return self._rules.limit if asked is None else asked

    def _refuses_system(self, model: str) -> bool:
        return any(fnmatchcase(model.lower(), pattern.lower()) for pattern in self._rules.user_role_models)


def _asked(conversation: Conversation) -> str:
    """The user's last message."""
    return next((message.text for message in reversed(conversation.messages) if message.role is Role.USER), "")


def _kept(ranked: Sequence[Ranked]) -> list[Hit]:
    return [one.hit for one in ranked if one.kept]
