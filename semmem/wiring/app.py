"""What a running semmem consists of, how it starts, and how it ends.

Starting never waits for the store: a Milvus that is down when semmem starts is opened when it comes, and until then
requests pass without memory; so with an embedded store whose files are damaged. What cannot get better by waiting (data
of another model, a port in use, a journal that cannot be opened) stops the start with an error that names it.
"""

import asyncio
import gc
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from semmem.background import OffloadThreads, Tasks
from semmem.background.learner import watch_topics
from semmem.config.settings import Settings
from semmem.management.activity_api import Activity
from semmem.management.server import create_health
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError, StoreError
from semmem.request.body_work import BodyWork
from semmem.retrieval.index.sizes import advice
from semmem.telemetry.counting import Counting
from semmem.telemetry.metering import watch_loop
from semmem.telemetry.metrics import Metrics
from semmem.telemetry.samples import Samples
from semmem.wiring import erasure as erasing
from semmem.wiring import features, learning, maintenance, request
from semmem.wiring.backends import open_backends, tracing
from semmem.wiring.maintenance import CANNOT_WRITE
from semmem.wiring.parts import Parts, metrics_page
from semmem.wiring.reload import Read, Reloading
from semmem.wiring.replicas import Kept
from semmem.wiring.serving import Serving, Workshop, serve

log = logging.getLogger(__name__)

