"""The micro-batcher against an encoder that can be held, counted and made to fail."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import numpy as np
import numpy.typing as npt
import pytest

from semmem.backends.embedding.micro_batcher import MicroBatcher
from semmem.memory import Vector
from semmem.ports.errors import EmbedderError


class Encoder:
    """Encodes a text as (length, 1) in batches that it remembers; blocks while ``gate`` is not set."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()
        self.batches: list[list[str]] = []
        self.threads: set[int] = set()

    def __call__(self, texts: list[str]) -> npt.NDArray[np.float32]:
        self.batches.append(texts)
        self.threads.add(threading.get_ident())
        self.started.set()
        assert self.gate.wait(10)
        if "poison" in texts:
            raise ValueError("a text the tokenizer refuses: poison")
        rows = {"nan": [np.nan, 1.0], "zero": [0.0, 0.0], "huge": [3e38, 3e38]}
        return np.array([rows.get(text, [len(text), 1.0]) for text in texts], dtype=np.float32)


@pytest.fixture
def encoder() -> Encoder:
    return Encoder()


Make = Callable[..., MicroBatcher]


@pytest.fixture
async def make(encoder: Encoder) -> AsyncIterator[Make]:
    made: list[MicroBatcher] = []

    def _make(*, workers: int = 1, batch_max: int = 4, queue_max: int = 16, dimension: int = 2) -> MicroBatcher:
        batcher = MicroBatcher(encoder, dimension=dimension, workers=workers, batch_max=batch_max, queue_max=queue_max)
        made.append(batcher)
        return batcher

    yield _make
    encoder.gate.set()
    for batcher in made:
        await batcher.close()


async def hold(encoder: Encoder, batcher: MicroBatcher) -> asyncio.Task[Vector]:
    """Keep the only worker busy with one text, so that whatever comes next has to wait."""
    encoder.gate.clear()
    encoder.started.clear()
    task = spawn(batcher, "first")
    await asyncio.to_thread(encoder.started.wait, 10)
    return task


def spawn(batcher: MicroBatcher, text: str) -> asyncio.Task[Vector]:
    return asyncio.get_running_loop().create_task(batcher.embed(text))


async def test_a_vector_is_unit_length_float32_and_read_only(make: Make) -> None:
    vector = await make().embed("four")
    assert vector.dtype == np.float32
    assert vector == pytest.approx(np.array([4, 1]) / np.sqrt(17))
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 0


async def test_encoding_happens_off_the_event_loop(make: Make, encoder: Encoder) -> None:
    await make().embed("x")
    assert threading.get_ident() not in encoder.threads


async def test_waiting_texts_go_together_up_to_the_batch_limit(make: Make, encoder: Encoder) -> None:
    batcher = make(batch_max=4)
    first = await hold(encoder, batcher)
    rest = [spawn(batcher, f"text {n}") for n in range(6)]
    await asyncio.sleep(0)
    encoder.gate.set()
    await asyncio.gather(first, *rest)
    assert encoder.batches == [["first"], [f"text {n}" for n in range(4)], ["text 4", "text 5"]]


async def test_every_caller_gets_its_own_vector(make: Make) -> None:
    batcher = make(workers=2, batch_max=3, queue_max=200)
    texts = ["x" * (1 + n % 50) for n in range(200)]
    vectors = await asyncio.gather(*(batcher.embed(text) for text in texts))
    assert [round(float(vector[0] / vector[1])) for vector in vectors] == [len(text) for text in texts]


async def test_a_cancelled_caller_leaves_the_batch_whole(make: Make, encoder: Encoder) -> None:
    complaints: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))
    batcher = make()
    first = await hold(encoder, batcher)
    leaves, stays = spawn(batcher, "leaves"), spawn(batcher, "stays")
    await asyncio.sleep(0)
    first.cancel()
    leaves.cancel()
    await asyncio.sleep(0)
    encoder.gate.set()
    assert (await stays)[0] > 0
    assert encoder.batches == [["first"], ["stays"]]
    assert first.cancelled()
    assert leaves.cancelled()
    assert complaints == []


async def test_a_full_queue_refuses_at_once(make: Make, encoder: Encoder) -> None:
    batcher = make(queue_max=2)
    first = await hold(encoder, batcher)
    waiting = [spawn(batcher, "a"), spawn(batcher, "b")]
    await asyncio.sleep(0)
    with pytest.raises(EmbedderError, match="2 texts already wait"):
        await batcher.embed("c")
    encoder.gate.set()
    await asyncio.gather(first, *waiting)


async def test_a_text_the_model_refuses_fails_only_its_own_caller(make: Make, encoder: Encoder) -> None:
    batcher = make()
    first = await hold(encoder, batcher)
    good, bad, fine = spawn(batcher, "good"), spawn(batcher, "poison"), spawn(batcher, "fine")
    await asyncio.sleep(0)
    encoder.gate.set()
    await asyncio.gather(first, good, fine)
    with pytest.raises(EmbedderError, match="ValueError") as failure:
        await bad
    assert "poison" not in str(failure.value)


@pytest.mark.parametrize("text", ["nan", "zero"])
async def test_a_vector_without_direction_is_an_error(make: Make, text: str) -> None:
    with pytest.raises(EmbedderError, match="not finite or has no direction"):
        await make().embed(text)


async def test_a_huge_finite_vector_is_normalised(make: Make) -> None:
    assert await make().embed("huge") == pytest.approx([0.70710677, 0.70710677])


async def test_a_row_of_another_dimension_is_an_error(make: Make) -> None:
    with pytest.raises(EmbedderError, match="the model failed"):
        await make(dimension=3).embed("x")


async def test_closing_fails_who_waits_and_lets_the_running_batch_end(make: Make, encoder: Encoder) -> None:
    batcher = make()
    first = await hold(encoder, batcher)
    waiting = spawn(batcher, "waits")
    await asyncio.sleep(0)
    closing = asyncio.get_running_loop().create_task(batcher.close())
    with pytest.raises(EmbedderError, match="was closed"):
        await waiting
    assert not closing.done()
    encoder.gate.set()
    await closing
    assert (await first)[0] > 0
    await batcher.close()
    with pytest.raises(EmbedderError, match="is closed"):
        await batcher.embed("late")
    with pytest.raises(EmbedderError, match="is closed"):
        await batcher.run(lambda: None)


def test_a_loop_that_ended_does_not_stop_the_worker(encoder: Encoder) -> None:
    batcher = MicroBatcher(encoder, dimension=2, workers=1, batch_max=1, queue_max=4)
    loop = asyncio.new_event_loop()
    task = loop.create_task(batcher.embed("abandoned"))
    encoder.gate.clear()
    loop.run_until_complete(asyncio.sleep(0))
    loop.run_until_complete(asyncio.to_thread(encoder.started.wait, 10))
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    encoder.gate.set()

    async def once_more() -> Vector:
        try:
            return await batcher.embed("next")
        finally:
            await batcher.close()

    assert asyncio.run(once_more())[0] > 0


def test_limits_below_one_are_refused(encoder: Encoder) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        MicroBatcher(encoder, dimension=2, workers=0, batch_max=1, queue_max=1)
