"""What embedders with a model in this process have in common: threads, batches, and texts that a tokenizer accepts."""

import asyncio
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import TypedDict, TypeVar, Unpack

import numpy as np
import numpy.typing as npt

from semmem.memory import Vector
from semmem.ports.embedder import unit
from semmem.ports.errors import EmbedderBusy, EmbedderError

T = TypeVar("T")
Embedded = Vector | EmbedderError
Encode = Callable[[list[str]], npt.NDArray[np.float32]]
"""Blocking; texts in, shape (len(texts), dimension) out. Called from several threads at once."""

TEXT_CHARS_MAX = 4000
BACKGROUND_EVERY = 16
"""After so many batches of requests comes a slice of background work: under any load somebody still learns."""
RECENT = 0.2
"""The weight of the last batch in how long a text takes."""


class Limits(TypedDict, total=False):
    workers: int
    batch_max: int
    background_batch_max: int
    queue_max: int


class LocalEmbedder(ABC):
    """Texts are cut to ``TEXT_CHARS_MAX`` characters before they are tokenized; the model itself reads fewer
    (all-MiniLM-L6-v2: 256 tokens). A subclass says how the model is loaded and what it makes of texts. The signature of
    a model is ``sentence-transformers/<model>/<dimension>/<precision>``, whichever library does the work."""

    def __init__(self, signature: str, *, dimension: int = 384, **limits: Unpack[Limits]) -> None:
        self.signature = signature
        self.dimension = dimension
        self._loaded = False
        self._batcher = MicroBatcher(self._encode, dimension=dimension, **limits)

    async def open(self) -> None:
        """Load the model. Raises EmbedderError: it is not there, was altered, or makes another dimension."""
        if not self._loaded:
            await self._batcher.run(self._load)
            self._loaded = True

    async def close(self) -> None:
        """Idempotent. Callers that still wait get EmbedderError; a closed embedder is not opened again."""
        await self._batcher.close()
        self._loaded = False

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        if not self._loaded:
            raise EmbedderError("the embedder is not open")
        # Lone surrogates are not UTF-8, and NUL ends a string in some tokenizers.
        encodable = text[:TEXT_CHARS_MAX].encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
        return await self._batcher.embed(encodable, within_s=within_s)

    def at_hand(self, text: str) -> Vector | None:
        return None

    def vectors(self, texts: list[str]) -> npt.NDArray[np.float32]:
        """One batch at once, as the model makes it: shape (len(texts), dimension), not of length 1. Blocking, in the
        caller's thread; loads the model if need be. For measuring, and for comparing one library with another."""
        if not self._loaded:
            self._load()
            self._loaded = True
        return self._encode(texts)

    @abstractmethod
    def _load(self) -> None:
        """Blocking. Raises EmbedderError."""

    @abstractmethod
    def _encode(self, texts: list[str]) -> npt.NDArray[np.float32]:
        """Blocking; shape (len(texts), dimension). Called from several threads at once."""

    def _require_dimension(self, model: str, found: int | None) -> None:
        if found != self.dimension:
            raise EmbedderError(
                f"{model} makes vectors of dimension {found}, but dimension {self.dimension} is configured"
            )


@dataclass(frozen=True, slots=True)
class _Caller:
    """``answer`` belongs to ``loop``, and is only ever touched there."""

    text: str
    answer: asyncio.Future[Vector]
    loop: asyncio.AbstractEventLoop


@dataclass(frozen=True, slots=True)
class _Batch:
    callers: list[_Caller]
    background: bool


