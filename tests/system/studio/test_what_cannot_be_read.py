"""What could not be read is said to be so, with the part that is broken; it is never shown as nothing or as zero."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Route, expect

from tests.support.harness import House, SemmemProcess, house, stand_in_model
from tests.system.studio.conftest import PATIENCE_MS, Studio, opened

HUNG = {"memory": {"milvus": {"call_timeout_s": 1.0}}, "usage": {"enabled": True}, "conversations": {"enabled": True}}
NO_STORE = "the store did not answer in time"
NOTHING = re.compile(
    r"nobody has|nobody yet|no memories yet|nothing yet|nothing like that|no batch|no conversations? yet", re.I
)
"""What pages say where there is nothing."""
JOURNAL_FAILS = {
    "status": 503,
    "json": {"code": "MEMORY_NOT_AVAILABLE", "detail": "the journal failed (JournalError): try again later"},
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One whose store may be made to hang, with a user who has a memory."""
    with stand_in_model() as model, house(tmp_path_factory.mktemp("hung"), model, HUNG) as home:
        home.semmem.remember("alice", "User likes oolong tea")
        yield home


@pytest.fixture
def tab(small: House, context: BrowserContext) -> Studio:
    return opened(small.semmem.api_url, context)


@contextmanager
def hung_store(semmem: SemmemProcess) -> Iterator[None]:
    """Milvus Lite's process is stopped: it takes calls and answers none."""
    pid = semmem.child.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    [store] = [int(child) for child in children if "lite_server" in Path(f"/proc/{child}/cmdline").read_text()]
    os.kill(store, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(store, signal.SIGCONT)


def says_nothing_is_there(tab: Studio) -> list[str]:
    return NOTHING.findall(tab.page.locator("main").inner_text())


def without_journal(tab: Studio, *paths: str) -> None:
    def refuse(route: Route) -> None:
        told: dict[str, Any] = JOURNAL_FAILS
        route.fulfill(**told)

    for path in paths:
        tab.page.route(path, refuse)


def test_with_the_store_hung_no_page_says_that_nobody_has_a_memory(small: House, tab: Studio) -> None:
    page = tab.page
    page.set_default_timeout(4 * PATIENCE_MS)
    with hung_store(small.semmem):
        tab.sign_in()
        expect(page.get_by_role("alert")).to_contain_text(NO_STORE, timeout=4 * PATIENCE_MS)
        expect(page.get_by_role("alert")).to_contain_text("The store does not answer")
        expect(page.get_by_role("alert")).to_contain_text("Look whether the store runs")
        assert says_nothing_is_there(tab) == []
        for name in ("Playground", "Conversations"):
            tab.open(name)
            expect(page.get_by_role("alert")).to_contain_text(NO_STORE, timeout=4 * PATIENCE_MS)
            assert says_nothing_is_there(tab) == []
        tab.open("Everybody")
        expect(page.get_by_role("alert")).to_contain_text(NO_STORE, timeout=4 * PATIENCE_MS)
        tab.open("Memories")
        page.get_by_label("User", exact=True).fill("alice")
        expect(page.locator(".list").get_by_role("alert")).to_contain_text(NO_STORE, timeout=4 * PATIENCE_MS)
        expect(page.locator(".known")).to_have_text("The figures could not be read.")
        expect(page.locator("[aria-busy]")).to_have_count(0)
        assert says_nothing_is_there(tab) == []
        tab.open("Engine")
        page.get_by_role("button", name="Test every connection").click()
        expect(page.locator(".trips .bad")).to_have_count(1, timeout=4 * PATIENCE_MS)
        expect(page.get_by_text("store: not ready")).to_be_visible(timeout=4 * PATIENCE_MS)
        expect(page.locator("#bar .health")).to_have_text("Not ready: store", timeout=4 * PATIENCE_MS)
    tab.open("Memories")
    expect(page.locator(".memory")).to_have_count(1, timeout=4 * PATIENCE_MS)
    expect(page.locator(".known")).to_contain_text("1 memory")


def test_a_first_user_who_could_not_be_found_is_looked_for_again(small: House, tab: Studio) -> None:
    page = tab.page
    with hung_store(small.semmem):
        tab.sign_in()
        expect(page.get_by_role("alert")).to_contain_text(NO_STORE, timeout=4 * PATIENCE_MS)
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".memory")).to_have_count(1, timeout=4 * PATIENCE_MS)


def test_figures_of_conversations_and_what_filters_offer_that_cannot_be_read_are_said(tab: Studio) -> None:
    without_journal(tab, "**/v1/conversations/*", "**/v1/conversations?*")
    tab.sign_in(at="#/conversations/alice")
    page = tab.page
    expect(page.get_by_role("alert")).to_contain_text("the journal failed")
    expect(page.get_by_text("The figures could not be read.")).to_be_visible()
    expect(page.get_by_text("The projects and tags that there are could not be read.")).to_be_visible()
    assert says_nothing_is_there(tab) == []


