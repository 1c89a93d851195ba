"""Spans as OpenTelemetry's SDK makes them, and their way to a collector: a queue with an end, a thread that sends (OTLP
over HTTP, by OpenTelemetry's own exporter), and one word for each outage. Imported only where traces are wanted: the
SDK is an optional package.

No global provider is set, so no library of the process (an MCP server's, a client's) records anything through this one:
what it would tell is not ours to choose. Nothing of a collector reaches a request: a span that ends is put into the
queue or dropped, and both are a step of the event loop.
"""

import asyncio
import hashlib
import hmac
import json
import logging
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import Token
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from types import TracebackType

import requests
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Link, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import Counter

from semmem.background.tasks import ends_within
from semmem.memory import Scope
from semmem.ports import spans

log = logging.getLogger(__name__)

PROVIDER, STORE_ID = "gen_ai.provider.name", "gen_ai.memory.store.id"
USER, SESSION = "enduser.pseudo.id", "gen_ai.conversation.id"
ERROR = "error.type"
SCOPE_NAME = "semmem"
DIGEST_CHARS = 16
LINKS_MAX = 64
"""Turns of one batch that are linked; a batch has as many as ``memory.extraction_batch_size`` says."""

_propagator = TraceContextTextMapPropagator()


class Telling:
    """What may be told of users. ``content``: what they say. ``user_hmac_secret``: key of the digests that stand for
    ids; without one there are none. ``store_id`` names where memories are kept."""

    def __init__(self, *, content: bool = False, user_hmac_secret: bytes = b"", store_id: str = "") -> None:
        self.content = content
        self._secret = user_hmac_secret
        memory = {PROVIDER: "semmem", **({STORE_ID: store_id} if store_id else {})}
        self._conventional: dict[str, Mapping[str, spans.Value]] = {
            name: {spans.OPERATION: name, **memory}
            for name in (spans.SEARCH_MEMORY, spans.UPSERT_MEMORY, spans.DELETE_MEMORY)
        }

    def of(self, name: str) -> Mapping[str, spans.Value] | None:
        """What the conventions ask of every span of this name."""
        return self._conventional.get(name)

    def digest(self, name: str) -> str:
        said = name.encode("utf-8", "surrogatepass")
        return hmac.new(self._secret, said, hashlib.sha256).hexdigest()[:DIGEST_CHARS]

    def whose(self, scope: Scope) -> dict[str, str]:
        if not self._secret:
            return {}
        session = {SESSION: self.digest(f"{scope.user}\n{scope.session}")} if scope.session else {}
        return {USER: self.digest(scope.user), **session}


@dataclass(eq=False)
class OtelTracer(spans.Tracer):
    """Records spans and gives them to ``processor`` when they end. ``ratio``: the share that is recorded of what nobody
    else has decided about. ``resource``: what is known of this process."""

    processor: SpanProcessor
    _: KW_ONLY
    ratio: float = 1.0
    telling: Telling = field(default_factory=Telling)
    resource: Mapping[str, str] = field(default_factory=dict)
    chance: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        resource = Resource.create(dict(self.resource))
        provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(self.processor)
        self._tracer = provider.get_tracer(SCOPE_NAME)

    def begin(self, name: str, caller: Callable[[], spans.Place]) -> spans.Span:
        parent = _context(caller())
        above = trace.get_current_span(parent).get_span_context()
        recorded = above.trace_flags.sampled if above.is_valid else self.chance() < self.ratio
        return self._open(name, parent, SpanKind.SERVER) if recorded else spans.NOT_RECORDED

    def resume(self, name: str, at: spans.Place) -> spans.Span:
        return self._open(name, _context(at), SpanKind.INTERNAL) if at.traceparent else spans.NOT_RECORDED

    def gather(self, name: str, traceparents: Sequence[str]) -> spans.Span:
        callers = (trace.get_current_span(_context(spans.Place(each))) for each in dict.fromkeys(traceparents) if each)
        contexts = (span.get_span_context() for span in callers)
        links = [Link(context) for context in contexts if context.is_valid][:LINKS_MAX]
        if not links and self.chance() >= self.ratio:
            return spans.NOT_RECORDED
        return self._open(name, Context(), SpanKind.CONSUMER, links)

    def past(self, name: str, at: spans.Place, began_at: float) -> None:
        if at.traceparent:
            start = min(int(began_at * 1e9), time.time_ns())
            self._tracer.start_span(name, context=_context(at), start_time=start).end()

    def _open(self, name: str, parent: Context, kind: SpanKind, links: Sequence[Link] = ()) -> spans.Span:
        span = self._tracer.start_span(name, context=parent, kind=kind, links=links, attributes=self.telling.of(name))
        return RecordedSpan(span, self._tracer, self.telling)


