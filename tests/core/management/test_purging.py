"""Purging through the API and the command line, and one purge for many who ask."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from semmem.backends.in_process import InProcessStore
from semmem.backends.sql.journal import SqlJournal
from semmem.background import Tasks
from semmem.cli import main
from semmem.lifecycle.quota import Quota
from semmem.management.access import AccessRules
from semmem.management.api import Purging, create_api
from semmem.management.memories import Memories
from semmem.memory import Memory, Scope
from semmem.ports.errors import JournalError, StoreFull
from semmem.retrieval.recall import Recall, RecallRules
from tests.core.commands.test_previewing import TOKEN, running
from tests.support.empty_journal import empty_journal
from tests.support.erasing import Erasing
from tests.support.fakes import HashEmbedder, hot

ADMIN = {"authorization": f"Bearer {TOKEN}"}


class Files:
    """Something that keeps what was removed until it is purged."""

    def __init__(self, *, is_ours: bool = True) -> None:
        self.removed: set[int] = set()
        self.purges = 0
        self.running = 0
        self.is_ours = is_ours
        self.error: Exception | None = None

    async def purge(self) -> bool:
        self.purges += 1
        self.running += 1
        assert self.running == 1, "one purge at a time"
        removed = set(self.removed)
        await asyncio.sleep(0.02)
        self.running -= 1
        if self.error is not None:
            raise self.error
        self.removed -= removed
        return self.is_ours


class FullStore(InProcessStore):
    async def put(self, scope: Scope, *memories: Memory) -> None:
        raise StoreFull("full")


async def test_those_who_ask_while_a_purge_runs_share_the_next_one() -> None:
    files = Files()
    purging = Purging([files])

    async def forget(number: int) -> None:
        files.removed.add(number)
        assert await purging.run()
        assert number not in files.removed

    tasks = Tasks()
    first = tasks.spawn("first", forget(0))
    await asyncio.sleep(0.005)
    rest = [tasks.spawn("rest", forget(number)) for number in range(1, 41)]
    await asyncio.gather(first, *rest)
    assert files.removed == set()
    assert files.purges == 2
    await purging.run()
    assert files.purges == 3


async def test_all_parts_are_tried_and_a_failure_is_told_until_one_succeeds() -> None:
    broken, other = Files(), Files()
    broken.error = JournalError("in use")
    purging = Purging([broken, other])
    results = await asyncio.gather(*(purging.run() for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [JournalError] * 3
    assert other.purges == broken.purges == 3
    broken.error = None
    assert await purging.run()


async def test_a_part_that_is_not_ours_makes_it_no_promise() -> None:
    assert await Purging([Files(), Files(is_ours=False)]).run() is False


@asynccontextmanager
async def api(
    folder: Path, *, files: Files | None = None, store: InProcessStore | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """The application over ASGI on a store and a journal that are open."""
    journal, kept = SqlJournal(empty_journal(folder / "journal.db")), InProcessStore() if store is None else store
    recall = Recall(hot(kept), HashEmbedder(), RecallRules())
    erasing = Erasing(kept, journal, clock=lambda: 1e9)
    memories = Memories(
        erasing.store,
        HashEmbedder(),
        journal,
        Quota(kept, journal, memories_max=5),
        recall,
        clock=lambda: 1e9,
        erasure=erasing.erasure,
        holds=erasing.holds,
        after=erasing.after,
    )
    purging = None if files is None else Purging([journal, files])
    app = create_api(memories, AccessRules(admin_token=TOKEN), purging=purging)
    await kept.open()
    await journal.open()
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://semmem", headers=ADMIN) as client:
        yield client
    await journal.close()


async def test_the_receipt_says_what_became_of_the_files_only_when_asked(tmp_path: Path) -> None:
    files = Files()
    async with api(tmp_path, files=files) as client:
        await client.post("/v1/memory", json={"content": "User likes tea", "user_id": "alice"})
        plain = (await client.delete("/v1/memory", params={"user_id": "alice"})).json()
        assert "purged" not in plain
        assert files.purges == 0
        receipt = (await client.delete("/v1/memory", params={"user_id": "alice", "purge": "true"})).json()
        assert receipt["purged"] is True
        assert receipt["purge_seconds"] >= 0.02
        made = (await client.post("/v1/memory", json={"content": "User likes tea", "user_id": "alice"})).json()
        one = await client.delete(f"/v1/memory/{made['id']}", params={"user_id": "alice", "purge": "true"})
        assert one.json()["purged"] is True


async def test_a_purge_that_could_not_be_done_is_no_success_and_is_done_when_asked_again(tmp_path: Path) -> None:
    files = Files()
    files.error = StoreFull("no room")
    async with api(tmp_path, files=files) as client:
        asked = {"user_id": "alice", "purge": "true"}
        answer = await client.delete("/v1/memory", params=asked)
        assert (answer.status_code, answer.json()["error"]["code"]) == (507, "STORE_FULL")
        files.error = JournalError("in use")
        assert (await client.delete("/v1/memory", params=asked)).status_code == 503
        files.error = None
        assert (await client.delete("/v1/memory", params=asked)).json()["purged"] is True


async def test_the_purge_of_one_memory_is_done_when_asked_again_although_the_memory_is_gone(tmp_path: Path) -> None:
    files = Files()
    async with api(tmp_path, files=files) as client:
        made = (await client.post("/v1/memory", json={"content": "User likes tea", "user_id": "alice"})).json()
        files.removed.add(1)
        files.error = StoreFull("no room")
        path, asked = f"/v1/memory/{made['id']}", {"user_id": "alice", "purge": "true"}
        assert (await client.delete(path, params=asked)).status_code == 507
        files.error = None
        again = await client.delete(path, params=asked)
        assert (again.status_code, again.json()["deleted"], again.json()["purged"]) == (200, 0, True)
        assert files.removed == set()
        assert (await client.delete(path, params={"user_id": "alice"})).status_code == 404


async def test_a_create_that_does_not_fit_says_why(tmp_path: Path) -> None:
    async with api(tmp_path, store=FullStore()) as client:
        answer = await client.post("/v1/memory", json={"content": "User likes tea", "user_id": "alice"})
        assert answer.status_code == 507
        assert answer.json()["error"]["code"] == "STORE_FULL"
        assert (await client.get("/v1/memory", params={"user_id": "alice"})).json()["total"] == 0


def test_the_command_prints_the_receipt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_LISTENERS__API__ADMIN_TOKEN", TOKEN)
    with running(tmp_path) as url:
        assert main(["forget", "--user", "alice", "--project", "p", "--json", "--api", url]) == 0
        assert json.loads(capsys.readouterr().out)["deleted"] == 0
        assert main(["forget", "--user", "alice", "--purge", "--json", "--api", url]) == 0
        receipt = json.loads(capsys.readouterr().out)
        assert (receipt["deleted"], receipt["purged"]) == (1, True)


def test_a_refusal_and_silence_are_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_LISTENERS__API__ADMIN_TOKEN", "wrong-token-of-some-length")
    with running(tmp_path) as url:
        assert main(["forget", "--user", "alice", "--api", url]) == 4
        assert "answered 401 UNAUTHENTICATED" in capsys.readouterr().err
    assert main(["forget", "--user", "alice", "--api", url]) == 3
    assert "nothing listens there" in capsys.readouterr().err
