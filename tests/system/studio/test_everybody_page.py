"""Everybody: users as a table that is searched, sorted, turned and worked with a keyboard, from 320 to 2,560 pixels."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.support.harness import House, eventually
from tests.system.studio.conftest import Studio
from tests.system.studio.test_other_pages import faults

NAMES = [f"person-{number:04d}" for number in range(5000)]


def with_many(studio: Studio) -> None:
    """An API that knows five thousand users in parts of a thousand, of whom the third switched memories off."""

    def users(route: Route) -> None:
        after = re.search(r"after=([^&]*)", route.request.url)
        page = [name for name in NAMES if name > (after[1] if after else "")][:1000]
        more = page[-1] if page[-1] != NAMES[-1] else None
        switches = {NAMES[2]: {"reading": "off", "storing": None}} if NAMES[2] in page else {}
        told = {"memory_switches": switches, "aliases": {}, "last_seen": {}}
        route.fulfill(json={"users": page, "next_after": more, "total": None, "limit": 1000, **told})

    def memories(route: Route) -> None:
        number = int(route.request.url.split("user_id=person-")[1][:4])
        made = [{"created_at": f"2026-10-{1 + number % 28:02d}T08:00:00Z"}]
        route.fulfill(json={"memories": made, "total": number % 10, "next_cursor": None})

    studio.page.route("**/v1/users?*", users)
    studio.page.route("**/v1/memory?*", memories)


def named(studio: Studio) -> list[str]:
    told: list[str] = studio.page.locator("tbody th").all_inner_texts()
    return told


def test_users_stand_in_a_table_with_what_is_known_of_them(home: House, studio: Studio, person: str) -> None:
    studio.sign_in(at="#/everybody")
    page = studio.page
    page.get_by_label("Search", exact=True).fill(person[5:])
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=person, exact=True))
    expect(row.get_by_role("cell").first).to_have_text("6")
    shown = row.get_by_label(f"In prompts: {person}")
    shown.select_option("off")
    expect(page.locator(".toast")).to_contain_text(f"{person}: off")
    told: Any = home.semmem.api("GET", f"/v1/users/{person}/memory-switches")
    assert (told["reading"], told["storing"]) == ("off", None)
    page.reload()
    page.get_by_label("Search", exact=True).fill(person[5:])
    expect(shown).to_have_value("off")
    row.get_by_label(f"In prompts: {person}").select_option("")
    expect(page.locator(".toast")).to_contain_text("default")
    row.get_by_role("link", name="Playground").click()
    expect(page.get_by_role("heading", level=1, name="Playground")).to_be_visible()
    expect(page.get_by_label("User", exact=True)).to_have_value(person)


def row_of(studio: Studio, name: str) -> Locator:
    return studio.page.get_by_role("row").filter(has=studio.page.get_by_role("link", name=name, exact=True))


def test_a_user_is_given_a_name_is_found_by_it_and_called_by_it(home: House, studio: Studio, person: str) -> None:
    page, alias = studio.page, f"Ada's {person[-6:]} <b>"
    home.semmem.api("PUT", f"/v1/users/{person}/alias", json={"alias": None})
    studio.sign_in(at=f"#/everybody/{person}")
    page.get_by_label("Search", exact=True).fill(person)
    button = page.get_by_role("button", name=f"Name of {person}", exact=True)
    button.focus()
    page.keyboard.press("Enter")
    page.get_by_label(f"What {person} is called").fill(f"  {alias} ")
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text(alias)
    row = row_of(studio, alias)
    expect(row.get_by_role("rowheader")).to_contain_text(person)
    expect(page.get_by_role("button", name=f"Name of {alias} ({person})")).to_be_focused()
    expect(page.locator("#bar .alias")).to_have_text(alias)
    page.get_by_label("Search", exact=True).fill(alias.upper())
    expect(page.locator(".count")).to_have_text("1 to 1 of 1 users")
    row.get_by_role("link", name="Playground").click()
    expect(page.get_by_label("User", exact=True)).to_have_value(person)
    page.reload()
    expect(page.locator("#bar .alias")).to_have_text(alias)
    page.get_by_label("User", exact=True).focus()
    expect(page.locator(f"#users option[value='{person}']")).to_have_text(alias)
    page.get_by_label("User", exact=True).fill("somebody else")
    expect(page.locator("#bar .alias")).to_have_text("")
    studio.open("Everybody")
    page.get_by_label("Search", exact=True).fill(person)
    page.get_by_role("button", name=f"Name of {alias}").click()
    page.get_by_label(f"What {person} is called").fill("")
    page.get_by_role("button", name="Save").click()
    expect(row_of(studio, person)).to_be_visible()
    assert home.semmem.api("GET", f"/v1/users/{person}/alias")["alias"] is None


def test_users_name_themselves_in_the_bar_until_everything_is_forgotten(
    home: House, studio: Studio, person: str
) -> None:
    made = home.semmem.api("POST", "/v1/tokens", json={"role": "user", "user_id": person})
    studio.sign_in(made["token"])
    own = studio.page.locator("#bar .own")
    expect(own).to_have_text(person)
    own.click()
    studio.page.get_by_label(f"What {person} is called").fill("Me")
    studio.page.get_by_role("button", name="Save").click()
    expect(own).to_have_text("Me")
    expect(own).to_be_focused()
    assert home.semmem.api("GET", f"/v1/users/{person}/alias")["alias"] == "Me"
    studio.page.get_by_role("button", name="Forget everything …").click()
    studio.page.get_by_role("button", name="Forget everything", exact=True).click()
    expect(studio.page.get_by_role("dialog")).to_contain_text("aliases1")
    expect(own).to_have_text(person)


def test_the_table_says_when_users_were_last_seen_and_sorts_by_it(home: House, studio: Studio, person: str) -> None:
    for user in (person, f"{person}-2"):
        home.chat(user, "I moved to Lisbon in May.")
        eventually(lambda: home.semmem.turns(user), within_s=60, what="the turn is journalled")  # noqa: B023
    home.semmem.remember(f"{person}-3", "User likes tea.")
    studio.sign_in(at="#/everybody")
    page = studio.page
    page.get_by_label("Search", exact=True).fill(person)
    expect(page.locator(".count")).to_have_text("1 to 3 of 3 users")
    page.get_by_role("button", name="Last seen").click()
    assert named(studio) == [f"{person}-2", person, f"{person}-3"]
    expect(row_of(studio, f"{person}-3").get_by_text("not on record")).to_be_visible()
    expect(row_of(studio, person).locator("td[data-label='Last seen'] time")).to_have_text(re.compile("now|ago"))
    page.get_by_role("button", name="Last seen").click()
    assert named(studio) == [f"{person}-3", person, f"{person}-2"]


def test_five_thousand_users_are_searched_sorted_and_turned(studio: Studio) -> None:
    with_many(studio)
    studio.sign_in(at="#/everybody")
    page = studio.page
    expect(page.locator(".count")).to_have_text("1 to 25 of 5,000 users")
    expect(page.locator("tbody td").first).to_have_text("0")
    expect(page.get_by_label(f"In prompts: {NAMES[2]}")).to_have_value("off")
    page.get_by_role("button", name="Next").click()
    assert named(studio) == NAMES[25:50]
    page.get_by_role("button", name="User").click()
    assert named(studio) == NAMES[:-26:-1]
    expect(page.get_by_role("columnheader", name="User")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("button", name="Memories", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("250 users or fewer")
    page.get_by_label("Search", exact=True).fill("PERSON-012")
    expect(page.locator(".count")).to_have_text("1 to 10 of 10 users")
    heading = page.get_by_role("button", name="Memories", exact=True)
    heading.focus()
    page.keyboard.press("Enter")
    expect(page.locator("tbody th").first).to_have_text("person-0129")
    assert named(studio) == [f"person-012{number}" for number in range(9, -1, -1)]
    page.keyboard.press("Space")
    expect(page.locator("tbody th").first).to_have_text("person-0120")
    expect(heading).to_be_focused()
    page.get_by_label("Search", exact=True).fill("nobody of that name")
    expect(page.get_by_text("No user is named like that.")).to_be_visible()


@pytest.mark.parametrize("width", [320, 768, 1040, 1220, 2560])
def test_the_table_is_readable_at_every_width(studio: Studio, width: int) -> None:
    with_many(studio)
    studio.page.set_viewport_size({"width": width, "height": 900})
    studio.sign_in(at="#/everybody")
    page = studio.page
    expect(page.locator("tbody td").first).to_have_text("0")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("(box => box.scrollWidth <= box.clientWidth)(document.querySelector('.people .scroll'))")
    expect(page.get_by_role("row")).to_have_count(26)
    link = page.get_by_role("link", name=f"Conversations of {NAMES[0]}").bounding_box()
    assert link is not None
    assert link["x"] + link["width"] <= width


def test_figures_that_cannot_be_read_are_said_and_the_users_stay(studio: Studio) -> None:
    with_many(studio)
    refusal = {
        "code": "MEMORY_NOT_AVAILABLE",
        "detail": "the store cannot be reached (StoreUnavailable): try again later",
    }
    studio.page.route("**/v1/memory?*", lambda route: route.fulfill(status=503, json=refusal))
    studio.sign_in(at="#/everybody")
    page = studio.page
    expect(page.get_by_role("alert")).to_contain_text("the store cannot be reached")
    expect(page.locator("tbody td").first).to_have_text("not known")
    assert named(studio) == NAMES[:25]
    studio.troubles.clear()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_table_has_no_fault_that_axe_finds(studio: Studio, scheme: Any) -> None:
    studio.page.emulate_media(color_scheme=scheme)
    with_many(studio)
    studio.sign_in(at="#/everybody")
    expect(studio.page.locator("tbody td").first).to_have_text("0")
    assert faults(studio) == []
