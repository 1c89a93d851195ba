"""One run: a stack, its users, a few restarts beneath them, and a last look at everything."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.canary import after, copies
from tests.canary.doors import DOORS, Doors, Tally
from tests.canary.extractor import Extractor
from tests.canary.ledger import Findings, Ledger
from tests.canary.model import Prompts, overheard_model
from tests.canary.people import Person
from tests.canary.plants import PLANTS, Place
from tests.canary.plays import Plays, cards
from tests.canary.stack import AUDIT, ShippedSidecar, Stack, config, soon_healthy
from tests.canary.words import Words
from tests.support.collector import Collector, collector
from tests.support.harness import SHIPPED_EMBEDDER, envoy_process

CONNECTIONS = 8
SAY_EVERY_S = 15.0
SAID_MAX = 20
"""Findings that are said at a time."""
ENDINGS = (signal.SIGKILL, signal.SIGTERM)
PLANTED_AFTER = 0.3
"""Of the operations: there is something to plant then, and time to find it."""
LOOK_S = 0.05
FORGETFUL_EVERY = 3
"""One user in so many erases everything now and then."""
SHARES_FROM = 20_000
"""Operations from which on the doors' shares are judged: the rarest is meant for 1.4 in a hundred, which a short run
misses by luck."""
KEEPALIVE_S = 2.0
"""An idle connection is not used again for longer than the server keeps it (5 s): it may be closing it just then."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """``restarts``: kills and peaceful ends in turn, evenly spread. ``plants``: names of PLANTS. ``program``: which
    module serves, with the shipped embedder or the tests'."""

    operations: int
    users: int = 300
    seed: int = 0
    restarts: int = 4
    plants: tuple[str, ...] = ()
    program: str = SHIPPED_EMBEDDER

    @property
    def workers(self) -> int:
        return min(CONNECTIONS, self.users)

    @property
    def keepers(self) -> list[int]:
        """Users who never erase everything; all of them where each worker has but one."""
        return [user for user in range(self.users) if user // self.workers % FORGETFUL_EVERY] or [*range(self.users)]


@dataclass(slots=True)
class Report:
    """What was seen. ``asked``: semmem's own model; ``looked``: at how many of what after the load."""

    plan: Plan
    tally: Tally
    findings: Findings
    seconds: float = 0.0
    restarts: int = 0
    told: int = 0
    erased: int = 0
    free: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    planted: dict[str, Place] = field(default_factory=dict)
    looked: Counter[str] = field(default_factory=Counter)

    @property
    def rare(self) -> list[str]:
        """Doors with less than one operation in a hundred, in a run so long that this is no luck."""
        if self.tally.operations < SHARES_FROM:
            return []
        return [door for door in DOORS if self.tally.doors[door] * 100 < self.tally.operations]


class Run:
    """The parts of one run, which live as long as its stack."""

    def __init__(self, plan: Plan, stack: Stack, ledger: Ledger, prompts: Prompts, traces: Collector, say: Say) -> None:
        self._plan, self._stack, self._ledger, self._prompts, self._say = plan, stack, ledger, prompts, say
        self._traces = traces
        self._cards = cards(random.Random(plan.seed))
        self.report = Report(plan, Tally(), ledger.findings)

    async def play(self) -> Report:
        """The load, then rest, a restart in peace, and the last look."""
        began = time.monotonic()
        await self._load()
        self.report.seconds = time.monotonic() - began
        self._say(f"{self._place()}; looking through everything")
        await self._look()
        return self.report

    async def _load(self) -> None:
        workers = self._plan.workers
        async with asyncio.TaskGroup() as group:
            beside = [group.create_task(task) for task in (self._restarts(), self._progress(), self._plant())]
            await asyncio.gather(*(self._users(worker, workers) for worker in range(workers)))
            for task in beside:
                task.cancel()
        await asyncio.to_thread(self._plant_now, range(self._plan.users))

    async def _users(self, worker: int, workers: int) -> None:
        """One client: its users' deeds come one after the other, but for those that race on purpose."""
        dice = random.Random(f"{self._plan.seed}-{worker}")
        people = [Person(user, self._ledger.words.word(user, 0)) for user in range(worker, self._plan.users, workers)]
        # A pool each: httpx looks at every connection of a pool for every request.
        limits = httpx.Limits(keepalive_expiry=KEEPALIVE_S)
        async with httpx.AsyncClient(timeout=30.0, trust_env=False, verify=False, limits=limits) as http:
            doors = Doors(http, self._stack, self._ledger, self._prompts, self.report.tally)
            plays = Plays(doors, self._ledger, people[::FORGETFUL_EVERY], dice)
            for card in self._cards:
                if self._done(1.0):
                    return
                await card(plays, dice.choice(people))

    def _done(self, share: float) -> bool:
        return self.report.tally.operations >= share * self._plan.operations

    async def _restarts(self) -> None:
        for number in range(self._plan.restarts):
            while not self._done((number + 1) / (self._plan.restarts + 1)):
                await asyncio.sleep(LOOK_S)
            signum = ENDINGS[number % len(ENDINGS)]
            if signum is signal.SIGKILL:
                self._ledger.killed()
            async with self._stack.away(signum):
                self._say(f"{self._place()}: {signum.name}")
            self.report.restarts += 1

    async def _progress(self) -> None:
        """What is found is said as it is found: a run of an hour may be looked into before it ends."""
        said = set[str]()
        while True:
            await asyncio.sleep(SAY_EVERY_S)
            found = [*self._ledger.findings.leaks.values(), *self._ledger.findings.returns.values()]
            for line in [line for line in found if line not in said][:SAID_MAX]:
                self._say(f"  found: {line}")
            said.update(found)
            self._say(self._place())

    def _place(self) -> str:
        found = self._ledger.findings
        return f"{self.report.tally.operations:7} operations, {len(found.leaks)} leaks, {len(found.returns)} returns"

    async def _plant(self) -> None:
        while len(self.report.planted) < len(self._plan.plants):
            await asyncio.sleep(LOOK_S)
            await self._stack.up.wait()
            if self._done(PLANTED_AFTER):
                self._plant_now(self._plan.keepers)

    def _plant_now(self, keepers: Sequence[int]) -> None:
        """What is not planted yet. After the load everybody is a keeper."""
        dice = random.Random(self._plan.seed)
        for name in set(self._plan.plants) - self.report.planted.keys():
            if place := PLANTS[name](self._stack.sidecar.semmem, self._ledger, keepers, dice):
                self.report.planted[name] = place

    async def _look(self) -> None:
        """In one thread: nobody else is there any more."""
        data_dir = self._stack.sidecar.data_dir
        if waiting := await asyncio.to_thread(after.at_rest, data_dir):
            self.report.tally.say(f"{waiting} turns were not learnt from within {after.AT_REST_S:.0f} s")
        self._say("    every turn is learnt from; once more from the disk")
        self._try(lambda: copies.purge(self._stack.sidecar.semmem))
        looked = self.report.looked
        async with self._stack.away(signal.SIGTERM):
            looked["rows of the journal"] = after.look_at_journal(data_dir, self._ledger)
            looked["files after a purge"] = copies.look_at_disk(data_dir, self._ledger)
        looked["memories"] = await asyncio.to_thread(after.look_at_users, self._stack, self._ledger, self._plan.users)
        looked["commands"] = await asyncio.to_thread(self._try, self._look_at_commands)
        looked["lines of copies"] = await asyncio.to_thread(self._try, self._look_at_copies)
        looked["spans"] = copies.look_at_spans(self._traces.bodies, self._ledger)
        looked["lines of the audit log"] = after.look_at_logs([data_dir / AUDIT], self._ledger)
        looked["lines of logs"] = after.look_at_logs(self._stack.logs(), self._ledger)
        facts = list(self._ledger.all_facts())
        self.report.told = len(facts)
        self.report.erased = sum(bool(fact.gone) for fact in facts)
        self.report.free = sum(fact.free and not fact.gone for fact in facts)

    def _look_at_commands(self) -> int:
        return copies.look_at_commands(self._stack, self._ledger, self._plan.users)

    def _look_at_copies(self) -> int:
        return copies.look_at_copies(self._stack, self._ledger, self._stack.sidecar.folder / "copies")

    def _try(self, look: Callable[[], int | None]) -> int:
        try:
            return look() or 0
        except (copies.Failed, AssertionError, OSError) as failure:
            self.report.tally.say(f"after the load: {failure}")
            return 0


def play(folder: Path, plan: Plan, say: Say) -> Report:
    """Play the whole plan in an empty folder."""
    ledger = Ledger(Words(plan.seed), plan.users)
    prompts = Prompts(ledger)
    with ExitStack() as stack:
        extractor = Extractor(ledger)
        url = stack.enter_context(extractor.running())
        traces = stack.enter_context(collector())
        sidecar = ShippedSidecar(folder / "semmem", config(url, traces.url), plan.program)
        stack.callback(sidecar.end)
        sidecar.start()
        model = stack.enter_context(overheard_model(prompts.heard))
        envoy = stack.enter_context(
            envoy_process(folder / "envoy", semmem_port=sidecar.grpc_port, upstream=model, adapt=soon_healthy)
        )
        report = asyncio.run(Run(plan, Stack(sidecar, envoy), ledger, prompts, traces, say).play())
        report.asked = extractor.asked
        return report
