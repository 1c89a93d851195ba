"""Vectors of texts from a server with OpenAI's endpoint, which vLLM, TEI, Ollama and others share: ``POST
{base}/embeddings``."""

import asyncio
import base64
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import msgspec
import numpy as np
import numpy.typing as npt

from semmem.backends.models.json_http import HttpOptions, JsonEndpoint, Overloaded, Unanswered
from semmem.memory import Vector
from semmem.ports.embedder import unit
from semmem.ports.errors import EmbedderBusy, EmbedderError, ModelError, ModelRefused, ModelUnavailable

Outcome = Vector | EmbedderError | None
"""Of one text; None: whoever asked for it left, and it is to be asked for again."""
RECENT = 0.2
"""The weight of the last call in how long a call takes."""
TEXT_CHARS_MAX = 4000
ANSWER_BYTES_MAX = 32 * 1024 * 1024


@dataclass(slots=True, eq=False)
class _Caller:
    text: str
    answer: asyncio.Future[Outcome]


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float] | str


class _Answer(msgspec.Struct):
    data: list[_Embedding]


class HttpEmbedder:
    """One embedding model of one server. Implements Embedder. Whoever finds one of the ``calls_max`` calls free takes
    along what waits, up to ``batch_max`` texts, requests before background work; a call has ``timeout_s``. One try,
    without a retry: a request has no time for one, and what is learnt is tried again later. Of requests and of
    background work at most ``queue_max`` texts wait each."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        dimension: int,
        timeout_s: float = 5.0,
        batch_max: int = 32,
        calls_max: int = 4,
        queue_max: int = 256,
        **options: Unpack[HttpOptions],
    ) -> None:
        if min(dimension, batch_max, calls_max, queue_max) < 1 or timeout_s <= 0:
            raise ValueError("every limit is at least 1, and timeout_s more than 0")
        self._model = model
        self.dimension = dimension
        self.signature = f"openai/{model}/{dimension}"  # not the address, which may change
        self._timeout_s = timeout_s
        self._batch_max = batch_max
        self._queue_max = queue_max
        self._calls = asyncio.Semaphore(calls_max)
        self._call_s = 0.0
        self._is_overloaded = False
        self._requests: deque[_Caller] = deque()
        self._background: deque[_Caller] = deque()
        self._opened = False
        self._closed = False
        options = {"connections_max": calls_max, **options}
        self._endpoint = JsonEndpoint(base_url, "/embeddings", answer_bytes_max=ANSWER_BYTES_MAX, **options)

    async def open(self) -> None:
        """Raises EmbedderError where the server refuses the model or makes another dimension. A server that is away
        is no failure: it is asked again with every text."""
        if self._closed:
            raise EmbedderError("the embedder is closed")
        try:
            await self._asked(["hello"])
        except ModelUnavailable:
            pass
        except ModelRefused as refused:
            raise EmbedderError(f"{self._model}: {refused}") from refused
        self._opened = True

    async def close(self) -> None:
        """Close the connections. Callers that still wait get EmbedderError. Idempotent."""
        self._closed = True
        self._opened = False
        for caller in (*self._requests, *self._background):
            _settle(caller, EmbedderError("the embedder was closed"))
        self._requests.clear()
        self._background.clear()
        await self._endpoint.close()

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        if not self._opened:
            raise EmbedderError("the embedder is not open")
        queue = self._background if within_s is None else self._requests
        if len(queue) >= self._queue_max:
            raise EmbedderBusy(f"{self._queue_max} texts already wait for the embedder")
        if within_s is not None and (expected_s := self._expected_s()) > within_s:
            raise EmbedderBusy(f"a vector would take {expected_s:.3f} s, more than {within_s} s")
        # A text that begins as a space is a text: some servers refuse an empty one.
        caller = _Caller(text[:TEXT_CHARS_MAX] or " ", asyncio.get_running_loop().create_future())
        while True:
            queue.append(caller)
            try:
                outcome = await self._outcome(caller, queue)
            except asyncio.CancelledError:
                caller.answer.cancel()
                raise
            if isinstance(outcome, EmbedderError):
                raise outcome
            if outcome is not None:
                return outcome
            caller.answer = asyncio.get_running_loop().create_future()

    def at_hand(self, text: str) -> Vector | None:
        return None

    def _expected_s(self) -> float:
        """How long one more request would take; none is refused where none waits."""
        if not self._requests:
            return 0.0
        return (len(self._requests) // self._batch_max + 2) * self._call_s

    async def _outcome(self, caller: _Caller, queue: deque[_Caller]) -> Outcome:
        async with self._calls:
            while caller in queue:  # else it was taken along by another
                await self._send(_first(self._requests, self._batch_max) or _first(self._background, self._batch_max))
        return await caller.answer

    async def _send(self, batch: Sequence[_Caller]) -> None:
        """One call, after which each of the batch has its outcome."""
        outcomes: Sequence[Outcome] = [None] * len(batch)
        try:
            outcomes = await self._outcomes([caller.text for caller in batch])
        finally:  # cancelled: whoever was taken along asks again
            for caller, outcome in zip(batch, outcomes, strict=True):
                _settle(caller, outcome)

    async def _outcomes(self, texts: list[str]) -> list[Outcome]:
        try:
            return list(await self._asked(texts))
        except ModelRefused as refused:
            if len(texts) == 1:
                return [EmbedderError(str(refused))]
            # One text may be what the server refuses: each is tried alone, so that it fails only itself.
            return [outcome for text in texts for outcome in await self._outcomes([text])]
        except Overloaded as error:
            return [EmbedderBusy(str(error)) for _ in texts]
        except ModelError as error:
            # Not asked again for a while: for what its last answer said.
            kind = EmbedderBusy if self._is_overloaded else EmbedderError
            return [kind(str(error)) for _ in texts]

    async def _asked(self, texts: list[str]) -> list[Vector]:
        """Raises ModelUnavailable, ModelRefused."""
        body = {"model": self._model, "input": texts, "encoding_format": "base64"}
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout_s):
                content = await self._endpoint.answer(body)
        except TimeoutError:
            self._is_overloaded = False
            raise Overloaded("no answer within the deadline") from None
        except Unanswered as error:
            self._is_overloaded = isinstance(error, Overloaded)
            raise
        self._is_overloaded = False
        took_s = time.monotonic() - started
        self._call_s += (took_s - self._call_s) * (RECENT if self._call_s else 1.0)
        return self._vectors(content, len(texts))

    def _vectors(self, content: bytes, count: int) -> list[Vector]:
        try:
            found = {one.index: one.embedding for one in msgspec.json.decode(content, type=_Answer).data}
            rows = [_row(found[index]) for index in range(count)]
        except (msgspec.DecodeError, LookupError, ValueError):
            raise ModelRefused("the answer does not hold a vector for each text") from None
        if any(row.shape != (self.dimension,) for row in rows):
            raise ModelRefused(f"vectors of dimension {len(rows[0])}, but dimension {self.dimension} is configured")
        try:
            return [unit(row) for row in rows]
        except EmbedderError as error:
            raise ModelRefused(str(error)) from None


def _row(embedding: list[float] | str) -> npt.NDArray[np.float32]:
    """Numbers, or base64 of little-endian float32. Raises ValueError."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    return np.array(embedding, dtype=np.float32)


def _first(queue: deque[_Caller], batch_max: int) -> list[_Caller]:
    """Taken from the queue, without the callers that have left."""
    batch: list[_Caller] = []
    while queue and len(batch) < batch_max:
        caller = queue.popleft()
        if not caller.answer.done():
            batch.append(caller)
    return batch


def _settle(caller: _Caller, outcome: Outcome) -> None:
    if not caller.answer.done():
        caller.answer.set_result(outcome)
