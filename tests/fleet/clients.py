"""One user's deeds, one after the other, and what is noted of them."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field

from tests.canary.acts import say
from tests.canary.doors import TOOK, Doors
from tests.canary.erasures import delete_one, delete_user, listed, reached
from tests.canary.ledger import CONVERSATION, Fact, Ledger
from tests.canary.model import Asked
from tests.canary.people import Person, Talk
from tests.canary.sentences import FACTS
from tests.fleet.journals import Journals
from tests.fleet.plan import TALKS, Deed, Kind
from tests.fleet.stack import LEASE_S, Troubles
from tests.fleet.verdict import Away, Sent, Spoken, near

VISIBLE_S = 8.0
"""What was told so long ago must be in a prompt: the staleness of a replica that nobody tells of changes, and some
seconds in which a busy machine learns it."""
KNOWN_S = 1.0
"""What one replica has learnt is in the prompts of the others within this time: so long a question waits for that."""
INTERRUPTED_S = 2 * LEASE_S + VISIBLE_S
"""After a kill, what the killed replica was about to learn is learnt by another one within this time."""
WHOLE = TOOK - {"degraded", "embedder_busy"}
"""Outcomes of requests that semmem searched in full; with any other one a request went on without memory."""
GONE_SHARE = 0.25


@dataclass(slots=True)
class Recall:
    """Questions for something that must be known. ``early``: asked before it had to be there; ``late``: answered
    without it, since its turn had waited for VISIBLE_S and more and was not learnt from; ``superseded``: by user and
    number, the facts that are not recalled any more since something else was taken to contradict them."""

    asked: int = 0
    right: int = 0
    failed_open: int = 0
    early: int = 0
    gone: int = 0
    late: list[str] = field(default_factory=list)
    missed: list[tuple[Fact, str]] = field(default_factory=list)
    superseded: set[tuple[int, int]] = field(default_factory=set)

    @property
    def due(self) -> int:
        """Those that had to be answered rightly."""
        return self.asked - self.failed_open - self.early

    @property
    def learnt(self) -> int:
        """Those of them whose answer was learnt."""
        return self.due - len(self.late)

    @property
    def wrong(self) -> list[str]:
        """What was not found although nothing was taken to contradict it."""
        return [line for fact, line in self.missed if (fact.user, fact.number) not in self.superseded]


@dataclass(slots=True)
class Notes:
    """Of all users."""

    troubles: Troubles
    journals: Journals
    recall: Recall = field(default_factory=Recall)
    spoken: list[Spoken] = field(default_factory=list)

    @property
    def turns(self) -> int:
        return sum(len(one.turns) for one in self.spoken)


class Client:
    """A user with TALKS conversations."""

    def __init__(self, person: Person, doors: Doors, ledger: Ledger, notes: Notes, seed: int) -> None:
        self._person, self._doors, self._ledger, self._notes = person, doors, ledger, notes
        self._dice = random.Random(f"{seed}-{person.user}-deeds")
        self._begun = 0
        self._talks: list[tuple[Talk, Spoken]] = []
        for place in range(TALKS):
            self._begin(place)
        self._told: dict[int, tuple[int, Sent]] = {}

    async def do(self, deed: Deed) -> None:
        if deed.kind is Kind.TELL:
            await self._tell(deed)
        elif deed.kind is Kind.ASK:
            await self._ask(deed)
        elif deed.kind is Kind.CHAT:
            await self._chat(deed)
        else:
            await self._forget(deed)

    # --- turns -------------------------------------------------------------------------------------------------------

    async def _tell(self, deed: Deed) -> None:
        sentence, question = FACTS[deed.sentence]
        fact = self._ledger.tell(self._person.user, project="", way=CONVERSATION, question=question)
        _, sent = await self._say(deed.talk, sentence.format(self._ledger.word(fact)), fact)
        self._ledger.answered(fact, expected=True)  # whether it is, expect() says in the end
        self._told[fact.number] = deed.talk, sent

    async def _ask(self, deed: Deed) -> None:
        fact = self._asked_for(deed.talk)
        if fact is None:
            await self._chat(deed)
            return
        began, recall = time.monotonic(), self._notes.recall
        known, early = not (fact.gone or fact.free), self._is_early(fact)
        told = self._told[fact.number][1].text
        learnt = early or await asyncio.to_thread(self._notes.journals.is_learnt, self._person.name, told)
        if learnt and not early:
            await asyncio.sleep(KNOWN_S)
        turn, _ = await self._say(deed.talk, fact.question)
        if not known:
            recall.gone += 1
            return
        recall.asked += 1
        if turn.outcome not in WHOLE:
            recall.failed_open += 1
        elif fact.number in turn.shown:
            recall.right += 1
        elif early:
            recall.early += 1
        else:
            when = self._notes.troubles.when(began)
            line = f"{fact}, told {began - fact.ended:.1f} s before, {when}: {turn.outcome}"
            if learnt:
                recall.missed.append((fact, line))
            else:
                recall.late.append(line)

    def _asked_for(self, talk: int) -> Fact | None:
        """Something that the other conversation told and this one was not yet asked; now and then what was erased."""
        said = {message["content"] for message in self._talks[talk][0].said}
        facts = [
            fact
            for number, (place, sent) in self._told.items()
            if place != talk
            and sent.took
            and (fact := self._ledger.facts(self._person.user)[number - 1]).question not in said
        ]
        gone = [fact for fact in facts if fact.gone or fact.free]
        known = [fact for fact in facts if not (fact.gone or fact.free)]
        chosen = gone if gone and self._dice.random() < GONE_SHARE else known
        return self._dice.choice(chosen) if chosen else None

    def _is_early(self, fact: Fact) -> bool:
        """Whether nobody may have had the time to learn it."""
        now, (_, sent) = time.monotonic(), self._told[fact.number]
        met = [kill for kill in self._notes.troubles.kills if fact.began < kill < fact.ended + VISIBLE_S]
        late = now < fact.ended + VISIBLE_S or near(sent, Away(met)) or any(now < kill + INTERRUPTED_S for kill in met)
        away = [back for gone, back in self._notes.troubles.outages if fact.ended + VISIBLE_S > gone]
        return late or any(now < back + VISIBLE_S for back in away)

    async def _chat(self, deed: Deed) -> None:
        await self._say(deed.talk, f"How much is {deed.number + 2} times {self._dice.randrange(3, 90)}?")

    async def _say(self, place: int, text: str, fact: Fact | None = None) -> tuple[Asked, Sent]:
        talk, spoken = self._talks[place]
        began = time.monotonic()
        turn = await say(self._doors, self._person, talk, text, self._dice, fact)
        sent = Sent(text, began, time.monotonic(), turn.outcome in TOOK, fact)
        spoken.turns.append(sent)
        return turn, sent

    # --- erasures ----------------------------------------------------------------------------------------------------

    async def _forget(self, deed: Deed) -> None:
        for _, spoken in self._talks:
            spoken.whole = False
        await listed(self._doors, self._ledger, self._person)
        if deed.kind is Kind.FORGET_ONE:
            await delete_one(self._doors, self._ledger, self._person, self._dice)
        elif deed.kind is Kind.FORGET_ALL:
            await delete_user(self._doors, self._ledger, self._person, "DELETE of the user")
        else:
            await self._race(deed)
        for place in range(TALKS):
            self._go_on(place)
        await listed(self._doors, self._ledger, self._person)

    async def _race(self, deed: Deed) -> None:
        """Everything is forgotten while the model still answers a turn that tells something."""
        before = len(self._ledger.facts(self._person.user))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tell(deed))
            await reached(self._ledger, self._person, before)
            await delete_user(self._doors, self._ledger, self._person, "DELETE while the model answered")

    def _go_on(self, place: int) -> None:
        """A conversation with a turn that semmem may not have had is ended: sent again in a history, that would be news
        after an erasure that it never knew of."""
        talk, spoken = self._talks[place]
        if talk.over or any(near(one, self._notes.troubles.gone) for one in spoken.turns):
            self._begin(place)
            self._talks[place][1].whole = False

    def _begin(self, place: int) -> None:
        self._begun += 1
        session = f"s{self._begun}-{self._person.name}"
        spoken = Spoken(self._person.name, session)
        self._notes.spoken.append(spoken)
        self._talks[place:] = [(Talk(session, ""), spoken), *self._talks[place + 1 :]]