class RecordedSpan(spans.Span):
    """One that is recorded, as the SDK has it."""

    __slots__ = ("_span", "_telling", "_token", "_tracer")

    def __init__(self, span: trace.Span, tracer: trace.Tracer, telling: Telling) -> None:
        self._span = span
        self._tracer = tracer
        self._telling = telling
        self._token: Token[spans.Span] | None = None

    @property
    def place(self) -> spans.Place:
        carrier: dict[str, str] = {}
        _propagator.inject(carrier, trace.set_span_in_context(self._span, Context()))
        return spans.Place(carrier["traceparent"], carrier.get("tracestate", ""))

    @property
    def trace_id(self) -> str:
        return trace.format_trace_id(self._span.get_span_context().trace_id)

    def step(self, name: str, *, calls_out: bool = False) -> spans.Span:
        span = self._tracer.start_span(
            name,
            context=trace.set_span_in_context(self._span, Context()),
            kind=SpanKind.CLIENT if calls_out else SpanKind.INTERNAL,
            attributes=self._telling.of(name),
        )
        return RecordedSpan(span, self._tracer, self._telling)

    def note(self, name: str, value: spans.Value) -> None:
        self._span.set_attribute(name, str(value) if isinstance(value, str) else value)

    def named(self, name: str) -> None:
        self._span.update_name(name)

    def failed(self, kind: str) -> None:
        self._span.set_attribute(ERROR, kind)
        self._span.set_status(StatusCode.ERROR)

    def told(self, name: str, what: Callable[[], spans.Told]) -> None:
        if self._telling.content:
            said = what()
            self._span.set_attribute(name, said if isinstance(said, str) else json.dumps(said, ensure_ascii=False))

    def about(self, scope: Scope) -> None:
        self._span.set_attributes(self._telling.whose(scope))

    def __enter__(self) -> spans.Span:
        self._token = spans.CURRENT.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """An error by its kind alone: messages and traces may carry content."""
        if self._token is not None:
            spans.CURRENT.reset(self._token)
        if kind is not None:
            self._span.set_attribute(ERROR, kind.__name__)
            if isinstance(error, Exception):  # being cancelled is no failure
                self._span.set_status(StatusCode.ERROR)
        self._span.end()


def _context(place: spans.Place) -> Context:
    """Empty for what is no place."""
    carrier = {"traceparent": place.traceparent, "tracestate": place.tracestate}
    return _propagator.extract({} if place == spans.NOWHERE else carrier, Context())


def otlp_exporter(
    endpoint: str, *, headers: Mapping[str, str] | None = None, ca_file: str = "", timeout_s: float = 3.0
) -> SpanExporter:
    """Sends to ``endpoint``, a whole URL, with gzip; one try and its repetitions take ``timeout_s``. ``ca_file``: whom
    to believe instead of the system's authorities. The exporter logs every try of every batch; an outage is told once,
    by whoever calls it."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    session = requests.Session()
    session.trust_env = False  # no proxies, as with every server that semmem calls
    return OTLPSpanExporter(
        endpoint,
        certificate_file=ca_file or None,
        headers=dict(headers or {}),
        timeout=timeout_s,
        compression=Compression.Gzip,
        session=session,
    )


EXPORTED, FAILED, DROPPED = "exported", "failed", "dropped"
"""What became of a span: sent, in a batch that could not be sent, or met a full queue."""

Offload = Callable[[Callable[[], SpanExportResult]], Awaitable[SpanExportResult]]
"""Runs blocking work beside the event loop."""


@dataclass(eq=False)
class SpanExport(SpanProcessor):
    """Sends spans by ``exporter``, at most ``batch_max`` at a time, every ``interval_s`` or as soon as so many wait. At
    most ``queue_max`` wait. A batch that fails is not tried again here: the exporter has tried for as long as its own
    timeout allows, and meanwhile others have come. ``spans`` counts by result."""

    exporter: SpanExporter
    spans: Counter
    _: KW_ONLY
    offload: Offload
    queue_max: int = 4096
    batch_max: int = 128
    interval_s: float = 1.0

    def __post_init__(self) -> None:
        self._counts = {word: self.spans.labels(word) for word in (EXPORTED, FAILED, DROPPED)}
        self._waiting: deque[ReadableSpan] = deque()
        self._full, self._sending = asyncio.Event(), asyncio.Lock()
        self._is_out = False

    def __len__(self) -> int:
        return len(self._waiting)

    def on_start(self, span: trace.Span, parent_context: Context | None = None) -> None:
        """Nothing: only what has ended is sent."""

    def on_end(self, span: ReadableSpan) -> None:
        """Take a span, on the event loop. Neither waits nor raises."""
        if len(self._waiting) >= self.queue_max:
            self._counts[DROPPED].inc()
            return
        self._waiting.append(span)
        if len(self._waiting) >= self.batch_max:
            self._full.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await ends_within(self._full.wait(), self.interval_s)
            self._full.clear()
            await self.flush()

    async def flush(self) -> None:
        """Send what waits now."""
        async with self._sending:
            for _ in range(0, len(self._waiting), self.batch_max):
                await self._send([self._waiting.popleft() for _ in range(min(self.batch_max, len(self._waiting)))])

    async def drained(self, timeout_s: float) -> bool:
        """Send what waits, for the last time; False when ``timeout_s`` was not enough."""
        return await ends_within(self.flush(), timeout_s)

    def close(self) -> None:
        """Try nothing any more; what is being sent ends soon."""
        self.exporter.shutdown()

    async def _send(self, batch: list[ReadableSpan]) -> None:
        try:
            result = await self.offload(partial(self.exporter.export, batch))
            why = "" if result is SpanExportResult.SUCCESS else "the collector does not take them"
        except asyncio.CancelledError:
            self._counts[FAILED].inc(len(batch))
            raise
        except Exception as error:  # whatever a library raises: traces are lost, and nothing else
            why = type(error).__name__
        self._counts[FAILED if why else EXPORTED].inc(len(batch))
        self._tell(why)

    def _tell(self, why: str) -> None:
        """One warning for an outage, and its end."""
        if why and not self._is_out:
            log.warning("traces are not exported (%s): they are counted and lost until the collector answers", why)
        elif self._is_out and not why:
            log.info("traces are exported again")
        self._is_out = bool(why)
