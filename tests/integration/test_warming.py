"""A whole semmem that is ready when its store is, and loads the latest active users after its start."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from semmem.backends.in_process import InProcessStore
from semmem.backends.sql.journal import SqlJournal
from semmem.background import Tasks
from semmem.config import Settings
from semmem.memory import Hit, Scope
from semmem.wiring.app import App
from tests.support.journal_samples import answered, turn
from tests.support.ports import free_port

FREE = "127.0.0.1:0"


def settings(folder: Path, warm_users: int, health: str = FREE) -> Settings:
    return Settings.model_validate(
        {
            "data_dir": str(folder),
            "memory": {
                "backend": "in_process",
                "embedding": {"source": "none"},
                "hot_cache": {"warm_users": warm_users},
                "extraction": {"at_once": False},
            },
            "listeners": {"grpc": {"address": FREE}, "api": {"address": FREE}, "health": {"address": health}},
        }
    )


async def figures(folder: Path, warm_users: int, *, loaded: int) -> dict[str, str]:
    """Of the metrics, once so many users are in process and counted."""
    rules = settings(folder, warm_users)
    async with App(rules).running() as addresses, httpx.AsyncClient(base_url=f"http://{addresses.health}") as client:
        assert (await client.get("/readyz")).status_code == 200
        async with asyncio.timeout(20):
            while True:
                page = (await client.get("/metrics")).text
                lines = (line.rpartition(" ") for line in page.splitlines() if not line.startswith("#"))
                found = {name: value for name, _, value in lines}
                counted = float(found['semmem_warmed_users_total{result="loaded"}'])
                if min(float(found["semmem_hot_users"]), counted) >= loaded:
                    return found
                await asyncio.sleep(0.05)


async def test_the_latest_active_users_are_in_process_soon_after_the_start(tmp_path: Path) -> None:
    journal = SqlJournal(settings(tmp_path, 0).journal_file)
    await journal.open()
    for number in range(5):
        scope = Scope(f"user {number}", session="s")
        await journal.record([turn(f"t{number}", scope, opened_at=100.0 + number)], [answered(f"t{number}")])
    await journal.close()
    found = await figures(tmp_path, 3, loaded=3)
    assert found['semmem_warmed_users_total{result="loaded"}'] == "3.0"
    assert float(found["semmem_hot_bytes"]) > 0
    found = await figures(tmp_path, 0, loaded=0)
    assert found['semmem_warmed_users_total{result="loaded"}'] == "0.0"
    assert found["semmem_hot_users"] == "0.0"


async def test_nobody_is_told_that_semmem_is_ready_before_the_store_has_answered_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched, may_answer = asyncio.Event(), asyncio.Event()

    async def search(*_arguments: object, **_options: object) -> list[Hit]:
        searched.set()
        await may_answer.wait()
        return []

    monkeypatch.setattr(InProcessStore, "search", search)
    address, stop = f"127.0.0.1:{free_port()}", asyncio.Event()

    async def serve() -> None:
        async with App(settings(tmp_path, 0, address)).running():
            await stop.wait()

    serving = Tasks().spawn("semmem", serve())
    async with httpx.AsyncClient(base_url=f"http://{address}") as client:
        await asyncio.wait_for(searched.wait(), 20)
        early = await client.get("/readyz")
        assert (early.status_code, early.json()["serving"]) == (503, False)
        may_answer.set()
        async with asyncio.timeout(20):
            while (await client.get("/readyz")).status_code != 200:
                await asyncio.sleep(0.02)
    stop.set()
    await serving
