"""Calls under an Idempotency-Key: done once, answered as they were, and never a way back for what was erased."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Any

import httpx
import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.management.access import AccessRules, Tokens
from semmem.management.accounts_api import token_routes
from semmem.management.api import create_api
from semmem.management.door import Guards
from semmem.management.idempotency import Idempotency, IdempotencyRules
from semmem.memory import Memory
from semmem.ports.accounts import CallAnswer
from semmem.ports.errors import JournalError
from tests.core.management.test_api import ADMIN, ALICE, Api
from tests.core.management.test_roles import Clock, _all_bytes
from tests.support.empty_journal import empty_journal

TEA = {"content": "User likes tea"}


class Slow(SqlJournal):
    """A journal whose calls can be away."""

    away = False
    deaf = False

    async def begin_call(self, key: str, request: str, **rules: Any) -> Any:
        if self.away:
            raise JournalError("away")
        return await super().begin_call(key, request, **rules)

    async def end_call(self, key: str, answer: CallAnswer, users: Collection[str]) -> None:
        if self.deaf:
            raise JournalError("away")
        await super().end_call(key, answer, users)


class Once:
    def __init__(self, api: Api, journal: Slow) -> None:
        self.api, self.journal, self.clock = api, journal, Clock()
        self.rules = IdempotencyRules(answer_bytes_max=2000)
        self.client = self.replica(journal)

    def replica(self, journal: SqlJournal) -> httpx.AsyncClient:
        guards = Guards(idempotency=Idempotency(journal, self.rules, clock=self.clock))
        access = AccessRules(admin_token="secret-token", trusted_headers=("x-user-id",))
        tokens = token_routes(Tokens(journal, clock=self.clock))
        app = create_api(self.api.memories, access, guards=guards, more=[tokens])
        return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://semmem")

    async def post(self, path: str, key: str, body: Any, headers: dict[str, str] = ALICE) -> httpx.Response:
        return await self.client.post(path, json=body, headers={**headers, "idempotency-key": key})

    async def contents(self) -> list[str]:
        found = (await self.client.get("/v1/memory", headers=ALICE)).json()["memories"]
        return [memory["content"] for memory in found]


@pytest.fixture
async def once(tmp_path: Path) -> AsyncIterator[Once]:
    journal = Slow(tmp_path / "journal.db")
    await journal.open()
    api = Api(journal)
    await api.store.open()
    made = Once(api, journal)
    yield made
    await made.client.aclose()
    await api.client.aclose()
    await journal.close()


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


async def test_a_call_that_is_sent_again_is_done_once_and_answered_the_same(once: Once, tmp_path: Path) -> None:
    first = await once.post("/v1/memory", "k1", TEA)
    again = await once.post("/v1/memory", "k1", TEA)
    other_journal = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await other_journal.open()
    async with once.replica(other_journal) as other:
        elsewhere = await other.post("/v1/memory", json=TEA, headers={**ALICE, "idempotency-key": "k1"})
    await other_journal.close()
    assert [answer.status_code for answer in (first, again, elsewhere)] == [201] * 3
    assert first.content == again.content == elsewhere.content
    assert ["idempotency-replayed" in answer.headers for answer in (first, again)] == [False, True]
    assert again.headers["content-type"] == first.headers["content-type"]
    assert await once.contents() == ["User likes tea"]


async def test_another_key_or_none_is_another_call(once: Once) -> None:
    for key in ("k1", "k2"):
        assert (await once.post("/v1/memory", key, TEA)).status_code == 201
    await once.client.post("/v1/memory", json=TEA, headers=ALICE)
    assert len(await once.contents()) == 3


async def test_two_callers_may_choose_the_same_key(once: Once) -> None:
    mine = await once.post("/v1/memory", "k1", TEA)
    his = await once.post("/v1/memory", "k1", TEA, {"x-user-id": "bob"})
    assert (mine.json()["user_id"], his.json()["user_id"]) == ("alice", "bob")


@pytest.mark.parametrize("again", [("/v1/memory", {"content": "User likes mate"}), ("/v1/memory?a=b", TEA)])
async def test_a_key_for_another_request_is_refused(once: Once, again: tuple[str, Any]) -> None:
    await once.post("/v1/memory", "k1", TEA)
    assert code(await once.post(again[0], "k1", again[1])) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert await once.contents() == ["User likes tea"]


async def test_a_call_that_is_under_way_is_not_begun_again(once: Once, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, gate = asyncio.Event(), asyncio.Event()
    create = once.api.memories.create

    async def slowly(*asked: Any, **more: Any) -> Memory:
        entered.set()
        await gate.wait()
        return await create(*asked, **more)

    monkeypatch.setattr(once.api.memories, "create", slowly)
    async with asyncio.TaskGroup() as calls:
        first = calls.create_task(once.post("/v1/memory", "k1", TEA))
        await entered.wait()
        second = await once.post("/v1/memory", "k1", TEA)
        gate.set()
    assert code(second) == (409, "IDEMPOTENCY_IN_PROGRESS")
    assert "retry-after" in second.headers
    assert (await once.post("/v1/memory", "k1", TEA)).content == first.result().content


async def test_a_call_that_failed_may_be_made_again_under_its_key(once: Once, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*asked: Any, **more: Any) -> Memory:
        raise RuntimeError

    with monkeypatch.context() as broken:
        broken.setattr(once.api.memories, "create", fails)
        assert (await once.post("/v1/memory", "k1", TEA)).status_code == 500
    assert (await once.post("/v1/memory", "k1", {"content": "x"})).status_code == 400
    assert (await once.post("/v1/memory", "k1", TEA)).status_code == 201


async def test_a_retry_after_an_erasure_brings_nothing_back(once: Once) -> None:
    await once.post("/v1/memory", "k1", TEA)
    await once.client.delete("/v1/memory", headers=ALICE)
    assert code(await once.post("/v1/memory", "k1", TEA)) == (409, "IDEMPOTENCY_ANSWER_GONE")
    assert await once.contents() == []


async def test_a_forgetting_that_is_sent_again_has_its_numbers_and_forgets_nothing_more(once: Once) -> None:
    await once.post("/v1/memory", "k1", TEA)
    asked = {"text": "tea", "dry_run": False}
    first = (await once.post("/v1/memory/forget", "k2", asked)).json()
    await once.post("/v1/memory", "k3", {"content": "User likes green tea"})
    again = await once.post("/v1/memory/forget", "k2", asked)
    assert again.json() == {name: first[name] for name in ("dry_run", "deleted", "receipt")}
    assert (again.headers["idempotency-replayed"], first["deleted"]) == ("counts", 1)
    assert await once.contents() == ["User likes green tea"]


async def test_a_token_is_never_kept(once: Once, tmp_path: Path) -> None:
    made = await once.post("/v1/tokens", "k1", {"role": "reader"}, ADMIN)
    assert code(await once.post("/v1/tokens", "k1", {"role": "reader"}, ADMIN)) == (409, "IDEMPOTENCY_ANSWER_GONE")
    assert len((await once.client.get("/v1/tokens", headers=ADMIN)).json()["tokens"]) == 1
    kept = await asyncio.to_thread(_all_bytes, tmp_path)
    assert made.json()["token"].split("_", 2)[2].encode() not in kept


async def test_of_a_long_answer_it_is_known_that_it_was_given(once: Once) -> None:
    long = {"content": "User likes tea", "metadata": {"note": "x" * 3000}}
    assert (await once.post("/v1/memory", "k1", long)).status_code == 201
    assert code(await once.post("/v1/memory", "k1", long)) == (409, "IDEMPOTENCY_ANSWER_GONE")
    assert len(await once.contents()) == 1


@pytest.mark.parametrize("key", ["", "a b", "é".encode(), "k" * 256])
async def test_what_is_no_key_is_refused(once: Once, key: Any) -> None:
    assert code(await once.post("/v1/memory", key, TEA)) == (400, "INVALID_IDEMPOTENCY_KEY")
    assert await once.contents() == []


async def test_a_promise_that_cannot_be_given_is_refused_and_nothing_is_done(once: Once) -> None:
    once.journal.away = True
    assert code(await once.post("/v1/memory", "k1", TEA)) == (503, "IDEMPOTENCY_NOT_AVAILABLE")
    assert await once.contents() == []


async def test_an_answer_that_cannot_be_noted_is_given_and_not_done_again(once: Once) -> None:
    once.journal.deaf = True
    assert (await once.post("/v1/memory", "k1", TEA)).status_code == 201
    assert code(await once.post("/v1/memory", "k1", TEA)) == (409, "IDEMPOTENCY_IN_PROGRESS")
    assert len(await once.contents()) == 1


async def test_a_search_is_not_kept(once: Once, tmp_path: Path) -> None:
    await once.post("/v1/memory", "k1", TEA)
    for _ in range(2):
        found = await once.post("/v1/memory/search", "k2", {"query": "tea"})
        assert "idempotency-replayed" not in found.headers
