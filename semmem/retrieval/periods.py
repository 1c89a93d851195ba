"""The month, year or day that a question names, and how well a moment fits it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

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


@dataclass(frozen=True, slots=True)
class Period:
    """A named stretch of time, in UTC. At least one of ``year`` and ``month`` (1 to 12) is given."""

    year: int | None
    month: int | None
    day: int | None

    def fit(self, moment: datetime) -> float:
        """How well a moment fits, 0 to 1."""
        if self.month is None:
            return WITHIN_YEAR if moment.year == self.year else 0.0
        months_later = (moment.month - self.month) % 12
        if self.year is not None:
            months_later = (moment.year - self.year) * 12 + moment.month - self.month
        if months_later == 0:
            return NEAR if self.day is None or abs(moment.day - self.day) <= DAYS_NEAR else WITHIN_MONTH
        return MONTH_AFTER if months_later == 1 and moment.day <= DAYS_NEAR else 0.0


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


def moment(seconds: float) -> datetime | None:
    """Seconds since the epoch as a time in UTC; None for what is no such time."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
