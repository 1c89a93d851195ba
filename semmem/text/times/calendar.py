"""Dates, their names and the intervals around them. Pure arithmetic; an interval outside 1900 to 2200 is None."""

import calendar
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

Towards = Literal["past", "future"]
"""Which one of several is meant by "on Friday" or "in May": the latest, or the coming one."""

YEAR_MIN, YEAR_MAX = 1900, 2200
EARLIEST_S = datetime(YEAR_MIN, 1, 1, tzinfo=UTC).timestamp()
LATEST_S = datetime(YEAR_MAX, 1, 1, tzinfo=UTC).timestamp()
DAY = timedelta(days=1)
WEEK = timedelta(days=7)

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
"""Monday first (ISO 8601), as everywhere here."""
SEASONS: dict[str, tuple[int, int, int, int]] = {
    "spring": (3, 1, 6, 1),
    "summer": (6, 1, 9, 1),
    "autumn": (9, 1, 12, 1),
    "winter": (12, 1, 3, 1),
    "christmas": (12, 24, 12, 27),
    "halloween": (10, 31, 11, 1),
}
"""First month and day, and the month and day after the last."""


@dataclass(frozen=True, slots=True)
class Interval:
    """From ``start`` up to, not including, ``end``: seconds since the epoch, UTC."""

    start: float
    end: float


def between(first: date, after_last: date) -> Interval | None:
    """Whole days. None when empty or not within 1900 to 2200."""
    if not (first.year >= YEAR_MIN and first < after_last and after_last <= date(YEAR_MAX, 1, 1)):
        return None
    start, end = (datetime(each.year, each.month, each.day, tzinfo=UTC).timestamp() for each in (first, after_last))
    return Interval(start, end)


def day(when: date) -> Interval | None:
    return between(when, when + DAY)


def month(year: int, number: int) -> Interval | None:
    """``number`` may lie outside 1 to 12: month 0 is the December before."""
    years, index = divmod(number - 1, 12)
    year += years
    if not YEAR_MIN <= year < YEAR_MAX:
        return None
    first = date(year, index + 1, 1)
    return between(first, first + timedelta(days=calendar.monthrange(year, index + 1)[1]))


def year(number: int, years: int = 1) -> Interval | None:
    if not YEAR_MIN <= number < number + years <= YEAR_MAX:
        return None
    return between(date(number, 1, 1), date(number + years, 1, 1))


def quarter(year_number: int, number: int) -> Interval | None:
    first, last = month(year_number, 3 * number - 2), month(year_number, 3 * number)
    return Interval(first.start, last.end) if first and last else None


def season(year_number: int, name: str) -> Interval | None:
    """The season that begins in this year."""
    start_month, start_day, end_month, end_day = SEASONS[name]
    if not YEAR_MIN <= year_number < YEAR_MAX - 1:
        return None
    end_year = year_number + (end_month < start_month)
    return between(date(year_number, start_month, start_day), date(end_year, end_month, end_day))


def day_of(year_number: int, month_number: int, day_number: int) -> Interval | None:
    """None for the 30th of February."""
    try:
        return day(date(year_number, month_number, day_number))
    except (ValueError, OverflowError):
        return None


def monday(today: date) -> date:
    return today - today.weekday() * DAY


def back(today: date, count: int, unit: str) -> Interval | None:
    """About ``count`` units ago (ahead when negative): that day, the seven days or the month around it, that year."""
    match unit:
        case "day":
            return day(today - count * DAY)
        case "week":
            return between(today - count * WEEK - 3 * DAY, today - count * WEEK + 4 * DAY)
        case "month":
            years, index = divmod(today.month - 1 - count, 12)
            if not YEAR_MIN < today.year + years < YEAR_MAX:
                return None
            last = calendar.monthrange(today.year + years, index + 1)[1]
            middle = date(today.year + years, index + 1, min(today.day, last))
            return between(middle - 15 * DAY, middle + 16 * DAY)
        case "year":
            return year(today.year - count)
    return None


def window(today: date, count: int, unit: str) -> Interval | None:
    """The last ``count`` units, today among them."""
    days = count * {"day": 1, "week": 7, "month": 30, "year": 365}.get(unit, 0)
    return between(today - timedelta(days=days), today + DAY) if days else None


def whole(today: date, step: int, unit: str) -> Interval | None:
    """The calendar's own unit: ``step`` -1 is the one before this one, 0 this one, 1 the next."""
    match unit:
        case "week":
            first = monday(today) + step * WEEK
            return between(first, first + WEEK)
        case "weekend":
            saturday = monday(today) + 5 * DAY + step * WEEK
            return between(saturday, saturday + 2 * DAY)
        case "month":
            return month(today.year, today.month + step)
        case "quarter":
            years, index = divmod((today.month - 1) // 3 + step, 4)
            return quarter(today.year + years, index + 1)
        case "year":
            return year(today.year + step)
        case "part":  # this morning, last night, next morning
            return day(today + step * DAY)
    return None


def weekday(today: date, number: int, step: int) -> Interval | None:
    """``step`` -1: the latest before today, 0: the one of this week, 1: that of the next week."""
    if step < 0:
        return day(today - ((today.weekday() - number - 1) % 7 + 1) * DAY)
    return day(monday(today) + number * DAY + step * WEEK)


def coming_weekday(today: date, number: int) -> Interval | None:
    return day(today + ((number - today.weekday() - 1) % 7 + 1) * DAY)
