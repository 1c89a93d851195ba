"""Why did it say that? A user's requests, one of them, and how one comes to it."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.support.harness import House, eventually
from tests.system.studio.conftest import Studio
from tests.system.studio.test_other_pages import token

BUDGET = "User's budget for the Hawaii trip is $10,000"
QUESTION = "What's my budget for the trip?"


def test_a_request_tells_what_was_in_its_prompt_and_what_was_learnt(home: House, studio: Studio, person: str) -> None:
    home.chat(person, "Thanks!")
    request_id = f"of {person}"
    home.chat(person, f"{QUESTION} I keep two parrots at home.", headers={"x-request-id": request_id})
    eventually(
        lambda: home.semmem.api("GET", f"/v1/requests/{request_id}")["learnt"], within_s=30, what="its turn is learnt"
    )
    studio.sign_in(at=f"#/requests/{person}")
    page = studio.page
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    page.get_by_label("Outcome").select_option("injected")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("stand-in")
    rows.get_by_role("link").click()
    expect(page.get_by_role("heading", level=2, name="injected")).to_be_focused()
    ended = page.get_by_role("region", name="How it ended")
    expect(ended).to_contain_text(request_id)
    expect(ended).to_contain_text("finding memories")
    expect(ended).to_contain_text("answered after")
    shown = page.get_by_role("region", name="In its prompt").locator("li", has_text=BUDGET)
    expect(shown).to_contain_text("found for this request")
    shown.get_by_role("button", name="Not helpful").click()
    expect(page.locator(".toast")).to_contain_text("shown less")
    expect(page.get_by_role("region", name="Learnt from its turn")).to_contain_text("parrots")
    page.get_by_role("link", name="All requests").click()
    page.get_by_label("Outcome").select_option("timeout")
    expect(page.get_by_text("None ended with “timeout”")).to_be_visible()


def test_a_request_tells_what_was_left_out_and_why(home: House, studio: Studio, person: str) -> None:
    request_id = f"left out for {person}"
    home.chat(person, QUESTION, headers={"x-request-id": request_id})
    told = home.semmem.api("GET", f"/v1/requests/{request_id}")
    left = told["in_prompt"][0] | {"content": "User owns a kayak", "reason": "limit"}
    studio.page.route("**/v1/requests/left*", lambda route: route.fulfill(json=told | {"left_out": [left]}))
    studio.sign_in(at=f"#/requests/{person}/{request_id}")
    page = studio.page
    expect(page.get_by_role("region", name="Left out")).to_contain_text("User owns a kayak")
    expect(page.get_by_role("region", name="Left out")).to_contain_text("others fit better")


def test_a_row_of_live_opens_its_request_and_its_users_pages(home: House, studio: Studio, person: str) -> None:
    home.chat(person, QUESTION)
    home.chat(person, "Thanks!")
    studio.sign_in()
    studio.open("Live")
    page = studio.page
    rows = page.locator("tbody tr")
    expect(rows.nth(1)).to_contain_text("memories are in the prompt")
    expect(page.get_by_role("img", name="half took at most")).to_be_visible()
    page.get_by_label("Outcome").select_option("greeting")
    expect(rows.first).to_contain_text("nothing but courtesy")
    page.get_by_label("Outcome").select_option("injected")
    rows.first.get_by_role("link").click()
    expect(page.get_by_role("region", name="In its prompt")).to_contain_text(BUDGET)
    assert page.get_by_label("User", exact=True).input_value() == person
    assert person in page.url


def test_an_operator_of_live_opens_nothing(home: House, studio: Studio, person: str) -> None:
    home.chat(person, QUESTION)
    studio.sign_in(token(home, "operator"))
    studio.open("Live")
    expect(studio.page.locator("tbody tr").first).to_be_visible()
    assert studio.page.locator("tbody a").count() == 0


def test_a_request_that_is_no_longer_known_says_why(home: House, studio: Studio, person: str) -> None:
    studio.sign_in(at=f"#/requests/{person}/nobody's")
    expect(studio.page.get_by_text("No such request")).to_be_visible()
    expect(studio.page.get_by_text("requests are kept for some days")).to_be_visible()
    studio.troubles.clear()  # the browser tells of an answer of 404


def test_a_message_of_a_conversation_tells_what_its_prompt_was_shown(home: House, studio: Studio, person: str) -> None:
    home.chat(person, QUESTION, session="trip")
    found = eventually(
        lambda: home.semmem.api("GET", "/v1/conversations", params={"user_id": person})["conversations"],
        within_s=30,
        what="the conversation is recorded",
    )
    eventually(lambda: recorded(home, person, found[0]["id"]), within_s=30, what="its answer is recorded")
    studio.sign_in(at=f"#/conversations/{person}/{found[0]['id']}")
    shown = studio.page.locator(".said.assistant details", has_text="in its prompt")
    shown.locator("summary").click()
    expect(shown).to_contain_text(BUDGET)


def recorded(home: House, person: str, conversation: str) -> bool:
    told = home.semmem.api("GET", f"/v1/conversations/{conversation}", params={"user_id": person})
    return any(message["in_prompt"] for message in told["messages"])
