"""What a running semmem consists of, how it starts, and how it ends.

Starting never waits for the store: a Milvus that is down when semmem starts is opened when it comes, and until then
requests pass without memory; so with an embedded store whose files are damaged. What cannot get better by waiting (data
of another model, a port in use, a journal that cannot be opened) stops the start with an error that names it.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from semmem.backends.sql.journal import SqlJournal
from semmem.background import AtOnceLearner, JournalWriter, Learner, SwitchWatch, Tasks, Warming
from semmem.config.settings import Settings
from semmem.envoy.server import ExtProcServer
from semmem.lifecycle.erasure import Erasure
from semmem.lifecycle.everybody import ErasureOfAll
from semmem.management.activity_api import Activity, activity_routes
from semmem.management.health import create_health
from semmem.management.reindex_api import reindex_routes
from semmem.management.studio_site import STUDIO_PATH, create_site
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError, StoreError
from semmem.ports.events import Event
from semmem.reindex.movable_store import MovableStore
from semmem.reindex.reindexing import Reindexing
from semmem.request.switches import Switches
from semmem.retrieval.index.sizes import advice
from semmem.telemetry.access_statistics import AccessRecorder
from semmem.telemetry.counting import Counting
from semmem.telemetry.loop_lag import watch_loop
from semmem.telemetry.metrics import Metrics
from semmem.telemetry.page import MetricsPage
from semmem.turns.sessions import Sessions
from semmem.turns.unread import UnreadHistories
from semmem.wiring import backup, doors, learning, maintenance, reindex, replicas, request, tracing
from semmem.wiring import erasure as erasing
from semmem.wiring.backends import Opened, disk_of, open_backends
from semmem.wiring.engine import engine
from semmem.wiring.guards import desk, guards
from semmem.wiring.news import Kept
from semmem.wiring.replicas import Replicas
from semmem.wiring.store_watch import StoreWatch

log = logging.getLogger(__name__)

LEARN_DRAIN_S, AT_ONCE_DRAIN_S = 5.0, 1.0


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a running semmem listens, with the ports that were chosen."""

    grpc: str
    api: str
    health: str


@dataclass(frozen=True, slots=True)
class _Parts:
    """What works beside the requests, or is shared by the doors."""

    opened: Opened
    store: StoreWatch
    can_learn: Callable[[], bool]
    writer: JournalWriter
    learner: Learner
    at_once: AtOnceLearner | None
    uses: AccessRecorder
    sessions: Sessions
    unread: UnreadHistories
    erasure: Erasure
    housekeeping: maintenance.HousekeepingLoop
    warming: Warming
    replicas: Replicas | None
    reindexing: Reindexing
    switches: Switches
    switch_watch: SwitchWatch


