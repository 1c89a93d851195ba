"""Another embedding model for what a Qdrant by its address keeps, as semmem puts its parts together.

No Qdrant server is asked: tests/support/qdrant_server.py answers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.config.settings import Settings
from semmem.memory import Scope, Vector
from semmem.ports.errors import StoreMismatch, StoreUnavailable
from semmem.reindex.movable_store import MovableStore
from semmem.wiring import stores
from tests.support.fakes import HashEmbedder
from tests.support.memories import memory, put
from tests.support.qdrant_server import QdrantStandIn, standing_in

USERS = ("ada", "bob", "eve")
EACH = 4


class Counting(HashEmbedder):
    embedded = 0

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        self.embedded += 1
        return await super().embed(text, within_s=within_s)


class Process:
    """A semmem with this model, as far as it keeps memories."""

    def __init__(self, folder: Path, server: QdrantStandIn, dimension: int, journal: SqlJournal) -> None:
        qdrant = {"address": f"127.0.0.1:{server.port}"}
        told = {"data_dir": str(folder), "memory": {"backend": "qdrant", "qdrant": qdrant}}
        self.settings, self.embedder, self.journal = Settings.model_validate(told), Counting(dimension), journal
        self.store = self.made(may_move=True)
        self.reindexing = stores.reindexing(self.settings, self.store, self.embedder, journal)

    def made(self, *, may_move: bool) -> MovableStore:
        return stores.movable(self.settings, self.embedder, self.journal, may_move=may_move)

    async def tell(self, user: str, *ids: str) -> None:
        for one in ids:
            content = f"{user} keeps the thing named {one}"
            await put(self.store, memory(user, one, content=content, embedding=await self.embedder.embed(content)))
        self.embedder.embedded = 0

    async def known(self) -> dict[str, set[str]]:
        return {user: {one.id for one in await self.store.list(Scope(user))} for user in USERS}

    async def status(self) -> tuple[Any, ...]:
        told = await self.reindexing.status()
        return told["state"], told["collection"], told.get("embedded")


@asynccontextmanager
async def started(folder: Path, server: QdrantStandIn, dimension: int) -> AsyncIterator[Process]:
    journal = SqlJournal(folder / "journal.db")
    await journal.open()
    process = Process(folder, server, dimension, journal)
    try:
        await process.store.open()
        yield process
    finally:
        await process.store.close()
        await journal.close()


async def test_it_goes_on_after_the_server_was_away_switches_and_goes_back(tmp_path: Path) -> None:
    async with standing_in() as server:
        async with started(tmp_path, server, 64) as former:
            for user in USERS:
                await former.tell(user, *(f"m{number}" for number in range(EACH)))
                await former.journal.register_user(user)
        server.seen.clear()

        async with started(tmp_path, server, 128) as new:
            with pytest.raises(StoreMismatch, match="run `semmem reindex`"):
                await new.made(may_move=False).open()
            answer = server._answer

            def away_after_a_user(method: str, target: str, headers: dict[str, str], body: Any) -> tuple[int, str]:
                filled = [one for one in server.seen if one.method == "PUT" and "_g2/points" in one.path]
                return (503, "{}") if len(filled) > EACH else answer(method, target, headers, body)

            server._answer = away_after_a_user  # type: ignore[method-assign]
            with pytest.raises(StoreUnavailable):
                await new.reindexing.step()
            server._answer = answer  # type: ignore[method-assign]
            assert (await new.status())[:2] == ("filling", "agentic_memory")

        async with started(tmp_path, server, 128) as new:
            await new.tell("ada", "new")
            await new.store.forget(Scope("bob"), "m0")
            there = {user: {f"m{number}" for number in range(EACH)} for user in USERS}
            there = {**there, "ada": there["ada"] | {"new"}, "bob": there["bob"] - {"m0"}}
            assert await new.known() == there
            await new.reindexing.step()
            assert (await new.status())[:2] == ("kept", "agentic_memory_g2")
            assert EACH <= new.embedder.embedded < len(USERS) * EACH, "what was there already was not made again"
            assert await new.known() == there
            hits = await new.store.search(
                Scope("ada"), await new.embedder.embed("the thing named new"), limit=1, now=1.0
            )
            assert [hit.memory.id for hit in hits] == ["new"]

        async with started(tmp_path, server, 64) as back:
            await back.reindexing.step()
            assert await back.status() == ("kept", "agentic_memory", 1)
            assert await back.known() == there
            assert await back.reindexing.drop_former() == 1
            gone = [each.path for each in server.seen if each.method == "DELETE"]
            assert gone == ["/collections/agentic_memory_g2", "/collections/agentic_memory_g2_passages"]
            assert await back.known() == there
        assert len(server.bodies("POST", "/aliases")) == 2
