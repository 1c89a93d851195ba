"""Search and preview: what would be recalled for a question, and why; and the states of long sessions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, Query, Request
from pydantic import Field, model_validator
from typing_extensions import TypedDict

from semmem.compression.extractive import rendered
from semmem.lifecycle.erasure import Receipt
from semmem.management.access import Act
from semmem.management.memories import Memories
from semmem.management.problems import OF_ERASURE, OF_USER, Denied
from semmem.management.routes import (
    TYPES_MAX,
    Body,
    Count,
    Kind,
    NewUser,
    Number,
    ProjectId,
    ScopeName,
    SessionId,
    Switch,
    Types,
    UserId,
    may,
    refuses,
    scope_in,
)
from semmem.management.shown import ROWS_MAX, MemoryShown, Time, as_shown, log_odds, shown
from semmem.memory import Controls, Conversation, Memory, MemoryType, Message, Role, Scope
from semmem.ports.names import bounded
from semmem.ports.session_states import SessionState, SessionStates
from semmem.request.question import Question
from semmem.retrieval.block import NOTHING, Before
from semmem.retrieval.context import estimate_tokens, line_tokens
from semmem.retrieval.decide.decision import RequestVerdict
from semmem.retrieval.fence import Fence
from semmem.retrieval.rank import Ranked
from semmem.retrieval.search import Strategy
from semmem.turns.sessions import session_without_start

CONTENT_CHARS_MAX = 32_000
MESSAGES_MAX = 100
TOKENS_MAX = 16_000
"""As ``memory.injection.max_inject_tokens`` may be."""


@dataclass(frozen=True, slots=True)
class States:
    """``fence`` marks blocks, as in requests. Raises JournalError."""

    records: SessionStates
    fence: Fence
    clock: Callable[[], float]

    async def newest(self, user: str, session: str) -> SessionState | None:
        found = await self.records.session_states(user, bounded(session) or "", now=self.clock())
        return found[0] if found else None

    def block(self, found: SessionState) -> str:
        """As a request is given it."""
        return rendered(found.state, lambda inside: self.fence.mark(found.user, inside))


class SearchQuery(Body):
    """``threshold`` is a cosine; without it the configured rule says what is relevant."""

    query: str = Field(min_length=1, max_length=2000)
    user_id: NewUser = None
    project_id: ScopeName = None
    session_id: ScopeName = None
    types: list[Kind] = Field(default_factory=list, max_length=TYPES_MAX)
    limit: Count = Field(default=5, ge=1, le=50)
    threshold: Number | None = Field(default=None, ge=-1, le=1)
    strategy: Strategy | None = None


class ForgetFound(Body):
    """Active memories so near to ``query`` (a cosine), the nearest first; or those of any status that hold ``text``."""

    query: str | None = Field(default=None, min_length=1, max_length=2000)
    text: str | None = Field(default=None, min_length=1, max_length=500)
    user_id: NewUser = None
    project_id: ScopeName = None
    similarity_min: Number = Field(default=0.6, ge=0, le=1)
    limit: Count = Field(default=10, ge=1, le=50)
    dry_run: Switch = Field(default=True, description="only say what would be forgotten")

    @model_validator(mode="after")
    def one_of_both(self) -> "ForgetFound":
        if (self.query is None) == (self.text is None):
            raise ValueError("give either query or text")
        return self


class PreviewMessage(Body):
    """One message of the conversation that is previewed."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = Field(max_length=CONTENT_CHARS_MAX)


class PreviewQuery(Body):
    """A question, or the messages of a conversation whose last user message is one."""

    query: str | None = Field(default=None, min_length=1, max_length=CONTENT_CHARS_MAX)
    messages: list[PreviewMessage] = Field(default_factory=list, max_length=MESSAGES_MAX)
    user_id: NewUser = None
    project_id: ScopeName = None
    session_id: ScopeName = None
    types: list[Kind] = Field(default_factory=list, max_length=TYPES_MAX)
    limit: Count | None = Field(default=None, ge=1, le=50)
    threshold: Number | None = Field(default=None, ge=-1, le=1)
    strategy: Strategy | None = None
    tokens_max: Count | None = Field(default=None, ge=0, le=TOKENS_MAX)
    model: str = Field(default="", max_length=256)

    @model_validator(mode="after")
    def one_of_both(self) -> "PreviewQuery":
        if (self.query is None) == (not self.messages):
            raise ValueError("give either query or messages")
        return self

    def conversation(self) -> Conversation:
        said = self.messages or [PreviewMessage(role="user", content=self.query or "")]
        return Conversation(
            tuple(Message(Role(message.role), message.content) for message in said),
            model=self.model,
            controls=_controls(self.types, self.limit, self.threshold),
        )


