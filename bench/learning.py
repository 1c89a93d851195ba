"""What learning costs: the journal, batches, turns at once: ``python -m bench --only learning``.

The parts are those of a running semmem without doors, at its defaults and without a language model: the journal's
writer, the learner with its workers, the local extractor in its own process, the shipped embedder, a Milvus. Every
second turn says something that can be learnt; the others only ask.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.facts import turns, user_name
from bench.figures import Json, spread
from bench.plan import Place, Plan, Say
from bench.recalling import drop, milvus_at, new_name, run, settings_for, uri_of
from demo.processes import Failed
from semmem.backends.worker_process import WorkerProcess
from semmem.background import OffloadThreads, Tasks
from semmem.background.writers import JournalWriter
from semmem.config import Settings
from semmem.extraction.result import BatchLearnt, BatchResult, TurnLearnt
from semmem.lifecycle.hiding_store import HidingStore, Marks
from semmem.memory import Scope, Turn, TurnEnding
from semmem.ports.events import Event
from semmem.ports.recording import TurnClosed
from semmem.wiring import backends as backend_parts
from semmem.wiring import learning, request, stores
from semmem.wiring.backends import Backends
from semmem.wiring.models import embedder as shipped_embedder

ANSWER = "Gladly. Tell me first how long you want to stay and what you would like to see. " * 5
TURNS_EACH = 10
"""Of a session; by default a batch."""
END_S = 600.0


@dataclass(frozen=True, slots=True)
class _Learning:
    """The parts, and what they announce."""

    settings: Settings
    backends: Backends
    tasks: Tasks
    events: asyncio.Queue[Event]

    async def results(self, kind: type[BatchLearnt] | type[TurnLearnt], count: int) -> list[BatchResult]:
        """So many results as they come. Raises TimeoutError."""
        found: list[BatchResult] = []
        async with asyncio.timeout(END_S):
            while len(found) < count:
                event = await self.events.get()
                if isinstance(event, kind):
                    found.append(event.result)
        return found


def measure(plan: Plan, place: Place, say: Say) -> Json:
    """``journal``, ``batches``, ``at_once``; no key. Raises Failed and TimeoutError."""
    return run(_measure(plan, place.folder, say))


def table(found: Json) -> str:
    """For people."""
    journal, batches, at_once = found["journal"], found["batches"], found["at_once"]
    return "\n".join(
        [
            "\nLearning, by the local extractor",
            f"journal: {journal['committed_per_s']:.0f} turns a second committed, {journal['cpu_us']:.0f} us CPU each",
            f"batches of {TURNS_EACH} turns: {batches['per_s']:.1f} a second, {batches['stored_per_s']:.1f} memories a"
            f" second, {batches['cpu_ms']:.0f} ms of CPU each",
            f"at once: p50 {at_once['latency_ms']['p50']:.0f} ms, p99 {at_once['latency_ms']['p99']:.0f} ms alone, of"
            f" which up to {at_once['commit_interval_ms']:.0f} wait for the journal's commit; {at_once['per_s']:.1f}"
            f" turns a second when {at_once['burst']} come together",
        ]
    )


async def _measure(plan: Plan, folder: Path, say: Say) -> Json:
    async with milvus_at(uri_of(plan.milvus), folder / "milvus") as uri:
        journal = await _journal(plan, _folder(folder / "journal"))
        say(f"learning: journal: {journal['committed_per_s']:.0f} turns a second")
        async with _learning(uri, _folder(folder / "batches")) as parts:
            batches = await _batches(parts, plan)
        say(f"learning: batches: {batches['per_s']:.1f} a second")
        async with _learning(uri, _folder(folder / "at_once")) as parts:
            at_once = await _at_once(parts, plan)
        say(f"learning: at once: {at_once['latency_ms']['p50']:.0f} ms")
    return {"keys": {}, "journal": journal, "batches": batches, "at_once": at_once}


# --- what is measured ------------------------------------------------------------------------------------------------


async def _journal(plan: Plan, folder: Path) -> Json:
    """Turns, both halves of each, offered without a pause and without a reader."""
    settings = Settings.model_validate({"data_dir": str(folder)})
    journal = stores.journal(settings)
    await journal.open()
    tasks = Tasks()
    writer = JournalWriter(
        journal, queue_max=2 * plan.journalled, interval_s=settings.journal.commit_interval_ms / 2000
    )
    tasks.spawn("journal writer", writer.run())
    halves = [_turn(number) for number in range(plan.journalled)]
    cpu, began = time.process_time(), time.perf_counter()
    for opened, closed in halves:
        writer.offer(opened)
        writer.offer(closed)
    accepted_s = time.perf_counter() - began
    drained = await writer.drained(END_S)
    committed_s = time.perf_counter() - began
    cpu = time.process_time() - cpu
    await tasks.cancel()
    await journal.close()
    if writer.dropped or not drained:
        raise Failed("the journal did not take every turn")
    return {
        "turns": plan.journalled,
        "accepted_per_s": plan.journalled / accepted_s,
        "committed_per_s": plan.journalled / committed_s,
        "cpu_us": cpu / plan.journalled * 1e6,
    }


async def _batches(parts: _Learning, plan: Plan) -> Json:
    """Sessions that wait already, learnt from by all workers."""
    for session in range(plan.sessions):
        numbers = range(session * TURNS_EACH, (session + 1) * TURNS_EACH)
        both = [_turn(number, user=session) for number in numbers]
        await parts.backends.journal.record([opened for opened, _ in both], [closed for _, closed in both])
    learnt = learning.learning(parts.settings, parts.backends, parts.events.put_nowait)
    learner = learning.learner(parts.settings, parts.backends, parts.events.put_nowait, learnt)
    await learning.start_reader(parts.backends)
    cpu, began = time.process_time(), time.perf_counter()
    parts.tasks.spawn("learner", learner.run())
    results = await parts.results(BatchLearnt, plan.sessions)
    seconds = time.perf_counter() - began
    return {
        "batches": plan.sessions,
        "turns_each": TURNS_EACH,
        "per_s": plan.sessions / seconds,
        "turns_per_s": plan.sessions * TURNS_EACH / seconds,
        "stored_per_s": sum(sum(result.stored.values()) for result in results) / seconds,
        "cpu_ms": (time.process_time() - cpu) / plan.sessions * 1000,
        "statuses": dict(Counter(result.status for result in results)),
    }


async def _at_once(parts: _Learning, plan: Plan) -> Json:
    """From the offer of a turn's second half to the word that its memories are stored."""
    batches = learning.learning(parts.settings, parts.backends)
    learner = learning.at_once(parts.settings, parts.backends, parts.events.put_nowait, batches, lambda: True)
    writer = request.journal_writer(parts.settings, parts.backends, parts.events.put_nowait, learner)
    parts.tasks.spawn("journal writer", writer.run())
    await learning.start_reader(parts.backends)
    seconds: list[float] = []
    results: list[BatchResult] = []
    for number in range(plan.turns_alone):
        began = _offer(writer, number)
        results += await parts.results(TurnLearnt, 1)
        seconds.append(time.perf_counter() - began)
    began = time.perf_counter()
    for number in range(plan.turns_alone, plan.turns_alone + plan.turns_burst):
        _offer(writer, number)
    results += await parts.results(TurnLearnt, plan.turns_burst)
    took = time.perf_counter() - began
    return {
        "latency_ms": spread([seconds]),
        "commit_interval_ms": parts.settings.journal.commit_interval_ms / 2,
        "burst": plan.turns_burst,
        "per_s": plan.turns_burst / took,
        "statuses": dict(Counter(result.status for result in results)),
    }


