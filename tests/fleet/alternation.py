"""Before the load: what goes to one replica and then to the other, each time."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from dataclasses import dataclass, field

import httpx

from tests.canary.acts import say
from tests.canary.doors import Doors, Tally
from tests.canary.erasures import delete_user
from tests.canary.ledger import CONVERSATION, Fact, Ledger
from tests.canary.model import Prompts
from tests.canary.people import Person, Talk
from tests.canary.sentences import FACTS
from tests.fleet.journals import Turn
from tests.fleet.stack import Fleet
from tests.support.harness import EnvoyProcess

JOINED_S = 20.0
VISIBLE_S = 1.0
VISIBLE_SHARE_MIN = 0.9
"""Of the facts that are known in time; on a busy machine one or the other takes longer."""
GIVEN_UP_S = 15.0
AGAIN_S = 0.05


@dataclass(frozen=True, slots=True)
class Trials:
    """How many answers, facts and erasures; each fact and each erasure is of another user."""

    answers: int = 120
    facts: int = 20
    erasures: int = 40

    @property
    def users(self) -> int:
        return 1 + self.facts + self.erasures


@dataclass(slots=True)
class Alternated:
    """What was seen. ``delays``: seconds from the end of a fact's answer to its being in a prompt of the other one."""

    trials: Trials
    joined: int = 0
    streams: list[int] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    undone: int = 0

    @property
    def unjoined(self) -> list[str]:
        missing = self.trials.answers - self.joined
        return [f"{missing} of {self.trials.answers} answers did not find their turn"] if missing else []

    @property
    def late(self) -> list[str]:
        """Where more than a few came later than VISIBLE_S."""
        return [] if not self.delays or self._in_time >= VISIBLE_SHARE_MIN else [f"all of them: {sorted(self.delays)}"]

    @property
    def returned(self) -> list[str]:
        return [f"{self.undone} of {self.trials.erasures} erasures undone"] if self.undone else []

    @property
    def delays_told(self) -> str:
        median = statistics.median(self.delays or [0.0])
        slowest = max(self.delays, default=0.0)
        return f"{self._in_time:.0%} of {len(self.delays)}, median {median:.2f} s, {slowest:.2f} s at most"

    @property
    def _in_time(self) -> float:
        return sum(delay <= VISIBLE_S for delay in self.delays) / max(1, len(self.delays))

    def __str__(self) -> str:
        return (
            f"{self.joined} of {self.trials.answers} answers joined, streams {' and '.join(map(str, self.streams))};"
            f" told on one, known on the other within a second {self.delays_told};"
            f" {self.undone} of {self.trials.erasures} erasures undone"
        )


@dataclass(slots=True)
class At:
    """The fleet as seen through one Envoy, its API that of one replica."""

    fleet: Fleet
    envoy: EnvoyProcess
    api_url: str

    @property
    def up(self) -> asyncio.Event:
        return self.fleet.up

    @property
    def changes(self) -> int:
        return self.fleet.changes

    @property
    def health_url(self) -> str:
        return self.fleet.health_url


