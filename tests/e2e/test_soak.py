"""The short form of ``make soak``: nine seconds of load with each fault once. Too short to speak of growth."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.soak.load import DIALECTS, KINDS, Clients, wrong_with
from tests.soak.run import soak
from tests.soak.samples import files_grew, growth, memory_grew
from tests.support.harness import BAG_OF_WORDS, StandInModel, stand_in_model


@pytest.mark.long(40)
@pytest.mark.timeout(400)
def test_every_client_of_a_mixed_load_with_faults_is_answered(tmp_path: Path) -> None:
    seed = secrets.randbelow(10**6)
    report = soak(
        tmp_path,
        seconds=9,
        clients=6,
        seed=seed,
        fault_interval_s=3.3,
        sample_interval_s=1.0,
        say=lambda _line: None,
        program=BAG_OF_WORDS,
    )
    assert report.tally.wrong == [], f"seed {seed}"
    assert report.wrong == [], f"seed {seed}"
    assert report.faults == ["store killed", "semmem stopped for a second"]
    assert {name.partition(" ")[0] for name in report.tally.requests} == set(DIALECTS)
    assert {name.partition(" ")[2] for name in report.tally.requests} == set(KINDS)
    assert report.journal["done"]
    assert report.journal["lonely"] == 0
    assert report.tally.outcomes["injected"], report.tally.outcomes
    assert report.samples[-1].journal_mb


@pytest.fixture
def model() -> Iterator[StandInModel]:
    with stand_in_model() as running:
        yield running


async def test_clients_find_nothing_wrong_with_a_model_alone(model: StandInModel) -> None:
    load = Clients(model.url, number=6, seed=1)
    await load.run(1.5)
    assert load.tally.wrong == []
    assert load.tally.total == len(model.received) > 12
    assert load.tally.in_flight_max == 6


async def test_clients_find_a_strangers_memory_and_a_model_that_breaks(model: StandInModel) -> None:
    load = Clients(model.url, number=2, seed=1)
    model.scripted.extend(["marrow999"] * 40)
    await load.run(0.5)
    assert {line.rpartition(": ")[2] for line in load.tally.wrong} == {"another user's memory"}

    model.scripted.clear()
    model.scripted.extend([b"no text"] * 40)  # type: ignore[list-item]  # the model fails on it, in JSON and in mid-stream
    load = Clients(model.url, number=2, seed=1)
    await load.run(1.0)
    assert any("status 500, not 200" in line for line in load.tally.wrong)
    assert any("RemoteProtocolError" in line for line in load.tally.wrong)


async def test_clients_find_that_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    load = Clients(f"http://127.0.0.1:{port}", number=1, seed=1)
    await load.run(0.1)
    assert len(load.tally.wrong) == load.tally.total > 0


def test_growth_is_told_from_the_second_quarter_to_the_last() -> None:
    warming_up, flat = [10.0, 50.0, 90.0, 100.0], [100.0] * 12
    assert growth([*warming_up, *flat]).absolute == 0

    leak = growth([100.0 + second for second in range(40)])
    assert (leak.before, leak.after) == (114.5, 134.5)
    assert memory_grew(leak)
    assert files_grew(leak)


def test_a_large_process_may_not_hide_a_leak_in_its_tenth() -> None:
    assert memory_grew(growth([1000.0] * 8 + [1051.0] * 8))
    assert not memory_grew(growth([1000.0] * 8 + [1049.0] * 8))
    assert not files_grew(growth([50.0] * 8 + [60.0] * 8))


def test_growth_needs_a_sample_of_each_quarter() -> None:
    with pytest.raises(ValueError, match="3 samples"):
        growth([1.0, 2.0, 3.0])


def test_a_strangers_memory_and_a_cut_answer_are_wrong() -> None:
    chat = DIALECTS["chat"]
    assert wrong_with(b"marrow001 marrow002 [DONE]", "sse", chat.last_event, 1) == "another user's memory"
    assert wrong_with(b"marrow001", "sse", chat.last_event, 1) == "cut short at 9 bytes"
    assert wrong_with(b"marrow001 [DONE]", "sse", chat.last_event, 1) == ""
