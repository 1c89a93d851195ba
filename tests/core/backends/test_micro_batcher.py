"""The micro-batcher against an encoder that can be held, counted and made to fail."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import numpy as np
import numpy.typing as npt
import pytest

from semmem.backends.embedding.local import BACKGROUND_EVERY, MicroBatcher
from semmem.memory import Vector
from semmem.ports.errors import EmbedderBusy, EmbedderError

LONG_S = 1000.0


class Encoder:
    """Encodes a text as (length, 1) in batches that it remembers; blocks while ``gate`` is not set. ``now`` is its own
    clock, on which a text takes ``text_s``."""

    def __init__(self) -> None:
        self.now, self.text_s = 100.0, 0.0
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
        self.now += self.text_s * len(texts)
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

    def _make(
        *, workers: int = 1, batch_max: int = 4, queue_max: int = 16, dimension: int = 2, background_batch_max: int = 2
    ) -> MicroBatcher:
        batcher = MicroBatcher(
            encoder,
            dimension=dimension,
            workers=workers,
            batch_max=batch_max,
            background_batch_max=background_batch_max,
            queue_max=queue_max,
            clock=lambda: encoder.now,
        )
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


def spawn(batcher: MicroBatcher, text: str, *, within_s: float | None = LONG_S) -> asyncio.Task[Vector]:
    return asyncio.get_running_loop().create_task(batcher.embed(text, within_s=within_s))


async def all_of(encoder: Encoder, waiting: list[asyncio.Task[Vector]]) -> None:
    """They all wait; then the encoder goes on until there is nothing left."""
    await asyncio.sleep(0)
    encoder.gate.set()
    await asyncio.gather(*waiting)


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


async def test_requests_go_before_background_work_which_goes_in_slices(make: Make, encoder: Encoder) -> None:
    batcher = make(batch_max=4, background_batch_max=2)
    first = await hold(encoder, batcher)
    learnt = [spawn(batcher, f"fact {n}", within_s=None) for n in range(3)]
    asked = [spawn(batcher, f"question {n}") for n in range(5)]
    await all_of(encoder, [first, *learnt, *asked])
    assert encoder.batches[1:] == [
        ["question 0", "question 1", "question 2", "question 3"],
        ["question 4"],
        ["fact 0", "fact 1"],
        ["fact 2"],
    ]


async def test_a_request_waits_for_one_slice_of_background_work_at_most(make: Make, encoder: Encoder) -> None:
    batcher = make(background_batch_max=2)
    encoder.gate.clear()
    learnt = [spawn(batcher, f"fact {n}", within_s=None) for n in range(6)]
    await asyncio.to_thread(encoder.started.wait, 10)
    asked = spawn(batcher, "question")
    await all_of(encoder, [*learnt, asked])
    place = encoder.batches.index(["question"])
    assert sum(len(batch) for batch in encoder.batches[:place]) <= 2


async def test_one_of_several_workers_is_kept_for_requests(make: Make, encoder: Encoder) -> None:
    batcher = make(workers=2, background_batch_max=1)
    encoder.gate.clear()
    learnt = [spawn(batcher, f"fact {n}", within_s=None) for n in range(4)]
    await asyncio.to_thread(encoder.started.wait, 10)
    await asyncio.sleep(0.05)
    assert encoder.batches == [["fact 0"]]
    encoder.started.clear()
    asked = spawn(batcher, "question")
    assert await asyncio.to_thread(encoder.started.wait, 10)
    assert encoder.batches == [["fact 0"], ["question"]]
    await all_of(encoder, [*learnt, asked])


async def test_somebody_still_learns_however_many_ask(make: Make, encoder: Encoder) -> None:
    batcher = make(batch_max=1, queue_max=100)
    first = await hold(encoder, batcher)
    learnt = spawn(batcher, "fact", within_s=None)
    asked = [spawn(batcher, f"question {n}") for n in range(50)]
    await all_of(encoder, [first, learnt, *asked])
    assert encoder.batches.index(["fact"]) == BACKGROUND_EVERY


async def test_who_left_does_not_hold_up_those_whose_turn_it_is_not(make: Make, encoder: Encoder) -> None:
    batcher = make(batch_max=1, queue_max=100)
    first = await hold(encoder, batcher)
    left = spawn(batcher, "fact", within_s=None)
    asked = [spawn(batcher, f"question {n}") for n in range(BACKGROUND_EVERY + 5)]
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.sleep(0)
    await all_of(encoder, [first, *asked])
    assert ["fact"] not in encoder.batches


async def test_a_request_that_would_be_late_is_told_so_at_once(make: Make, encoder: Encoder) -> None:
    batcher = make(workers=1)
    encoder.text_s = 0.1
    await batcher.embed("a measure", within_s=LONG_S)
    first = await hold(encoder, batcher)
    second = spawn(batcher, "second")
    await asyncio.sleep(0)
    with pytest.raises(EmbedderBusy, match=r"would take 0\.300 s"):
        await batcher.embed("third", within_s=0.29)
    third = spawn(batcher, "third", within_s=0.31)
    fact = spawn(batcher, "fact", within_s=None)
    await all_of(encoder, [first, second, third, fact])


async def test_a_lone_request_is_never_refused_however_slow_the_last_one_was(make: Make, encoder: Encoder) -> None:
    batcher = make()
    encoder.text_s = 60.0
    await batcher.embed("slow", within_s=0.1)
    encoder.text_s = 0.001
    first = await hold(encoder, batcher)
    await all_of(encoder, [first, spawn(batcher, "second", within_s=0.1)])


async def test_requests_have_room_when_background_work_has_none(make: Make, encoder: Encoder) -> None:
    batcher = make(queue_max=1)
    first = await hold(encoder, batcher)
    fact = spawn(batcher, "fact", within_s=None)
    await asyncio.sleep(0)
    with pytest.raises(EmbedderBusy, match="1 texts already wait"):
        await batcher.embed("another fact")
    await all_of(encoder, [first, fact, spawn(batcher, "question")])


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
        await batcher.embed("c", within_s=LONG_S)
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