class ScoredMemory(MemoryShown):
    """A memory with its cosine, its BM25 score, and the score that orders; ``log_odds`` that the request needs it, null
    where the decision has none."""

    score: float
    cosine: float
    keyword: float
    log_odds: float | None


class Candidate(ScoredMemory):
    """``reason``: ``kept``, or the word for why it was cut. ``tokens``: of its line, estimated. ``in_prompt``: whether
    it stands in one of the session's earlier blocks."""

    kept: bool
    reason: str
    tokens: int
    in_prompt: bool


class RequestDecided(TypedDict("_Class", {"class": str})):
    """What was decided of the question as a whole. ``log_odds``: null where the user has no memory."""

    log_odds: float | None
    wants_memories: bool
    lists_profile: bool


class Found(TypedDict):
    """The memories that answer a query, best first. ``path``: where they were looked for."""

    memories: list[ScoredMemory]
    total: int
    limit: int
    strategy: Strategy
    path: str


class ForgottenFound(TypedDict):
    """What was found, and of it what was forgotten."""

    dry_run: bool
    memories: list[MemoryShown]
    deleted: int
    receipt: Receipt


class Previewed(TypedDict):
    """What a request would be given. ``gate``: why it would not be searched for or was refused, else ``search``.
    ``request``: null where the decision is uncalibrated. ``block``: what would be put into the prompt anew.
    ``shown_before``: the blocks that the prompts of the session that is named have by now, oldest first; where
    ``compacted`` they would go, since together with the new block they have no room.
    ``unembedded``: why it was searched for by words although it should have been by meaning, ``embedder_busy`` or
    ``embedder_down``; else null. ``session_state``: the block that stands for the older messages of the session that
    is named, null where there is none."""

    query: str
    gate: str
    request: RequestDecided | None
    strategy: Strategy
    path: str
    unembedded: str | None
    memories: list[Candidate]
    block: str
    tokens: int
    shown_before: list[str]
    compacted: bool
    session_state: str | None


def add_retrieval_routes(api: FastAPI, memories: Memories, states: States | None = None) -> None:
    """``states``: of long sessions, which a preview shows."""

    async def search(scope: Scope, query: str, controls: Controls, strategy: Strategy | None) -> Found:
        asked = Question(Conversation((Message(Role.USER, query),), controls=controls), scope, memories.clock())
        found = await memories.recall.preview(asked, strategy=strategy, is_lookup=True)
        kept = [scored(one) for one in found.ranked if one.kept or one.reason == "budget"]
        return as_shown(Found, found, memories=kept, total=len(kept), limit=controls.limit)

    @api.get("/v1/memory/search", **refuses(*OF_USER))
    async def search_by_query(
        request: Request,
        query: Annotated[str, Query(alias="q", min_length=1, max_length=2000)],
        user_id: UserId = None,
        project_id: ProjectId = None,
        session_id: SessionId = None,
        types: Types = None,
        limit: Annotated[int, Query(ge=1, le=50)] = 5,
        threshold: Annotated[float | None, Query(ge=-1, le=1)] = None,
        strategy: Strategy | None = None,
    ) -> Found:
        """The same as POST, for what fits into an address."""
        scope = Scope(may(request, user_id, Act.READ), project=project_id, session=session_id)
        return await search(scope, query, _controls(types or [], limit, threshold), strategy)

    @api.post("/v1/memory/search", **refuses(*OF_USER))
    async def search_memories(request: Request, asked: SearchQuery) -> Found:
        """The memories that answer a query."""
        scope, controls = scope_in(asked, request, Act.READ), _controls(asked.types, asked.limit, asked.threshold)
        return await search(scope, asked.query, controls, asked.strategy)

    @api.post("/v1/memory/forget", **refuses(*OF_ERASURE))
    async def forget_found(request: Request, which: ForgetFound) -> ForgottenFound:
        """Forget what is found. A dry run, unless asked otherwise, says what that would be."""
        scope = scope_in(which, request, Act.WRITE)
        found = await _matching(memories, scope, which)
        receipt = Receipt()
        for memory in found if not which.dry_run else []:
            receipt += await memories.forget(scope, memory.id) or Receipt()
        return as_shown(ForgottenFound, which, memories=found, deleted=receipt.memories, receipt=receipt)

    @api.post("/v1/memory/preview", **refuses(*OF_USER))
    async def preview_memories(request: Request, asked: PreviewQuery) -> Previewed:
        """What a request with this question or conversation would be given: every candidate, and why."""
        scope = scope_in(asked, request, Act.READ)
        question, before = Question(asked.conversation(), scope, memories.clock()), NOTHING
        if memories.showing is not None and (session := bounded(scope.session)) is not None:
            before = await memories.showing.before(question, session_without_start(session))
        found = await memories.recall.preview(
            question, strategy=asked.strategy, tokens_max=asked.tokens_max, before=before
        )
        state = await states.newest(scope.user, scope.session) if states is not None and scope.session else None
        return as_shown(
            Previewed,
            found,
            gate=found.reason,
            request=_decided(found.request),
            memories=[_candidate(one, found.before) for one in found.ranked],
            block=found.text,
            shown_before=[block.text for block in found.before.blocks],
            session_state=None if states is None or state is None else states.block(state),
        )


