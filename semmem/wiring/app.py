"""The composition root: what a running semmem consists of, how it starts, and how it ends.

Starting never waits for the store: a Milvus that is down when semmem starts is opened when it comes, and until then
requests pass without memory; so with an embedded store whose files are damaged. What cannot get better by waiting (data
of another model, a port in use, a journal that cannot be opened) stops the start with an error that names it.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from semmem.backends.in_process import InProcessStore
from semmem.backends.milvus.embedded import EmbeddedMilvus
from semmem.backends.worker_process import WorkerProcess
from semmem.background import DriftLoop, JournalWriter, Learner, OffloadThreads, Tasks
from semmem.config.listeners_section import HttpListenerSection as HttpSettings
from semmem.config.settings import Settings
from semmem.envoy.server import ExtProcServer
from semmem.envoy.service import ExternalProcessor
from semmem.extraction.result import BatchLearnt
from semmem.lifecycle.erasure import Erasure
from semmem.management.curation_api import curation_routes
from semmem.management.health import create_health
from semmem.management.purging import Purging
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError, JournalError, SemmemError, StoreError
from semmem.ports.events import JournalCounted
from semmem.ports.learning import Batch
from semmem.ports.store import Purgeable, Store, Sweepable
from semmem.telemetry.access_statistics import AccessRecorder
from semmem.telemetry.counting import Counting
from semmem.telemetry.metering import MeteredEmbedder
from semmem.telemetry.metrics import Metrics
from semmem.telemetry.observed_store import ObservedStore
from semmem.telemetry.page import MetricsPage
from semmem.turns.sessions import Sessions
from semmem.wiring import doors as assembly_api
from semmem.wiring import erasure as assembly_erasure
from semmem.wiring import maintenance as assembly_life
from semmem.wiring import parts as assembly
from semmem.wiring.parts import DAY_S, Backends
from semmem.wiring.store_watch import DiskWatch, open_store

log = logging.getLogger(__name__)

HEALTH_INTERVAL_S = 5.0
DRIFT_INTERVAL_S = 5.0
PRUNE_INTERVAL_S = 600.0
UPKEEP_INTERVAL_S = 600.0
LEARN_DRAIN_S = 5.0


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a running semmem listens, with the ports that were chosen."""

    grpc: str
    api: str
    health: str


