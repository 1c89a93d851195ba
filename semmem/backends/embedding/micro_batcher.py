"""Gathers concurrent callers' texts into batches for a blocking encoder, on threads that it owns.

A free worker takes whatever waits, at once: there is no timer, so a lone caller pays nothing for batching, and under
load the batches grow by themselves. Callers' futures belong to their event loop and are only ever touched there.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from semmem.memory import Vector
from semmem.ports.errors import EmbedderError

T = TypeVar("T")
Embedded = Vector | EmbedderError
Encode = Callable[[list[str]], npt.NDArray[np.float32]]
"""Blocking; texts in, shape (len(texts), dimension) out. Called from several threads at once."""


@dataclass(frozen=True, slots=True)
class _Caller:
    text: str
    answer: asyncio.Future[Vector]
    loop: asyncio.AbstractEventLoop


class MicroBatcher:
    """``workers`` threads, each taking up to ``batch_max`` waiting texts at a time.

    At most ``queue_max`` callers wait; one more is refused at once, since an answer after its deadline helps nobody.
    """

    def __init__(self, encode: Encode, *, dimension: int, workers: int, batch_max: int, queue_max: int) -> None:
        if min(dimension, workers, batch_max, queue_max) < 1:
            raise ValueError("dimension, workers, batch_max and queue_max are at least 1")
        self._encode = encode
        self._dimension = dimension
        self._workers = workers
        self._batch_max = batch_max
        self._queue_max = queue_max
        self._executor = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="semmem-embed")
        self._lock = threading.Lock()
        self._waiting: deque[_Caller] = deque()
        self._running = 0
        self._closed = False

    async def run(self, work: Callable[[], T]) -> T:
        """Run one blocking piece of work, such as loading a model, on a worker thread."""
        if self._closed:
            raise EmbedderError("the embedder is closed")
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    async def embed(self, text: str) -> Vector:
        """The text's unit vector, read-only, shape (dimension,). Raises EmbedderError when full, closed or failing."""
        loop = asyncio.get_running_loop()
        caller = _Caller(text, loop.create_future(), loop)
        self._enqueue(caller)
        return await caller.answer

    async def close(self) -> None:
        """Fail whoever still waits, let the running batches end, end the threads. Idempotent."""
        with self._lock:
            self._closed = True
            left = list(self._waiting)
            self._waiting.clear()
        for caller in left:
            _tell(caller, EmbedderError("the embedder was closed"))
        await asyncio.to_thread(self._executor.shutdown)

    def _enqueue(self, caller: _Caller) -> None:
        with self._lock:
            if self._closed:
                raise EmbedderError("the embedder is closed")
            if len(self._waiting) >= self._queue_max:
                raise EmbedderError(f"{self._queue_max} texts already wait for the embedder")
            self._waiting.append(caller)
            if self._running < self._workers:
                # Submitted under the lock: close() cannot shut the executor down in between.
                self._executor.submit(self._drain)
                self._running += 1

    def _drain(self) -> None:
        while batch := self._take():
            for caller, outcome in zip(batch, self._outcomes([caller.text for caller in batch]), strict=True):
                _tell(caller, outcome)

    def _take(self) -> list[_Caller]:
        """The next batch without the callers that have left; empty ends this worker's run."""
        with self._lock:
            batch: list[_Caller] = []
            while self._waiting and len(batch) < self._batch_max:
                caller = self._waiting.popleft()
                if not caller.answer.cancelled():
                    batch.append(caller)
            if not batch:
                self._running -= 1
            return batch

    def _outcomes(self, texts: list[str]) -> list[Embedded]:
        """One outcome per text. When a batch fails, each text is tried alone: one caller's text fails only itself."""
        try:
            rows = self._encode(texts)
            if rows.shape != (len(texts), self._dimension):
                raise ValueError(f"shape {rows.shape}, expected {(len(texts), self._dimension)}")
        except Exception as error:  # whatever a model library raises is, to callers, one thing: no vector
            if len(texts) == 1:
                # The type alone: the message of a tokenizer error may quote the text.
                return [EmbedderError(f"the model failed: {type(error).__name__}")]
            return [outcome for text in texts for outcome in self._outcomes([text])]
        return [_unit(row) for row in rows]


def _unit(row: npt.NDArray[np.float32]) -> Embedded:
    """The row at length 1. In float64, so that large finite values do not overflow."""
    wide = row.astype(np.float64)
    norm = float(np.linalg.norm(wide))
    if not (np.isfinite(norm) and norm > 0.0):
        return EmbedderError("the model made a vector that is not finite or has no direction")
    vector: Vector = (wide / norm).astype(np.float32)
    vector.setflags(write=False)
    return vector


def _tell(caller: _Caller, outcome: Embedded) -> None:
    # RuntimeError: the caller's event loop is closed, so nobody is left to tell.
    with contextlib.suppress(RuntimeError):
        caller.loop.call_soon_threadsafe(_settle, caller.answer, outcome)


def _settle(answer: asyncio.Future[Vector], outcome: Embedded) -> None:
    if answer.done():  # the caller left while its batch was computed
        return
    if isinstance(outcome, EmbedderError):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