LEARN_DRAIN_S, AT_ONCE_DRAIN_S, SPANS_DRAIN_S = 5.0, 1.0, 2.0


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a running semmem listens, with the ports that were chosen."""

    grpc: str
    api: str
    health: str


class App:
    """One semmem process. Must be made inside a running event loop. ``read`` reads the configuration again, with what
    is wrong with it; without it nothing ever changes."""

    def __init__(self, settings: Settings, read: Read | None = None) -> None:
        self._settings = settings
        self._metrics = Metrics()
        self._announce = Counting(
            self._metrics, backend=settings.memory.backend, retention_days=settings.journal.retention_days
        )
        self._activity = Activity(time.time)
        self._samples = Samples(self._metrics)
        self.reloading = Reloading[Serving](settings, read or (lambda: (settings, ())), announce=self._announce)
        self._tasks = Tasks()
        self._embedder_answers = False
        self._embedder_tried = asyncio.Event()
        self._serves = False
        self._fatal: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Addresses]:
        """Serve inside the block; drain and close at its end. Raises OSError or SemmemError when it cannot start."""
        async with AsyncExitStack() as stack:
            self._tracer, self._export = tracing(self._settings, self._metrics, stack)
            opened = await open_backends(
                self._settings, self._metrics, stack, spawn=self._tasks.spawn, announce=self._announce
            )
            parts = Parts(
                self._settings,
                opened,
                self._announce,
                shown=request.ledger(self._settings, opened.backends.journal, self._tasks.spawn, self._announce),
                embedder_tried=self._embedder_tried,
                tracer=self._tracer,
            )
            if parts.replicas is not None:
                await parts.replicas.join()
                stack.push_async_callback(parts.replicas.leave)
            await parts.switch_watch.refresh()
            await parts.usage.begin()
            await parts.erasure.load()  # before anything is read: what was not finished is hidden
            stack.push_async_callback(self._tasks.cancel)
            addresses = await self._open_doors(parts, stack)
            self._begin(parts)
            await self._unless_fatal("wait for the embedder", self._embedder_tried)
            await self._unless_fatal("wait for the store", parts.store.tried)
            gc.collect()  # beyond the collector's reach from now on: a full collection of what start-up made takes
            gc.freeze()  # 0.3 to 0.7 s, longer than Envoy waits, and none of it ever becomes garbage
            await self._workshop.server.set_serving(True)
            self._serves = True
            try:
                yield addresses
            finally:
                self._serves = False
                await self._drain(parts)
                await parts.uses.flush()
                await parts.usage.writer.flush()
                await parts.conversations.writer.flush()
                await parts.request_log.flush()

    async def until(self, stop: asyncio.Event) -> None:
        """Wait to be stopped. Raises a failure that waiting will not mend."""
        await self._unless_fatal("stop", stop)

    async def _open_doors(self, parts: Parts, stack: AsyncExitStack) -> Addresses:
        settings, spawn, tracer = self._settings, self._tasks.spawn, self._tracer
        usual, large = OffloadThreads(), OffloadThreads()  # for large bodies
        for each in (usual, large):
            stack.push_async_callback(each.close)
        self._workshop = workshop = Workshop(
            parts,
            self._announce,
            self.reloading,
            threads=BodyWork(usual=usual, large=large),
            spawn=spawn,
            up=self._up(parts),
            activity=self._activity,
            samples=self._samples,
            tracer=tracer,
        )
        await workshop.open(settings)
        grpc = await workshop.server.start()
        stack.push_async_callback(workshop.server.stop, 0.0)
        self.reloading.begin(workshop.make, workshop.take_up)
        health = create_health(lambda: self._ready(parts), metrics_page(self._metrics, parts, self._up(parts)))
        listeners, serving = settings.listeners, partial(serve, spawn=spawn, stack=stack)
        return Addresses(
            grpc=grpc,
            api=await serving("api", workshop.api, listeners.api),
            health=await serving("health", health, listeners.health),
        )

    def _begin(self, parts: Parts) -> None:
        """Everything that runs as long as the process."""
        settings, backends = self._settings, parts.opened.backends
        log.info("%s", advice(settings.memory.hot_cache.bytes_max, settings.memory.embedding.dimension))
        for name, work in (
            ("open store", lambda: self._unless_unfit(parts.store.open)),
            ("open embedder", lambda: self._open_embedder(backends.embedder)),
            ("journal writer", parts.writer.run),
            ("learner", lambda: parts.learner.run(parts.can_learn)),
            ("access notes", parts.uses.run),
            ("housekeeping", parts.housekeeping.run),
            ("usage", parts.usage.writer.run),
            ("states of sessions", parts.compression.maker.run),
            ("former usage", parts.usage.writer.keep_small),
            ("conversations", parts.conversations.writer.run),
            ("former conversations", parts.conversations.writer.keep_small),
            ("request log", parts.request_log.run),
            ("former requests", parts.request_log.keep_small),
            ("upkeep", lambda: maintenance.keep_up(lambda: self._workshop.serving.learning.upkeep, parts.can_learn)),
            ("unread histories", lambda: request.read_again(lambda: self._workshop.serving.turns)),
            ("reload", self.reloading.run),
            ("switches", parts.switch_watch.run),
            ("votes", parts.vote_watch.run),
            ("loop lag", lambda: watch_loop(self._metrics.loop_lag_seconds, lambda: self._announce.requests)),
            ("samples", self._samples.run),
            ("erasures", lambda: erasing.finish_pending(parts.erasure, settings.erasure.retry_s)),
            ("reindex", lambda: self._unless_unfit(parts.reindexing.run, after=self._embedder_tried)),
        ):
            self._tasks.keep(name, work)
        if parts.opened.news is not None:
            here = parts.replicas
            is_counted = (lambda: True) if here is None else (lambda: here.is_counted)
            parts.opened.news.begin(self._tasks, Kept(backends.store, parts.shown), is_counted)
        if (placer := features.placer(settings, parts.patient)) is not None:
            self._tasks.keep("vectors of conversations", placer.run)
        if self._export is not None:
            self._tasks.keep("traces", self._export.run)
        if parts.replicas is not None:
            parts.replicas.begin(self._tasks)
        if settings.memory.hot_cache.warm_users:
            self._tasks.keep("warming", lambda: parts.warming.run(lambda: parts.store.answers))
        if parts.at_once is not None:  # else the first turn would wait for it
            self._tasks.keep("start of the reader", lambda: learning.start_reader(backends))
            self._tasks.keep("turns that were left", parts.at_once.run)
        drift, nudge = (lambda: self._workshop.serving.learning.drift), parts.learner.nudge
        self._tasks.keep("topics", lambda: watch_topics(drift, nudge, lambda: self._embedder_answers))

    async def _unless_unfit(self, work: Callable[[], Awaitable[None]], after: asyncio.Event | None = None) -> None:
        """A store that answers but does not fit is fatal, as is one that everybody reads with another model's
        vectors."""
        if after is not None:
            await after.wait()
        try:
            await work()
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

    async def _unless_fatal(self, name: str, happened: asyncio.Event) -> None:
        """Wait for it. Raises a failure that waiting will not mend."""
        waiting = self._tasks.spawn(name, happened.wait())
        await asyncio.wait([waiting, self._fatal], return_when=asyncio.FIRST_COMPLETED)
        if self._fatal.done():
            self._fatal.result()

    def _ready(self, parts: Parts) -> dict[str, str | None]:
        """What is wrong with each that must be right, None: nothing. Ready is: what users say is accepted and kept.
        Memories may be missing, so a store that is down does not make semmem unready; nor does a journal's server,
        which is away for all replicas at once, while the queue takes turns. But both are tried before anybody is
        served."""
        journal = self._settings.journal
        waits = bool(journal.url) and len(parts.writer) < journal.queue_max
        return {
            "journal": None if waits else _journal_trouble(parts),
            "embedder": None if self._embedder_tried.is_set() else "is being loaded",
            "serving": None if self._serves else "not yet, or not any more",
        }

    def _up(self, parts: Parts) -> dict[str, Callable[[], bool]]:
        """Which components answered when they were last asked."""
        news = parts.opened.news
        return {
            "journal": lambda: _journal_trouble(parts) is None,
            "embedder": lambda: self._embedder_answers,
            "store": lambda: parts.store.answers,
            "disk": lambda: parts.store.has_room,
            **({} if news is None else {"news": lambda: news.changes.is_up}),
        }

    async def _drain(self, parts: Parts) -> None:
        """Nothing that was accepted is lost: streams end first, then the journal's queue, then what is being learnt."""
        self.reloading.end()
        deadline = time.monotonic() + self._workshop.serving.settings.deployment.drain_s
        await self._workshop.server.stop(max(0.5, deadline - time.monotonic() - LEARN_DRAIN_S))
        if not await parts.writer.drained(max(1.0, deadline - time.monotonic())):
            log.error("stopped with %d halves of turns not committed", len(parts.writer))
        if parts.at_once is not None:
            await parts.at_once.drained(AT_ONCE_DRAIN_S)
        await parts.shown.flush()
        await parts.learner.drained(max(0.5, min(LEARN_DRAIN_S, deadline - time.monotonic())))
        if parts.opened.news is not None:
            await parts.opened.news.last_word()
        if self._export is not None:
            await self._export.drained(SPANS_DRAIN_S)


def _journal_trouble(parts: Parts) -> str | None:
    """By the last look at it, and by the last commit, which knows of limits and locks that a look does not meet."""
    return parts.housekeeping.journal_trouble or (CANNOT_WRITE if parts.writer.fails else None)
