"""A real semmem behind a real Envoy, and Debian's Chromium; the last line says how many checks there were."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, sync_playwright

from tests.support.harness import ADMIN_TOKEN, SHIPPED_EMBEDDER, House, house, stand_in_model

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
PATIENCE_MS = 15_000
PRICE = {"model": "stand-in*", "provider": "here", "input_per_million": 1, "output_per_million": 2}
KEPT = {
    "usage": {"enabled": True, "prices": [PRICE], "currency": "EUR"},
    "conversations": {"enabled": True, "flush_s": 0.1},
}
TOLD = (
    ("semantic", "User lives in Utrecht with two cats"),
    ("semantic", "User prefers answers without bullet points"),
    ("semantic", "User's sister Emma studies medicine in Ghent"),
    ("episodic", "User booked a flight to Honolulu for 14 March"),
    ("procedural", "To deploy, the user runs make release and tags the commit"),
    ("semantic", "User's budget for the Hawaii trip is $10,000"),
)


@dataclass
class Studio:
    """One tab. ``troubles``: what its console complained about, and what it asked of anybody but semmem."""

    page: Page
    url: str
    troubles: list[str] = field(default_factory=list)

    def sign_in(self, token: str = ADMIN_TOKEN, at: str = "") -> None:
        self.page.goto(f"{self.url}/studio/{at}")
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()

    def open(self, name: str) -> None:
        self.page.get_by_role("navigation").get_by_role("link", name=name).click()
        self.page.get_by_role("heading", level=1, name=name).wait_for()

    def opened(self, item: Locator) -> Locator:
        """A memory of the list, whose details are shown from now on."""
        line = item.locator(".line")
        if line.get_attribute("aria-expanded") == "false":
            line.click()
        return item


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("studio")
    with stand_in_model() as model, house(folder, model, KEPT, program=SHIPPED_EMBEDDER) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light", accept_downloads=True)
    made.set_default_timeout(PATIENCE_MS)
    yield made
    made.close()


@pytest.fixture
def studio(home: House, context: BrowserContext) -> Iterator[Studio]:
    """A tab that must not have had any trouble when the test ends, but for what the test took from the list."""
    tab = opened(home.semmem.api_url, context)
    yield tab
    assert tab.troubles == []


def opened(url: str, context: BrowserContext) -> Studio:
    tab = Studio(context.new_page(), url)
    page, troubles = tab.page, tab.troubles
    page.on("console", lambda told: troubles.append(told.text) if told.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith((url, "blob:")) else troubles.append(asked.url))
    return tab


@pytest.fixture
def person(home: House, request: pytest.FixtureRequest) -> str:
    """Somebody of this test's own, of whom six things are known."""
    name: str = "alice" if "shots" in request.fixturenames else request.node.name.removeprefix("test_")[:40]
    home.semmem.api("DELETE", "/v1/memory", params={"user_id": name})
    for kind, content in TOLD:
        home.semmem.api("POST", "/v1/memory", json={"user_id": name, "type": kind, "content": content})
    return name


@pytest.fixture
def shots() -> Path | None:
    """Where pictures are to be kept; None where nobody asked for them."""
    folder = os.environ.get("STUDIO_SHOTS")
    return Path(folder) if folder else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    failed = len(terminalreporter.stats.get("failed", [])) + len(terminalreporter.stats.get("error", []))
    checks = failed + len(terminalreporter.stats.get("passed", []))
    terminalreporter.write_line(f"studio: {checks} checks, {failed} failed")
