"""The request phase's search as one object: gate, query, search, rank, render."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from semmem.memory import Conversation, Hit, Role, Scope, Vector
from semmem.ports import Embedder, Store
from semmem.retrieval.context import render
from semmem.retrieval.query import build_query
from semmem.retrieval.rank import rank
from semmem.retrieval.search import embed_query, nearest
from semmem.retrieval.signals import SEARCH, decide

RECENT_MAX = 100
"""How many of the newest memories are looked at when there is no embedder."""

NO_QUESTION = "no_question"
SEARCH_STATUSES = ("hit", "miss", "error")
"""How a search can end. A request that the gate kept from searching is none."""


@dataclass(frozen=True, slots=True)
class RecallRules:
    """How memories are chosen and shown. ``threshold`` is a cosine; ``user_role_models`` (names or patterns like
    ``*/o1-*``) refuse a system message.

    The two timeouts together are the request phase's: the store keeps its own time however long embedding took.

    ``fact_header`` and ``tool_header`` carry an earlier filter's verdict (true, false); empty: there is none.
    """

    limit: int = 5
    threshold: float = 0.3
    tokens_max: int = 2000
    query_chars_max: int = 2000
    embed_timeout_s: float = 0.15
    store_timeout_s: float = 0.2
    role: str = "system"
    position: str = "first"
    user_role_models: tuple[str, ...] = ()
    fact_header: str = ""
    tool_header: str = ""


@dataclass(frozen=True, slots=True)
class Recalled:
    """What goes into the prompt, as whom and where."""

    text: str
    role: str
    position: str
    hits: tuple[Hit, ...]
    tokens: int


class Recall:
    """Finds what is worth telling the model. Holds no state of any request.

    ``gate`` judges a question by its text and its vector: a reason not to search, in one word, or SEARCH. Without
    it only the rules decide. ``on_search`` is told of every search: hit, miss or error, the hits that passed the cut,
    and seconds.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        rules: RecallRules,
        *,
        gate: Callable[[str, Vector], str] | None = None,
        on_search: Callable[[str, list[Hit], float], None] = lambda _status, _hits, _seconds: None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._rules = rules
        self._gate = gate
        self._on_search = on_search

    def skips(self, conversation: Conversation, header: Callable[[str], str | None]) -> str | None:
        """The reason not to search, in one word, or None. ``header`` reads one of the request's headers."""
        if not any(message.role is Role.USER and message.text.strip() for message in conversation.messages):
            return NO_QUESTION
        reason = decide(
            conversation,
            fact=_verdict(header, self._rules.fact_header),
            tool=_verdict(header, self._rules.tool_header),
        )
        return None if reason == SEARCH else reason

    async def search(
        self,
        conversation: Conversation,
        scope: Scope,
        now: float,
        header: Callable[[str], str | None] = lambda _name: None,
    ) -> Recalled | str | None:
        """The relevant memories, None, or the gate's reason not to search. Raises EmbedderError and StoreError."""
        controls = conversation.controls
        limit = self._rules.limit if controls.limit is None else controls.limit
        if limit == 0 or controls.types == ():
            return None
        query = build_query(conversation, chars_max=self._rules.query_chars_max)
        if not query:
            return None
        started = time.perf_counter()
        hits: list[Hit] = []
        status = "error"
        try:
            vector = await embed_query(self._embedder, query, timeout_s=self._rules.embed_timeout_s)
            reason = self._judged(conversation, query, vector, header)
            if reason != SEARCH:
                status = reason
                return reason
            hits = await nearest(
                self._store,
                _reading(scope),
                vector,
                limit=limit,
                threshold=self._rules.threshold if controls.threshold is None else controls.threshold,
                types=controls.types or (),
                now=now,
                timeout_s=self._rules.store_timeout_s,
            )
            status = "hit" if hits else "miss"
        finally:
            if status in SEARCH_STATUSES:
                self._on_search(status, hits, time.perf_counter() - started)
        return self._rendered(conversation, hits, limit, now)

    def _judged(
        self, conversation: Conversation, query: str, vector: Vector, header: Callable[[str], str | None]
    ) -> str:
        """The gate's word. It knows single questions: not one that was given terms of what came before."""
        said = next(message.text for message in reversed(conversation.messages) if message.role is Role.USER)
        if self._gate is None or query != said.strip():
            return SEARCH
        reason = self._gate(query, vector)
        if reason == "general_fact" and _verdict(header, self._rules.fact_header) is False:
            return SEARCH  # an earlier filter has said that it is not
        return reason

    async def recent(self, conversation: Conversation, scope: Scope, now: float) -> Recalled | None:
        """The newest memories, for when no query can be embedded. Raises StoreError."""
        controls = conversation.controls
        limit = self._rules.limit if controls.limit is None else controls.limit
        memories = await self._store.list(_reading(scope), types=controls.types or (), limit=RECENT_MAX)
        return self._rendered(conversation, [Hit(memory, 0.0, 0.0) for memory in memories], limit, now)

    def _rendered(self, conversation: Conversation, hits: Sequence[Hit], limit: int, now: float) -> Recalled | None:
        said = [message.text for message in conversation.messages]
        kept = [ranked.hit for ranked in rank(hits, said=said, limit=limit, now=now) if ranked.kept]
        text, shown, tokens = render(kept, tokens_max=self._rules.tokens_max)
        if text is None:
            return None
        return Recalled(
            text=text,
            role="user" if self._refuses_system(conversation.model) else self._rules.role,
            position=self._rules.position,
            hits=tuple(shown),
            tokens=tokens,
        )

    def _refuses_system(self, model: str) -> bool:
        return any(fnmatchcase(model.lower(), pattern.lower()) for pattern in self._rules.user_role_models)


def _reading(scope: Scope) -> Scope:
    """Memories of every session and agent are read; an absent project means all of the user's."""
    return Scope(scope.user, project=scope.project)


def _verdict(header: Callable[[str], str | None], name: str) -> bool | None:
    value = (header(name) or "").lower() if name else ""
    return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(value)
