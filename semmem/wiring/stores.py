"""Settings -> where memories and turns are kept: the journal; the collections of the configured store, and the store
that is one of them, or two while it is moved to another embedding model; and what moves it, in a running semmem or by
the command itself."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from semmem.backends.in_process import InProcessCollections
from semmem.backends.milvus.collection import WINDOW_MAX
from semmem.backends.milvus.collections import LiteCollections, MilvusCollections
from semmem.backends.milvus.connection import server_options
from semmem.backends.milvus.lite import MilvusLiteProcess
from semmem.backends.sql.database import JournalLimits, ServerLimits
from semmem.backends.sql.file import OnlyProcess
from semmem.backends.sql.journal import SqlJournal
from semmem.background.learner import PatientEmbedder
from semmem.backup.exporting import Everybody
from semmem.config.backends_section import MilvusSection, QdrantSection
from semmem.config.settings import Settings
from semmem.config.values import DAY_S
from semmem.lifecycle.holds import Holds
from semmem.passages.shelves import ShelvedCollections
from semmem.ports.embedder import Embedder
from semmem.ports.errors import JournalUnavailable, SemmemError, StoreError
from semmem.ports.store import Collection, Collections, Described
from semmem.reindex.movable_store import MovableStore
from semmem.reindex.moving import Mover
from semmem.reindex.reindexing import Reindexing
from semmem.wiring import models
from semmem.wiring.models import has_no_model

ROWS_PER_MEMORY = 5
"""Room for versions that are being replaced while a user's rows are read."""
PASSAGES_SPARE = 1000
"""Passages of a user that may come before room is made for them."""


def movable(settings: Settings, embedder: Embedder, journal: SqlJournal, *, may_move: bool) -> MovableStore:
    """The configured store, for this embedder's vectors. ``may_move``: another model's is opened, to be reindexed."""
    return MovableStore(collections(settings), embedder, journal, may_move=may_move)


def may_begin(settings: Settings, embedder: Embedder) -> bool:
    """Whether semmem reindexes what another model has made without being told. Not where ``source: auto`` found no
    model: it may be there again at the next start."""
    found_none = settings.memory.embedding.source == "auto" and has_no_model(embedder.signature)
    return settings.memory.reindex.start == "auto" and not found_none


def collections(settings: Settings) -> ShelvedCollections:
    """Where the configured store keeps memories. Raises StoreError when a package for it is not installed."""
    made = {"in_process": lambda _settings: InProcessCollections(), "qdrant": _qdrant, "milvus": _milvus}
    return ShelvedCollections(made[settings.memory.backend](settings))


def _milvus(settings: Settings) -> Collections:
    rules, options = settings.memory.milvus, _options(settings, settings.memory.milvus)
    options |= {"index": rules.index, "num_partitions": rules.num_partitions}
    options["rows_per_user_max"] = min(WINDOW_MAX - 1, options["rows_per_user_max"])
    if rules.address:
        tls, token = rules.tls, rules.token.get_secret_value()
        by: dict[str, Any] = {"secure": tls.enabled, "client_key_path": tls.key_file, "server_name": tls.server_name}
        server = tls.fill(server_options, _uri(rules), token=token, database=rules.database, **by)
        return MilvusCollections(rules.collection, server, options=options)
    lite = MilvusLiteProcess(settings.milvus_dir)
    return LiteCollections(rules.collection, lite, options={**options, "purge_timeout_s": rules.purge_timeout_s})


def _qdrant(settings: Settings) -> Collections:
    """At the address of a server, or in the client's local mode. Raises StoreError when its package is not
    installed."""
    try:  # an optional package, which takes half a second to import
        from semmem.backends.qdrant.collection import Collection as First
        from semmem.backends.qdrant.local import LocalQdrant
        from semmem.backends.qdrant.server import QdrantServer, Tls
        from semmem.backends.qdrant.store import QdrantCollections
    except ModuleNotFoundError:
        raise StoreError("memory.backend qdrant needs a package: pip install 'semmem[qdrant]'") from None
    rules, options = settings.memory.qdrant, _options(settings, settings.memory.qdrant)
    first = rules.fill(First, name=rules.collection, dimension=0, signature="")
    options["purge_timeout_s"] = rules.purge_timeout_s
    if rules.address:
        url, api_key = _uri(rules), rules.api_key.get_secret_value()
        if api_key and url.startswith("http://"):
            log.warning("memory.qdrant.api_key travels unencrypted: switch memory.qdrant.tls on")
        return QdrantCollections(QdrantServer(url, api_key=api_key, tls=rules.tls.fill(Tls)), first, options=options)
    log.warning(
        "Qdrant's local mode keeps the memories: the client's own Python, no Qdrant engine, for trying out; every"
        " search looks at all memories of all users, and index and quantisation (%s, %s) mean nothing to it",
        rules.index,
        rules.quantisation,
    )
    return QdrantCollections(LocalQdrant(settings.qdrant_dir), first, options=options)