async def _matching(memories: Memories, scope: Scope, which: ForgetFound) -> list[Memory]:
    if which.query is None:
        text = (which.text or "").casefold()
        everything = await memories.store.list(scope, limit=ROWS_MAX)
        return [memory for memory in everything if text in memory.content.casefold()][: which.limit]
    vector, now = await memories.embedder.embed(which.query), memories.clock()
    hits = await memories.store.search(scope, vector, limit=which.limit, now=now, as_of=now)
    return [hit.memory for hit in hits if hit.cosine >= which.similarity_min]


def scored(ranked: Ranked) -> ScoredMemory:
    hit = ranked.hit
    return {
        **shown(hit.memory),
        "score": round(hit.score, 6),
        "cosine": round(hit.cosine, 6),
        "keyword": round(hit.keyword, 6),
        "log_odds": log_odds(hit.logit),
    }


def _candidate(ranked: Ranked, before: Before) -> Candidate:
    memory = ranked.hit.memory
    told: dict[str, Any] = {**scored(ranked), "tokens": line_tokens(memory), "in_prompt": before.holds(memory)}
    return as_shown(Candidate, ranked, **told)


def _decided(request: RequestVerdict | None) -> RequestDecided | None:
    if request is None:
        return None
    return {
        "class": request.purpose,
        "log_odds": log_odds(request.logit),
        "wants_memories": request.is_served,
        "lists_profile": request.lists_profile,
    }


def _controls(types: list[MemoryType], limit: int | None, threshold: float | None) -> Controls:
    return Controls(types=tuple(types) or None, limit=limit, threshold=threshold)


# --- the state of a long session --------------------------------------------------------------------------------------


class StateShown(TypedDict):
    """A state. It stands for the first ``replaced`` messages of the session's requests, instructions apart, once these
    have more than ``turns`` messages of the user's. ``tokens``: of its block, estimated."""

    session_id: str
    topic: str
    decisions: list[str]
    facts: list[str]
    answers: list[str]
    open: list[str]
    replaced: int
    turns: int
    tokens: int
    made_by: Literal["rules", "model"]
    made_at: Time | None
    expires_at: Time | None


def state_routes(states: States) -> APIRouter:
    """What is kept of sessions beside their turns."""
    routes = APIRouter()

    @routes.get("/v1/sessions/{session_id:path}/state", **refuses(*OF_USER))
    async def get_session_state(request: Request, session_id: str, user_id: UserId = None) -> StateShown:
        """The newest state of a session; none where it is short, or none was made yet."""
        found = await states.newest(may(request, user_id, Act.READ), session_id)
        if found is None:
            raise Denied("NOT_FOUND", "no state of such a session")
        said = {name: getattr(found.state, name) for name in ("topic", "decisions", "facts", "answers", "open")}
        tokens = estimate_tokens(states.block(found))
        return as_shown(StateShown, found, tokens=tokens, **said)

    return routes
