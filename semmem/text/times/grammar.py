"""Patterns over word classes, and what each means. A row of RULES is tried at every place in the table's order. Chinese
is read by patterns of its own."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from semmem.text.number_words import CHINESE_DIGITS
from semmem.text.times import calendar
from semmem.text.times.calendar import DAY, EARLIEST_S, LATEST_S, Interval, Towards
from semmem.text.times.tokens import TELLING, tokens
from semmem.text.words import WORD

INTERVALS_MAX = 16
"""How many times are read out of one text; those after it are not."""

_DIGIT_OR_CHINESE = re.compile(r"[0-9天年月周期拜]")
OfYear = Callable[[int], Interval | None]
STEPS = {"L": -1, "l": -1, "T": 0, "X": 1, "x": 1}


@dataclass(frozen=True, slots=True)
class TimePhrase:
    """The classes of one match and their values. ``get`` gives the first value of any of some classes."""

    classes: str
    values: tuple[Any, ...]
    now: float
    today: date
    towards: Towards

    def get(self, letters: str, nth: int = 0) -> Any:
        places = [i for i, letter in enumerate(self.classes) if letter in letters]
        return self.values[places[nth]] if len(places) > nth else None

    @property
    def step(self) -> int:
        return next(STEPS[letter] for letter in self.classes if letter in STEPS)

    def nearest(self, of_year: OfYear) -> Interval | None:
        return _nearest(of_year, self.now, self.today, self.towards)

    def stepped(self, of_year: OfYear) -> Interval | None:
        """Of what comes once a year: the last that is over, this year's, or the next that has not begun."""
        year = self.today.year
        if self.step < 0:
            return _first(of_year, (year, year - 1, year - 2), lambda found: found.end <= self.now)
        if self.step > 0:
            return _first(of_year, (year, year + 1), lambda found: found.start > self.now)
        return of_year(year)


def _nearest(of_year: OfYear, now: float, today: date, towards: Towards) -> Interval | None:
    """Of what comes once a year: the latest that has begun, or the first that is not over."""
    years = (today.year - 1, today.year, today.year + 1)
    if towards == "future":
        return _first(of_year, years, lambda found: found.end > now)
    return _first(of_year, years[::-1], lambda found: found.start <= now)


def _first(of_year: OfYear, years: tuple[int, ...], fits: Callable[[Interval], bool]) -> Interval | None:
    found = (of_year(year) for year in years)
    return next((interval for interval in found if interval and fits(interval)), None)


def intervals(text: str, now: float, *, towards: Towards = "past") -> list[Interval]:
    """The times that ``text`` names, in its order, each once, at most INTERVALS_MAX. ``now`` is seconds since the
    epoch; outside 1900 to 2200 nothing is read. ``towards`` decides what may be either (see Towards); "tomorrow" and
    "last week" are what they are. "in two weeks" is a date only towards the future: else it may be how long something
    took. Never raises."""
    if not (math.isfinite(now) and EARLIEST_S <= now < LATEST_S) or not _may_name_a_time(text):
        return []
    today = datetime.fromtimestamp(now, UTC).date()
    named: list[Interval] = []
    for interval in _named(text, now, today, towards):
        if interval not in named:
            named.append(interval)
        if len(named) == INTERVALS_MAX:
            break
    return named


def _may_name_a_time(text: str) -> bool:
    """Whether a text may name a time at all: a fast check, which most texts fail."""
    return bool(_DIGIT_OR_CHINESE.search(text)) or not TELLING.isdisjoint(WORD.findall(text.casefold()))


def _named(text: str, now: float, today: date, towards: Towards) -> Iterator[Interval]:
    read = tokens(text)
    for match in _ANY.finditer(read.classes):
        start, end = match.span()
        found = TimePhrase(match.group(), read.values[start:end], now, today, towards)
        interval = _BUILDERS[match.lastgroup or ""](found)
        if interval and (bounded := _bounded(interval, _modifier(read.classes, start), now)):
            yield bounded
    if _HAN.search(text):
        yield from filter(None, (_read_chinese(match, now, today, towards) for match in _CHINESE.finditer(text)))


def _modifier(classes: str, start: int) -> str:
    """The match's own first class, or the one before it, "the" left out."""
    if classes[start] in "sbv":
        return classes[start]
    return classes[max(start - 2, 0) : start].rstrip("t")[-1:]


def _bounded(interval: Interval, modifier: str, now: float) -> Interval | None:
    """The interval as "since", "before" or "after" extends it."""
    if modifier == "s":
        return Interval(interval.start, max(now, interval.end))
    if modifier == "b":
        return Interval(EARLIEST_S, interval.start) if interval.start > EARLIEST_S else None
    if modifier == "v":
        return Interval(interval.end, now) if interval.end < now else None
    return interval


# --- what a pattern means --------------------------------------------------------------------------------------------


