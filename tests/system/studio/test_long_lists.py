"""Lists that are longer than anybody reads: ``STUDIO_MEMORIES=100000`` says how many there are of everybody, in Milvus
Lite. Every page is turned; how long each turn took is printed, and judged by nobody."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Memory, MemoryType, Source
from tests.reindex.story import store_of
from tests.support.fakes import HashEmbedder
from tests.support.harness import SemmemProcess, semmem_process
from tests.system.studio.conftest import Studio, opened

EACH = 1000
"""What a user has at most, unless the configuration says otherwise."""
MEMORIES = int(os.environ.get("STUDIO_MEMORIES", "3000"))
USERS = max(1, MEMORIES // EACH)
MODEL = HashEmbedder()
TURN = """async () => {
    const before = document.querySelector(".count").textContent, began = performance.now();
    [...document.querySelectorAll(".list .row .button")].at(-1).click();
    while (document.querySelector(".count").textContent === before)
        await new Promise((done) => requestAnimationFrame(done));
    return performance.now() - began;
}"""
SHOWN = "[...document.querySelectorAll('.memory')].map((one) => one.dataset.id)"


async def fill(folder: Path) -> None:
    journal = SqlJournal(folder / "data" / "journal.db")
    (folder / "data").mkdir(parents=True)
    await journal.open()
    store = store_of(folder, "agentic_memory", MODEL, "milvus")
    await store.open()
    draw, now = np.random.default_rng(1), time.time()
    for number in range(USERS):
        user = f"user{number:03d}"
        await journal.register_user(user)
        vectors = draw.standard_normal((EACH, MODEL.dimension)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        await store.fill([memory(user, at, now, vectors[at]) for at in range(EACH)])
    await store.close()
    await journal.close()


def memory(user: str, number: int, now: float, vector: Any) -> Memory:
    content, at = f"Thing {number} that {user} once said of the garden and what grows in it", now - 60 * number
    named = {"source": Source(time=at), "created_at": at, "updated_at": at, "embedding": vector}
    return Memory(f"{user}-{number:04d}", 1, MemoryType.SEMANTIC, content, user, **named)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SemmemProcess]:
    folder = tmp_path_factory.mktemp("long")
    with ThreadPoolExecutor(1) as beside:  # the browser's driver has a loop of its own in this thread
        beside.submit(lambda: asyncio.run(fill(folder))).result()
    with semmem_process(folder) as running:
        yield running


@pytest.fixture
def tab(full: SemmemProcess, context: BrowserContext) -> Iterator[Studio]:
    context.set_default_timeout(60_000)
    made = opened(full.api_url, context)
    yield made
    assert made.troubles == []


def turned(page: Page, number: int) -> list[str]:
    """All that is shown on ``number`` pages, and how long turning to each of the others took."""
    shown, took = list(page.evaluate(SHOWN)), []
    for _ in range(number - 1):
        took.append(page.evaluate(TURN))
        shown += page.evaluate(SHOWN)
    last = sorted(took)[int(0.99 * len(took))]
    print(
        f"\n{len(shown)} memories on {number} pages: a turn takes {statistics.median(took):.0f} ms, one in a hundred"
        f" {last:.0f} ms or more, at most {max(took):.0f} ms"
    )
    return shown


def test_everybody_is_in_the_table_with_their_memories_counted(tab: Studio) -> None:
    tab.sign_in(at="#/everybody")
    began = time.perf_counter()
    expect(tab.page.locator("tbody td").first).to_have_text(f"{EACH:,}", timeout=60_000)
    print(f"\nthe first user's memories are counted {1000 * (time.perf_counter() - began):.0f} ms after signing in")
    paint = tab.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    print(f"\nfirst paint after {paint:.0f} ms")
    assert tab.page.locator("tbody th").all_inner_texts() == [f"user{user:03d}" for user in range(min(USERS, 25))]
    expect(tab.page.locator(".due")).to_have_count(0, timeout=600_000)


def test_one_users_memories_are_paged_each_once_and_a_change_keeps_the_page(tab: Studio) -> None:
    tab.sign_in(at="#/memories/user000")
    expect(tab.page.locator(".memory")).to_have_count(25, timeout=60_000)
    wanted = [f"user000-{number:04d}" for number in range(EACH)]
    assert turned(tab.page, EACH // 25) == wanted
    tab.page.get_by_role("button", name="Newer").click()
    expect(tab.page.locator(".memory").first).to_have_attribute("data-id", wanted[-50])
    tab.page.locator(".line").first.press("Delete")
    expect(tab.page.locator(".memory").first).to_have_attribute("data-id", wanted[-49], timeout=30_000)
    expect(tab.page.locator(".count")).to_have_text("951 to 975 of 999")
    expect(tab.page.locator(".known b")).to_have_text("999 memories")
