"""Chinese, which has no blanks between words: bounded patterns on the text itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date

from semmem.text.number_words import CHINESE_DIGITS
from semmem.text.times import calendar
from semmem.text.times.calendar import DAY, Interval, Towards

DAYS = {"今天": 0, "昨天": -1, "前天": -2, "大前天": -3, "明天": 1, "后天": 2}
YEARS = {"今年": 0, "去年": -1, "前年": -2, "明年": 1}
STEPS = {"上": -1, "这": 0, "本": 0, "下": 1}
SEASONS = {"春": "spring", "夏": "summer", "秋": "autumn", "冬": "winter"}
UNITS = {"天": "day", "日": "day", "周": "week", "星期": "week", "月": "month", "年": "year"}

_NUMBER = r"[0-9]{1,2}|[一二两三四五六七八九十]{1,3}"
_ANY = re.compile(
    rf"""(?P<day>大前天|昨天|前天|今天|明天|后天)
    |(?:(?P<year>[0-9]{{4}})年|(?P<rel>今年|去年|前年|明年))
     (?:(?P<season>[春夏秋冬])[天季]?|(?P<m>{_NUMBER})月(?:份|(?P<d>{_NUMBER})[日号])?)?
    |(?P<step>[上这本下])个?(?:(?:周|星期|礼拜)(?P<wd>[一二三四五六日天])|(?P<u>周末|周|星期|礼拜|月))
    |(?<![0-9一二两三四五六七八九十])(?P<n>{_NUMBER})个?(?P<unit>天|日|周|星期|月|年)(?:以|之)?前
    |(?<![0-9一二两三四五六七八九十])(?P<m2>{_NUMBER})月(?:(?P<d2>{_NUMBER})[日号]|份)""",
    re.VERBOSE,
)
_HAN = re.compile(r"[天年月周期拜]")


def intervals(text: str, now: float, today: date, towards: Towards) -> Iterator[Interval]:
    if not _HAN.search(text):
        return
    for match in _ANY.finditer(text):
        interval = _read(match, now, today, towards)
        if interval:
            yield interval


def _read(match: re.Match[str], now: float, today: date, towards: Towards) -> Interval | None:
    if match["day"]:
        return calendar.day(today + DAYS[match["day"]] * DAY)
    if match["year"] or match["rel"]:
        return _in_year(match, int(match["year"]) if match["year"] else today.year + YEARS[match["rel"]])
    if match["wd"]:
        number = "一二三四五六".find(match["wd"]) % 7  # 日 and 天 are Sunday: -1 is 6
        return calendar.day(calendar.monday(today) + (7 * STEPS[match["step"]] + number) * DAY)
    if match["u"]:
        unit = {"周末": "weekend", "月": "month"}.get(match["u"], "week")
        return calendar.whole(today, STEPS[match["step"]], unit)
    if match["n"]:
        return calendar.back(today, _number(match["n"]), UNITS[match["unit"]])
    return _nearest(match, now, today, towards)


def _in_year(match: re.Match[str], year: int) -> Interval | None:
    if match["season"]:
        return calendar.season(year, SEASONS[match["season"]])
    if not match["m"]:
        return calendar.year(year)
    return _in_month(year, _number(match["m"]), match["d"])


def _in_month(year: int, month: int, day: str | None) -> Interval | None:
    if not 1 <= month <= 12:
        return None
    return calendar.day_of(year, month, _number(day)) if day else calendar.month(year, month)


def _nearest(match: re.Match[str], now: float, today: date, towards: Towards) -> Interval | None:
    month = _number(match["m2"])
    years = (today.year - 1, today.year, today.year + 1)
    fits: Callable[[Interval], bool] = (
        (lambda found: found.end > now) if towards == "future" else (lambda found: found.start <= now)
    )
    found = (_in_month(year, month, match["d2"]) for year in (years if towards == "future" else years[::-1]))
    return next((interval for interval in found if interval and fits(interval)), None)


def _number(text: str) -> int:
    """Arabic digits, or Chinese ones up to 99; 0 for what is no number."""
    if text.isdigit():
        return int(text)
    tens, ten, ones = text.rpartition("十") if "十" in text else ("", "", text)
    if not (len(tens) <= 1 and len(ones) <= 1):
        return 0
    return (CHINESE_DIGITS.get(tens, 1) * 10 if ten else 0) + CHINESE_DIGITS.get(ones, 0)