def test_users_who_cannot_be_read_are_said_beside_the_field(tab: Studio) -> None:
    without_journal(tab, "**/v1/users?*")
    tab.sign_in()
    tab.page.get_by_label("User", exact=True).focus()
    expect(tab.page.get_by_text("The users could not be read.")).to_be_visible()
    tab.page.unroute("**/v1/users?*")
    tab.page.get_by_label("User", exact=True).fill("ali")
    expect(tab.page.get_by_text("The users could not be read.")).to_be_hidden()


def test_the_engine_shows_nothing_old_when_it_cannot_be_read(tab: Studio) -> None:
    page = tab.page
    tab.sign_in(at="#/engine")
    expect(page.get_by_text("store: ready")).to_be_visible(timeout=4 * PATIENCE_MS)
    expect(page.get_by_text("nothing waits")).to_be_visible()
    without_journal(tab, "**/v1/status", "**/v1/batches", "**/v1/replicas", "**/v1/memory/reindex")
    expect(page.get_by_role("alert")).to_have_count(4)
    for alert in page.get_by_role("alert").all():
        expect(alert).to_contain_text("the journal failed")
    for gone in ("store: ready", "nothing waits", "nothing to do", "no batch", "This process alone"):
        expect(page.get_by_text(gone)).to_have_count(0)
    expect(page.get_by_role("img", name="Not known: the journal failed")).to_be_visible(timeout=4 * PATIENCE_MS)
    page.unroute_all()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_text("store: ready")).to_be_visible()


def test_live_and_usage_say_that_they_could_not_be_read(tab: Studio) -> None:
    page = tab.page
    without_journal(tab, "**/v1/activity?*", "**/v1/usage/*")
    tab.sign_in(at="#/live")
    expect(page.get_by_role("alert")).to_contain_text("the journal failed")
    assert says_nothing_is_there(tab) == []
    tab.open("Usage")
    expect(page.get_by_role("alert")).to_contain_text("the journal failed")
    assert says_nothing_is_there(tab) == []


def test_live_does_not_say_that_there_is_nothing_before_it_knows(tab: Studio) -> None:
    held: list[Route] = []
    tab.page.route("**/v1/activity?*", lambda route: held.append(route))
    tab.sign_in(at="#/live")
    tab.page.get_by_role("heading", level=1, name="Live").wait_for()
    expect(tab.page.locator("main [aria-busy]")).to_be_visible()
    expect(tab.page.locator("main [aria-busy]")).to_contain_text("No answer yet", timeout=PATIENCE_MS)
    assert says_nothing_is_there(tab) == []
    for route in held:
        route.abort()


def test_a_call_that_is_never_answered_is_given_up_and_said(tab: Studio) -> None:
    page = tab.page
    page.clock.install()
    tab.sign_in(at="#/memories/alice")
    expect(page.locator(".memory")).to_have_count(1, timeout=4 * PATIENCE_MS)
    page.route("**/v1/memory?*", lambda _route: None)
    page.get_by_label("Search").fill("tea")
    page.clock.run_for(1_000)
    page.clock.run_for(61_000)
    expect(page.get_by_role("alert")).to_contain_text("did not answer within a minute")


@pytest.mark.parametrize(
    ("status", "detail", "title"),
    [
        (503, "the store cannot be reached (StoreUnavailable): try again later", "The store does not answer"),
        (503, "the journal failed (JournalError): try again later", "The journal does not answer"),
        (503, "the embedder made no vector (EmbedderError): try again later", "The embedder does not answer"),
        (507, "the store cannot write to its disk; nothing was changed", "There is no room on a disk"),
        (403, "this role may not", "This token may not see this"),
        (500, "something failed that nobody expected", "This could not be read"),
    ],
)
def test_what_is_broken_is_named_with_what_to_do(tab: Studio, status: int, detail: str, title: str) -> None:
    tab.page.route("**/v1/memory?*", lambda route: route.fulfill(status=status, json={"code": "X", "detail": detail}))
    tab.sign_in(at="#/memories/alice")
    alert = tab.page.locator(".list").get_by_role("alert")
    expect(alert.locator(".empty-title")).to_have_text(title)
    expect(alert.locator(".advice")).not_to_be_empty()
    expect(alert.locator(".detail")).to_contain_text(detail)
    expect(alert.get_by_role("button", name="Try again")).to_be_visible()


def test_a_question_that_was_searched_for_by_words_for_want_of_a_vector_says_so(tab: Studio) -> None:
    def without_vector(route: Route) -> None:
        told = route.fetch().json()
        route.fulfill(json=told | {"strategy": "keyword", "unembedded": "embedder_down"})

    tab.page.route("**/v1/memory/preview", without_vector)
    tab.sign_in(at="#/playground/alice")
    tab.page.get_by_label("Question").fill("Which tea do I like?")
    tab.page.get_by_role("button", name="Run").click()
    expect(tab.page.locator(".way")).to_contain_text("by words, since the embedder made no vector")
