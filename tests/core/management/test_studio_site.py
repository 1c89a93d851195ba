"""The Studio's files are open to everybody and hold nothing; the activity behind them is an operator's."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.management.access import AccessRules
from semmem.management.activity_api import Activity
from semmem.management.api import create_api
from semmem.management.door import is_open
from semmem.management.server import MEDIA_TYPES, add_studio, files
from semmem.request.outcome import Outcome
from tests.core.management.test_api import Api
from tests.support.empty_journal import empty_journal


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    journal = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await journal.open()
    made = Api(journal)
    await made.store.open()
    yield made
    await made.client.aclose()
    await journal.close()


@pytest.fixture
async def site(api: Api) -> httpx.AsyncClient:
    app = create_api(api.memories, AccessRules(admin_token="secret"))
    add_studio(app)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


async def test_a_page_may_load_nothing_from_elsewhere_and_be_framed_by_nobody(site: httpx.AsyncClient) -> None:
    answer = await site.get("/studio/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["form-action"] == "'none'"
    assert {policy[f"{kind}-src"] for kind in ("script", "style", "connect")} == {"'self'"}
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not re.search(r"https?://|<script>|style=|onclick", answer.text)


async def test_every_file_is_served_once_and_then_asked_for_by_its_digest(site: httpx.AsyncClient) -> None:
    for name, file in files().items():
        answer = await site.get(f"/studio/{name}")
        assert (answer.status_code, answer.content) == (200, file.body)
        again = await site.get(f"/studio/{name}", headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_no_page_names_another_place() -> None:
    found = files()
    assert {name[name.rfind(".") :] for name in found} == set(MEDIA_TYPES)
    for name, file in found.items():
        text = bytes(file.body).decode().replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, name
        assert "innerHTML" not in text, name


def test_type_and_space_are_of_one_scale_each() -> None:
    """Of sizes and spaces no rule has a number of its own."""
    sheet = bytes(files()["studio.css"].body).decode()
    assert len(set(re.findall(r"(--text-\w+): ", sheet))) <= 6
    assert len(set(re.findall(r"(--space-\w+): ", sheet))) <= 8
    told = re.findall(r"[{;\s]((?:font-size|font|row-gap|gap|padding[a-z-]*|margin[a-z-]*): [^;}]+)", sheet)
    assert len(told) > 150
    assert [rule for rule in told if re.search(r"[1-9]0*(rem|em|px)", rule)] == []
    assert set(re.findall(r"var\((--(?:text|space)-\w+)", sheet)) == set(re.findall(r"(--(?:text|space)-\w+): ", sheet))


@pytest.mark.parametrize(
    "path", ["/studio/nothing.js", "/studio/../v1/memory", "/studio/%2e%2e/door.py", "/studio/a/b"]
)
async def test_nothing_else_is_served(site: httpx.AsyncClient, path: str) -> None:
    assert (await site.get(path)).status_code in (401, 404)


@pytest.mark.parametrize(
    ("path", "open_"),
    [
        ("/studio", True),
        ("/studio/", True),
        ("/studio/app.js?x=1", True),
        ("/studios", False),
        ("/v1/memory", False),
        ("/v1/studio/", False),
        ("/openapi.json", True),
    ],
)
def test_only_the_folder_itself_is_open(path: str, open_: bool) -> None:
    assert is_open(path) is open_


async def test_nothing_is_taken_by_the_folder(site: httpx.AsyncClient) -> None:
    assert (await site.post("/studio/", content=b"x")).status_code == 401
    assert (await site.request("GET", "/studio/", content=b"x")).status_code == 400


def test_only_so_many_ends_are_kept_and_only_of_requests() -> None:
    activity = Activity(lambda: 1.0, kept=3)
    for number in range(5):
        activity.ended("injected", 0.001 * number, 1, 20, None)
    told = activity.since(0)
    assert told["last"] == 5
    assert [one["number"] for one in told["requests"]] == [3, 4, 5]
    assert told["requests"][0] == {
        "number": 3,
        "time": "1970-01-01T00:00:01.000Z",
        "outcome": "injected",
        "id": None,
        "milliseconds": 2.0,
        "memories": 1,
        "tokens": 20,
    }
    assert [one["number"] for one in activity.since(4)["requests"]] == [5]
    assert len(activity.since(99)["requests"]) == 3, "a number from before a restart"


def test_the_studio_says_what_every_outcome_means() -> None:
    told = bytes(files()["outcomes.js"].body).decode()
    explained = set(re.findall(r"^  (\w+): \"", told, re.MULTILINE))
    assert explained == {outcome.value for outcome in Outcome}
