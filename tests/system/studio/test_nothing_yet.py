"""Where there is nothing to see yet: a command to copy, for this address and user, and never with a token."""

from __future__ import annotations

import subprocess
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.support.harness import ADMIN_TOKEN, House
from tests.system.studio.conftest import Studio

QUOTED = 'O\'Brien "& sons" $HOME `id` 😀'


def copied(studio: Studio) -> str:
    studio.page.get_by_role("button", name="Copy").click()
    expect(studio.page.locator(".toast").last).to_have_text("Copied.")
    told: str = studio.page.evaluate("navigator.clipboard.readText()")
    assert ADMIN_TOKEN not in told
    return told


def run(command: str) -> httpx.Response:
    """As a shell takes it apart, sent without curl."""
    shell = f'curl() {{ printf "%s\\0" "$@"; }}\n{command}'
    environ = {"PATH": "/usr/bin:/bin", "HOME": "/", "SEMMEM_TOKEN": ADMIN_TOKEN}
    done = subprocess.run(["sh", "-c", shell], env=environ, capture_output=True, text=True, check=True)
    url, *rest = done.stdout.rstrip("\0").split("\0")
    given = list(zip(rest[::2], rest[1::2], strict=True))
    headers = dict(value.split(": ", 1) for name, value in given if name == "-H")
    (body,) = [value for name, value in given if name == "-d"]
    return httpx.post(url, content=body.encode(), headers=headers, trust_env=False)


@pytest.fixture
def tab(studio: Studio) -> Studio:
    studio.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    return studio


@pytest.mark.parametrize("user", ["nobody-yet", QUOTED])
def test_the_command_of_the_memories_adds_one_for_this_user(home: House, tab: Studio, user: str) -> None:
    home.semmem.api("DELETE", "/v1/memory", params={"user_id": user})
    tab.sign_in(at="#/memories")
    tab.page.get_by_label("User", exact=True).fill(user)
    expect(tab.page.get_by_text("No memories yet")).to_be_visible()
    assert run(copied(tab)).status_code == 201
    assert home.semmem.contents(user) == {"User likes oolong tea"}


def test_the_command_of_the_conversations_imports_one(home: House, tab: Studio) -> None:
    user = "nobody-who-talked"
    tab.sign_in(at=f"#/conversations/{user}")
    expect(tab.page.get_by_text("No conversations yet")).to_be_visible()
    answer = run(copied(tab))
    assert answer.status_code == 201, answer.text
    listed = home.semmem.api("GET", "/v1/conversations", params={"user_id": user})["conversations"]
    home.semmem.api("DELETE", "/v1/memory", params={"user_id": user})
    assert len(listed) == 1


@pytest.mark.parametrize("page", ["requests", "everybody", "usage", "live"])
def test_why_nothing_comes_through_is_asked_of_this_semmem(home: House, tab: Studio, page: str) -> None:
    nobody: Any = {"users": [], "next_after": None, "memory_switches": {}, "aliases": {}, "last_seen": {}}
    tab.page.route("**/v1/users?*", lambda route: route.fulfill(json=nobody))
    unused: Any = {"total": {"requests": 0}, "recording": True}
    tab.page.route("**/v1/usage/summary*", lambda route: route.fulfill(json=unused))
    tab.page.route("**/v1/activity?*", lambda route: route.fulfill(json={"requests": [], "last": 0}))
    tab.sign_in(at=f"#/{page}/nobody-who-asked")
    assert copied(tab) == f"semmem doctor --config config.yaml --api {home.semmem.api_url}"


@pytest.mark.parametrize("page", ["memories", "conversations", "playground", "requests"])
def test_where_nobody_is_known_the_command_adds_the_first(home: House, tab: Studio, page: str) -> None:
    tab.page.route("**/v1/memories?*", lambda route: route.fulfill(json={"memories": []}))
    tab.sign_in(at=f"#/{page}")
    expect(tab.page.get_by_text("Whose")).to_be_visible()
    assert '-d \'{"user_id":"alice"' in copied(tab)


@pytest.mark.parametrize(("page", "asked"), [("usage", "usage/summary*"), ("conversations", "conversations?*")])
def test_what_is_off_is_switched_on_by_two_lines_of_the_configuration(tab: Studio, page: str, asked: str) -> None:
    off: Any = {"total": {"requests": 0}, "conversations": [], "next_cursor": None, "recording": False}
    tab.page.route(f"**/v1/{asked}", lambda route: route.fulfill(json=off))
    tab.sign_in(at=f"#/{page}/nobody-who-asked")
    assert copied(tab) == f"{page}:\n  enabled: true"


def test_whoever_may_not_do_it_is_offered_no_command(home: House, studio: Studio) -> None:
    token = home.semmem.api("POST", "/v1/tokens", json={"role": "reader", "user_id": "nobody-who-reads"})["token"]
    studio.sign_in(token)
    expect(studio.page.get_by_text("No memories yet")).to_be_visible()
    assert studio.page.get_by_role("button", name="Copy").count() == 0
    studio.open("Requests")
    expect(studio.page.get_by_text("No request yet")).to_be_visible()
    assert studio.page.get_by_role("button", name="Copy").count() == 0


def test_users_add_their_own_without_naming_themselves(home: House, tab: Studio) -> None:
    token = home.semmem.api("POST", "/v1/tokens", json={"role": "user", "user_id": "nobody-who-writes"})["token"]
    tab.sign_in(token)
    expect(tab.page.get_by_text("No memories yet")).to_be_visible()
    told = copied(tab)
    assert token not in told
    assert "user_id" not in told