# --- parts -----------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _learning(uri: str, folder: Path) -> AsyncIterator[_Learning]:
    """With a collection of its own, dropped at the end."""
    settings = settings_for(uri, new_name("learning"), folder)
    async with AsyncExitStack() as stack:
        tasks, indexing, worker = Tasks(), OffloadThreads(), WorkerProcess()
        model = await asyncio.to_thread(shipped_embedder, settings)
        await model.open()
        stack.push_async_callback(model.close)
        stack.push_async_callback(asyncio.to_thread, drop, uri, settings.memory.milvus.collection)
        store = await stack.enter_async_context(stores.milvus(settings, model.signature, model.dimension))
        journal = stores.journal(settings)
        await journal.open()
        for closing in (journal.close, worker.close, indexing.close, tasks.cancel):
            stack.push_async_callback(closing)
        hot = backend_parts.hot_memories(settings, HidingStore(store, Marks()), tasks.spawn, indexing)
        backends = learning.patient(settings, Backends(hot, model, journal, {}, worker=worker))
        yield _Learning(settings, backends, tasks, asyncio.Queue())


def _folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _offer(writer: JournalWriter, number: int) -> float:
    """Both halves of a turn of a user of its own; when the second was offered."""
    opened, closed = _turn(number, user=number)
    writer.offer(opened)
    began = time.perf_counter()
    writer.offer(closed)
    return began


def _turn(number: int, user: int | None = None) -> tuple[Turn, TurnClosed]:
    """Both halves of one; ten of a user's in a row are a session."""
    of = number // TURNS_EACH if user is None else user
    name, now = user_name(of), time.time()
    scope = Scope(name, session=f"session-{of}")
    turn = Turn(f"turn-{number}", scope, number, _SAID[number % len(_SAID)], now, message_id=f"message-{number}")
    return turn, TurnClosed(turn.id, TurnEnding.ANSWERED, now, ANSWER, "stop")


_SAID = turns(2400)