@asynccontextmanager
async def milvus(settings: Settings, signature: str, dimension: int) -> AsyncIterator[Collection]:
    """The configured collection of memories alone, of vectors of this model. Raises StoreError."""
    collections = _milvus(settings)
    store = collections.collection(Described(settings.memory.milvus.collection, signature, dimension))
    await collections.open()
    try:
        await store.open()
        yield store
    finally:
        await store.close()
        await collections.close()


def _options(settings: Settings, rules: MilvusSection | QdrantSection) -> dict[str, Any]:
    """How long any collection may take, and how many rows of a user there are at most."""
    memories, passages = ROWS_PER_MEMORY * settings.memory.max_memories_per_user, settings.passages.per_user_max
    return {
        "search_timeout_s": settings.deadlines.store_ms / 1000,
        "read_timeout_s": rules.call_timeout_s,
        "write_timeout_s": rules.call_timeout_s,
        "rows_per_user_max": max(memories, passages + PASSAGES_SPARE),
    }


def _uri(rules: MilvusSection | QdrantSection) -> str:
    if "://" in rules.address:
        return rules.address
    return f"{'https' if rules.tls.enabled else 'http'}://{rules.address}"


log = logging.getLogger(__name__)

JOURNAL_RETRY_S = 1.0
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
        Everybody(store, journal).users,
        clock=time.time,
        moved=moved,
        tell=lambda line: log.info("reindex: %s", line),
        lease_s=LEASE_S if shared else 0.0,  # one process alone has the journal's file
        poll_s=rules.poll_s,
        settle_s=2 * rules.poll_s if shared else 0.0,
        keep_s=rules.keep_days * DAY_S or None,
    )


SHOWN_EVERY_S = 0.5
AT_REST = frozenset({"none", "kept", "paused"})

Say = Callable[[Mapping[str, Any]], None]


async def run(
    settings: Settings, *, force: bool, limit: int | None, drop: bool, back: bool, say: Say
) -> dict[str, Any]:
    """All that can be done; how it ended. ``back``: only to a former collection that is still kept. Raises OSError and
    SemmemError."""
    async with AsyncExitStack() as stack:
        journal = await opened_journal(settings, stack)
        embedder = await asyncio.to_thread(models.embedder, settings)
        stack.push_async_callback(embedder.close)
        store = movable(settings, embedder, journal, may_move=True)
        stack.push_async_callback(store.close)
        await embedder.open()
        await store.open()
        moving = reindexing(settings, store, embedder, journal)
        if back and (store.target is None or not await store.target.store.users()):
            raise StoreError(f"no collection of {settings.memory.embedding.model} is kept to go back to")
        if drop:
            return {"success": True, "dropped": await moving.drop_former()}
        await moving.start(force=force, limit=limit)
        await _to_the_end(moving, say)
        told = await moving.status()
        say(told)
        return told


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
        with suppress(SemmemError):
            say(await reindexing.status())


def journal(settings: Settings) -> SqlJournal:
    rules = settings.journal
    return SqlJournal(
        rules.url or settings.journal_file,
        password=rules.password.get_secret_value(),
        server=rules.postgres.fill(ServerLimits),
        synchronous="FULL" if rules.synchronous == "full" else "NORMAL",
        limits=rules.fill(JournalLimits),
    )


async def opened_journal(settings: Settings, stack: AsyncExitStack) -> SqlJournal:
    """The journal, open until ``stack`` is closed; a file is this process's alone. Raises JournalError."""
    if not settings.journal.url:
        only = OnlyProcess(settings.journal_file)
        stack.callback(only.close)
        await asyncio.to_thread(only.open)
    turns = journal(settings)
    await open_journal(turns, wait_s=settings.journal.postgres.start_wait_s)
    stack.push_async_callback(turns.close)
    return turns


async def open_journal(turns: SqlJournal, *, wait_s: float) -> None:
    """Open it, again and again for ``wait_s``: a server may be started at the same moment. Raises JournalError, at
    once where waiting does not help."""
    deadline, told = time.monotonic() + wait_s, False
    while True:
        try:
            return await turns.open()
        except JournalUnavailable as error:
            if time.monotonic() >= deadline:
                raise
            if not told:
                log.error("journal unavailable, the start waits for it: %s", error)
            told = True
        await asyncio.sleep(JOURNAL_RETRY_S)