class App:
    """One semmem process. Must be made inside a running event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._metrics = Metrics()
        self._announce = Counting(
            self._metrics, backend=settings.memory.backend, retention_days=settings.journal.retention_days
        )
        self._activity = Activity(time.time)
        self._injection_cache = request.injection_cache(settings)
        self._tasks = Tasks()
        self._embedder_answers = False
        self._embedder_tried = asyncio.Event()
        self._fatal: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def _make_store(self, settings: Settings, vectors: Embedder, turns: SqlJournal) -> MovableStore:
        self._store = reindex.movable(settings, vectors, turns, may_move=reindex.may_begin(settings, vectors))
        return self._store

    def _heard(self, event: Event) -> None:
        self._announce(event)
        self._activity.heard(event)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Addresses]:
        """Serve inside the block; drain and close at its end. Raises OSError or SemmemError when it cannot start."""
        async with AsyncExitStack() as stack:
            listeners = [self._injection_cache.changed]
            self._tracing = tracing.tracing(self._settings, self._metrics, stack)
            opened = await open_backends(
                self._settings,
                self._metrics,
                stack,
                spawn=self._tasks.spawn,
                listeners=listeners,
                announce=self._announce,
                make_store=self._make_store,
            )
            parts = self._parts(opened)
            if parts.replicas is not None:
                await parts.replicas.join()
                stack.push_async_callback(parts.replicas.leave)
            await parts.switch_watch.refresh()
            await parts.erasure.load()  # before anything is read: what was not finished is hidden
            stack.push_async_callback(self._tasks.cancel)
            server, addresses = await self._open_doors(parts, stack)
            self._begin(parts)
            await self._until_ready(parts.store)
            _settle()
            await server.set_serving(True)
            try:
                yield addresses
            finally:
                await self._drain(server, parts)
                await parts.uses.flush()

    async def until(self, stop: asyncio.Event) -> None:
        """Wait to be stopped. Raises a failure that waiting will not mend."""
        await self._unless_fatal("stop", stop)

    # --- start -------------------------------------------------------------------------------------------------------

    def _parts(self, opened: Opened) -> _Parts:
        settings, backends = self._settings, opened.backends
        store = StoreWatch(backends.store, disk_of(opened.store_backend))

        def can_learn() -> bool:
            """Not while the embedder is being opened: after a restart the store is often there seconds before it."""
            return self._embedder_tried.is_set() and store.answers and store.has_room

        patient = learning.patient(settings, backends)
        batches = learning.learning(settings, patient, self._announce)
        tracer = self._tracing.tracer
        at_once = learning.at_once(settings, patient, self._announce, batches, can_learn, tracer)
        writer = request.journal_writer(settings, backends, self._announce, at_once, tracer)
        uses, sessions = AccessRecorder(backends.journal), request.sessions(settings, backends)
        waiting = learning.waiting_words(settings, patient)
        here = erasing.Here(writer, backends.store, opened.hidden.shown, self._injection_cache, sessions, uses)
        elsewhere = erasing.elsewhere(settings, backends, opened.hidden, here)
        erasure = erasing.erasure(settings, backends, opened.hidden, here, waiting, self._announce, elsewhere)
        learner = learning.learner(settings, backends, self._announce, batches, tracer)
        switches = Switches()
        watch = SwitchWatch(backends.journal, switches, refresh_s=settings.memory.switches.refresh_s)
        return _Parts(
            opened,
            store,
            can_learn,
            writer,
            learner,
            at_once,
            uses,
            sessions,
            here.unread,
            erasure,
            maintenance.housekeeping(settings, backends, store, self._announce),
            Warming(backends.store, backends.journal, users_max=settings.memory.hot_cache.warm_users),
            replicas.replicas(settings, opened, erasure, elsewhere, learner.nudge, watch.look),
            reindex.reindexing(
                settings, self._store, backends.embedder, backends.journal, moved=backends.store.forget_user
            ),
            switches,
            watch,
        )

    async def _open_doors(self, parts: _Parts, stack: AsyncExitStack) -> tuple[ExtProcServer, Addresses]:
        settings, backends, after = self._settings, parts.opened.backends, parts.opened.hidden.marks.after
        work = request.body_work(settings, stack)
        exchange = request.exchange(
            settings,
            backends,
            self._announce,
            writer=parts.writer,
            injection_cache=self._injection_cache,
            sessions=parts.sessions,
            after=after,
            note_uses=parts.uses.note,
            work=work,
            spawn=self._tasks.spawn,
            unread=parts.unread,
            switches=parts.switches,
        )
        server = doors.envoy_door(settings, exchange, self._heard, work=work, tracer=self._tracing.tracer)
        grpc = await server.start()
        stack.push_async_callback(server.stop, 0.0)
        api = doors.api(
            settings,
            backends,
            self._announce,
            erasure=parts.erasure,
            after=after,
            purgeable=parts.opened.store_backend,
            everybody=ErasureOfAll(parts.erasure, parts.opened.store_backend, backends.journal, clock=time.time),
            engine=engine(
                settings, parts.opened, self._up(parts), lambda: len(parts.writer), lambda: parts.reindexing.state
            ),
            guards=guards(settings, backends, self._announce),
            switches=desk(settings, backends, parts.switches, parts.switch_watch),
            more=[
                backup.routes(settings, parts.opened, self._announce),
                partial(reindex_routes, parts.reindexing),
                partial(activity_routes, self._activity),
            ],
        )
        if settings.listeners.api.studio:
            api.mount(STUDIO_PATH, create_site())
        if settings.listeners.api.mcp:
            from semmem.management.mcp_doors import mount  # and with it an SDK that most processes never need

            tools = mount(api, body_bytes_max=settings.listeners.api.body_bytes_max)
            self._tasks.spawn("tools", tools.run())
            await tools.ready.wait()
        health = create_health(lambda: self._ready(parts), self._metrics_page(parts))
        listeners, serve = settings.listeners, partial(doors.serve, spawn=self._tasks.spawn, stack=stack)
        return server, Addresses(
            grpc=grpc,
            api=await serve("api", api, listeners.api),
            health=await serve("health", health, listeners.health),
        )

    def _begin(self, parts: _Parts) -> None:
        """Everything that runs as long as the process."""
        settings, backends = self._settings, parts.opened.backends
        log.info("%s", advice(settings.memory.hot_cache.bytes_max, settings.memory.embedding.dimension))
        upkeep = maintenance.upkeep(settings, backends, parts.opened.store_backend, self._announce)
        for name, work in (
            ("open store", lambda: self._open_store(parts.store)),
            ("open embedder", lambda: self._open_embedder(backends.embedder)),
            ("journal writer", parts.writer.run),
            ("learner", lambda: parts.learner.run(parts.can_learn)),
            ("access notes", parts.uses.run),
            ("housekeeping", parts.housekeeping.run),
            ("upkeep", lambda: maintenance.keep_up(upkeep, parts.can_learn)),
            ("switches", parts.switch_watch.run),
            ("loop lag", lambda: watch_loop(self._metrics.loop_lag_seconds, lambda: self._announce.requests)),
            ("erasures", lambda: erasing.finish_pending(parts.erasure, settings.erasure.retry_s)),
        ):
            self._tasks.keep(name, work)
        if parts.opened.news is not None:
            here = parts.replicas
            is_counted = (lambda: True) if here is None else (lambda: here.is_counted)
            parts.opened.news.begin(self._tasks, Kept(backends.store, self._injection_cache), is_counted)
        if self._tracing.run is not None:
            self._tasks.keep("traces", self._tracing.run)
        self._tasks.keep("reindex", lambda: self._reindex(parts.reindexing))
        if parts.replicas is not None:
            parts.replicas.begin(self._tasks)
        if settings.memory.hot_cache.warm_users:
            self._tasks.keep("warming", lambda: parts.warming.run(lambda: parts.store.answers))
        if parts.at_once is not None:  # else the first turn would wait for it
            self._tasks.keep("start of the reader", lambda: learning.start_reader(backends))
            self._tasks.keep("turns that were left", parts.at_once.run)
        drift = learning.drift_loop(settings, backends, parts.learner.nudge)
        if drift is not None:
            self._tasks.keep("topics", lambda: drift.run(lambda: self._embedder_answers))

    async def _open_store(self, store: StoreWatch) -> None:
        """A store that answers but does not fit is fatal."""
        try:
            await store.open()
        except StoreError as error:
            self._fail(error)

    async def _reindex(self, reindexing: Reindexing) -> None:
        """A store that everybody reads with another model's vectors is fatal."""
        await self._embedder_tried.wait()
        try:
            await reindexing.run()
        except StoreError as error:
            self._fail(error)

    async def _open_embedder(self, embedder: Embedder) -> None:
        try:
            await embedder.open()
            self._embedder_answers = True
        except EmbedderError as error:
            if self._settings.memory.embedding.source != "auto":
                self._fail(error)
                return
            log.error("no embedder, searches are degraded: %s", error)
        self._embedder_tried.set()

    def _fail(self, error: Exception) -> None:
        if not self._fatal.done():
            self._fatal.set_exception(error)

    async def _until_ready(self, store: StoreWatch) -> None:
        await self._unless_fatal("wait for the embedder", self._embedder_tried)
        await self._unless_fatal("wait for the store", store.tried)

    async def _unless_fatal(self, name: str, happened: asyncio.Event) -> None:
        """Wait for it. Raises a failure that waiting will not mend."""
        waiting = self._tasks.spawn(name, happened.wait())
        await asyncio.wait([waiting, self._fatal], return_when=asyncio.FIRST_COMPLETED)
        if self._fatal.done():
            self._fatal.result()

    # --- state -------------------------------------------------------------------------------------------------------

    def _ready(self, parts: _Parts) -> dict[str, bool]:
        """Memory is optional, so a store that is down does not make semmem unready; nor does a journal's server, which
        is away for all replicas at once, while the queue takes turns."""
        journal = self._settings.journal
        waits = bool(journal.url) and len(parts.writer) < journal.queue_max
        return {"journal": parts.housekeeping.journal_answers or waits, "embedder": self._embedder_tried.is_set()}

    def _metrics_page(self, parts: _Parts) -> MetricsPage:
        return doors.metrics_page(
            self._metrics,
            parts.opened.backends,
            writer=parts.writer,
            uses=parts.uses,
            erasure=parts.erasure,
            warming=parts.warming,
            components=self._up(parts),
            reindexing=parts.reindexing,
        )

    def _up(self, parts: _Parts) -> dict[str, Callable[[], bool]]:
        """Which components answered when they were last asked."""
        news = parts.opened.news
        return {
            "journal": lambda: parts.housekeeping.journal_answers,
            "embedder": lambda: self._embedder_answers,
            "store": lambda: parts.store.answers,
            "disk": lambda: parts.store.has_room,
            **({} if news is None else {"news": lambda: news.changes.is_up}),
        }

    # --- end ---------------------------------------------------------------------------------------------------------

    async def _drain(self, server: ExtProcServer, parts: _Parts) -> None:
        """Nothing that was accepted is lost: streams end first, then the journal's queue, then what is being learnt."""
        deadline = time.monotonic() + self._settings.deployment.drain_s
        await server.stop(max(0.5, deadline - time.monotonic() - LEARN_DRAIN_S))
        if not await parts.writer.drained(max(1.0, deadline - time.monotonic())):
            log.error("stopped with %d halves of turns not committed", len(parts.writer))
        if parts.at_once is not None:
            await parts.at_once.drained(AT_ONCE_DRAIN_S)
        await parts.learner.drained(max(0.5, min(LEARN_DRAIN_S, deadline - time.monotonic())))
        if parts.opened.news is not None:
            await parts.opened.news.last_word()
        await self._tracing.last_word()


def _settle() -> None:
    """Put what start-up made beyond the collector's reach.

    With the embedding library loaded a full collection looks at half a million objects and takes 0.3 to 0.7 s, longer
    than Envoy waits; none of them ever becomes garbage.
    """
    gc.collect()
    gc.freeze()
