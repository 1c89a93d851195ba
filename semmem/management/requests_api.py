"""Why did it say that? A user's requests from the request log: which memories were in a prompt and why, times, tokens,
and what was learnt from the turn. For whoever may read the user's memories."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from typing_extensions import TypedDict

from semmem.management.access import CALLER, Act
from semmem.management.problems import OF_USER, Denied
from semmem.management.routes import UserId, may, needs, refuses
from semmem.management.shown import ROWS_MAX, MemoryShown, Time, as_shown, at, log_odds, shown
from semmem.memory import MemoryStatus, Scope
from semmem.ports.request_log import KeptRequest, RequestLog
from semmem.ports.store import Store
from semmem.request.outcome import NAME_CHARS_MAX

LIMIT_MAX = 200


class AnswerOutcome(TypedDict):
    """How its answer ended, as ``llm_memory_turns_total`` calls it; milliseconds from the request to the answer's end;
    tokens as the provider counted them, null where it did not: ``cached_tokens`` are those of the prompt that its
    prompt cache had."""

    ending: str
    milliseconds: float
    tokens_in: int | None
    tokens_out: int | None
    cached_tokens: int | None


class RecordShown(TypedDict):
    """A request of one user: ``id`` is its ``x-request-id``, ``api`` one of chat, responses, messages, ``purpose`` what
    it was taken to be about, empty where that was not decided; ``milliseconds``: what semmem took; ``answer``: null
    where it was not observed, or is not at its end."""

    id: str
    user_id: str
    project_id: str | None
    session_id: str | None
    time: Time
    outcome: str
    milliseconds: float
    memories: int
    tokens: int
    api: str
    model: str
    purpose: str
    answer: AnswerOutcome | None


class RecordsShown(TypedDict):
    """Newest first."""

    requests: list[RecordShown]


class MemoryInPrompt(MemoryShown):
    """``is_new``: this request found it; else an earlier one of the session was shown it. ``log_odds`` that the request
    needs it, null where that is not known."""

    is_new: bool
    log_odds: float | None


class MemoryLeftOut(MemoryShown):
    """``reason``: the word for why, as a preview has it."""

    reason: str
    log_odds: float | None


class RecordRead(RecordShown):
    """``steps``: milliseconds until the request was understood (``reading``), its turn on its way to the journal
    (``journalling``), the memories found (``finding``) and the prompt rewritten (``rewriting``). ``trace_id``: null
    where no trace is recorded. ``in_prompt``: as the memories are now; ``gone``: how many of them are no more.
    ``left_out``: the best of those that were near enough and were not shown. ``learnt``: what its turn said that is
    remembered."""

    steps: dict[str, float]
    trace_id: str | None
    in_prompt: list[MemoryInPrompt]
    gone: int
    left_out: list[MemoryLeftOut]
    learnt: list[MemoryShown]


def request_routes(log: RequestLog, settle: Callable[[], Awaitable[object]], store: Store) -> APIRouter:
    """``settle`` writes what of this process waits to be written to the log."""
    routes = APIRouter()

    @routes.get("/v1/requests", **refuses(*OF_USER, "MEMORY_NOT_AVAILABLE"))
    async def list_requests(
        request: Request,
        user_id: UserId = None,
        outcome: Annotated[str | None, Query(max_length=64, description="only those that ended so")] = None,
        limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = 50,
    ) -> RecordsShown:
        """A user's last requests through Envoy, whichever replica they met."""
        user = may(request, user_id, Act.READ)
        await settle()
        return {"requests": [_told(kept) for kept in await log.logged(user, outcome=outcome, limit=limit)]}

    @routes.get("/v1/requests/{request_id:path}", **needs(Act.READ, *OF_USER, "NOT_FOUND", "MEMORY_NOT_AVAILABLE"))
    async def get_request(
        request: Request,
        request_id: Annotated[str, Path(max_length=NAME_CHARS_MAX, description="its x-request-id")],
    ) -> RecordRead:
        """One request: which memories were in its prompt, and what was learnt from its turn."""
        await settle()
        kept = await log.logged_request(request_id, request.scope[CALLER].user)
        if kept is None:
            raise Denied("NOT_FOUND", "no such request, or it is not kept any more")
        logged = kept.request
        scope = Scope(may(request, logged.scope.user, Act.READ))
        there = [(name, await store.get(scope, name)) for name in logged.shown]
        new = dict(logged.weighed)
        in_prompt: list[MemoryInPrompt] = [
            {**shown(memory), "is_new": name in new, "log_odds": log_odds(new.get(name))}
            for name, memory in there
            if memory is not None
        ]
        left_out: list[MemoryLeftOut] = [
            {**shown(memory), "reason": reason, "log_odds": log_odds(logit)}
            for name, reason, logit in logged.left
            if (memory := await store.get(scope, name)) is not None
        ]
        everything = await store.list(scope, limit=ROWS_MAX, vectors=False) if logged.turn else []
        active = [memory for memory in everything if memory.status is MemoryStatus.ACTIVE]
        return {
            **_told(kept),
            "steps": dict(logged.steps),
            "trace_id": logged.trace or None,
            "in_prompt": in_prompt,
            "gone": len(there) - len(in_prompt),
            "left_out": left_out,
            "learnt": [shown(memory) for memory in active if memory.source.turn == logged.turn],
        }

    return routes


def _told(kept: KeptRequest) -> RecordShown:
    logged, answer = kept.request, kept.answer
    ended: AnswerOutcome | None = None
    if answer is not None:
        took = max(0.0, answer.at - logged.at)
        ended = as_shown(AnswerOutcome, answer, milliseconds=round(1000 * took, 3))
    scope, milliseconds = logged.scope, round(logged.milliseconds, 3)
    return as_shown(
        RecordShown,
        logged,
        user_id=scope.user,
        project_id=scope.project,
        session_id=scope.session,
        time=at(logged.at),
        milliseconds=milliseconds,
        answer=ended,
    )
