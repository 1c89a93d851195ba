"""GET /v1/sessions/{id}/state: whose it is shown to, and what a preview says of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.management.access import AccessRules
from semmem.management.api import create_api
from semmem.management.retrieval import States, state_routes
from semmem.ports.session_states import CurrentState, SessionState
from semmem.retrieval.context import OPENING, strip_block
from semmem.retrieval.fence import Fence
from tests.core.management.test_api import ADMIN, ALICE, NOW, Api
from tests.support.described import described_client
from tests.support.empty_journal import empty_journal

SESSION = "a session/with a slash"
STATE = CurrentState(
    "Bees", ("We decided on oak",), ("The hive is called Nora",), ("It holds 40 litres",), ("And wax?",)
)
BOB = {"x-user-id": "bob"}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    journal = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await journal.open()
    for turns, topic in ((8, "Wasps"), (18, "Bees")):
        state = CurrentState(topic, *(getattr(STATE, name) for name in ("decisions", "facts", "answers", "open")))
        made = SessionState("alice", SESSION, 6, "d", turns, NOW - 5, NOW + 60, state)
        assert await journal.keep_state(made, [], per_session=2, per_user=5)
    api = Api(journal)
    await api.store.open()
    states = States(journal, Fence(b"key"), clock=lambda: NOW)
    rules = AccessRules(admin_token="secret-token", trusted_headers=("x-user-id",))
    app = create_api(api.memories, rules, more=[state_routes(states)], states=states)
    async with described_client(app) as made_client:
        yield made_client
    await api.client.aclose()
    await journal.close()


async def test_the_newest_state_is_shown_to_its_user_and_to_an_administrator(client: httpx.AsyncClient) -> None:
    own = await client.get(f"/v1/sessions/{SESSION}/state", headers=ALICE)
    shown = own.json()
    assert own.status_code == 200
    assert (shown["topic"], shown["turns"], shown["replaced"], shown["made_by"]) == ("Bees", 18, 6, "rules")
    assert shown["facts"] == ["The hive is called Nora"]
    assert 0 < shown["tokens"] < 200
    everybodys = await client.get(f"/v1/sessions/{SESSION}/state", headers=ADMIN, params={"user_id": "alice"})
    assert everybodys.json() == shown


async def test_nobody_else_sees_it(client: httpx.AsyncClient) -> None:
    path = f"/v1/sessions/{SESSION}/state"
    for asked in ({}, {"user_id": "bob"}, {"user_id": "alice"}):
        found = await client.get(path, headers=BOB, params=asked)
        assert (found.status_code, found.json()["error"]["code"]) == (404, "NOT_FOUND")
    assert (await client.get("/v1/sessions/another/state", headers=ALICE)).status_code == 404
    assert (await client.get(path)).status_code == 401


async def test_a_preview_shows_the_block_of_the_session_that_it_names(client: httpx.AsyncClient) -> None:
    asked = {"query": "And now?", "session_id": SESSION}
    shown = (await client.post("/v1/memory/preview", headers=ALICE, json=asked)).json()["session_state"]
    assert shown.startswith(OPENING)
    assert "- Decided: We decided on oak\n- Told: The hive is called Nora\n" in shown
    assert strip_block(shown) == ""
    for headers, body in ((ALICE, {"query": "And now?"}), (BOB, asked)):
        assert (await client.post("/v1/memory/preview", headers=headers, json=body)).json()["session_state"] is None
