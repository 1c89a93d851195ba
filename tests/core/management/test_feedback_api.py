"""POST /v1/feedback: whose word counts, for what, and that it is obeyed at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.background.in_process import RecordWatch
from semmem.management.access import AccessRules
from semmem.management.api import create_api
from semmem.management.feedback_api import MEMORIES_MAX, FeedbackDesk, feedback_routes
from semmem.retrieval.feedback import Votes
from tests.core.management.test_api import ADMIN, ALICE, NOW, Api
from tests.support.counted import counting
from tests.support.described import described_client
from tests.support.empty_journal import empty_journal


class Saying:
    """The API of test_api with feedback, and what searches would obey."""

    def __init__(self, api: Api, journal: SqlJournal) -> None:
        self.api, self.votes = api, Votes()
        watch = RecordWatch(journal.votes_since, self.votes, what="votes", refresh_s=60.0)
        desk = FeedbackDesk(
            api.erasing.store,
            journal,
            watch.refresh,
            entries_max=10,
            clock=lambda: NOW + 1,
            announce=counting(api.metrics),
        )
        self.app = create_api(
            api.memories,
            AccessRules(admin_token="secret-token", trusted_headers=("x-user-id",)),
            more=[feedback_routes(desk)],
        )
        self.client = described_client(self.app)

    async def say(self, headers: dict[str, str], *ids: str, helpful: Any = False, **more: Any) -> httpx.Response:
        body = {"memory_ids": list(ids), "helpful": helpful, **more}
        return await self.client.post("/v1/feedback", json=body, headers=headers)

    def counts(self, user: str = "alice") -> dict[str, tuple[int, int]]:
        known = self.votes.of(user)
        return {} if known is None else {row.memory_id: (row.up, row.down) for row in known.rows.values()}


@pytest.fixture
async def saying(tmp_path: Path) -> AsyncIterator[Saying]:
    journal = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await journal.open()
    api = Api(journal)
    await api.store.open()
    made = Saying(api, journal)
    yield made
    await made.client.aclose()
    await api.client.aclose()
    await journal.close()


async def test_a_word_is_kept_counted_and_obeyed_at_once(saying: Saying) -> None:
    tea, bees = (await saying.api.add("User likes tea"))["id"], (await saying.api.add("User keeps bees"))["id"]
    answer = await saying.say(ALICE, tea, bees, tea, "mem_nothing")
    assert (answer.status_code, answer.json()) == (
        200,
        {"helpful": False, "recorded": [tea, bees], "unknown": ["mem_nothing"]},
    )
    assert (await saying.say(ALICE, tea, helpful=True)).status_code == 200
    assert saying.counts() == {tea: (1, 1), bees: (0, 1)}
    count = saying.api.metrics.registry.get_sample_value
    assert count("semmem_feedback_total", {"result": "unhelpful"}) == 2
    assert count("semmem_feedback_total", {"result": "helpful"}) == 1


async def test_nobody_votes_on_somebody_elses_memories(saying: Saying) -> None:
    theirs = (await saying.api.add("User likes coffee", user="bob"))["id"]
    assert (await saying.say(ALICE, theirs)).status_code == 404
    assert (await saying.say(ALICE, theirs, user_id="bob")).status_code == 404
    assert (saying.counts("bob"), saying.counts()) == ({}, {})
    assert (await saying.say(ADMIN, theirs, user_id="bob")).status_code == 200
    assert saying.counts("bob") == {theirs: (0, 1)}


async def test_nothing_is_deleted_and_what_is_deleted_takes_its_votes_along(saying: Saying) -> None:
    tea = (await saying.api.add("User likes tea"))["id"]
    for _ in range(30):
        await saying.say(ALICE, tea)
    assert (await saying.client.get(f"/v1/memory/{tea}", headers=ALICE)).status_code == 200
    await saying.client.delete(f"/v1/memory/{tea}", headers=ALICE)
    assert (await saying.say(ALICE, tea)).status_code == 404
    assert await saying.api.journal.votes_since(0) == []


@pytest.mark.parametrize(
    "body",
    [
        {"memory_ids": [], "helpful": True},
        {"memory_ids": ["mem_0"]},
        {"memory_ids": ["mem_0"], "helpful": "perhaps"},
        {"memory_ids": ["mem_0"] * (MEMORIES_MAX + 1), "helpful": True},
        {"memory_ids": [""], "helpful": True},
        {"memory_ids": ["mem_0"], "helpful": True, "why": "it is wrong"},
    ],
)
async def test_what_is_no_feedback_is_refused(saying: Saying, body: dict[str, Any]) -> None:
    answer = await saying.client.post("/v1/feedback", json=body, headers=ALICE)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")
