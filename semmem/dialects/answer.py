"""What the readers of all dialects share: bounded buffers, the choice between JSON and SSE, and how an answer ended."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from semmem.dialects.json_splice import UNREADABLE, decode_repaired
from semmem.dialects.sse import EventStream
from semmem.memory import Answer, PromptCache, ToolCall

T = TypeVar("T")


class AnswerReader(Protocol):
    """Reads one answer as it passes. Pure: bytes in, an Answer out; never raises on hostile input."""

    def feed(self, chunk: bytes) -> None: ...

    def end(self) -> Answer:
        """The answer as far as it was seen. Called once, after the last chunk."""


@dataclass(slots=True, eq=False, repr=False)
class TextTail:
    """The last ``bytes_max`` UTF-8 bytes of a text that comes in pieces; half a character at the cut is left out."""

    bytes_max: int
    _kept: bytearray = field(init=False, default_factory=bytearray)

    def append(self, piece: str) -> None:
        self._kept += piece.encode("utf-8", "replace")
        if len(self._kept) > 2 * self.bytes_max:  # twice, so that the moving is paid for by as many bytes
            self._trim()

    def clear(self) -> None:
        self._kept.clear()

    def text(self) -> str:
        self._trim()
        return self._kept.decode("utf-8", "ignore")

    def _trim(self) -> None:
        del self._kept[: max(0, len(self._kept) - self.bytes_max)]


CALL_BYTES = 64
"""What a call takes beside its texts."""


class KeptCalls:
    """Calls of tools as far as they were read, by their places in the answer: names and arguments of at most
    ``bytes_max`` UTF-8 bytes together, what comes later is left out."""

    __slots__ = ("_calls", "_left")

    def __init__(self, *, bytes_max: int) -> None:
        self._left = bytes_max
        self._calls: dict[Any, list[str]] = {}

    def add(self, place: Any, *, id: Any = None, name: Any = None, arguments: Any = None) -> None:
        """More of the call at this place, whatever it is given."""
        if self._left <= 0:
            return
        if place not in self._calls:
            self._left -= CALL_BYTES
        call = self._calls.setdefault(place, ["", "", ""])
        for part, told in enumerate((id, name, arguments)):
            if not isinstance(told, str) or not told or (part < 2 and call[part]):
                continue
            kept = told.encode("utf-8", "replace")[: max(self._left, 0)].decode("utf-8", "ignore")
            self._left -= len(told.encode("utf-8", "replace"))
            call[part] += kept

    def told(self) -> tuple[ToolCall, ...]:
        return tuple(ToolCall(*call) for call in self._calls.values())


ABSENT: msgspec.Raw = msgspec.Raw()
PROMPT_TOKENS_MAX = 10**9
"""No prompt has more tokens than that."""
_WRONG = -1
"""Stands for what is no count of tokens."""


class _Details(msgspec.Struct, gc=False):
    cached_tokens: msgspec.Raw = ABSENT


_details = msgspec.json.Decoder(_Details | None)
_tokens = msgspec.json.Decoder(int | None)


class Usage(msgspec.Struct, gc=False):
    """Token counts, as two of the three APIs call them. What is said of the cache is read by itself, so that nonsense
    in it costs no answer."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    details: msgspec.Raw = msgspec.field(name="input_tokens_details", default=ABSENT)

    def cached(self) -> int | None:
        """Tokens of the prompt that were read from the provider's cache."""
        if not self.details:
            return None
        try:
            details = _details.decode(self.details)
        except UNREADABLE:
            return _WRONG
        return None if details is None else counted(details.cached_tokens)

    def uncached_beside(self) -> int | None:
        """Tokens of the prompt that are neither cached nor in ``input_tokens``."""
        return None


def counted(raw: msgspec.Raw) -> int | None:
    """A count of tokens: None where it is not said, below zero where it is none."""
    if not raw:
        return None
    try:
        count: int | None = _tokens.decode(raw)
    except UNREADABLE:
        return _WRONG
    return count


