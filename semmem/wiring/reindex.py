"""Settings -> what moves memories to another embedding model; also while no semmem runs, by the command itself."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from semmem.backends.sql.journal import SqlJournal
from semmem.background.patient_embedder import PatientEmbedder
from semmem.backup.everybody import Everybody
from semmem.config.settings import Settings
from semmem.lifecycle.holds import Holds
from semmem.ports.embedder import Embedder
from semmem.ports.errors import SemmemError, StoreError
from semmem.reindex.movable_store import MovableStore
from semmem.reindex.moving import Mover
from semmem.reindex.reindexing import Reindexing
from semmem.wiring import backends, models, stores
from semmem.wiring.maintenance import DAY_S

log = logging.getLogger(__name__)

LEASE_S = 30.0
"""So long nobody else goes on with the work of a replica that died."""
HOLD_LEASE_S, HOLD_WAIT_S = 30.0, 2.0
"""Of a user while a slice is written; whoever is at work on the user longer than that is come back to."""


def reindexing(
    settings: Settings,
    store: MovableStore,
    embedder: Embedder,
    journal: SqlJournal,
    *,
    moved: Callable[[str], None] = lambda _user: None,
) -> Reindexing:
    """What moves ``store`` to vectors of ``embedder``. ``moved``: a user has them now."""
    rules, shared = settings.memory.reindex, bool(settings.journal.url)
    patient = PatientEmbedder(embedder, texts_max=settings.memory.extraction.embed_texts_max)
    holds = Holds(journal, clock=time.time, wait_s=HOLD_WAIT_S, lease_s=HOLD_LEASE_S)
    return Reindexing(
        store,
        Mover(store, patient, journal, holds),
        journal,
        Everybody(store, journal),
        clock=time.time,
        moved=moved,
        tell=_tell,
        lease_s=LEASE_S if shared else 0.0,  # one process alone has the journal's file
        poll_s=rules.poll_s,
        settle_s=2 * rules.poll_s if shared else 0.0,
        keep_s=rules.keep_days * DAY_S or None,
    )


def _tell(line: str) -> None:
    log.info("reindex: %s", line)


SHOWN_EVERY_S = 0.5
AT_REST = frozenset({"none", "kept", "paused"})

Say = Callable[[Mapping[str, Any]], None]


async def run(
    settings: Settings, *, force: bool, limit: int | None, drop: bool, back: bool, say: Say
) -> dict[str, Any]:
    """All that can be done; how it ended. ``back``: only to a former collection that is still kept. Raises OSError and
    SemmemError."""
    async with AsyncExitStack() as stack:
        moving, store = await _opened(settings, stack)
        if back and (store.target is None or await _is_empty(store)):
            raise StoreError(f"no collection of {settings.memory.embedding.model} is kept to go back to")
        if drop:
            return {"success": True, "dropped": await moving.drop_former()}
        await moving.start(force=force, limit=limit)
        await _to_the_end(moving, say)
        told = await moving.status()
        say(told)
        return told


async def _opened(settings: Settings, stack: AsyncExitStack) -> tuple[Reindexing, MovableStore]:
    journal = await backends.opened_journal(settings, stack)
    embedder = await asyncio.to_thread(models.embedder, settings)
    stack.push_async_callback(embedder.close)
    store = stores.movable(settings, embedder, journal, may_move=True)
    stack.push_async_callback(store.close)
    await embedder.open()
    await store.open()
    return reindexing(settings, store, embedder, journal), store


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