def _years(found: TimePhrase) -> Interval | None:
    first, last = found.get("Y"), found.get("Y", 1)
    return calendar.year(first, last - first + 1) if last >= first else None


def _months(found: TimePhrase) -> Interval | None:
    first, last, year = found.get("Mmci"), found.get("Mmci", 1), found.get("Y")
    end = calendar.month(year, last) if year else found.nearest(lambda each: calendar.month(each, last))
    if end is None:
        return None
    end_year = datetime.fromtimestamp(end.start, UTC).year
    start = calendar.month(end_year - (first > last), first)
    return Interval(start.start, end.end) if start else None


def _day_of_month(found: TimePhrase) -> Interval | None:
    month, number, year = found.get("Mmci"), found.get("NO"), found.get("Y")
    if year:
        return calendar.day_of(year, month, number)
    return found.nearest(lambda each: calendar.day_of(each, month, number))


def _month_of_year(found: TimePhrase) -> Interval | None:
    month, year = found.get("Mmci"), found.get("Y")
    if year is None:
        if found.get("U") != "year":
            return None
        year = found.today.year + found.step
    return calendar.month(year, month)


def _month(found: TimePhrase) -> Interval | None:
    month = found.get("Mmci")
    if any(letter in STEPS for letter in found.classes):
        return found.stepped(lambda each: calendar.month(each, month))
    return found.nearest(lambda each: calendar.month(each, month))


def _season(found: TimePhrase) -> Interval | None:
    name, year = found.get("S"), found.get("Y")
    if found.get("U") not in (None, "year"):
        return None
    if found.get("U"):
        year = found.today.year + found.step
    return calendar.season(year, name) if year else found.stepped(lambda each: calendar.season(each, name))


def _weekday(found: TimePhrase) -> Interval | None:
    number = found.get("Ww")
    stepped = any(letter in STEPS for letter in found.classes)
    if found.towards == "future" and not stepped:
        return calendar.coming_weekday(found.today, number)
    return calendar.weekday(found.today, number, found.step if stepped else -1)


def _ahead(found: TimePhrase) -> Interval | None:
    if found.get("R") is None and (found.towards == "past" or found.get("I") != "in"):
        return None
    return calendar.back(found.today, -found.get("Na"), found.get("U"))


_ANY_MONTH = "[Mmci]"
_BEFORE = "[Isbv]?"
"""What may stand before a month with more behind it, so that the longer reading is the first one."""

RULES: tuple[tuple[str, Callable[[TimePhrase], Interval | None]], ...] = (
    (r"k[WUMS]P?", lambda _found: None),  # every Monday morning
    (r"D|[Ins]Z|[FI]r", lambda found: found.get("DZr")),
    (r"FYoY", _years),
    (rf"F{_ANY_MONTH}o{_ANY_MONTH}(?:,?Y)?", _months),
    (rf"[NO]f?{_ANY_MONTH}f?,?Y|[nIt]N\.{_ANY_MONTH}Y?|Of?{_ANY_MONTH}|N[Mm]|Nf{_ANY_MONTH}", _day_of_month),
    (
        rf"[tn]N{_ANY_MONTH}(?:f?,?Y)?|{_BEFORE}(?:{_ANY_MONTH}[NO],?Y|[Mmc](?:O|N(?!p))|iO|{_ANY_MONTH}tO)",
        _day_of_month,
    ),
    (rf"{_BEFORE}{_ANY_MONTH}(?:[,f]?Y(?!p)|f?t?[LTX]U|f?t?U[lxL])|[LTX]UI{_ANY_MONTH}", _month_of_year),
    (rf"[LX]{_ANY_MONTH}|T[Mmi]|{_ANY_MONTH}[lxL](?!U)", _month),
    (rf"[Is]-?{_ANY_MONTH}|[bv][Mmi]|[eU]f{_ANY_MONTH}|M", _month),
    (r"S,?f?Y|Sf?t?[LTX]U|[LTX]S|S[lxL]", _season),
    (r"[LTX][Ww](?!p)|W[lxL]|nt?[Ww](?!p)|WP", _weekday),
    (r"LNf?U|NlU", lambda found: calendar.window(found.today, found.get("N"), found.get("U"))),
    (r"[Na]f?UA|H[Na]f?U", lambda found: calendar.back(found.today, found.get("Na"), found.get("U"))),
    (r"[Na]f?UR|I[Na]f?U", _ahead),
    (r"d", lambda found: calendar.day(found.today + found.get("d") * calendar.DAY)),
    (r"[LX]U(?!f)|TU|[LT]P|U[lxL]", lambda found: calendar.whole(found.today, found.step, found.get("UP"))),
    (r"KY", lambda found: calendar.quarter(found.get("Y"), found.get("K"))),
    (r"It?E", lambda found: calendar.year(found.get("E"), 10)),
    (
        r"[Isbv]t?Y(?!p)|efY|UY",
        lambda found: calendar.year(found.get("Y")) if found.get("U") in (None, "year") else None,
    ),
)
_BUILDERS = {f"rule{i}": builder for i, (_, builder) in enumerate(RULES)}
_ANY = re.compile("|".join(f"(?P<rule{i}>{pattern})" for i, (pattern, _) in enumerate(RULES)))

