"""What calls of an embedder are counted as."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import pytest

from semmem.background import Tasks
from semmem.memory import Vector
from semmem.ports.errors import EmbedderBusy, EmbedderError
from semmem.telemetry.metering import MeteredEmbedder
from semmem.telemetry.metrics import Metrics
from tests.support.fakes import HashEmbedder, HeldEmbedder


class Failing(HashEmbedder):
    def __init__(self, error: EmbedderError) -> None:
        super().__init__()
        self._error = error

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        raise self._error


def calls(metrics: Metrics) -> dict[str, float]:
    """How many there were, by status."""
    [family] = [each for each in metrics.registry.collect() if each.name == "semmem_embedder_seconds"]
    return {each.labels["status"]: each.value for each in family.samples if each.name.endswith("_count")}


@pytest.mark.parametrize(("error", "status"), [(EmbedderError("no model"), "error"), (EmbedderBusy("full"), "busy")])
async def test_an_embedder_that_fails_and_one_that_is_busy_are_counted_apart(error: EmbedderError, status: str) -> None:
    metrics = Metrics()
    with pytest.raises(type(error)):
        await MeteredEmbedder(Failing(error), metrics).embed("x")
    assert calls(metrics) == {status: 1.0}


async def test_a_vector_that_nobody_can_wait_for_any_longer_is_late_and_no_error() -> None:
    metrics, embedder = Metrics(), HeldEmbedder()
    asked = Tasks().spawn("ask", MeteredEmbedder(embedder, metrics).embed("x"))
    while not embedder.waiting:
        await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert calls(metrics) == {"late": 1.0}


async def test_an_embedder_that_is_away_is_said_once_and_so_is_its_return(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    inner = Sometimes()
    embedder = MeteredEmbedder(inner, Metrics())
    away = EmbedderError("no connection in time")
    for inner.error in (away, away, EmbedderBusy("full"), None, None):
        with suppress(EmbedderError):
            await embedder.embed("what somebody said")
    assert caplog.messages[0] == "embed failed, it is tried again: no connection in time"
    assert caplog.messages[1].startswith("embed works again, after 2 failures")
    assert len(caplog.messages) == 2


class Sometimes(HashEmbedder):
    """Fails while ``error`` says how."""

    error: EmbedderError | None = None

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        if self.error is not None:
            raise self.error
        return await super().embed(text)
