"""What a request, an answer or a batch was made of: spans, for whoever collects traces.

The span that work belongs to travels in the context of its task, and with it into the tasks that it spawns; so a step
is opened where it is done, and nobody hands a span on. Where nothing is recorded all of them are one object without a
state, and a step costs a look-up.

A span holds words, numbers and ids of semmem's own. What users say is given to ``told`` alone, and whose it is to
``about``: whoever records decides what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import TracebackType

from msgspec import Struct

from semmem.memory import Scope

Value = str | int | float | bool
Told = str | list[dict[str, str]]
"""A text, or records of texts."""

SEARCH_MEMORY, UPSERT_MEMORY, DELETE_MEMORY = "search_memory", "upsert_memory", "delete_memory"
"""Steps that OpenTelemetry's conventions for generative AI have names for."""
RECORD_ID, RECORD_COUNT = "gen_ai.memory.record.id", "gen_ai.memory.record.count"
QUERY_TEXT, RECORDS = "gen_ai.memory.query.text", "gen_ai.memory.records"
"""Their attributes; the last two are what users said."""
REQUEST_ID = "semmem.request_id"
"""The ``x-request-id``, by which the request log knows it."""
OPERATION, MODEL = "gen_ai.operation.name", "gen_ai.request.model"
"""Of calls of models, by the same conventions. A model's name is the operator's, never a client's."""


class Place(Struct, frozen=True):
    """Where a span stands, as W3C's Trace Context writes it (``traceparent``, ``tracestate``). Empty: not recorded."""

    traceparent: str = ""
    tracestate: str = ""


NOWHERE = Place()


class Span:
    """A piece of work; this one, which is shared, is not recorded. For ``with``, once: inside, it is ``current``."""

    __slots__ = ()

    @property
    def place(self) -> Place:
        return NOWHERE

    @property
    def trace_id(self) -> str:
        """Of the trace that it is a piece of, empty where it is not recorded."""
        return ""

    def step(self, _name: str, *, calls_out: bool = False) -> Span:
        """A piece of this one. ``calls_out``: somebody else does it, and this one waits."""
        return self

    def note(self, _name: str, _value: Value) -> None:
        """Something that is known of it: nothing of a user's."""

    def named(self, _name: str) -> None:
        """A better name than it began with."""

    def failed(self, _kind: str) -> None:
        """It ended in a failure of this kind, without an exception."""

    def told(self, _name: str, _what: Callable[[], Told]) -> None:
        """What a user said; made only where it is recorded."""

    def about(self, _scope: Scope) -> None:
        """Whose request it is."""

    def __enter__(self) -> Span:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        pass


NOT_RECORDED = Span()
CURRENT: ContextVar[Span] = ContextVar("span", default=NOT_RECORDED)
"""Set by spans that are recorded, while they are open."""


def current() -> Span:
    """The innermost open span of this task."""
    return CURRENT.get()


def step(name: str, *, calls_out: bool = False) -> Span:
    """A piece of the current span, not recorded unless that is."""
    span = CURRENT.get()
    return span if span is NOT_RECORDED else span.step(name, calls_out=calls_out)


class Tracer:
    """Begins spans that belong to no current one. This one records nothing."""

    def begin(self, _name: str, _caller: Callable[[], Place]) -> Span:
        """What somebody asked for; ``caller`` says where he stands, and is asked only where traces are recorded. The
        caller's word decides whether this one is; without one, the configured share of them."""
        return NOT_RECORDED

    def resume(self, _name: str, _at: Place) -> Span:
        """What goes on from a span of semmem's own, which may have ended and on another replica."""
        return NOT_RECORDED

    def gather(self, _name: str, _traceparents: Sequence[str]) -> Span:
        """A trace of its own, linked to what it is made of: recorded where any of that is, else as for ``begin``."""
        return NOT_RECORDED

    def past(self, _name: str, _at: Place, _began_at: float) -> None:
        """A piece of the span there that began then (seconds since the epoch) and ends now."""


NO_TRACER = Tracer()