_AHEAD = re.compile(
    r"\b(?:will|won't|shall|going to|gonna|plan(?:s|ning|ned)?|tomorrow|upcoming|due|until|deadline"
    r"|scheduled|booked for|werde|voy a|vais)\b|\b(?:i|we|he|she|they|it|you|that)['’]ll\b|明年|明天|下周|下个月|打算"
    r"|\b(?:flying|travelling|traveling|leaving|moving|getting married|starting)\b",
    re.IGNORECASE,
)


def leaning(text: str) -> Towards:
    """Whether a sentence tells of what is to come ("I'll be in Oslo on Friday") or of what was."""
    return "future" if _AHEAD.search(text) else "past"


# --- Chinese, which has no blanks between words: bounded patterns on the text itself --------------------------------


CHINESE_DAYS = {"今天": 0, "昨天": -1, "前天": -2, "大前天": -3, "明天": 1, "后天": 2}
CHINESE_YEARS = {"今年": 0, "去年": -1, "前年": -2, "明年": 1}
CHINESE_STEPS = {"上": -1, "这": 0, "本": 0, "下": 1}
CHINESE_SEASONS = {"春": "spring", "夏": "summer", "秋": "autumn", "冬": "winter"}
CHINESE_UNITS = {"天": "day", "日": "day", "周": "week", "星期": "week", "月": "month", "年": "year"}

_CHINESE_NUMBER = r"[0-9]{1,2}|[一二两三四五六七八九十]{1,3}"
_CHINESE = re.compile(
    rf"""(?P<day>大前天|昨天|前天|今天|明天|后天)
    |(?:(?P<year>[0-9]{{4}})年|(?P<rel>今年|去年|前年|明年))
     (?:(?P<season>[春夏秋冬])[天季]?|(?P<m>{_CHINESE_NUMBER})月(?:份|(?P<d>{_CHINESE_NUMBER})[日号])?)?
    |(?P<step>[上这本下])个?(?:(?:周|星期|礼拜)(?P<wd>[一二三四五六日天])|(?P<u>周末|周|星期|礼拜|月))
    |(?<![0-9一二两三四五六七八九十])(?P<n>{_CHINESE_NUMBER})个?(?P<unit>天|日|周|星期|月|年)(?:以|之)?前
    |(?<![0-9一二两三四五六七八九十])(?P<m2>{_CHINESE_NUMBER})月(?:(?P<d2>{_CHINESE_NUMBER})[日号]|份)""",
    re.VERBOSE,
)
_HAN = re.compile(r"[天年月周期拜]")


def _read_chinese(match: re.Match[str], now: float, today: date, towards: Towards) -> Interval | None:
    if match["day"]:
        return calendar.day(today + CHINESE_DAYS[match["day"]] * DAY)
    if match["year"] or match["rel"]:
        return _in_year(match, int(match["year"]) if match["year"] else today.year + CHINESE_YEARS[match["rel"]])
    if match["wd"]:
        number = "一二三四五六".find(match["wd"]) % 7  # 日 and 天 are Sunday: -1 is 6
        return calendar.day(calendar.monday(today) + (7 * CHINESE_STEPS[match["step"]] + number) * DAY)
    if match["u"]:
        unit = {"周末": "weekend", "月": "month"}.get(match["u"], "week")
        return calendar.whole(today, CHINESE_STEPS[match["step"]], unit)
    if match["n"]:
        return calendar.back(today, _chinese_number(match["n"]), CHINESE_UNITS[match["unit"]])
    month = _chinese_number(match["m2"])
    return _nearest(lambda year: _in_month(year, month, match["d2"]), now, today, towards)


def _in_year(match: re.Match[str], year: int) -> Interval | None:
    if match["season"]:
        return calendar.season(year, CHINESE_SEASONS[match["season"]])
    if not match["m"]:
        return calendar.year(year)
    return _in_month(year, _chinese_number(match["m"]), match["d"])


def _in_month(year: int, month: int, day: str | None) -> Interval | None:
    if not 1 <= month <= 12:
        return None
    return calendar.day_of(year, month, _chinese_number(day)) if day else calendar.month(year, month)


def _chinese_number(text: str) -> int:
    """Arabic digits, or Chinese ones up to 99; 0 for what is no number."""
    if text.isdigit():
        return int(text)
    tens, ten, ones = text.rpartition("十") if "十" in text else ("", "", text)
    if not (len(tens) <= 1 and len(ones) <= 1):
        return 0
    return (CHINESE_DIGITS.get(tens, 1) * 10 if ten else 0) + CHINESE_DIGITS.get(ones, 0)
