"""One semmem without its doors: what is said goes through the writer and is learnt by rules; the API is called."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from semmem.backends.in_process import InProcessStore
from semmem.backends.sql.journal import SqlJournal
from semmem.background.learner import Learner
from semmem.extraction.comparing import Comparing
from semmem.extraction.dedup import Dedup
from semmem.extraction.pipeline import Learning
from semmem.extraction.rules import RulesExtractor
from semmem.extraction.storing import Keeping, Storing
from semmem.lifecycle.everybody import ErasureOfAll
from semmem.lifecycle.quota import PassageQuota, Quota
from semmem.management.access import AccessRules
from semmem.management.api import create_api
from semmem.management.memories import Memories
from semmem.memory import PASSAGES, Memory, Scope, Turn, TurnEnding
from semmem.ports.errors import StoreUnavailable
from semmem.ports.learning import BatchRules, Extractor
from semmem.ports.recording import TurnClosed
from semmem.retrieval.recall import Recall, RecallRules
from tests.support.described import described_client
from tests.support.empty_journal import empty_journal
from tests.support.erasing import Erasing
from tests.support.fakes import HashEmbedder
from tests.support.telling_judge import judge

DAY_S = 86_400.0
ALICE = Scope("alice", session="s")
ADMIN = {"authorization": "Bearer secret-token"}
RULES = BatchRules(size=1, answer_wait_s=0.0, idle_s=0.0, lease_s=60.0)


class Store(InProcessStore):
    """Can be down, and lets others run in the middle of each call, as a real one does."""

    down = False
    pause_s = 0.0

    async def _pass(self) -> None:
        await asyncio.sleep(self.pause_s)
        if self.down:
            raise StoreUnavailable("down")

    async def put(self, scope: Scope, *memories: Memory) -> None:
        await self._pass()
        await super().put(scope, *memories)
        await self._pass()

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        await self._pass()
        return await super().forget(scope, memory_id)

    async def forget_scope(self, scope: Scope, **narrow: Any) -> int:
        await self._pass()
        return await super().forget_scope(scope, **narrow)


class ErasedWorld:
    def __init__(
        self, path: Path, *, store: Store, journal: SqlJournal, extractor: Extractor | None, passages: bool = False
    ) -> None:
        self.path = path
        self.raw = store
        self.journal = journal
        self.erasing = Erasing(store, journal, clock=time.time)
        self.store = self.erasing.store
        self.writer = self.erasing.writer
        dedup = Dedup(Comparing(self.store, judge=judge), journal)
        rules = RulesExtractor()
        self.keeping = Keeping(
            self.store,
            journal,
            HashEmbedder(),
            DAY_S if passages else None,
            quota=PassageQuota(self.store, journal, 100),
            worth=rules.worth,
            clock=time.time,
        )
        self.learning = Learning(
            journal, Storing(HashEmbedder(), dedup), extractor or rules, passages=self.keeping, backoff_s=0.01
        )
        self.learner = Learner(journal, self.learning.learn, rules=RULES, poll_interval_s=0.01)
        recall = Recall(self.store, HashEmbedder(), RecallRules(threshold=0.0))
        self.memories = Memories(
            self.store,
            HashEmbedder(),
            journal,
            Quota(self.store, journal),
            recall,
            clock=time.time,
            erasure=self.erasing.erasure,
            holds=self.erasing.holds,
            after=self.erasing.after,
        )
        self.of_all = ErasureOfAll(self.erasing.erasure, store, journal, clock=time.time)
        app = create_api(self.memories, AccessRules(admin_token="secret-token"), everybody=self.of_all)
        self.http = described_client(app)
        self._said = 0

    # --- what users and operators do ---

    def say(self, text: str, *, scope: Scope = ALICE, opened_at: float | None = None, answer: str = "Noted.") -> str:
        """A turn and its answer, as the doors hand them over."""
        self._said += 1
        turn_id = f"t-{id(self)}-{self._said}"
        at = time.time() if opened_at is None else opened_at
        self.writer.offer(Turn(turn_id, scope, self._said, text, at))
        self.writer.offer(TurnClosed(turn_id, TurnEnding.ANSWERED, at, answer))
        return turn_id

    async def delete(self, path: str = "", **narrow: str) -> httpx.Response:
        return await self.http.delete(f"/v1/memory{path}", params={"user_id": "alice", **narrow}, headers=ADMIN)

    async def create(self, content: str, **fields: Any) -> httpx.Response:
        body = {"user_id": "alice", "content": content, **fields}
        return await self.http.post("/v1/memory", json=body, headers=ADMIN)

    async def passages(self, user: str = "alice") -> set[str]:
        """What is kept as it was said, and the gist of answers."""
        return {one.content for one in await self.store.list(Scope(user), types=PASSAGES, limit=1000)}

    async def contents(self, user: str = "alice") -> set[str]:
        listed = await self.http.get("/v1/memory", params={"user_id": user, "limit": 1000}, headers=ADMIN)
        return {memory["content"] for memory in listed.json()["memories"]}

    # --- what the tests wait for ---

    async def until(self, true: Any, *, within_s: float = 30.0) -> None:
        async with asyncio.timeout(within_s):
            while not await true():
                await asyncio.sleep(0.01)

    async def quiet(self) -> None:
        """Until all that was said is learnt from."""

        async def over() -> bool:
            if len(self.writer):
                return False
            counts = await self.journal.counts()
            return not counts["open"] + counts["ready"] + counts["leased"]

        await self.until(over)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Another connection holds the write lock of the journal's file."""
        other = sqlite3.connect(self.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")
            other.close()

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        with sqlite3.connect(self.path) as file:
            tables = [name for (name,) in file.execute("select name from sqlite_master where type = 'table'")]
            found = {name: file.execute(f"select * from {name}").fetchall() for name in tables}
        file.close()
        return found

    def tables_with(self, *words: str) -> set[str]:
        return {t for t, rows in self.rows().items() for row in rows for v in row for w in words if w in str(v)}


@asynccontextmanager
async def erased_world(
    folder: Path,
    *,
    store: Store | None = None,
    extractor: Extractor | None = None,
    learning: bool = True,
    passages: bool = False,
    **journal: Any,
) -> AsyncIterator[ErasedWorld]:
    """Running: the writer and, if ``learning``, the learner. ``journal``: options of the journal."""
    path = folder / "journal.db"
    opened = SqlJournal(empty_journal(path), **{"busy_timeout_s": 0.2, **journal})
    await opened.open()
    store = Store() if store is None else store
    await store.open()
    world = ErasedWorld(path, store=store, journal=opened, extractor=extractor, passages=passages)
    tasks = world.erasing.tasks
    tasks.spawn("writer", world.writer.run())
    if learning:
        tasks.spawn("learner", world.learner.run())
    try:
        yield world
    finally:
        await world.learner.drained(5.0)
        await tasks.cancel()
        await world.http.aclose()
        with suppress(Exception):
            await opened.close()
