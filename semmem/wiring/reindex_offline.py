"""A reindex while no semmem runs: by the command, in its own process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from semmem.backends.sql.only_process import OnlyProcess
from semmem.config.settings import Settings
from semmem.ports.errors import SemmemError, StoreError
from semmem.reindex.movable_store import MovableStore
from semmem.reindex.reindexing import Reindexing
from semmem.wiring import backends, embedding, reindex

SHOWN_EVERY_S = 0.5
AT_REST = frozenset({"none", "kept", "paused"})

Say = Callable[[Mapping[str, Any]], None]


async def run(
    settings: Settings, *, force: bool, limit: int | None, drop: bool, back: bool, say: Say
) -> dict[str, Any]:
    """All that can be done; how it ended. ``back``: only to a former collection that is still kept. Raises OSError and
    SemmemError."""
    async with AsyncExitStack() as stack:
        reindexing, store = await _opened(settings, stack)
        if back and (store.target is None or await _is_empty(store)):
            raise StoreError(f"no collection of {settings.memory.embedding.model} is kept to go back to")
        if drop:
            return {"success": True, "dropped": await reindexing.drop_former()}
        await reindexing.start(force=force, limit=limit)
        await _to_the_end(reindexing, say)
        told = await reindexing.status()
        say(told)
        return told


async def _opened(settings: Settings, stack: AsyncExitStack) -> tuple[Reindexing, MovableStore]:
    if not settings.journal.url:
        only = OnlyProcess(settings.journal_file)
        stack.callback(only.close)
        await asyncio.to_thread(only.open)
    journal = backends.journal(settings)
    await backends.open_journal(journal, wait_s=settings.journal.postgres.start_wait_s)
    stack.push_async_callback(journal.close)
    embedder = await asyncio.to_thread(embedding.embedder, settings)
    stack.push_async_callback(embedder.close)
    store = reindex.movable(settings, embedder, journal, may_move=True)
    stack.push_async_callback(store.close)
    await embedder.open()
    await store.open()
    return reindex.reindexing(settings, store, embedder, journal), store


async def _is_empty(store: MovableStore) -> bool:
    assert store.target is not None
    return not await store.target.store.users()


async def _to_the_end(reindexing: Reindexing, say: Say) -> None:
    async with asyncio.TaskGroup() as tasks:
        showing = tasks.create_task(_show(reindexing, say))
        try:
            while (await reindexing.status())["state"] not in AT_REST:
                await reindexing.step()
                await asyncio.sleep(0.1)
        finally:
            showing.cancel()


async def _show(reindexing: Reindexing, say: Say) -> None:
    while True:
        await asyncio.sleep(SHOWN_EVERY_S)
        try:
            say(await reindexing.status())
        except SemmemError:
            continue
