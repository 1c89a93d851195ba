"""Samples -> figures."""

from __future__ import annotations

import math

import pytest

from bench.figures import added_ratio, grid, lag_percentile, over_rounds, paired, percentile, spread


def test_a_percentile_is_a_sample_that_was_seen() -> None:
    samples = [float(n) for n in range(100, 0, -1)]
    assert [percentile(samples, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1.0, 50.0, 99.0, 100.0]
    assert percentile([7.0], 0.5) == 7.0


def test_a_spread_is_in_milliseconds_over_all_rounds_and_by_round() -> None:
    found = spread([[0.001, 0.002, 0.003], [0.010], []])
    assert found == {
        "p50": 2.0,
        "p99": 10.0,
        "p50_by_round": [2.0, 10.0],
        "p50_quartiles": [2.0, 10.0],
        "samples": 4,
    }


def test_a_figure_of_rounds_is_their_median_and_says_where_the_middle_half_lies() -> None:
    found = over_rounds([4.0, 1.0, 2.0, 3.0, 100.0])
    assert found == {"value": 3.0, "quartiles": [2.0, 4.0], "by_round": [4.0, 1.0, 2.0, 3.0, 100.0]}


def test_both_sides_of_a_ratio_are_of_the_same_round() -> None:
    slow_machine_later = [1.0, 10.0, 100.0]
    found = paired(3, lambda n: 2 * slow_machine_later[n] / slow_machine_later[n])
    assert found["by_round"] == [2.0, 2.0, 2.0]


def test_what_is_added_is_compared_with_what_the_floor_adds() -> None:
    assert added_ratio(13.0, 1.0, 2.0, 5.0) == pytest.approx(12.0 / 6.0)
    assert added_ratio(3.0, 1.0, 2.0) == pytest.approx(2.0)


def test_a_percentile_of_lags_lies_within_its_bucket() -> None:
    lags = {0.001: 90.0, 0.002: 98.0, 0.01: 100.0, math.inf: 100.0}
    assert lag_percentile(lags, 0.45) == pytest.approx(0.0005)
    assert lag_percentile(lags, 0.94) == pytest.approx(0.0015)
    assert lag_percentile(lags, 0.99) == pytest.approx(0.006)


def test_a_lag_beyond_every_bucket_is_at_least_the_last_bound() -> None:
    assert lag_percentile({0.1: 0.0, math.inf: 5.0}, 0.99) == 0.1


def test_without_a_look_there_is_no_lag() -> None:
    assert lag_percentile({0.1: 0.0, math.inf: 0.0}, 0.99) is None
    assert lag_percentile({}, 0.99) is None


def test_a_table_has_numbers_to_the_right_and_words_to_the_left() -> None:
    assert grid("case,p50,what", [["one", "1.00", "short"], ["another", "10.00", "of words"]]) == [
        "case       p50  what",
        "one       1.00  short",
        "another  10.00  of words",
    ]