@dataclass(eq=False, repr=False)
class MicroBatcher:
    """Gathers concurrent callers' texts into batches for a blocking encoder, on threads that it owns.

    A free worker takes whatever waits, at once: there is no timer, so a lone caller pays nothing for batching, and
    under load the batches grow by themselves. Requests go before background work, which is done in small slices: a
    request waits for at most one of them.

    ``workers`` threads, each taking up to ``batch_max`` texts of requests at a time, or else up to
    ``background_batch_max`` of background work, for which one worker, where there are several, is never used.

    A request that its expected wait would make too late is refused at once: it can be answered without a vector, and an
    answer after its deadline helps nobody. Of either kind at most ``queue_max`` wait. ``clock`` returns seconds."""

    encode: Encode
    _: KW_ONLY
    dimension: int
    workers: int = 1
    batch_max: int = 8
    background_batch_max: int = 2
    queue_max: int = 256
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _requests: deque[_Caller] = field(init=False, default_factory=deque)
    _background: deque[_Caller] = field(init=False, default_factory=deque)
    _batches_since_background: int = field(init=False, default=0)
    _running: int = field(init=False, default=0)
    _background_running: int = field(init=False, default=0)
    _texts_running: int = field(init=False, default=0)
    _text_s: float = field(init=False, default=0.0)
    _closed: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        if min(self.dimension, self.workers, self.batch_max, self.background_batch_max, self.queue_max) < 1:
            raise ValueError("dimension, workers, batch_max, background_batch_max and queue_max are at least 1")
        self._executor = ThreadPoolExecutor(max_workers=self.workers, thread_name_prefix="semmem-embed")

    async def run(self, work: Callable[[], T]) -> T:
        """Run one blocking piece of work, such as loading a model, on a worker thread."""
        if self._closed:
            raise EmbedderError("the embedder is closed")
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        """The text's unit vector, read-only, shape (dimension,). ``within_s``: of a request; None: background work.
        Raises EmbedderError when closed or failing, EmbedderBusy when full or, for a request, too late already."""
        loop = asyncio.get_running_loop()
        caller = _Caller(text, loop.create_future(), loop)
        self._enqueue(caller, within_s)
        return await caller.answer

    async def close(self) -> None:
        """Fail whoever still waits, let the running batches end, end the threads. Idempotent."""
        with self._lock:
            self._closed = True
            left = [*_first(self._requests), *_first(self._background)]
        for caller in left:
            _tell(caller, EmbedderError("the embedder was closed"))
        await asyncio.to_thread(self._executor.shutdown)

    def _enqueue(self, caller: _Caller, within_s: float | None) -> None:
        queue = self._background if within_s is None else self._requests
        with self._lock:
            if self._closed:
                raise EmbedderError("the embedder is closed")
            if len(queue) >= self.queue_max:
                raise EmbedderBusy(f"{self.queue_max} texts already wait for the embedder")
            if within_s is not None and (expected_s := self._expected_s()) > within_s:
                raise EmbedderBusy(f"a vector would take {expected_s:.3f} s, more than {within_s} s")
            queue.append(caller)
            if self._running < self.workers:
                # Submitted under the lock: close() cannot shut the executor down in between.
                self._executor.submit(self._drain)
                self._running += 1

    def _expected_s(self) -> float:
        """How long one more request would take. Where none waits it is not refused, however slow the last one was:
        only a vector that is made says that it has become fast again."""
        if not self._requests:
            return 0.0
        return (len(self._requests) + self._texts_running + 1) * self._text_s / self.workers

    def _drain(self) -> None:
        while (batch := self._take()) is not None:
            started = self.clock()
            outcomes = self._outcomes([caller.text for caller in batch.callers])
            self._made(batch, self.clock() - started)
            for caller, outcome in zip(batch.callers, outcomes, strict=True):
                _tell(caller, outcome)

    def _take(self) -> _Batch | None:
        """The next batch; None ends this worker's run."""
        with self._lock:
            batch = self._next()
            if batch is None:
                self._running -= 1
                return None
            self._texts_running += len(batch.callers)
            self._background_running += batch.background
            self._batches_since_background = 0 if batch.background else self._batches_since_background + 1
            return batch

    def _next(self) -> _Batch | None:
        may_learn = self._background_running < max(1, self.workers - 1)
        its_turn = may_learn and self._batches_since_background >= BACKGROUND_EVERY
        if its_turn and (callers := _first(self._background, self.background_batch_max)):
            return _Batch(callers, background=True)
        if callers := _first(self._requests, self.batch_max):
            return _Batch(callers, background=False)
        if may_learn and (callers := _first(self._background, self.background_batch_max)):
            return _Batch(callers, background=True)
        return None

    def _made(self, batch: _Batch, took_s: float) -> None:
        with self._lock:
            self._texts_running -= len(batch.callers)
            self._background_running -= batch.background
            self._text_s += (took_s / len(batch.callers) - self._text_s) * (RECENT if self._text_s else 1.0)

    def _outcomes(self, texts: list[str]) -> list[Embedded]:
        """One outcome per text. When a batch fails, each text is tried alone: one caller's text fails only itself."""
        try:
            rows = self.encode(texts)
            if rows.shape != (len(texts), self.dimension):
                raise ValueError(f"shape {rows.shape}, expected {(len(texts), self.dimension)}")
        except Exception as error:  # whatever a model library raises is, to callers, one thing: no vector
            if len(texts) == 1:
                # The type alone: the message of a tokenizer error may quote the text.
                return [EmbedderError(f"the model failed: {type(error).__name__}")]
            return [outcome for text in texts for outcome in self._outcomes([text])]
        return [_unit(row) for row in rows]


def _first(queue: deque[_Caller], batch_max: int = sys.maxsize) -> list[_Caller]:
    """Taken from the queue, without the callers that have left."""
    batch: list[_Caller] = []
    while queue and len(batch) < batch_max:
        caller = queue.popleft()
        if not caller.answer.cancelled():
            batch.append(caller)
    return batch


def _unit(row: npt.NDArray[np.float32]) -> Embedded:
    try:
        return unit(row)
    except EmbedderError as error:
        return error


def _tell(caller: _Caller, outcome: Embedded) -> None:
    with suppress(RuntimeError):  # the caller's event loop is closed, so nobody is left to tell
        caller.loop.call_soon_threadsafe(_settle, caller.answer, outcome)


def _settle(answer: asyncio.Future[Vector], outcome: Embedded) -> None:
    if answer.done():  # the caller left while its batch was computed
        return
    if isinstance(outcome, EmbedderError):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
