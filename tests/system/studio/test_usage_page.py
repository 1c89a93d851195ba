"""Usage: figures, charts, a map of days, lists of what is used most; everybody's, one's own, or nothing yet."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

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


FIRST = ["requests", "tokens in", "tokens out", "prompt tokens cached: no provider reported it"]
FIRST += ["without a whole answer", "mean time to the whole answer"]


def test_the_page_shows_what_matters_first_then_charts_a_map_figures_and_lists(
    home: House, studio: Studio, person: str
) -> None:
    used(home, person)
    studio.sign_in(at=f"#/usage/{person}")
    page = studio.page
    expect(page.locator(".figure")).to_have_count(16)
    words = " ".join(labels := page.locator(".figure span").all_inner_texts())
    assert labels[:6] == FIRST
    first, drawn, others = (
        page.locator(each).bounding_box() for each in (".figures >> nth=0", ".charts", ".figures >> nth=1")
    )
    assert first
    assert drawn
    assert others
    assert first["y"] < drawn["y"] < others["y"]
    for word in ("started", "days active", "most active day", "longest streak", "sessions", "messages", "tokens"):
        assert word in words
    for word in ("projects", "cost", "saved", "no provider reported it"):
        assert word in words
    cell = page.locator(f'rect[data-day="{datetime.now(UTC).date().isoformat()}"]')
    expect(cell).to_have_class(re.compile("level-4"))
    expect(page.locator(".heat rect.level-0").first).to_be_attached()
    expect(page.get_by_role("heading", name="Top models")).to_be_visible()
    expect(page.locator(".tops").first).to_contain_text("stand-in")
    page.get_by_text("The same as a table").click()
    days = home.semmem.api("GET", "/v1/usage", params={"user_id": person})["groups"]  # two of them around midnight
    expect(page.locator("tbody tr")).to_have_count(len(days))
    assert charts(page) == ["Requests", "Tokens", "Time to the whole answer", "Cost"]
    assert page.locator("main").get_by_role("link", name="Live").get_attribute("href") == "#/live" + f"/{person}"
    assert page.locator("main").get_by_role("link", name="Requests").get_attribute("href") == f"#/requests/{person}"
    today = home.semmem.api("GET", "/v1/usage")["groups"][-1]["requests"]
    expect(chart(page, "Requests")).to_have_attribute("aria-label", re.compile(f"requests {today}, .* 0 at the end"))


def charts(page: Page) -> list[str]:
    titles: list[str] = page.locator(".chart figcaption > b").all_inner_texts()
    return titles


def chart(page: Page, title: str) -> Locator:
    return page.get_by_role("img", name=re.compile(f"^{title}, "))


def test_the_hours_of_today_are_shown_one_by_one(home: House, studio: Studio, person: str) -> None:
    used(home, person)
    studio.sign_in(token(home, "user", person), at="#/usage")
    page = studio.page
    expect(page.get_by_role("heading", name="By the day")).to_be_visible()
    page.get_by_label("Days", exact=True).select_option(label="Today")
    expect(page.get_by_role("heading", name="By the hour")).to_be_visible()
    page.get_by_text("The same as a table").click()
    row = page.locator("tbody tr").first.locator("td")
    group = home.semmem.api("GET", "/v1/usage", params={"user_id": person, "by": "hour"})["groups"][-1]
    expect(row.nth(0)).to_have_text(re.compile(datetime.fromisoformat(group["hour"]).strftime("%H:00")))
    expect(row.nth(1)).to_have_text(str(group["requests"]))
    expect(row.nth(3)).to_have_text(str(group["tokens_in"]))
    expect(row.nth(4)).to_have_text(str(group["tokens_out"]))
    expect(page.get_by_role("heading", name="Activity")).to_have_count(0)


def test_an_administrator_looks_at_everybody_or_at_one(home: House, studio: Studio, person: str) -> None:
    used(home, person)
    used(home, f"{person}-2")
    studio.sign_in(at=f"#/usage/{person}")
    requests = studio.page.locator(".figure").first
    everybody = home.semmem.api("GET", "/v1/usage/summary")["total"]["requests"]
    expect(requests).to_have_text(f"{everybody}requests")
    studio.page.get_by_label("Whose").select_option(label=f"Only {person}'s")
    expect(requests).to_have_text("3requests")


def test_a_user_sees_their_own_usage_and_an_operator_nobodys_name(home: House, studio: Studio, person: str) -> None:
    used(home, person)
    used(home, f"{person}-2")
    studio.sign_in(token(home, "user", person), at="#/usage")
    expect(studio.page.locator(".figure").first).to_have_text("3requests")
    assert studio.page.get_by_label("Whose").count() == 0
    studio.page.get_by_role("button", name="Sign out").click()
    studio.sign_in(token(home, "operator"), at="#/usage")
    expect(studio.page.locator(".figure")).to_have_count(16)
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
        | {
            "requests": requests,
            "errors": 41,
            "estimated": 12,
            "unpriced": rows[2]["requests"],
            "mean_duration_ms": 1240.0,
        }
        | cache_total(activity),
        "currency": "EUR",
        "recording": True,
    }


def by_day(told: dict[str, Any]) -> dict[str, Any]:
    """The days of a summary, as the API tells them one by one."""
    groups = [
        {
            **day,
            "errors": place % 3,
            "tokens_in": 700 * day["requests"],
            "tokens_out": 200 * day["requests"],
            "mean_duration_ms": 900 + 37 * place % 600,
            "cached_share": day["cached_tokens"] / day["prompt_tokens"] if day["prompt_tokens"] else None,
            "cost": 0.012 * day["requests"],
        }
        for place, day in enumerate(told["activity"])
    ]
    return {"by": "day", "groups": groups, "more": False, "total": told["total"], "currency": "EUR", "recording": True}


def tell(page: Page, told: dict[str, Any]) -> None:
    page.route("**/v1/usage/summary*", lambda route: route.fulfill(json=told))
    page.route("**/v1/usage?*", lambda route: route.fulfill(json=by_day(told)))


@pytest.mark.parametrize(("width", "scheme"), [(2560, "light"), (1280, "light"), (390, "dark"), (320, "light")])
def test_a_year_is_charts_and_a_map_of_weeks(
    home: House, browser: Browser, person: str, width: int, scheme: Any, shots: Path | None
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    context.set_default_timeout(PATIENCE_MS)
    studio = opened(home.semmem.api_url, context)
    page = studio.page
    tell(page, a_year())
    studio.sign_in(at="#/usage")
    expect(page.locator(".heat")).to_be_visible()
    assert charts(page) == ["Requests", "Tokens", "Prompt tokens, where reported", "Time to the whole answer", "Cost"]
    assert 52 * 7 < page.locator(".heat rect").count() <= 53 * 7
    assert all(page.locator(f".level-{level}").count() > 5 for level in range(5))
    months = page.locator(".heat .month").all_text_contents()
    assert len({month for month in months if month}) == 12
    nothing_is_too_wide(page)
    assert faults(studio) == []
    picture(studio, shots, f"usage-{width}-{scheme}")
    assert studio.troubles == []
    context.close()


def nothing_is_too_wide(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    too_wide = "each => each.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)"
    assert page.locator(".figure, .card, .chart, .plot, .axis").evaluate_all(too_wide) == []


def shown(studio: Studio, told: dict[str, Any]) -> Page:
    tell(studio.page, told)
    studio.sign_in(at="#/usage")
    expect(studio.page.get_by_role("heading", name="Activity")).to_be_visible()
    return studio.page


def with_cache(days: dict[int, tuple[int, int]]) -> dict[str, Any]:
    """``days``: prompt tokens and cached ones, by how long ago that was."""
    today = datetime.now(UTC).date()
    activity = [
        {"day": (today - timedelta(days=back)).isoformat(), "requests": 3, "tokens": 9000, "prompt_tokens": prompt}
        | {"cached_tokens": of_cache}
        for back, (prompt, of_cache) in sorted(days.items(), reverse=True)
    ]
    told = a_year()
    return told | {"activity": activity, "total": told["total"] | {"requests": 12} | cache_total(activity)}


def columns(page: Page, title: str, tone: str) -> list[tuple[int, float]]:
    """Of a chart: how many places before the last, and the height in hundredths of the whole; those of nothing have
    none."""
    image = chart(page, title)
    places = float(str(image.get_attribute("viewBox")).split()[2])
    drawn = str(image.locator(f".columns.{tone}").get_attribute("d"))
    each = re.findall(r"M([\d.]+) 100V([\d.]+)H", drawn)
    return [(int(places - 1 - float(x) // 1), round(100 - float(y))) for x, y in each]


def test_what_was_cached_stands_in_the_prompts_of_the_days_of_which_it_is_known(studio: Studio) -> None:
    page = shown(studio, with_cache({0: (1000, 800), 1: (0, 0), 2: (4000, 0), 52: (1000, 1000)}))
    title = "Prompt tokens, where reported"
    assert columns(page, title, "a") == [(52, 25), (2, 100), (0, 25)]
    assert columns(page, title, "c") == [(52, 25), (0, 20)]
    expect(page.locator(".figure", has_text="prompt tokens cached")).to_contain_text("30 %")
    expect(chart(page, title)).to_have_attribute(
        "aria-label", re.compile("all 1,000, cached 800 at the end, at most 4,000")
    )
    page.get_by_text("The same as a table").click()
    shares = page.locator("tbody tr td:nth-child(6)").all_inner_texts()
    assert shares == ["80 %", "unknown", "0 %", "100 %"]


def test_pointing_at_a_chart_tells_the_values_of_that_day(studio: Studio) -> None:
    page = shown(studio, with_cache({0: (1000, 800), 1: (0, 0), 23: (3000, 600)}))
    figure = page.locator(".chart", has_text="where reported")
    expect(figure.locator(".key")).to_have_text(["all 1,000", "cached 800"])
    day = datetime.now(UTC).date() - timedelta(days=23)
    figure.locator("svg").hover(position={"x": 3, "y": 40})
    expect(figure.locator(".key")).to_have_text(["all 3,000", "cached 600"])
    expect(figure.locator(".axis span").nth(1)).to_have_text(f"{day.day} {day:%b %Y}".replace("Sep ", "Sept "))
    page.get_by_role("heading", level=1).hover()
    expect(figure.locator(".key")).to_have_text(["all 1,000", "cached 800"])


def test_days_without_a_request_have_no_column_and_break_the_curve(studio: Studio) -> None:
    page = shown(studio, with_cache({0: (0, 0), 1: (0, 0), 5: (0, 0)}))
    assert [place for place, _ in columns(page, "Requests", "a")] == [5, 1, 0]
    curve = str(chart(page, "Time to the whole answer").locator(".curve").get_attribute("d"))
    assert re.sub(r"[\d. ]+", "", curve) == "MhML", "a dot, then a line of two"


def test_where_no_provider_reports_it_nothing_is_drawn_and_the_share_is_unknown(studio: Studio) -> None:
    studio.page.set_viewport_size({"width": 320, "height": 900})
    page = shown(studio, with_cache({0: (0, 0), 1: (0, 0)}))
    expect(page.locator(".figure", has_text="no provider reported it")).to_contain_text("unknown")
    nothing_is_too_wide(page)
    assert "Prompt tokens, where reported" not in charts(page)
