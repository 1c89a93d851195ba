"""The request log as a part of each exchange: one half when the request goes on, one when its answer has ended."""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from msgspec import structs

from semmem.exchange.features import Feature, PendingRequest, RequestPart, RequestResult
from semmem.memory import Answer, TurnEnding
from semmem.ports import spans
from semmem.ports.request_log import LoggedAnswer, LoggedRequest
from semmem.request.outcome import NAME_CHARS_MAX, Outcome
from semmem.retrieval.showing import Shown
from semmem.turns.observation import Ticket

READING, JOURNALLING, FINDING, REWRITING = "reading", "journalling", "finding", "rewriting"
"""The steps: until the request is understood, until its turn is on its way to the journal, until it is known what the
prompt is given, and until the new body is made. What other features do beside a step is in its time."""


@dataclass(eq=False, repr=False)
class RequestLogging(Feature):
    """``add`` takes a half; it must neither wait nor raise."""

    add: Callable[[LoggedRequest | LoggedAnswer], None]

    def begin(self) -> RequestPart:
        return _Logged(self.add)

    def on_answer(self, ticket: Ticket, ending: TurnEnding, answer: Answer | None, now: float, *, failed: bool) -> None:
        if not ticket.request:
            return
        cache = answer.prompt_cache if answer else None
        tokens_in, tokens_out = (answer.input_tokens, answer.output_tokens) if answer else (None, None)
        told = (cache.prompt_tokens, tokens_out, cache.cached_tokens) if cache else (tokens_in, tokens_out, None)
        self.add(LoggedAnswer(ticket.request, now, ending.value, *told))


class _Logged(RequestPart):
    """One request."""

    def __init__(self, add: Callable[[LoggedRequest | LoggedAnswer], None]) -> None:
        self._add = add
        self._times: list[float] = []
        self._half: LoggedRequest | None = None

    async def before_turn(self, pending: PendingRequest) -> None:
        self._times = [pending.request.deadline.began, time.monotonic()]

    async def after_turn(self, pending: PendingRequest) -> None:
        self._times.append(time.monotonic())

    def after_search(self, pending: PendingRequest, shown: Shown) -> None:
        self._times.append(time.monotonic())
        key, request = uuid.uuid4().hex, pending.request
        if pending.ticket is not None:
            pending.ticket = structs.replace(pending.ticket, request=key)
        self._half = LoggedRequest(
            key=key,
            id=pending.asker.request_id[:NAME_CHARS_MAX] or key,
            scope=pending.turn.scope,
            at=pending.said_at,
            outcome=str(shown.outcome),
            turn=pending.turn.id or "",
            api=request.dialect.name,
            model=request.parsed.conversation.model[:NAME_CHARS_MAX],
            shown=shown.has,
            weighed=tuple((hit.memory.id, _short(hit.logit)) for hit in shown.hits),
            left=tuple((one.id, one.reason, _short(one.hit.logit)) for one in shown.left if one.id not in shown.has),
            purpose=shown.purpose,
            trace=spans.current().trace_id,
        )

    def goes_on(self, result: RequestResult) -> None:
        if self._half is None:
            return
        times = [*self._times, time.monotonic()]
        taken = (round(1000 * (after - before), 3) for before, after in pairwise(times))
        steps = tuple(zip((READING, JOURNALLING, FINDING, REWRITING), taken, strict=True))
        told: dict[str, Any] = {"outcome": str(result.outcome), "memories": result.injected, "tokens": result.tokens}
        if result.outcome is Outcome.TIMEOUT and result.outcome != self._half.outcome:  # it went on as it came
            told |= {"shown": (), "weighed": ()}
        self._add(structs.replace(self._half, steps=steps, **told))


def _short(log_odds: float | None) -> float | None:
    return None if log_odds is None else round(log_odds, 3)
