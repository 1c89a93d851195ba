"""Usage: twelve figures, a map of days, lists of what is used most; everybody's, one's own, or nothing yet."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.harness import House, eventually
from tests.system.studio.conftest import PATIENCE_MS, Studio, opened
from tests.system.studio.test_other_pages import faults, picture, token


def told(home: House, person: str) -> Any:
    return home.semmem.api("GET", "/v1/usage/summary", params={"user_id": person})


def used(home: House, person: str) -> Any:
    """Three requests, one of them streamed, in a project."""
    before = told(home, person)["total"]["requests"]
    for text, stream in (("Hello there", False), ("Where shall I eat?", True), ("And drink?", False)):
        home.chat(person, text, stream=stream, headers={"x-project-id": "atlas"})
    eventually(lambda: told(home, person)["total"]["requests"] == before + 3, within_s=10, what="three answers counted")
    return told(home, person)


def test_what_passes_through_envoy_is_counted_with_the_models_own_figures(home: House, person: str) -> None:
    summary = used(home, person)
    total = summary["total"]
    assert (total["requests"], total["errors"], summary["messages"]) == (3, 0, 6)
    assert summary["days_active"] == summary["longest_streak"] == 1
    assert [each["model"] for each in summary["models"]] == ["stand-in"]
    assert [each["provider"] for each in summary["providers"]] == ["here"]
    assert summary["tokens"] == total["tokens_in"] + total["tokens_out"] > 0
    assert total["cost"] == round((total["tokens_in"] + 2 * total["tokens_out"]) / 1e6, 6)
    assert total["mean_duration_ms"] > 0
    streamed = home.semmem.api("GET", "/v1/usage", params={"user_id": person, "by": "streamed"})["groups"]
    assert {each["streamed"]: each["requests"] for each in streamed} == {False: 2, True: 1}


def test_the_page_shows_twelve_figures_a_map_and_lists(home: House, studio: Studio, person: str) -> None:
    used(home, person)
    studio.sign_in(at=f"#/usage/{person}")
    page = studio.page
    labels = page.locator(".figure span").all_inner_texts
    expect(page.locator(".figure")).to_have_count(11)
    words = " ".join(labels())
    for word in ("started", "days active", "most active day", "longest streak", "sessions", "messages", "tokens"):
        assert word in words
    for word in ("projects", "cost", "saved", "no provider reported it"):
        assert word in words
    today = page.locator(f'rect[data-day="{datetime.now(UTC).date().isoformat()}"]')
    expect(today).to_have_class(re.compile("level-4"))
    expect(page.locator(".heat rect.level-0").first).to_be_attached()
    expect(page.get_by_role("heading", name="Top models")).to_be_visible()
    expect(page.locator(".tops").first).to_contain_text("stand-in")
    page.get_by_text("The same as a table").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    assert page.get_by_role("heading", name="Prompt cache").count() == 0


def test_an_administrator_looks_at_everybody_or_at_one(home: House, studio: Studio, person: str) -> None:
    used(home, person)
    used(home, f"{person}-2")
    studio.sign_in(at=f"#/usage/{person}")
    requests = studio.page.get_by_text(re.compile(r"^\d+ requests, 0 of them"))
    everybody = home.semmem.api("GET", "/v1/usage/summary")["total"]["requests"]
    expect(requests).to_contain_text(f"{everybody} requests")
    studio.page.get_by_label("Whose").select_option(label=f"Only {person}'s")
    expect(requests).to_contain_text("3 requests")


def test_a_user_sees_their_own_usage_and_an_operator_nobodys_name(home: House, studio: Studio, person: str) -> None:
    used(home, person)
    used(home, f"{person}-2")
    studio.sign_in(token(home, "user", person), at="#/usage")
    expect(studio.page.get_by_text("3 requests, 0 of them")).to_be_visible()
    assert studio.page.get_by_label("Whose").count() == 0
    studio.page.get_by_role("button", name="Sign out").click()
    studio.sign_in(token(home, "operator"), at="#/usage")
    expect(studio.page.locator(".figure")).to_have_count(11)
    assert person not in studio.page.content()


def test_who_has_asked_nothing_sees_an_empty_page(home: House, studio: Studio, person: str) -> None:
    studio.sign_in(token(home, "user", f"{person}-nobody"), at="#/usage")
    expect(studio.page.get_by_text("Nothing yet")).to_be_visible()


def test_figures_go_with_their_user(home: House, studio: Studio, person: str) -> None:
    used(home, person)
    home.semmem.api("DELETE", "/v1/memory", params={"user_id": person})
    assert told(home, person)["total"]["requests"] == 0
    studio.sign_in(token(home, "user", person), at="#/usage")
    expect(studio.page.get_by_text("Nothing yet")).to_be_visible()


def cached(place: int, prompt_tokens: int) -> dict[str, int]:
    """Nothing is known of the first hundred days; then ever more is cached."""
    if place < 100:
        return {"prompt_tokens": 0, "cached_tokens": 0}
    return {"prompt_tokens": prompt_tokens, "cached_tokens": prompt_tokens * (place - 100) // 230}


def cache_total(activity: list[dict[str, Any]]) -> dict[str, Any]:
    prompt, of_cache = (sum(each[name] for each in activity) for name in ("prompt_tokens", "cached_tokens"))
    reported = sum(each["requests"] for each in activity if each["prompt_tokens"])
    return {
        "cache_reported": reported,
        "prompt_tokens": prompt,
        "cached_tokens": of_cache,
        "cached_share": of_cache / prompt if prompt else None,
    }


def a_year() -> dict[str, Any]:
    """As the API tells it: weekdays busier than weekends, with a fortnight off."""
    today = datetime.now(UTC).date()
    days = [today - timedelta(days=back) for back in reversed(range(330)) if not 120 <= back < 134]
    activity: list[dict[str, Any]] = [
        {"day": day.isoformat(), "requests": number, "tokens": 900 * number, **cached(place, 800 * number)}
        for place, day in enumerate(days)
        if (number := (7 * day.toordinal()) % 40 * (2 if day.weekday() < 5 else 1) - 12) > 0
    ]
    requests = sum(each["requests"] for each in activity)
    shares = (("gpt-4o-mini", "openai", 5, 31.4), ("llama-3-8b", "here", 3, 0.0), ("mistral/large", "mistral", 2, None))
    rows: list[dict[str, Any]] = [
        {"requests": requests * tenths // 10, "tokens_in": 80_000 * tenths, "tokens_out": 9_000 * tenths, "cost": cost}
        for _, _, tenths, cost in shares
    ]
    return {
        "started": activity[0]["day"],
        "days_active": len(activity),
        "most_active_day": {"day": activity[-40]["day"], "requests": 79},
        "activity": activity,
        "models": [{"model": share[0], **row} for share, row in zip(shares, rows, strict=True)],
        "providers": [{"provider": share[1], **row} for share, row in zip(shares, rows, strict=True)],
        "top_projects": [{"project": "atlas", **rows[0]} | {"cost": None}],
        "sessions": 1804,
        "messages": 2 * requests,
        "tokens": 890_000,
        "projects": 1,
        "longest_streak": 96,
        "cost_saved": 118.25,
        "compared_with": "gpt-4o",
        "total": rows[0]
        | {"requests": requests, "errors": 41, "estimated": 12, "unpriced": rows[2]["requests"]}
        | cache_total(activity),
        "currency": "EUR",
        "recording": True,
    }


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_year_is_a_map_of_weeks(
    home: House, browser: Browser, person: str, width: int, scheme: Any, shots: Path | None
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    context.set_default_timeout(PATIENCE_MS)
    studio = opened(home.semmem.api_url, context)
    page = studio.page
    page.route("**/v1/usage/summary*", lambda route: route.fulfill(json=a_year()))
    studio.sign_in(at="#/usage")
    expect(page.locator(".heat")).to_be_visible()
    assert 52 * 7 < page.locator(".heat rect").count() <= 53 * 7
    assert all(page.locator(f".level-{level}").count() > 5 for level in range(5))
    months = page.locator(".heat .month").all_text_contents()
    assert len({month for month in months if month}) == 12
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert faults(studio) == []
    picture(studio, shots, f"usage-{width}-{scheme}")
    assert studio.troubles == []
    context.close()


def shown(studio: Studio, told: dict[str, Any]) -> Page:
    studio.page.route("**/v1/usage/summary*", lambda route: route.fulfill(json=told))
    studio.sign_in(at="#/usage")
    expect(studio.page.get_by_role("heading", name="Activity")).to_be_visible()
    return studio.page


def with_cache(days: dict[int, tuple[int, int]], today: date) -> dict[str, Any]:
    """``days``: prompt tokens and cached ones, by how long ago that was."""
    activity = [
        {"day": (today - timedelta(days=back)).isoformat(), "requests": 3, "tokens": 9000, "prompt_tokens": prompt}
        | {"cached_tokens": of_cache}
        for back, (prompt, of_cache) in sorted(days.items(), reverse=True)
    ]
    told = a_year()
    return told | {"activity": activity, "total": told["total"] | {"requests": 12} | cache_total(activity)}


def bars(page: Page) -> list[tuple[str, float]]:
    """Days, and the share that is filled."""
    each = page.locator(".shares g").all()
    whole, filled = ([float(bar.locator(f".level-{n}").get_attribute("height") or -1) for bar in each] for n in (0, 4))
    return [(str(bar.get_attribute("data-day")), filled[n] / whole[n]) for n, bar in enumerate(each)]


def test_a_day_whose_prompts_were_reported_is_a_bar_and_another_is_none(studio: Studio) -> None:
    today = datetime.now(UTC).date()
    page = shown(studio, with_cache({0: (1000, 800), 1: (0, 0), 2: (3000, 0), 52: (1000, 1000)}, today))
    expected = [(52, 1.0), (2, 0.0), (0, 0.8)]
    assert bars(page) == [((today - timedelta(days=back)).isoformat(), share) for back, share in expected]
    expect(page.locator(".figure", has_text="prompt tokens cached")).to_contain_text("36 %")
    expect(page.get_by_text("1,800 of 5,000 prompt tokens were cached, in the 9 of 12 requests")).to_be_visible()
    page.get_by_text("The same as a table").nth(1).click()
    rows = page.locator("details[open] tbody tr").all_inner_texts()
    assert [row.split("\t")[1:] for row in rows] == [
        ["1,000", "800", "80 %"],
        ["3,000", "0", "0 %"],
        ["1,000"] * 2 + ["100 %"],
    ]


def test_what_was_cached_over_more_days_is_a_bar_for_each_week(studio: Studio) -> None:
    monday = datetime.now(UTC).date()
    monday -= timedelta(days=monday.weekday())
    days = {
        0: (1000, 500),
        1: (100, 0),
        7: (300, 300),
        8: (100, 0),
        70: (100, 20),
        7 * 52: (100, 90),
        7 * 53: (100, 30),
    }
    page = shown(studio, with_cache(days, monday))
    expected = [(52, 0.9), (10, 0.2), (2, 0.0), (1, 0.75), (0, 0.5)]
    assert bars(page) == [((monday - timedelta(weeks=back)).isoformat(), share) for back, share in expected]
    expect(page.locator(".shares")).to_have_attribute("aria-label", re.compile("by week: 5 bars, the latest 50 %"))
    page.get_by_text("The same as a table").nth(1).click()
    expect(page.locator("details[open] tbody tr")).to_have_count(6)


def test_where_no_provider_reports_it_nothing_is_drawn_and_the_share_is_unknown(studio: Studio) -> None:
    studio.page.set_viewport_size({"width": 390, "height": 900})
    page = shown(studio, with_cache({0: (0, 0), 1: (0, 0)}, datetime.now(UTC).date()))
    expect(page.locator(".figure", has_text="no provider reported it")).to_contain_text("unknown")
    too_wide = "each => each.filter((figure) => figure.scrollWidth > figure.clientWidth).length"
    assert page.locator(".figure").evaluate_all(too_wide) == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".shares").count() == 0