class App:
    """One semmem process. Must be made inside a running event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.metrics = Metrics()
        self._announce = Counting(
            self.metrics, backend=settings.memory.backend, retention_days=settings.journal.retention_days
        )
        self._tasks = Tasks()
        self._blocks = assembly.blocks(settings)
        self._hidden: assembly_erasure.Hidden | None = None
        self._sweepable: Sweepable | None = None
        self._purgeable: Purgeable | None = None
        self._disk = DiskWatch(None)
        self._up = {"journal": False, "embedder": False, "store": False, "disk": True}
        self._embedder_tried = asyncio.Event()
        self._store_tried = asyncio.Event()
        self._fatal: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # --- life --------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Addresses]:
        """Serve inside the block; drain and close at its end. Raises OSError or SemmemError when it cannot start."""
        async with AsyncExitStack() as stack:
            backends = await self._open_backends(stack)
            writer = JournalWriter(
                backends.journal,
                queue_max=self._settings.journal.queue_max,
                commit_interval_s=self._settings.journal.commit_interval_ms / 2000,
                announce=self._announce,
            )
            learner = self._learner(backends)
            notes = AccessRecorder(backends.journal)
            sessions = assembly.sessions(self._settings, backends)
            erasure = await self._make_erasure(backends, writer, sessions, notes)
            stack.push_async_callback(self._tasks.cancel)
            server, addresses = await self._open_doors(backends, writer, notes, sessions, erasure, stack)
            for name, work in (
                ("open store", lambda: self._open_store(backends.store)),
                ("open embedder", lambda: self._open_embedder(backends.embedder)),
                ("journal writer", writer.run),
                ("learner", lambda: learner.run(self._can_learn)),
                ("access notes", notes.run),
                ("housekeeping", lambda: self._housekeeping(backends)),
                ("upkeep", lambda: self._upkeep(backends)),
                ("erasures", lambda: self._erasures(erasure)),
            ):
                self._tasks.keep(name, work)
            self._watch_topics(backends, learner)
            await self._until_ready()
            _settle()
            await server.set_serving(True)
            try:
                yield addresses
            finally:
                await self._drain(server, writer, learner)
                await notes.flush()

    async def until(self, stop: asyncio.Event) -> None:
        """Wait to be stopped. Raises a failure that waiting will not mend."""
        stopped = self._tasks.spawn("stop", stop.wait())
        await asyncio.wait([stopped, self._fatal], return_when=asyncio.FIRST_COMPLETED)
        if self._fatal.done():
            self._fatal.result()

    async def _until_ready(self) -> None:
        tried = self._tasks.spawn("wait for backends", self._backends_tried())
        await asyncio.wait([tried, self._fatal], return_when=asyncio.FIRST_COMPLETED)
        if self._fatal.done():
            self._fatal.result()

    async def _backends_tried(self) -> None:
        await self._embedder_tried.wait()
        await self._store_tried.wait()

    async def _drain(self, server: ExtProcServer, writer: JournalWriter, learner: Learner) -> None:
        """Nothing that was accepted is lost: streams end first, then the journal's queue, then running batches."""
        deadline = time.monotonic() + self._settings.deployment.drain_s
        await server.stop(max(0.5, deadline - time.monotonic() - LEARN_DRAIN_S))
        if not await writer.drained(max(1.0, deadline - time.monotonic())):
            log.error("stopped with %d halves of turns not committed", len(writer))
        await learner.drained(max(0.5, min(LEARN_DRAIN_S, deadline - time.monotonic())))

    # --- backends ----------------------------------------------------------------------------------------------------

    async def _open_backends(self, stack: AsyncExitStack) -> Backends:
        settings = self._settings
        journal = assembly.journal(settings)
        await journal.open()
        stack.push_async_callback(journal.close)
        self._up["journal"] = True
        embedder = await asyncio.to_thread(assembly.embedder, settings)
        stack.push_async_callback(embedder.close)
        store = self._make_store(embedder.signature)
        stack.push_async_callback(store.close)
        models = assembly.models(settings, self.metrics)
        for model in models.values():
            stack.push_async_callback(model.close)
        reranker = assembly.reranker(settings, self.metrics)
        if reranker is not None:
            stack.push_async_callback(reranker.close)
        self._hidden = assembly_erasure.hidden(self._observed(store))
        worker = WorkerProcess()
        stack.push_async_callback(worker.close)
        return Backends(
            store=assembly.hot_memories(settings, self._hidden.shown, self._tasks.spawn),
            embedder=MeteredEmbedder(embedder, self.metrics),
            journal=journal,
            models=models,
            reranker=reranker,
            fence=await asyncio.to_thread(assembly.fence, settings),
            worker=worker,
        )

    def _observed(self, store: Store) -> Store:
        """Below the hot memories: nothing runs between what tool loops are told here and what changes there."""
        return ObservedStore(store, self.metrics, self._settings.memory.backend, [self._blocks.changed])

    def _make_store(self, signature: str) -> Store:
        if self._settings.memory.backend == "in_process":
            self._sweepable = self._purgeable = in_process = InProcessStore()
            return in_process
        self._sweepable = self._purgeable = milvus = assembly.milvus(self._settings, signature)
        self._disk = DiskWatch(milvus if isinstance(milvus, EmbeddedMilvus) else None)
        return milvus

    async def _open_store(self, store: Store) -> None:
        """A store that answers but does not fit is fatal."""

        def tried(is_open: bool) -> None:
            self._up["store"] = is_open
            self._store_tried.set()

        try:
            await open_store(store, tried)
        except StoreError as error:
            self._fail(error)

    async def _open_embedder(self, embedder: Embedder) -> None:
        try:
            await embedder.open()
            self._up["embedder"] = True
        except EmbedderError as error:
            if self._settings.memory.embedding.source == "local":
                self._fail(error)
                return
            log.error("no embedder, searches are degraded: %s", error)
        self._embedder_tried.set()

    def _fail(self, error: Exception) -> None:
        if not self._fatal.done():
            self._fatal.set_exception(error)

    # --- doors -------------------------------------------------------------------------------------------------------

    async def _open_doors(
        self,
        backends: Backends,
        writer: JournalWriter,
        notes: AccessRecorder,
        sessions: Sessions,
        erasure: Erasure,
        stack: AsyncExitStack,
    ) -> tuple[ExtProcServer, Addresses]:
        settings, after = self._settings, self._erased().marks.after
        limits = assembly.door_limits(settings)
        offload, offload_large = OffloadThreads(), OffloadThreads()
        stack.push_async_callback(offload.close)
        stack.push_async_callback(offload_large.close)
        exchange = assembly.exchange(
            settings,
            backends,
            writer,
            self._announce,
            self._blocks,
            sessions,
            after,
            notes.note,
            offload=offload,
            offload_large=offload_large,
        )
        server = ExtProcServer(
            ExternalProcessor(
                exchange,
                limits,
                announce=self._announce,
                single_filter=settings.capture.mode == "single_filter",
                message_timeouts=assembly.message_timeouts(settings),
                offload=offload,
                offload_large=offload_large,
            ),
            address=assembly.grpc_address(settings),
            message_bytes_max=limits.message_bytes_max,
            credentials=assembly.grpc_credentials(settings),
        )
        grpc = await server.start()
        stack.push_async_callback(server.stop, 0.0)
        holds = assembly_erasure.holds(settings, backends)
        memories = assembly.memories(settings, backends, self._announce, erasure, holds, after)
        life = partial(curation_routes, assembly_life.life(settings, backends, holds, self._announce))
        purging = Purging([part for part in (backends.journal, self._purgeable) if part is not None])
        api = assembly_api.api(settings, memories, self._announce, more=[life], purging=purging)
        health = create_health(self._ready, self._metrics_page(backends, writer, notes, erasure))
        return server, Addresses(
            grpc=grpc,
            api=await self._serve("api", api, settings.listeners.api, stack),
            health=await self._serve("health", health, settings.listeners.health, stack),
        )

    async def _serve(self, name: str, application: object, where: HttpSettings, stack: AsyncExitStack) -> str:
        listener = assembly_api.http_listener(application, where)
        bound = listener.bind()
        task = self._tasks.spawn(name, listener.serve())

        async def stop() -> None:
            listener.stop()
            await asyncio.wait({task}, timeout=5.0)
            listener.close()

        stack.push_async_callback(stop)
        return bound

    def _ready(self) -> dict[str, bool]:
        """Memory is optional, so a store that is down does not make semmem unready."""
        return {"journal": self._up["journal"], "embedder": self._embedder_tried.is_set()}

    # --- learning, housekeeping, measuring ---------------------------------------------------------------------------

    def _learner(self, backends: Backends) -> Learner:
        learning = assembly.learning(self._settings, backends, self._announce)

        async def learn(batch: Batch) -> None:
            started = time.perf_counter()
            result = await learning.learn(batch)
            self._announce(BatchLearnt(batch, result, time.perf_counter() - started))

        return assembly.learner(self._settings, backends, learn)

    def _watch_topics(self, backends: Backends, learner: Learner) -> None:
        watch = assembly.drift_watch(self._settings, backends)
        if watch is not None:
            drift = DriftLoop(watch.look, learner.nudge, interval_s=DRIFT_INTERVAL_S)
            self._tasks.keep("topics", lambda: drift.run(lambda: self._up["embedder"]))

    async def _housekeeping(self, backends: Backends) -> None:
        """Watch the components, count the journal's turns, drop those past their time."""
        pruned = time.monotonic()
        while True:
            await asyncio.sleep(HEALTH_INTERVAL_S)
            if self._store_tried.is_set():
                await self._watch_store(backends.store)
            await self._disk.look()
            self._up["disk"] = self._disk.has_room
            due = time.monotonic() - pruned > PRUNE_INTERVAL_S
            await self._watch_journal(backends, prune=due)
            if due:
                pruned = time.monotonic()

    async def _watch_store(self, store: Store) -> None:
        was_up = self._up["store"]
        try:
            await store.health()
            self._up["store"] = True
        except StoreError as error:
            self._up["store"] = False
            if was_up:
                log.error("store does not answer, requests pass without memory: %s", type(error).__name__)
        if self._up["store"] and not was_up:
            log.info("store answers again")

    def _can_learn(self) -> bool:
        """Not while the embedder is being opened: after a restart the store is often there seconds before it."""
        return self._embedder_tried.is_set() and self._up["store"] and self._disk.has_room

    async def _upkeep(self, backends: Backends) -> None:
        """Go through what is remembered: replaced versions, expired memories, and all that upkeep has rules for."""
        if self._sweepable is None:
            return
        upkeep = assembly_life.upkeep(self._settings, backends, self._sweepable, self._announce)
        while True:
            await asyncio.sleep(UPKEEP_INTERVAL_S)
            if not self._can_learn():
                continue
            try:
                await upkeep.run(time.time())
            except SemmemError as error:
                log.warning("upkeep failed, the next one goes on: %s", type(error).__name__)

    # --- erasing -----------------------------------------------------------------------------------------------------

    def _erased(self) -> assembly_erasure.Hidden:
        if self._hidden is None:
            raise RuntimeError("open the backends first")
        return self._hidden

    async def _make_erasure(
        self, backends: Backends, writer: JournalWriter, sessions: Sessions, notes: AccessRecorder
    ) -> Erasure:
        """Knows what was not finished before anything is read."""
        hidden = self._erased()
        here = assembly_erasure.Here(writer, backends.store, hidden.shown, self._blocks, sessions, notes)
        erasure = assembly_erasure.erasure(self._settings, backends, hidden, here, self._announce)
        await erasure.load()
        return erasure

    async def _erasures(self, erasure: Erasure) -> None:
        """Finish what is pending, that of other processes as well."""
        while True:
            await asyncio.sleep(self._settings.erasure.retry_s)
            try:
                await erasure.load()
            except JournalError as error:
                log.warning("pending erasures could not be read: %s", error)
            await erasure.finish_pending()

    async def _watch_journal(self, backends: Backends, *, prune: bool) -> None:
        try:
            self._announce(JournalCounted(await backends.journal.counts()))
            if prune:
                await backends.journal.prune(done_before=time.time() - self._settings.journal.retention_days * DAY_S)
                marked = time.time() - self._settings.erasure.marks_days * DAY_S
                await backends.journal.prune_marks(forgotten_before=marked)
            self._up["journal"] = True
        except JournalError as error:
            self._up["journal"] = False
            log.error("journal: %s", error)

    def _metrics_page(
        self, backends: Backends, writer: JournalWriter, notes: AccessRecorder, erasure: Erasure
    ) -> MetricsPage:
        metrics, up = self.metrics, self._up
        components = {metrics.component_up.labels(name): partial(up.__getitem__, name) for name in up}
        return MetricsPage(
            metrics,
            gauges={
                metrics.journal_queue: lambda: len(writer),
                metrics.hot_users: lambda: backends.store.users,
                metrics.hot_memories: lambda: backends.store.memories,
                metrics.erasures_pending: lambda: erasure.pending,
                **components,
            },
            totals={
                metrics.journal_dropped: lambda: writer.dropped,
                metrics.uses_dropped: lambda: notes.dropped,
                metrics.erased_halves.labels("journal"): lambda: backends.journal.turned_away,
            },
        )


def _settle() -> None:
    """Put what start-up made beyond the collector's reach.

    With the embedding library loaded a full collection looks at half a million objects and takes 0.3 to 0.7 s, longer
    than Envoy waits; none of them ever becomes garbage.
    """
    gc.collect()
    gc.freeze()
