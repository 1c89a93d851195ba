"""The figures of searches among more and more memories."""

from __future__ import annotations

import pytest

from bench.keys import verdicts
from bench.scale import texts
from bench.scale_figures import ALIKE, LARGEST, PATHS, SMALLEST, Tally, figures, size_name, table
from semmem.request.outcome import Outcome

Tallies = dict[tuple[str, str], Tally]


def _tallies(*sizes: tuple[int, int], slower: float = 1.0) -> Tallies:
    """Two rounds of each size and path; in the second all takes three times as long. ``slower``: the last size."""
    found: Tallies = {}
    for place, size in enumerate(sizes):
        factor = slower if place == len(sizes) - 1 else 1.0
        for path in PATHS:
            tally = Tally([[0.001 * factor], [0.003 * factor]], [100.0, 300.0 * factor])
            tally.words[Outcome.INJECTED] = 2
            found[size_name(*size), path] = tally
    return found


def test_a_ratio_is_of_medians_of_the_same_round() -> None:
    found = figures(_tallies(SMALLEST, LARGEST, slower=2.0), is_server=True)
    assert found["ratios"]["scale_hot_ratio"]["by_round"] == [pytest.approx(2.0), pytest.approx(2.0)]
    assert found["ratios"]["scale_hot_cpu_ratio"]["by_round"] == [pytest.approx(1.0), pytest.approx(2.0)]
    assert found["keys"]["scale_cold_ratio"]["value"] == pytest.approx(2.0)
    assert found["not_measured"] == {}


def test_as_many_memories_for_each_user_are_compared_as_well() -> None:
    found = figures(_tallies(SMALLEST, ALIKE, slower=1.5), is_server=True)
    assert found["ratios"]["alike_cold_ratio"]["value"] == pytest.approx(1.5)
    assert found["keys"] == {}


def test_milvus_lite_gives_no_verdict_on_a_server() -> None:
    found = figures(_tallies(SMALLEST, LARGEST), is_server=False)
    assert set(found["keys"]) == {"scale_hot_ratio"}
    assert "server" in found["not_measured"]["scale_cold_ratio"]


def test_other_sizes_give_no_verdict() -> None:
    found = figures(_tallies((100, 10), (200, 40)), is_server=True)
    assert found["keys"] == {}
    assert set(found["not_measured"]) == {"scale_hot_ratio", "scale_cold_ratio"}
    assert verdicts({"scale": found}) == []


def test_a_search_that_ended_otherwise_is_not_as_meant() -> None:
    tallies = _tallies(SMALLEST)
    name = size_name(*SMALLEST)
    tallies[name, "hot"].words[Outcome.NO_HITS] = 6
    assert figures(tallies, is_server=False)["sizes"][name]["hot"]["as_meant"] == 0.25
    assert "as_meant" not in figures(tallies, is_server=False)["sizes"][name]["numpy"]


def test_the_table_has_a_row_for_every_size_and_says_what_was_not_measured() -> None:
    found = figures(_tallies(SMALLEST, LARGEST), is_server=False) | {"milvus": "some version"}
    shown = table(found)
    assert [line.split()[:2] for line in shown.splitlines()[3:5]] == [["1000", "10"], ["100000", "10000"]]
    assert "scale_cold_ratio not measured" in shown


def test_only_texts_of_these_sizes_need_vectors() -> None:
    assert len(texts([(4, 2)])) == 8
    assert texts([(4, 2)]) <= texts([(4, 2), (100, 10)])