class AnswerBuilder(ABC):
    """An answer as far as it was read. A subclass reads the two forms of its API: a body, or one event after another.
    The answer is complete when its end was seen (``ended``, or a reason why it finished) and nothing on the way was
    ``lost``. No method raises, whatever it is given."""

    REFUSALS: ClassVar[frozenset[str]] = frozenset()
    """Finish reasons that say that the model or its provider refused."""
    TOOL_CALLS: ClassVar[frozenset[str]] = frozenset()
    """Finish reasons after which the client comes back with the same turn."""
    COUNTS_CACHED_APART: ClassVar[bool] = False
    """Whether ``input_tokens`` are only those that were neither read from the cache nor written to it."""

    def __init__(self, answer_bytes_max: int, calls_bytes_max: int = 0) -> None:
        self.tail = TextTail(bytes_max=answer_bytes_max)
        self.calls = KeptCalls(bytes_max=calls_bytes_max)
        self.ended = False
        self.lost = False
        self.finish_reason: str | None = None
        self.answer_id: str | None = None
        self.tool_calls = 0
        self.whole = False
        self.broke = False
        self._model = ""
        self._input_tokens: int | None = None
        self._output_tokens: int | None = None
        self._cached: int | None = None
        self._uncached_beside: int | None = None

    @abstractmethod
    def read_body(self, body: bytes) -> None:
        """A whole JSON answer; empty when it was larger than may be kept."""

    @abstractmethod
    def read_event(self, name: str, data: str) -> None:
        """One event with data of a stream that has not ended."""

    @property
    def complete(self) -> bool:
        return (self.ended or self.finish_reason is not None) and not self.lost

    @property
    def calls_tool(self) -> bool:
        return self.finish_reason in self.TOOL_CALLS

    def decoded(self, decoder: msgspec.json.Decoder[T], name: str, data: str) -> T | None:
        """An event's data. None when it cannot be read, which before the answer's finish is a hole in its text."""
        value = readable(decoder, data.encode())
        if value is None:
            self.lost |= self.finish_reason is None or name == "error"
        return value

    def count(self, usage: Usage | None) -> None:
        """Counts are running totals, and an event says only those that changed."""
        if usage is not None:
            self._input_tokens = self._input_tokens if usage.input_tokens is None else usage.input_tokens
            self._output_tokens = self._output_tokens if usage.output_tokens is None else usage.output_tokens
            cached, beside = usage.cached(), usage.uncached_beside()
            self._cached = self._cached if cached is None else cached
            self._uncached_beside = self._uncached_beside if beside is None else beside

    def prompt_cache(self) -> PromptCache | None:
        """As far as the counts agree with one another."""
        given, cached, beside = self._input_tokens, self._cached, self._uncached_beside or 0
        if given is None or cached is None or min(given, cached, beside) < 0:
            return None
        prompt = given + cached + beside if self.COUNTS_CACHED_APART else given
        return PromptCache(prompt, cached) if cached <= prompt <= PROMPT_TOKENS_MAX else None

    def named(self, model: object) -> None:
        """The model that answers, where this is a name."""
        if model and isinstance(model, str):
            self._model = model

    def answer(self) -> Answer:
        return Answer(
            text=self.tail.text(),
            complete=self.complete,
            finish_reason=self.finish_reason,
            filtered=self.finish_reason in self.REFUSALS,
            calls_tool=self.calls_tool,
            input_tokens=self._input_tokens,
            output_tokens=self._output_tokens,
            answer_id=self.answer_id,
            prompt_cache=self.prompt_cache(),
            model=self._model,
            tool_calls=self.tool_calls,
            calls=self.calls.told(),
            whole=self.whole,
            broke=self.broke,
        )


@dataclass(slots=True, eq=False, repr=False)
class JsonReader:
    """Reads an answer that is one JSON body, whole or not at all: beyond ``body_bytes_max`` it is dropped."""

    answer: AnswerBuilder
    body_bytes_max: int
    _body: bytearray | None = field(init=False, default_factory=bytearray)

    def feed(self, chunk: bytes) -> None:
        if self._body is not None and len(self._body) + len(chunk) <= self.body_bytes_max:
            self._body += chunk
        else:
            self._body = None

    def end(self) -> Answer:
        self.answer.read_body(bytes(self._body or b""))
        return self.answer.answer()


class EventStreamReader:
    """Reads an answer that is a stream of events, up to the one that ends it. An event too large is one lost."""

    __slots__ = ("_answer", "_events")

    def __init__(self, answer: AnswerBuilder, event_bytes_max: int) -> None:
        self._answer = answer
        self._events = EventStream(event_bytes_max=event_bytes_max)

    def feed(self, chunk: bytes) -> None:
        self._read(self._events.feed(chunk))

    def end(self) -> Answer:
        """A stream breaks off in the middle of an event, which is none then, to the client as well."""
        answer = self._answer
        missed = answer.lost or self._events.oversize
        self._read(self._events.end())
        answer.lost |= self._events.oversize
        answer.broke |= not (missed or answer.ended or answer.finish_reason is not None)
        return answer.answer()

    def _read(self, events: list[tuple[str, str]]) -> None:
        answer = self._answer
        for name, data in events:
            if not answer.ended and (stripped := data.strip()):
                answer.read_event(name, stripped)


def readable(decoder: msgspec.json.Decoder[T], text: bytes) -> T | None:
    """The value of a JSON text, or None when it is not JSON, or JSON of another shape."""
    try:
        return decode_repaired(decoder, text)[0]
    except UNREADABLE:
        return None
