"""A day of 10,000 requests, written in batches by three replicas, comes to what a count by hand says."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.background.writers import UsageRetention, UsageWriter
from semmem.dialects import DIALECTS as SERVED
from semmem.ports.usage import user_name
from semmem.usage.report import Days, UsageReport, longest_streak
from tests.support.journal_samples import Place
from tests.support.usage import COUNTED, DIALECTS, KEY, PRICES, Scripted, by_hand, parted, rows, script

AMSTERDAM = timezone(timedelta(hours=2))
DAY = datetime(2026, 3, 29, tzinfo=UTC)
"""The day on which clocks in Europe are put forward: of 24 hours in UTC all the same."""


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(place)
    await made.open()
    yield made
    await made.close()


async def written(journal: SqlJournal, scripted: list[Scripted]) -> None:
    """By three writers, in batches of a hundred, some of them twice: a commit whose answer was lost."""
    writers = [UsageWriter(journal, UsageRetention(), full=100) for _ in range(3)]
    made = rows(scripted)
    for place, row in enumerate(made):
        writer = writers[place % 3]
        writer.add(row)
        if len(writer) == 100:
            await writer.flush()
        if place % 997 == 0:
            await journal.add_usage(made[max(0, place - 500) : place - 400])
    for writer in writers:
        assert await writer.flush()
    assert sum(writer.dropped for writer in writers) == 0


def figures(told: dict[str, Any]) -> dict[str, Any]:
    found = {name: told[name] for name in (*COUNTED, "cached_share")}
    return found | {"cost": told["cost"] or 0.0}


async def test_a_scripted_day_comes_to_what_a_hand_counts(journal: SqlJournal) -> None:
    day = script(10_000, seed=7, begins=DAY)
    beside = script(300, seed=8, begins=DAY - timedelta(days=1)) + script(300, seed=9, begins=DAY + timedelta(days=1))
    mixed = day + beside
    random.Random(1).shuffle(mixed)
    await written(journal, mixed)
    report, days = UsageReport(journal, PRICES), Days(DAY.date(), DAY.date())
    for by in ("hour", "day", "model", "model_asked", "provider", "project", "endpoint", "streamed"):
        told = await report.groups(days, by, limit=1000)
        expected = [({by: key}, by_hand(group)) for key, group in parted(day, by)]
        assert [({by: each[by]}, figures(each)) for each in told["groups"]] == expected, by
        assert figures(told["total"]) == by_hand(day)
        assert not told["more"]
    told = await report.groups(days, "user", limit=1000)
    names = {user_name(KEY, user): by_hand(group) for user, group in parted(day, "user")}
    assert {each["user"]: figures(each) for each in told["groups"]} == names


async def test_the_twelve_figures_are_those_of_a_hand(journal: SqlJournal) -> None:
    """Over five weeks with gaps in them."""
    active = [0, 1, 2, 5, 6, 7, 8, 11, 30, 34]
    scripted = [
        one
        for place, number in enumerate(active)
        for one in script(60 + 7 * (place % 4), seed=place, begins=DAY + timedelta(days=number))
    ]
    await written(journal, scripted)
    told = await UsageReport(journal, PRICES).summary(Days(date(1970, 1, 1), date(2030, 1, 1)))
    by_day = [(key, group) for key, group in parted(scripted, "day")]
    assert told["started"] == "2026-03-29"
    assert told["days_active"] == len(active)
    busiest = max(by_day, key=lambda item: (len(item[1]), [-ord(letter) for letter in item[0]]))
    assert told["most_active_day"] == {"day": busiest[0], "requests": len(busiest[1])}
    assert [(each["day"], each["requests"]) for each in told["activity"]] == [(key, len(all_)) for key, all_ in by_day]
    assert [each["tokens"] for each in told["activity"]] == [_tokens(group) for _, group in by_day]
    for name in ("prompt_tokens", "cached_tokens"):
        assert [each[name] for each in told["activity"]] == [by_hand(group)[name] for _, group in by_day]
    assert [(each["model"], figures(each)) for each in told["models"]] == _hands(scripted, "model")
    assert [(each["provider"], figures(each)) for each in told["providers"]] == _hands(scripted, "provider")
    assert told["sessions"] == len({(one.user, one.session) for one in scripted if one.session})
    assert told["messages"] == by_hand(scripted)["messages"]
    assert told["tokens"] == _tokens(scripted)
    assert told["projects"] == len({one.project for one in scripted if one.project})
    assert told["longest_streak"] == 4
    priced = [one for one in scripted if one.model != "mistral/large"]
    counts = by_hand(priced)
    as_reference = (counts["tokens_in"] * 2.5 + counts["tokens_out"] * 10) / 1e6
    assert told["cost_saved"] == pytest.approx(as_reference - counts["cost"], abs=2e-6)


async def test_the_share_that_was_cached_is_of_requests_that_reported_it(journal: SqlJournal) -> None:
    first, *others = script(5, seed=12, begins=DAY)
    unknown = [replace(one, tokens=(9000, 10), cache=None) for one in others]
    await written(journal, [replace(first, tokens=(1000, 10), cache=(1000, 800)), *unknown])
    report, days = UsageReport(journal, PRICES), Days(DAY.date(), DAY.date())
    total = (await report.summary(days))["total"]
    assert (total["requests"], total["tokens_in"]) == (5, 37_000)
    assert (total["cache_reported"], total["prompt_tokens"], total["cached_tokens"]) == (1, 1000, 800)
    assert total["cached_share"] == 0.8


async def test_nothing_reported_is_unknown_and_nothing_cached_is_nought(journal: SqlJournal) -> None:
    for back, (cache, share) in enumerate(((None, None), ((1000, 0), 0.0), ((0, 0), None))):
        day = DAY - timedelta(days=back)
        await written(journal, [replace(one, cache=cache) for one in script(3, seed=13, begins=day)])
        told = await UsageReport(journal, PRICES).groups(Days(day.date(), day.date()), "day", limit=5)
        assert told["total"]["cached_share"] == told["groups"][0]["cached_share"] == share
        assert told["total"]["cache_reported"] == (0 if cache is None else 3)


async def test_a_user_alone_is_what_that_user_did(journal: SqlJournal) -> None:
    scripted = script(500, seed=3, begins=DAY)
    await written(journal, scripted)
    mine = [one for one in scripted if one.user == "user-3"]
    told = await UsageReport(journal, PRICES).summary(Days(DAY.date(), DAY.date(), user_name(KEY, "user-3")))
    assert figures(told["total"]) == by_hand(mine)
    assert told["sessions"] == len({one.session for one in mine if one.session})


async def test_a_day_is_one_of_utc_wherever_the_client_is(journal: SqlJournal) -> None:
    late = datetime(2026, 3, 30, 1, 30, tzinfo=AMSTERDAM)
    await written(journal, [_at(late)])
    told = await UsageReport(journal, PRICES).groups(Days(DAY.date(), DAY.date()), "hour", limit=10)
    assert [each["hour"] for each in told["groups"]] == ["2026-03-29T23:00:00Z"]


async def test_of_more_groups_than_wanted_the_latest_or_the_largest_are_told(journal: SqlJournal) -> None:
    scripted = script(400, seed=4, begins=DAY)
    await written(journal, scripted)
    report, days = UsageReport(journal, PRICES), Days(DAY.date(), DAY.date())
    hours = await report.groups(days, "hour", limit=3)
    assert [each["hour"][11:13] for each in hours["groups"]] == ["21", "22", "23"]
    models = await report.groups(days, "model", limit=2)
    assert [each["model"] for each in models["groups"]] == [key for key, _ in parted(scripted, "model")][:2]
    assert (hours["more"], models["more"]) == (True, True)


async def test_nothing_recorded_is_told_as_nothing(journal: SqlJournal) -> None:
    told = await UsageReport(journal, PRICES).summary(Days(DAY.date(), DAY.date()))
    assert (told["started"], told["days_active"], told["most_active_day"], told["cost_saved"]) == (None, 0, None, None)
    assert (told["sessions"], told["longest_streak"], told["total"]["requests"]) == (0, 0, 0)
    assert told["total"]["cached_share"] is None


@pytest.mark.parametrize(("days", "longest"), [([], 0), ([3], 1), ([1, 2, 4, 5, 6, 9], 3), ([1, 3, 5], 1)])
def test_a_streak_is_days_one_after_another(days: list[int], longest: int) -> None:
    assert longest_streak(days) == longest


def _hands(scripted: list[Scripted], by: str) -> list[tuple[Any, dict[str, Any]]]:
    return [(key, by_hand(group)) for key, group in parted(scripted, by)]


def _tokens(scripted: list[Scripted]) -> int:
    counts = by_hand(scripted)
    return int(counts["tokens_in"] + counts["tokens_out"])


def _at(at: datetime) -> Scripted:
    one = script(1, seed=1, begins=at)[0]
    return replace(one, at=at)


def test_the_paths_are_those_that_are_served() -> None:
    assert {dialect.name: path for path, dialect in SERVED.items()} == DIALECTS


def test_the_rows_hold_no_name_and_no_content() -> None:
    told = repr(rows(script(200, seed=5, begins=DAY)))
    assert "user-" not in told
    assert "session-" not in told
    assert "xxx" not in told
