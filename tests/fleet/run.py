"""One run: alternation, the load with its faults, rest, and the last look."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from tests.canary.doors import Doors, Tally
from tests.canary.ledger import Ledger
from tests.canary.model import Prompts, overheard_model
from tests.canary.people import Person
from tests.canary.run import Say
from tests.canary.words import Words
from tests.fleet.after import ask_for_erased, at_rest, client, failed_open, held, histories, unlike
from tests.fleet.alternation import Alternation, Trials
from tests.fleet.clients import Client, Notes
from tests.fleet.faults import all_faults
from tests.fleet.plan import TURNS, Deed, Size, deeds
from tests.fleet.report import Report
from tests.fleet.stack import Fleet, Parts, fleet
from tests.fleet.stalled import stall
from tests.fleet.verdict import Verdict, expect, judge_facts, judge_turns

SAY_EVERY_S = 10.0


class Run:
    """The parts of one run, which live as long as its fleet."""

    def __init__(self, fleet: Fleet, size: Size, seed: int, ledger: Ledger, prompts: Prompts, say: Say) -> None:
        self._fleet, self._size, self._seed = fleet, size, seed
        self._ledger, self._prompts, self._say = ledger, prompts, say
        self._notes = Notes(fleet.troubles, fleet.journals)
        self._plans = [deeds(seed, user, size.turns) for user in range(size.users)]
        self._all = max(1, sum(deed.kind in TURNS for plan in self._plans for deed in plan))
        self._next = 0.0
        self.report = Report(size, Tally(), ledger.findings, Verdict(), self._notes.recall)

    async def play(self, trials: Trials | None) -> Report:
        if trials is not None:
            first, tally = self._size.users, self.report.tally
            trying = Alternation(self._fleet, self._ledger, self._prompts, tally, first, trials, self._seed)
            self.report.alternated = await trying.play()
            self._say(f"alternating: {self.report.alternated}")
        began = time.monotonic()
        await self._load()
        self.report.seconds = time.monotonic() - began
        self._say(f"{self._place()}; waiting until every turn is learnt from")
        await self._look()
        return self.report

    async def _load(self) -> None:
        async with asyncio.TaskGroup() as group:
            faults = group.create_task(all_faults(self._fleet, self._done, self._say))
            progress = group.create_task(self._progress())
            clients = self._size.clients
            await asyncio.gather(*(self._users(range(one, self._size.users, clients)) for one in range(clients)))
            await faults
            progress.cancel()

    async def _users(self, users: Sequence[int]) -> None:
        """Some users: a deed of each in turn, so that all of them are there from the beginning to the end."""
        async with client() as http:
            doors = self._doors(http)
            people = [Person(user, self._ledger.words.word(user, 0)) for user in users]
            each = [Client(person, doors, self._ledger, self._notes, self._seed) for person in people]
            for row in by_turns([self._plans[user] for user in users]):
                for place, deed in row:
                    await self._in_turn()
                    await each[place].do(deed)

    async def _in_turn(self) -> None:
        """Until it is this deed's turn in an even flow of all clients' deeds."""
        if self._size.turns_per_s:
            now = time.monotonic()
            mine = max(self._next, now)
            self._next = mine + 1 / self._size.turns_per_s
            await asyncio.sleep(mine - now)

    def _doors(self, http: httpx.AsyncClient) -> Doors:
        return Doors(http, self._fleet, self._ledger, self._prompts, self.report.tally)

    def _done(self) -> float:
        return self._notes.turns / self._all

    async def _progress(self) -> None:
        while True:
            await asyncio.sleep(SAY_EVERY_S)
            self._say(self._place())

    def _place(self) -> str:
        tally, found = self.report.tally, self._ledger.findings
        return f"{self._notes.turns:6} turns, {tally.failures} client errors, {len(found.returns)} erased came back"

    async def _look(self) -> None:
        report, users = self.report, self._size.users
        report.passed = await failed_open(self._fleet)
        report.unlearnt = await asyncio.to_thread(at_rest, self._fleet)
        gone = self._fleet.troubles.gone
        expect(self._notes.spoken, gone)
        turns = await asyncio.to_thread(self._fleet.journals.turns)
        judge_turns(report.verdict, self._notes.spoken, turns, gone, self._fleet.troubles.when)
        lists = [await asyncio.to_thread(held, replica.semmem, self._ledger, users) for replica in self._fleet.replicas]
        report.unlike = unlike(lists)
        report.recall.superseded = {
            place for place, holding in lists[0].items() if any(memory.superseded for memory in holding)
        }
        judge_facts(report.verdict, [fact for user in range(users) for fact in self._ledger.facts(user)], lists[0])
        first = self._fleet.replicas[0].semmem
        report.histories = await asyncio.to_thread(histories, first, self._ledger, lists[0])
        report.erased = sum(bool(fact.gone) for fact in self._ledger.all_facts())
        async with client() as http:
            report.asked_for_erased = await ask_for_erased(self._doors(http), self._ledger)


def by_turns(plans: list[list[Deed]]) -> list[list[tuple[int, Deed]]]:
    """The first deed of each plan, the second of each, and so on; each with the place of its plan."""
    longest = max(map(len, plans), default=0)
    return [[(place, plan[row]) for place, plan in enumerate(plans) if row < len(plan)] for row in range(longest)]


def play(folder: Path, parts: Parts, size: Size, seed: int, trials: Trials | None, stop_s: float, say: Say) -> Report:
    """Play the whole plan in an empty folder. ``stop_s``: how long the store is stopped in the end."""
    users = size.users + (trials.users if trials else 0)
    ledger = Ledger(Words(seed), users)
    prompts = Prompts(ledger)
    with overheard_model(prompts.heard) as model, fleet(folder, parts, model, say) as found:
        say("two replicas, their servers and Envoy are ready")
        report = asyncio.run(Run(found, size, seed, ledger, prompts, say).play(trials))
        if stop_s:
            say(f"the store is going to be stopped for {stop_s:.0f} s")
            report.stalled = stall(folder / "stalled", found.store, program=parts.program, stop_s=stop_s)
        return report
