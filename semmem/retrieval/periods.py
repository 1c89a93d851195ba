"""The month, year or day that a question names, and how well moments fit it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_MONTH = re.compile(rf"\b({'|'.join(_MONTHS)})\b")
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
_DAY = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?:\sof)?\s(?:{'|'.join(_MONTHS)})\b"
    rf"|\b(?:{'|'.join(_MONTHS)})\s(\d{{1,2}})(?:st|nd|rd|th)?\b"
)

DAYS_NEAR = 7
"""What happened on a day is told a few days later."""
NEAR, WITHIN_MONTH, WITHIN_YEAR = 1.0, 0.5, 0.3
MONTH_AFTER = 0.7
"""The first days of the month that follows: "last month" is told then."""
_SECONDS_MAX = 9.2e9


@dataclass(frozen=True, slots=True)
class Period:
    """A named stretch of time, in UTC. At least one of ``year`` and ``month`` (1 to 12) is given."""

    year: int | None
    month: int | None
    day: int | None


class Calendar:
    """Many moments (seconds since the epoch), to be compared with periods. What lies beyond 1970 to 2262 does not
    fit any."""

    def __init__(self, moments: Sequence[float]) -> None:
        seconds = np.nan_to_num(np.array(moments, dtype=np.float64), nan=0.0)
        days = np.clip(seconds, 0.0, _SECONDS_MAX).astype("datetime64[s]").astype("datetime64[D]")
        months = days.astype("datetime64[M]")
        self._months = months.astype(np.int64)
        self._day = (days - months).astype(np.int64) + 1

    def fit(self, period: Period) -> npt.NDArray[np.float32]:
        """How well each moment fits, 0 to 1, shape (n,)."""
        if period.month is None:
            years = self._months // 12 + 1970
            return np.where(years == period.year, np.float32(WITHIN_YEAR), np.float32(0))
        if period.year is None:
            later = (self._months + 1 - period.month) % 12
        else:
            later = self._months - ((period.year - 1970) * 12 + period.month - 1)
        near = NEAR if period.day is None else np.where(np.abs(self._day - period.day) <= DAYS_NEAR, NEAR, WITHIN_MONTH)
        after = np.where((later == 1) & (self._day <= DAYS_NEAR), MONTH_AFTER, 0.0)
        return np.where(later == 0, near, after).astype(np.float32)


def named_period(question: str) -> Period | None:
    """The period that the question names ("in June", "in 2023", "on May 3, 2023"), or None.

    Months only by their capitalised English names: "may" is a verb.
    """
    month, year = _MONTH.search(question), _YEAR.search(question)
    if month is None and year is None:
        return None
    day = _DAY.search(question)
    return Period(
        int(year[1]) if year else None,
        _MONTHS.index(month[1]) + 1 if month else None,
        int(day[1] or day[2]) if day else None,
    )