class Alternation:
    """Users from number ``first`` on."""

    def __init__(
        self, fleet: Fleet, ledger: Ledger, prompts: Prompts, tally: Tally, first: int, trials: Trials, seed: int
    ) -> None:
        self._fleet, self._ledger, self._prompts, self._tally = fleet, ledger, prompts, tally
        self._people = iter([Person(user, ledger.words.word(user, 0)) for user in range(first, first + trials.users)])
        self._dice = random.Random(f"{seed}-alternation")
        self.found = Alternated(trials)

    async def play(self) -> Alternated:
        async with httpx.AsyncClient(timeout=30.0, trust_env=False) as http:
            apis = [replica.semmem.api_url for replica in self._fleet.replicas]
            both = Doors(http, At(self._fleet, self._fleet.envoy, apis[0]), self._ledger, self._prompts, self._tally)
            each = [
                Doors(http, At(self._fleet, envoy, api), self._ledger, self._prompts, self._tally)
                for envoy, api in zip(self._fleet.doors, apis, strict=True)
            ]
            await self._answers(both)
            for number in range(self.found.trials.facts):
                one, other = each[number % len(each)], each[(number + 1) % len(each)]
                self.found.delays.append(await self._seen_elsewhere(one, other, next(self._people)))
            erased = [
                await self._erased(each[number % len(each)], each[(number + 1) % len(each)], next(self._people))
                for number in range(self.found.trials.erasures)
            ]
            await asyncio.sleep(2 * VISIBLE_S)
            for fact in erased:
                await self._asked_again(each, fact)
        returned = self._ledger.findings.returns
        self.found.undone = sum((fact.user, fact.number) in returned for fact in erased)
        return self.found

    async def _answers(self, both: Doors) -> None:
        """Envoy gives the two streams of each request to the replicas in turn."""
        person = next(self._people)
        talk = Talk(f"alternate-{person.name}", "")
        before = self._streams()
        for number in range(self.found.trials.answers):
            await say(both, person, talk, f"How much is {number} times 7?", self._dice)
            talk.said = talk.said[-2:]
        self.found.streams = [now - then for now, then in zip(self._streams(), before, strict=True)]
        until = time.monotonic() + JOINED_S
        while time.monotonic() < until and self.found.joined < self.found.trials.answers:
            await asyncio.sleep(AGAIN_S)
            turns = await asyncio.to_thread(self._fleet.journals.turns)
            self.found.joined = joined([turn for turn in turns if turn.user == person.name])

    def _streams(self) -> list[int]:
        """Of the Envoy before both replicas, by replica."""
        page = httpx.get(f"http://{self._fleet.envoy.admin}/clusters", trust_env=False).text
        counted = dict(line.rsplit("::rq_total::", 1) for line in page.splitlines() if "::rq_total::" in line)
        return [int(counted[f"semmem::127.0.0.1:{replica.grpc_port}"]) for replica in self._fleet.replicas]

    async def _seen_elsewhere(self, one: Doors, other: Doors, person: Person) -> float:
        """Seconds until the other replica, which knows the user already, shows what this one was told."""
        await self._ask(other, person, FACTS[0][1])
        fact = await self._tell(one, person)
        told = time.monotonic()
        while time.monotonic() < told + GIVEN_UP_S:
            asked = time.monotonic()
            if fact.number in await self._ask(other, person, fact.question):
                return asked - told
            await asyncio.sleep(AGAIN_S)
        return GIVEN_UP_S

    async def _erased(self, one: Doors, other: Doors, person: Person) -> Fact:
        """Told on one and known on the other, or just told; erased on one; asked for at once on the other."""
        fact = await self._tell(one, person)
        if self._dice.random() < 0.5:
            until = time.monotonic() + GIVEN_UP_S
            while time.monotonic() < until and fact.number not in await self._ask(other, person, fact.question):
                await asyncio.sleep(AGAIN_S)
        await delete_user(one, self._ledger, person, "DELETE on one replica")
        await self._ask(other, person, fact.question)
        return fact

    async def _asked_again(self, each: list[Doors], fact: Fact) -> None:
        person = Person(fact.user, self._ledger.words.word(fact.user, 0))
        for doors in each:
            await self._ask(doors, person, fact.question)
            query = {"user_id": person.name}
            await doors.call("list", "GET", "/v1/memory", person.user, query=query)

    async def _tell(self, doors: Doors, person: Person) -> Fact:
        sentence, question = self._dice.choice(FACTS)
        fact = self._ledger.tell(person.user, project="", way=CONVERSATION, question=question)
        await say(doors, person, self._talk(person), sentence.format(self._ledger.word(fact)), self._dice, fact)
        self._ledger.answered(fact, expected=True)
        return fact

    async def _ask(self, doors: Doors, person: Person, question: str) -> frozenset[int]:
        """In a conversation of its own; the numbers that its prompt was given."""
        return (await say(doors, person, self._talk(person), question, self._dice)).shown

    def _talk(self, person: Person) -> Talk:
        person.begun += 1
        return Talk(f"a{person.begun}-{person.name}", "")


def joined(turns: list[Turn]) -> int:
    """How many turns have their answer; one that is there twice counts for nothing."""
    times: dict[str, int] = {}
    for turn in turns:
        times[turn.text] = times.get(turn.text, 0) + 1
    return sum(turn.answer is not None and times[turn.text] == 1 for turn in turns)
