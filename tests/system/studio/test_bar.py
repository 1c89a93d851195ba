"""The bar on a phone: two rows, all pages in one of them, which is moved sideways and reached by a keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.support.harness import House
from tests.system.studio.conftest import Studio
from tests.system.studio.test_other_pages import faults

ROWS_PX = 110
PAGES = ["Memories", "Everybody", "Conversations", "Playground", "Requests", "Engine", "Live", "Usage"]


@pytest.mark.parametrize("width", [320, 390, 480, 768])
def test_the_bar_is_two_rows_on_a_phone_and_every_page_is_reached(
    home: House, studio: Studio, person: str, width: int
) -> None:
    page = studio.page
    page.set_viewport_size({"width": width, "height": 800})
    home.semmem.api("PUT", f"/v1/users/{person}/alias", json={"alias": "A name that has no end in sight"})
    studio.sign_in(at=f"#/memories/{person}")
    expect(page.locator("#bar .alias")).to_have_text("A name that has no end in sight")
    expect(page.locator("#bar .dot.good")).to_be_visible()
    box = page.locator("#bar").bounding_box()
    assert box is not None
    assert box["height"] <= ROWS_PX
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for label in ("Theme: system", "Sign out"):
        inside = page.get_by_role("button", name=label).bounding_box()
        assert inside is not None
        assert inside["x"] + inside["width"] <= width
    links = page.get_by_role("navigation").get_by_role("link")
    assert links.all_inner_texts() == PAGES
    links.first.focus()
    for place in range(len(PAGES)):
        expect(links.nth(place)).to_be_focused()
        expect(links.nth(place)).to_be_in_viewport(ratio=1)
        page.keyboard.press("Tab")
    links.last.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Usage")).to_be_visible()
    page.reload()
    expect(page.get_by_role("navigation").get_by_role("link", name="Usage")).to_be_in_viewport(ratio=1)
    assert faults(studio) == []


def test_the_bar_is_one_row_on_a_screen(home: House, studio: Studio, person: str) -> None:
    home.semmem.api("PUT", f"/v1/users/{person}/alias", json={"alias": "Ada's build server"})
    studio.sign_in(at=f"#/memories/{person}")
    expect(studio.page.locator("#bar .alias")).to_have_text("Ada's build server")
    box = studio.page.locator("#bar").bounding_box()
    assert box is not None
    assert box["height"] <= 2 / 3 * ROWS_PX
