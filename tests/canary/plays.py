"""What users do, card by card of a shuffled deck, so that every door has its share whatever the seed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence

from tests.canary.acts import add_by_tool, create, end_session, own_token, say, tell
from tests.canary.doors import Doors
from tests.canary.erasures import OF_EVERYTHING, Erasure, delete_one, of_a_project, of_a_session
from tests.canary.ledger import Ledger
from tests.canary.people import Person
from tests.canary.sentences import GREETINGS, QUESTIONS, WHO

KNOWING_SHARE = 0.8
PAGES = (20, 20, 50, 1000)
STORM = 4
KEYS = ("home", "work")
OPERATORS_PAGES = (
    "/v1/status", "/v1/batches", "/v1/replicas", "/v1/health", "/v1/config", "/v1/tokens", "/openapi.json",
)  # fmt: skip


class Plays:
    """The cards that only look and tell; those that erase are in erasures.

    Only the ``forgetful`` erase everything of theirs, so that the others come to have something.
    """

    def __init__(self, doors: Doors, ledger: Ledger, forgetful: Sequence[Person], dice: random.Random) -> None:
        self.doors, self.ledger, self.forgetful, self.dice = doors, ledger, forgetful, dice

    # --- conversations -----------------------------------------------------------------------------------------------

    async def ask(self, person: Person) -> None:
        """Mostly what something is the answer to that was told, where it was told; it may be erased by now."""
        facts = self.ledger.facts(person.user)
        fact = self.dice.choice(facts) if facts and self.dice.random() < KNOWING_SHARE else None
        talk = person.talk(self.dice, project=fact.project if fact else None)
        question = fact.question if fact else self.dice.choice(QUESTIONS)
        await say(self.doors, person, talk, question, self.dice)

    async def greet(self, person: Person) -> None:
        await say(self.doors, person, person.talk(self.dice), self.dice.choice(GREETINGS), self.dice)

    async def tell(self, person: Person) -> None:
        await tell(self.doors, self.ledger, person, person.talk(self.dice), self.dice)

    async def end(self, person: Person) -> None:
        """The end of a session, known or not."""
        named = [talk for talk in person.talks if talk.session]
        session = self.dice.choice(named).session if named else f"s0-{person.name}"
        await end_session(self.doors, person, session)

    # --- the API -----------------------------------------------------------------------------------------------------

    async def list(self, person: Person) -> None:
        query = {"user_id": person.name, "limit": self.dice.choice(PAGES)}
        if project := self.dice.choice(person.projects):
            query["project_id"] = project
        answer = await self.doors.call("list", "GET", "/v1/memory", person.user, query=query)
        if answer is not None and answer.ok:
            person.known.extend(memory["id"] for memory in answer.json["memories"][:10])

    async def get(self, person: Person) -> None:
        await self._one(person, "get", "")

    async def history(self, person: Person) -> None:
        await self._one(person, "history", "/history")

    async def _one(self, person: Person, door: str, rest: str) -> None:
        memory = self.dice.choice(person.known) if person.known else "mem_none"
        query = {"user_id": person.name}
        await self.doors.call(door, "GET", f"/v1/memory/{memory}{rest}", person.user, query=query)

    async def search(self, person: Person) -> None:
        body = {"user_id": person.name, "query": self.dice.choice(QUESTIONS), "limit": 20}
        await self.doors.call("search", "POST", "/v1/memory/search", person.user, body=body)

    async def preview(self, person: Person) -> None:
        await self._preview(person, self.dice.choice(QUESTIONS))

    async def preview_by_name(self, person: Person) -> None:
        """Something erased, if anything was: the question itself would find it. In a chat it would be said again."""
        facts = self.ledger.facts(person.user)
        if gone := [fact for fact in facts if fact.gone] or facts:
            await self._preview(person, WHO.format(self.ledger.word(self.dice.choice(gone))))

    async def _preview(self, person: Person, question: str) -> None:
        body = {"user_id": person.name, "query": question}
        await self.doors.call("preview", "POST", "/v1/memory/preview", person.user, body=body)

    async def create(self, person: Person) -> None:
        await create(self.doors, self.ledger, person, self.dice, key=None)

    async def repeat(self, person: Person) -> None:
        """A create that was done, sent once more: it is answered as it was, unless that was erased meanwhile."""
        if person.sent:
            once, body = person.sent
            await self.doors.call("create", "POST", "/v1/memory", person.user, body=body, once=once)

    async def storm(self, person: Person) -> None:
        """Several at once under one key: each content is the memory, or a version of it."""
        key = self.dice.choice(KEYS)
        await asyncio.gather(*(create(self.doors, self.ledger, person, self.dice, key=key) for _ in range(STORM)))

    async def consolidate(self, person: Person) -> None:
        body = {"user_id": person.name, "dry_run": self.dice.random() < 0.5}
        await self.doors.call("consolidate", "POST", "/v1/memory/consolidate", person.user, body=body)

    async def summarize(self, person: Person) -> None:
        body = {"user_id": person.name, "dry_run": self.dice.random() < 0.5, "older_than_days": 0}
        await self.doors.call("summarize", "POST", "/v1/memory/summarize", person.user, body=body)

    # --- tools, copies, what an operator sees ------------------------------------------------------------------------

    async def tool(self, person: Person) -> None:
        """One of those that a model may call for its user."""
        if not (token := await own_token(self.doors, person)):
            return
        memory = self.dice.choice(person.known) if person.known else "mem_none"
        name, asked = self.dice.choice(
            (
                ("memory_search", {"query": self.dice.choice(QUESTIONS), "limit": 20}),
                ("memory_list", {"limit": 100}),
                ("memory_update", {"id": memory, "importance": 0.5}),
            )
        )
        await self.doors.tool(person.user, token, name, asked)

    async def add_by_tool(self, person: Person) -> None:
        if token := await own_token(self.doors, person):
            await add_by_tool(self.doors, self.ledger, person, token, self.dice)

    async def export(self, person: Person) -> None:
        await self.doors.call("export", "GET", "/v1/export", person.user, query={"user_id": person.name})

    async def engine(self, _person: Person) -> None:
        await self.doors.look("engine", self.dice.choice(OPERATORS_PAGES), of_api=True)

    async def health(self, _person: Person) -> None:
        await self.doors.look("health", self.dice.choice(("/healthz", "/readyz")))

    async def metrics(self, _person: Person) -> None:
        await self.doors.look("metrics", "/metrics")


Card = Callable[[Plays, Person], Awaitable[None]]


def _by_anyone(erase: Erasure) -> Card:
    return lambda plays, person: erase(plays.doors, plays.ledger, person, plays.dice)


def _by_the_forgetful(erase: Erasure) -> Card:
    return lambda plays, _person: erase(plays.doors, plays.ledger, plays.dice.choice(plays.forgetful), plays.dice)


DECK: tuple[Card, ...] = (
    *[Plays.ask] * 70, *[Plays.greet] * 50, *[Plays.tell] * 14, *[Plays.end] * 6,
    *[Plays.list] * 16, *[Plays.get] * 20, *[Plays.history] * 10, *[Plays.search] * 16,
    *[Plays.preview] * 12, *[Plays.preview_by_name] * 2, *[Plays.create] * 4, *[Plays.repeat] * 3, Plays.storm,
    *[Plays.consolidate] * 5, *[Plays.summarize] * 5, *[Plays.health] * 5, *[Plays.metrics] * 5,
    *[Plays.tool] * 8, *[Plays.add_by_tool] * 2, *[Plays.export] * 5, *[Plays.engine] * 5,
    *[_by_anyone(delete_one)] * 10, *[_by_anyone(of_a_project)] * 6, *[_by_anyone(of_a_session)] * 8,
    *map(_by_the_forgetful, OF_EVERYTHING),
)  # fmt: skip
"""Most are one operation, an erasure up to twenty. Whoever has nothing yet deletes nothing by id: so there are more of
these than a hundredth."""


def cards(dice: random.Random) -> Iterator[Card]:
    """The deck without end, shuffled anew each time; for all users together, so that a short run has every card."""
    while True:
        shuffled = list(DECK)
        dice.shuffle(shuffled)
        yield from shuffled
