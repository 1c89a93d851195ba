"""Periods that a question names, and moments."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.retrieval.periods import MONTH_AFTER, NEAR, WITHIN_MONTH, WITHIN_YEAR, Calendar, Period, named_period


def fit(period: Period, *days: str) -> list[float]:
    moments = [datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() for day in days]
    return [float(value) for value in Calendar(moments).fit(period)]


@pytest.mark.parametrize(
    ("question", "period"),
    [
        ("What did I do in June?", Period(None, 6, None)),
        ("How often was I there in 2023?", Period(2023, None, None)),
        ("What happened on May 3, 2023?", Period(2023, 5, 3)),
        ("What happened on 3 May 2023?", Period(2023, 5, 3)),
        ("and on the 21st of October", Period(None, 10, 21)),
        ("Where was I in July 2023?", Period(2023, 7, None)),
        ("May 3 friends come?", Period(None, 5, 3)),
        ("What may I eat at 3?", None),
        ("Call 5551999 please", None),
    ],
)
def test_a_question_names_a_period_or_none(question: str, period: Period | None) -> None:
    assert named_period(question) == period


def test_a_month_fits_itself_and_the_first_days_after_it() -> None:
    june = Period(2023, 6, None)
    days = ("2023-06-01", "2023-06-30", "2023-07-07", "2023-07-08", "2023-05-31", "2024-06-10")
    assert fit(june, *days) == pytest.approx([NEAR, NEAR, MONTH_AFTER, 0, 0, 0])
    assert fit(Period(None, 12, None), "2020-12-05", "2021-01-03", "2021-02-01") == pytest.approx(
        [NEAR, MONTH_AFTER, 0]
    )


def test_a_day_fits_its_week_better_than_its_month() -> None:
    assert fit(Period(2023, 5, 3), "2023-05-03", "2023-05-10", "2023-05-11") == pytest.approx(
        [NEAR, NEAR, WITHIN_MONTH]
    )


def test_a_year_alone_fits_loosely() -> None:
    assert fit(Period(2023, None, None), "2023-01-01", "2023-12-31", "2022-12-31") == pytest.approx(
        [WITHIN_YEAR, WITHIN_YEAR, 0]
    )


@settings(deadline=None)
@given(st.lists(st.floats()), st.integers(1, 12))
def test_no_moment_is_too_strange_to_be_compared(moments: list[float], month: int) -> None:
    fits = Calendar(moments).fit(Period(None, month, None))
    assert fits.shape == (len(moments),)
    assert ((fits >= 0) & (fits <= 1)).all()
