"""Conversations: found, read with their tools folded, named, tagged, copied, removed; and who sees them at all."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.support.harness import House, eventually
from tests.system.studio.conftest import PATIENCE_MS, Studio, opened
from tests.system.studio.test_other_pages import ask, faults, picture, token

Json = dict[str, Any]

HOSTILE = "<script>document.title='taken'</script><img src=x onerror=alert(1)> & <b>bold</b>"
RTL = "מה הגובה של ההר הזה?"
LONG_WORD = "hemmingbrackish" * 40
TRIP: list[Json] = [
    {"role": "user", "content": "Find me a flight to Honolulu for 14 March.", "at": "2026-11-02T09:14:00Z"},
    {
        "role": "assistant",
        "content": "Let me look.",
        "at": "2026-11-02T09:14:03Z",
        "model_asked": "fast",
        "model": "llama-3.1-8b",
        "tokens_in": 412,
        "tokens_out": 31,
        "tool_calls": [{"id": "call_1", "name": "search_flights", "arguments": '{"to": "HNL", "on": "2027-03-14"}'}],
        "finish_reason": "tool_calls",
    },
    {"role": "tool", "content": '[{"flight": "KL 605", "price": 912}]', "tool_call_id": "call_1"},
    {
        "role": "assistant",
        "content": "KL 605 leaves at 10:05 and costs €912.\n\n- one stop, in San Francisco\n- a bag of 23 kg",
        "at": "2026-11-02T09:14:09Z",
        "model": "llama-3.1-8b",
        "tokens_in": 530,
        "tokens_out": 64,
        "finish_reason": "length",
    },
]


def keep(home: House, person: str, messages: list[Json], **more: Any) -> Json:
    told: Json = home.semmem.api("POST", "/v1/conversations", json={"user_id": person, "messages": messages} | more)
    return told


def said(text: str, at: str = "2026-11-01T10:00:00Z") -> list[Json]:
    return [{"role": "user", "content": text, "at": at}]


def listed(home: House, person: str) -> list[Json]:
    found: list[Json] = home.semmem.api("GET", "/v1/conversations", params={"user_id": person})["conversations"]
    return found


def items(studio: Studio) -> Locator:
    return studio.page.locator("main li[data-id]")


def read(studio: Studio, title: str) -> None:
    studio.page.get_by_role("link", name=title).click()
    expect(studio.page.get_by_role("heading", level=2, name=title)).to_be_focused()


def test_many_are_listed_newest_first_in_pages_that_one_comes_back_to(home: House, studio: Studio, person: str) -> None:
    for number in range(25):
        keep(home, person, said(f"Question number {number}", f"2026-10-{number + 1:02d}T10:00:00Z"))
    studio.sign_in(at=f"#/conversations/{person}")
    page = studio.page
    expect(items(studio)).to_have_count(20)
    expect(items(studio).first).to_contain_text("Question number 24")
    expect(page.locator(".figure").first).to_have_text("25conversations")
    page.get_by_role("button", name="Older").click()
    expect(page.get_by_text("21 to 25")).to_be_focused()
    expect(page.get_by_role("button", name="Older")).to_be_disabled()
    read(studio, "Question number 2")
    page.go_back()
    expect(page.get_by_text("21 to 25")).to_be_visible()
    expect(page.get_by_role("link", name="Question number 2", exact=True)).to_be_focused()
    page.get_by_role("button", name="Newer").click()
    expect(items(studio)).to_have_count(20)


def test_the_list_follows_what_is_typed_and_the_filters(home: House, studio: Studio, person: str) -> None:
    keep(home, person, TRIP, project_id="travel", tags=["flights"])
    keep(home, person, said("How do I bake rye bread?", "2026-09-01T10:00:00Z"), tags=["kitchen"])
    studio.sign_in(at=f"#/conversations/{person}")
    page = studio.page
    search = page.get_by_role("search")
    for name, wanted in (
        ("Search", "san francisco"),
        ("Project", "travel"),
        ("Tag", "Flights"),
        ("Since", "2026-10-01"),
    ):
        expect(items(studio)).to_have_count(2)
        search.get_by_label(name).fill(wanted)
        expect(items(studio)).to_have_count(1)
        expect(items(studio)).to_contain_text("Honolulu")
        search.get_by_label(name).fill("")
    expect(items(studio)).to_have_count(2)
    page.get_by_role("button", name="kitchen").click()
    expect(items(studio)).to_have_count(1)
    expect(search.get_by_label("Tag")).to_have_value("kitchen")
    search.get_by_label("Search").fill("nothing of the kind")
    expect(page.get_by_text("Nothing like that")).to_be_visible()
    page.get_by_role("button", name="Clear them").click()
    expect(items(studio)).to_have_count(2)


def test_one_is_read_with_its_models_tokens_and_folded_tools(home: House, studio: Studio, person: str) -> None:
    kept = keep(home, person, TRIP, project_id="travel")
    studio.sign_in(at=f"#/conversations/{person}/{kept['id']}")
    talk = studio.page.get_by_role("list", name="Messages").locator("> li")
    expect(talk).to_have_count(4)
    assert talk.locator(".marks b").all_inner_texts() == ["User", "Assistant", "Tool", "Assistant"]
    expect(talk.nth(1)).to_contain_text("llama-3.1-8basked for fast412 tokens in, 31 out")
    expect(talk.nth(1).get_by_text("HNL")).to_be_hidden()
    talk.nth(1).get_by_text("Call of search_flights").press("Enter")
    expect(talk.nth(1).get_by_text('{"to": "HNL"')).to_be_visible()
    talk.nth(2).get_by_text("Result of search_flights").click()
    expect(talk.nth(2).get_by_text("KL 605")).to_be_visible()
    expect(talk.nth(3)).to_contain_text("ended: length")
    expect(studio.page.get_by_text("That is all of it.")).to_be_visible()
    expect(studio.page.get_by_label("About this conversation")).to_contain_text("4 messages, 1,037 tokens")


def test_a_long_one_is_read_page_by_page(home: House, studio: Studio, person: str) -> None:
    messages = [{"role": "user", "content": f"Remark {number}"} for number in range(120)]
    kept = keep(home, person, messages)
    studio.sign_in(at=f"#/conversations/{person}/{kept['id']}")
    page, talk = studio.page, studio.page.locator(".said")
    expect(talk).to_have_count(50)
    for number in (100, 120):
        page.get_by_role("button", name="Further messages").click()
        expect(talk).to_have_count(number)
    assert talk.locator(".words").all_inner_texts() == [message["content"] for message in messages]
    expect(talk.nth(100)).to_be_focused()
    expect(page.get_by_role("button", name="Further messages")).to_be_hidden()


def seen(studio: Studio, text: str) -> Locator:
    """A message that is on the screen."""
    said = studio.page.locator(".said", has=studio.page.get_by_text(text, exact=True))
    expect(said).to_have_count(1)
    inside = "said => { const at = said.getBoundingClientRect(); return at.top >= 0 && at.bottom <= innerHeight; }"
    assert said.evaluate(inside)
    return said


def test_a_search_opens_a_conversation_at_its_newest_match(home: House, studio: Studio, person: str) -> None:
    said = [f"Remark {n} on the garden" if n in (3, 150, 260) else f"Remark {n}" for n in range(300)]
    keep(home, person, [{"role": "user", "content": text} for text in said], title="All the remarks")
    studio.sign_in(at=f"#/conversations/{person}")
    page, talk = studio.page, studio.page.locator(".said")
    page.get_by_role("search").get_by_label("Search").fill("GARDEN remark")
    expect(page.get_by_role("link", name="All the remarks")).to_have_attribute("href", re.compile("GARDEN"))
    page.get_by_role("link", name="All the remarks").click()
    expect(talk.locator("mark")).to_have_text(["Remark", "garden"])
    expect(page.locator(".said.here")).to_be_focused()
    expect(page.locator(".find").get_by_role("status")).to_contain_text("Match 3 of 3, user")
    seen(studio, said[260])
    page.get_by_role("button", name="Previous match").press("Enter")
    expect(page.locator(".said.here")).to_contain_text(said[150])
    expect(page.locator(".find").get_by_role("status")).to_contain_text("Match 2 of 3, user, ")
    expect(page.get_by_role("button", name="Previous match")).to_be_focused()
    seen(studio, said[150])
    find = page.get_by_label("Find in this conversation")
    find.press("Shift+Enter")
    expect(page.locator(".said.here")).to_contain_text(said[3])
    find.press("Shift+Enter")
    expect(page.locator(".said.here")).to_contain_text(said[260])
    page.go_back()
    expect(page.get_by_role("search").get_by_label("Search")).to_have_value("GARDEN remark")
    page.go_forward()
    expect(page.locator(".said.here")).to_contain_text(said[260])
    page.reload()
    expect(page.locator(".said.here")).to_contain_text(said[260])
    first = int(talk.first.inner_text().split("Remark ")[1].split()[0])
    page.get_by_role("button", name="Earlier messages").click()
    expect(talk).to_have_count(100)
    page.get_by_role("button", name="Further messages").click()
    shown = talk.locator(".words").all_inner_texts()
    assert shown == said[first - 50 : first - 50 + len(shown)]
    find.fill("garden pond")
    expect(page.locator(".find").get_by_role("status")).to_have_text("No message has all of it")
    expect(page.locator("mark, .said.here")).to_have_count(0)


def test_a_match_is_unfolded_and_one_that_is_gone_is_said_to_be(home: House, studio: Studio, person: str) -> None:
    long = "\n".join(f"line {number}" for number in range(100))
    messages = [*TRIP, {"role": "user", "content": f"{long}\n(KL 605?) {HOSTILE}"}]
    kept = keep(home, person, messages)
    studio.sign_in(at=f"#/conversations/{person}/{kept['id']}/KL%20605")
    page, said = studio.page, studio.page.locator(".said")
    expect(page.locator(".find").get_by_role("status")).to_contain_text("Match 3 of 3")
    expect(said.nth(4).get_by_text("KL", exact=True)).to_be_in_viewport()
    page.get_by_role("button", name="Next match").click()
    expect(said.nth(2).locator("pre mark").first).to_be_in_viewport()
    find = page.get_by_label("Find in this conversation")
    find.fill("onerror=alert(1)>")
    expect(page.locator("mark")).to_have_text(["onerror=alert(1)>"])
    find.fill("honolulu flight")
    expect(page.locator(".said.here")).to_contain_text("Find me a flight")
    assert page.title() == "Conversations · semmem Studio"
    home.semmem.api("DELETE", f"/v1/conversations/{kept['id']}", params={"user_id": person})
    find.fill("KL")
    expect(page.locator(".find").get_by_role("status")).to_have_text("no such conversation")
    assert studio.troubles.pop().startswith("Failed to load resource")


def test_one_in_which_nothing_is_said_yet_says_so(home: House, studio: Studio, person: str) -> None:
    kept = keep(home, person, [], title="For a model that keeps none")
    studio.sign_in(at=f"#/conversations/{person}/{kept['id']}")
    expect(studio.page.get_by_text("Nothing is said in it yet.")).to_be_visible()
    studio.page.get_by_label("Find in this conversation").fill("none")
    expect(studio.page.locator(".find").get_by_role("status")).to_have_text("In the title alone")


def test_filters_offer_the_projects_and_tags_that_there_are(home: House, studio: Studio, person: str) -> None:
    for project, tags in (("travel", ["flights"]), ("travel", []), ("garden", ["flights", "<b>"])):
        keep(home, person, TRIP, project_id=project, tags=tags)
    keep(home, f"{person}-2", TRIP, project_id="theirs", tags=["theirs"])
    studio.sign_in(at=f"#/conversations/{person}")
    search = studio.page.get_by_role("search")
    for name, offered in (("Project", ["travel2", "garden1"]), ("Tag", ["flights2", "<b>1"])):
        options = search.get_by_label(name).locator("xpath=following-sibling::datalist").locator("option")
        expect(options).to_have_count(2)
        told = options.evaluate_all("all => all.map((one) => one.value + one.textContent)")
        assert [each.removesuffix(" conversations").removesuffix(" conversation") for each in told] == offered


def test_what_is_hostile_or_unwieldy_is_shown_as_text(home: House, studio: Studio, person: str) -> None:
    long = "\n".join(f"line {number}" for number in range(100))
    call = {"id": "c", "name": HOSTILE[:200], "arguments": HOSTILE}
    messages = [
        *said(HOSTILE),
        {"role": "assistant", "content": RTL, "model": HOSTILE[:150], "tool_calls": [call]},
        {"role": "tool", "content": HOSTILE, "tool_call_id": "c"},
        {"role": "user", "content": long},
        {"role": "user", "content": LONG_WORD},
    ]
    keep(home, person, messages, title=HOSTILE, tags=[HOSTILE[:60]], project_id=HOSTILE[:60])
    studio.sign_in(at=f"#/conversations/{person}")
    page = studio.page
    expect(items(studio)).to_contain_text(HOSTILE)
    read(studio, HOSTILE)
    talk = page.locator(".said")
    expect(talk.nth(0).locator(".words")).to_have_text(HOSTILE)
    assert talk.nth(1).locator(".words").evaluate("words => getComputedStyle(words).direction") == "rtl"
    for each in talk.locator("summary").all():
        each.click()
    assert talk.locator("pre").all_inner_texts() == [HOSTILE, HOSTILE]
    assert page.locator("main img, main script, main b:not(.marks b, .figure b)").count() == 0
    assert page.title() == "Conversations · semmem Studio"
    words = talk.nth(3).locator(".words")
    height = words.evaluate("words => words.clientHeight")
    page.get_by_role("button", name=f"Show all {len(long)} characters").click()
    assert words.evaluate("words => words.clientHeight") > 3 * height
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_title_and_tags_are_changed_in_their_place(home: House, studio: Studio, person: str) -> None:
    keep(home, person, TRIP)
    studio.sign_in(at=f"#/conversations/{person}")
    read(studio, "Find me a flight")
    page = studio.page
    page.get_by_role("button", name="Edit").press("Enter")
    expect(page.get_by_label("Title")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Edit")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_label("Title").fill("The way to Hawaii")
    page.get_by_label("Tags").fill("Flights,  Summer trip ")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=2)).to_have_text("The way to Hawaii")
    (kept,) = listed(home, person)
    assert (kept["title"], kept["tags"]) == ("The way to Hawaii", ["flights", "summer trip"])
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Tags").fill(", ".join(str(number) for number in range(21)))
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toast.bad")).to_be_visible()
    expect(page.get_by_label("Tags")).not_to_have_value("")
    assert studio.troubles.pop().startswith("Failed to load resource")


def test_one_is_removed_unless_that_is_undone(home: House, studio: Studio, person: str) -> None:
    kept = keep(home, person, TRIP)
    keep(home, person, said("Something that stays"))
    studio.sign_in(at=f"#/conversations/{person}/{kept['id']}")
    page, shown = studio.page, items(studio).locator("visible=true")
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(shown).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(shown).to_have_count(2)
    shown.get_by_role("link", name="Find me a flight").click()
    page.get_by_role("button", name="Remove").click()
    expect(page.locator(".figure").first).to_have_text("2conversations")
    expect(page.locator(".figure").first).to_have_text("1conversations", timeout=PATIENCE_MS)
    assert [each["title"] for each in listed(home, person)] == ["Something that stays"]
    expect(items(studio)).to_have_count(1)


def test_a_copy_is_taken_as_markdown_and_as_json(home: House, studio: Studio, person: str) -> None:
    kept = keep(home, person, TRIP, title=HOSTILE)
    studio.sign_in(at=f"#/conversations/{person}/{kept['id']}")
    texts = []
    for form, ending in (("Markdown", "md"), ("JSON", "json")):
        with studio.page.expect_download() as download:
            studio.page.get_by_role("button", name=f"Export {form}").click()
        assert download.value.suggested_filename == f"conversation-2026-11-02.{ending}"
        texts.append(Path(download.value.path()).read_text())
    assert texts[0].startswith(f"# {HOSTILE}\n")
    assert [message["content"] for message in json.loads(texts[1])["messages"]] == [each["content"] for each in TRIP]


def test_a_user_sees_their_own_and_a_reader_changes_nothing(home: House, studio: Studio, person: str) -> None:
    keep(home, person, said("Mine alone"))
    other = keep(home, f"{person}-2", said("Somebody else's"))
    studio.sign_in(token(home, "user", person), at="#/conversations")
    page = studio.page
    expect(items(studio)).to_have_count(1)
    page.goto(f"{studio.url}/studio/#/conversations/{person}-2/{other['id']}")
    expect(page.get_by_text("No such conversation")).to_be_visible()
    assert "Somebody else" not in page.content()
    assert studio.troubles.pop().startswith("Failed to load resource")
    page.get_by_role("button", name="Sign out").click()
    studio.sign_in(token(home, "reader", person), at="#/conversations")
    read(studio, "Mine alone")
    expect(page.get_by_role("button", name="Export JSON")).to_be_visible()
    for name in ("Edit", "Remove"):
        assert page.get_by_role("button", name=name).count() == 0


def test_an_operator_sees_how_many_and_no_words(home: House, studio: Studio, person: str) -> None:
    keep(home, person, said("Words nobody may see"))
    asked: list[str] = []
    studio.page.on("request", lambda request: asked.append(request.url))
    studio.sign_in(token(home, "operator"), at="#/conversations")
    labels = studio.page.locator(".figure span")
    expect(labels).to_have_text(["conversations", "messages", "users with any", "tokens in", "tokens out"])
    assert int(studio.page.locator(".figure b").first.inner_text().replace(",", "")) >= 1
    assert "Words nobody" not in studio.page.content()
    assert person not in studio.page.content()
    assert not [url for url in asked if re.search(r"/v1/conversations(\?|$)", url)]


def test_nothing_yet_and_nothing_recorded_are_said(home: House, studio: Studio, person: str) -> None:
    studio.sign_in(at=f"#/conversations/{person}")
    page = studio.page
    expect(page.get_by_text("No conversations yet")).to_be_visible()
    off: Json = {"conversations": [], "next_cursor": None, "recording": False}
    page.route("**/v1/conversations?*", lambda route: route.fulfill(json=off))
    page.reload()
    expect(page.get_by_text("Conversations are not recorded")).to_be_visible()
    expect(page.get_by_text("conversations.enabled: true")).to_be_visible()


def test_semmem_away_is_said_and_tried_again(home: House, studio: Studio, person: str) -> None:
    kept = keep(home, person, TRIP)
    studio.sign_in(at=f"#/conversations/{person}")
    page = studio.page
    expect(items(studio)).to_have_count(1)
    page.route("**/v1/conversations*/**", lambda route: route.abort())
    page.route("**/v1/conversations?*", lambda route: route.abort())
    page.get_by_label("Search").fill("honolulu")
    expect(page.get_by_text("cannot be reached")).to_be_visible()
    page.unroute("**/v1/conversations?*")
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("link", name="Find me a flight").click()
    expect(page.get_by_text("cannot be reached")).to_be_visible()
    page.unroute("**/v1/conversations*/**")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".said")).to_have_count(kept["messages"])
    studio.troubles.clear()


def test_a_memory_leads_to_the_conversation_it_came_from(home: House, studio: Studio, person: str) -> None:
    home.chat(person, "I keep two parrots at home.", session="pets")
    eventually(lambda: any("parrots" in text for text in home.semmem.contents(person)), within_s=20, what="learnt")
    eventually(lambda: listed(home, person), within_s=20, what="recorded")
    studio.sign_in(at=f"#/memories/{person}")
    page = studio.page
    studio.opened(page.locator(".memory", has_text="parrots")).get_by_role("button", name="History").click()
    page.get_by_text("From the conversation").get_by_role("link").click()
    expect(page.get_by_role("heading", level=2, name="I keep two parrots at home.")).to_be_focused()
    expect(page.locator(".said.user")).to_contain_text("I keep two parrots at home.")
    studio.open("Memories")
    told = studio.opened(page.locator(".memory", has_text="Utrecht"))
    told.get_by_role("button", name="History").click()
    expect(told.locator(".timeline li")).to_have_count(1)
    assert page.get_by_text("From the conversation").count() == 0


def test_a_question_for_a_former_conversation_leads_to_it(home: House, studio: Studio, person: str) -> None:
    keep(
        home,
        person,
        [*said("Shall we pave the patio with slate?"), {"role": "assistant", "content": "Gravel is less."}],
    )
    studio.sign_in(at=f"#/playground/{person}")
    ask(studio, "What did we discuss about the patio and slate?")
    one = studio.page.locator(".candidates .kept", has_text="patio")
    expect(one).to_contain_text("a former conversation")
    assert one.get_by_role("button").count() == 0, "it is no memory that could be rated"
    one.get_by_role("link", name="Read the conversation").click()
    expect(studio.page.get_by_role("heading", level=2, name="Shall we pave")).to_be_focused()


def test_another_user_is_named_above_although_the_address_names_one(home: House, studio: Studio, person: str) -> None:
    kept = keep(home, person, said("What the first one said"))
    keep(home, f"{person}-2", said("What the second one said"))
    studio.sign_in(at=f"#/conversations/{person}/{kept['id']}")
    page = studio.page
    expect(page.locator(".said")).to_contain_text("first one")
    page.get_by_label("User", exact=True).fill(f"{person}-2")
    expect(items(studio)).to_contain_text("second one")
    expect(page).to_have_url(re.compile(f"#/conversations/{person}-2$"))
    studio.open("Memories")
    expect(page.get_by_label("User", exact=True)).to_have_value(f"{person}-2")


def shelf(home: House, person: str) -> None:
    """What a page of one's own may look like, unwieldy words included."""
    home.semmem.api("DELETE", "/v1/memory", params={"user_id": person})
    keep(home, person, said(f"{HOSTILE} {LONG_WORD}", "2026-08-11T18:00:00Z"), tags=["x" * 64], project_id="y" * 200)
    for day, title in enumerate(("Names for a boat", "Why the oven trips the fuse", "A letter to the landlord")):
        keep(home, person, said(title, f"2026-08-{day + 20}T18:00:00Z"), tags=["home"] if day else [])
    keep(home, person, said(RTL, "2026-09-03T08:30:00Z"), tags=["הרים"])
    keep(home, person, said("How do I bake rye bread without yeast?", "2026-10-20T19:05:00Z"), tags=["kitchen"])
    answer = {"role": "assistant", "content": "A", "tokens_in": 800, "tokens_out": 260, "at": "2026-10-28T07:45:00Z"}
    keep(home, person, [*said("Review the budget of the roof repair"), answer], project_id="house", tags=["money"])
    keep(home, person, TRIP, title="Flight to Honolulu", project_id="travel", tags=["flights", "march"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_list_and_conversation_have_no_fault_that_axe_finds(
    home: House, browser: Browser, person: str, scheme: Any, width: int, shots: Path | None
) -> None:
    shelf(home, person)
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    context.set_default_timeout(PATIENCE_MS)
    studio = opened(home.semmem.api_url, context)
    page = studio.page
    studio.sign_in(at=f"#/conversations/{person}")
    expect(items(studio)).to_have_count(8)
    expect(page.locator(".figure")).to_have_count(4)
    page.mouse.move(0, 0)
    found = {"list": faults(studio)}
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    bar = page.locator("#bar").bounding_box()
    assert width < 1280 or (bar and bar["height"] < 70), "the bar takes more than one line"
    picture(studio, shots, f"conversation-list-{width}-{scheme}")
    read(studio, "Flight to Honolulu")
    for each in page.locator(".said summary").all():
        each.click()
    found["conversation"] = faults(studio)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.evaluate("scrollTo(0, 0)")
    picture(studio, shots, f"conversation-{width}-{scheme}")
    page.get_by_label("Find in this conversation").fill("flight")
    expect(page.locator(".find").get_by_role("status")).to_contain_text("Match 2 of 2")
    found["match"] = faults(studio)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    picture(studio, shots, f"conversation-match-{width}-{scheme}")
    page.get_by_role("button", name="Edit").click()
    found["edit"] = faults(studio)
    page.get_by_role("button", name="Cancel").click()
    context.close()
    assert {name: faulty for name, faulty in found.items() if faulty} == {}
    assert studio.troubles == []
