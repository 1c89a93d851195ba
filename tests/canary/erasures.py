"""How users erase: in peace, and at every moment at which something of theirs is under way.

Each first lists what there is, so that what came back from an earlier erasure is seen before this one removes it, and
most tell something new at once, which must stay.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from tests.canary.acts import create, end_session, own_token, tell
from tests.canary.doors import Doors
from tests.canary.ledger import NEVER, ONE_PROJECT, ONE_SESSION, Fact, Ledger
from tests.canary.people import Person

EVERYTHING = 1000
BATCH_S_MAX = 0.25
"""An erasure comes so long after a batch has begun: about what a batch takes."""
UNDER_WAY_S = 5.0
RACERS = 4

Erasure = Callable[[Doors, Ledger, Person, random.Random], Awaitable[None]]


async def listed(doors: Doors, ledger: Ledger, person: Person) -> dict[str, set[int]]:
    """The numbers of the canaries in each memory of a user, by the memory's id; nothing when semmem went away."""
    query = {"user_id": person.name, "limit": EVERYTHING}
    answer = await doors.call("list", "GET", "/v1/memory", person.user, query=query)
    if answer is None or not answer.ok:
        return {}
    return {
        memory["id"]: {number for _, number in ledger.words.found(memory["content"])}
        for memory in answer.json["memories"]
    }


async def delete_user(doors: Doors, ledger: Ledger, person: Person, kind: str) -> None:
    query = {"user_id": person.name}
    answer = await doors.delete("delete by user", "/v1/memory", person.user, query=query)
    if answer is not None:
        ledger.erased(person.user, answer.sent, kind)


async def delete_project(doors: Doors, ledger: Ledger, person: Person, project: str) -> None:
    query = {"user_id": person.name, "project_id": project}
    answer = await doors.delete("delete by project", "/v1/memory", person.user, query=query)
    if answer is not None:
        ledger.erased(person.user, answer.sent, ONE_PROJECT, project=project)


async def delete_session(doors: Doors, ledger: Ledger, person: Person, session: str) -> None:
    query = {"user_id": person.name, "session_id": session}
    answer = await doors.delete("delete by session", "/v1/memory", person.user, query=query)
    if answer is not None:
        ledger.erased(person.user, answer.sent, ONE_SESSION, session=session)


async def delete_one(doors: Doors, ledger: Ledger, person: Person, dice: random.Random) -> None:
    """One memory with its history. What another memory says as well stays."""
    if not (all_of := await listed(doors, ledger, person)):
        return
    memory = dice.choice(list(all_of))
    path, query = f"/v1/memory/{memory}", {"user_id": person.name}
    told = await doors.call("history", "GET", f"{path}/history", person.user, query=query)
    if told is None or not told.ok:
        return
    others = set().union(*(numbers for other, numbers in all_of.items() if other != memory))
    answer = await doors.delete("delete by id", path, person.user, query=query)
    if answer is not None:
        numbers = set(told.numbers)
        ledger.erased_memory(person.user, answer.sent, numbers - others, listed=others | numbers)
    await doors.call("get", "GET", path, person.user, query=query)


# --- the moments -----------------------------------------------------------------------------------------------------


async def in_peace(doors: Doors, ledger: Ledger, person: Person, dice: random.Random) -> None:
    await listed(doors, ledger, person)
    await delete_user(doors, ledger, person, "DELETE in peace")
    await tell(doors, ledger, person, person.talk(dice), dice)


async def at_once(doors: Doors, ledger: Ledger, person: Person, dice: random.Random) -> None:
    """As soon as the answer has ended: halves of the turn are still on their way to the journal."""
    await listed(doors, ledger, person)
    await tell(doors, ledger, person, person.talk(dice), dice)
    await delete_user(doors, ledger, person, "DELETE at once after the answer")
    await tell(doors, ledger, person, person.talk(dice), dice)


async def during_a_batch(doors: Doors, ledger: Ledger, person: Person, dice: random.Random) -> None:
    await listed(doors, ledger, person)
    talk = person.talk(dice)
    for _ in range(2):
        await tell(doors, ledger, person, talk, dice)
    if talk.session:
        await end_session(doors, person, talk.session)
    await asyncio.sleep(dice.uniform(0.0, BATCH_S_MAX))
    await delete_user(doors, ledger, person, "DELETE during a batch")
    await tell(doors, ledger, person, talk, dice)


async def under_way(doors: Doors, ledger: Ledger, person: Person, dice: random.Random) -> None:
    """While the model still answers: the turn's other half comes after the erasure."""
    await listed(doors, ledger, person)
    before = len(ledger.facts(person.user))
    async with asyncio.TaskGroup() as group:
        group.create_task(tell(doors, ledger, person, person.talk(dice), dice))
        await reached(ledger, person, before)
        await delete_user(doors, ledger, person, "DELETE while the model answered")


async def reached(ledger: Ledger, person: Person, before: int) -> None:
    """Wait until the model has the newest fact, or it is clear that it will not have it soon."""
    deadline = asyncio.get_running_loop().time() + UNDER_WAY_S
    while asyncio.get_running_loop().time() < deadline:
        newest: list[Fact] = ledger.facts(person.user)[before:]
        if newest and newest[0].settled < NEVER:
            return
        await asyncio.sleep(0.001)


async def two_at_once(doors: Doors, ledger: Ledger, person: Person, dice: random.Random) -> None:
    await listed(doors, ledger, person)
    await tell(doors, ledger, person, person.talk(dice), dice)
    await asyncio.gather(*(delete_user(doors, ledger, person, "one of two DELETEs at once") for _ in range(2)))
    await tell(doors, ledger, person, person.talk(dice), dice)


async def with_creates(doors: Doors, ledger: Ledger, person: Person, dice: random.Random) -> None:
    """Keyed creates beside the erasure: those may be there, what the key held before may not, not even in history."""
    await listed(doors, ledger, person)
    await create(doors, ledger, person, dice, key="home")
    racing = [create(doors, ledger, person, dice, key="home") for _ in range(RACERS)]
    await asyncio.gather(delete_user(doors, ledger, person, "DELETE beside keyed creates"), *racing)
    query = {"user_id": person.name}
    for memory in await listed(doors, ledger, person):
        await doors.call("history", "GET", f"/v1/memory/{memory}/history", person.user, query=query)
    await create(doors, ledger, person, dice, key="home")


async def by_a_tool(doors: Doors, ledger: Ledger, person: Person, dice: random.Random) -> None:
    """A model that has the tools erases for its user."""
    await listed(doors, ledger, person)
    await tell(doors, ledger, person, person.talk(dice), dice)
    if token := await own_token(doors, person):
        answer = await doors.clear(person.user, token)
        if answer is not None:
            ledger.erased(person.user, answer.sent, "memory_clear")
    await tell(doors, ledger, person, person.talk(dice), dice)


async def of_a_project(doors: Doors, ledger: Ledger, person: Person, dice: random.Random) -> None:
    """A project's facts go, the others stay."""
    await listed(doors, ledger, person)
    project = dice.choice(person.projects[1:])
    await tell(doors, ledger, person, person.talk(dice, project=project), dice)
    await delete_project(doors, ledger, person, project)
    if dice.random() < 0.5:
        await create(doors, ledger, person, dice, key=None, project=project)


async def of_a_session(doors: Doors, ledger: Ledger, person: Person, dice: random.Random) -> None:
    """A session's facts go, those of the others stay, whatever these have replaced."""
    await listed(doors, ledger, person)
    talk = person.talk(dice)
    await tell(doors, ledger, person, talk, dice)
    if talk.session:
        await delete_session(doors, ledger, person, talk.session)
    if dice.random() < 0.5:
        await tell(doors, ledger, person, talk, dice)


OF_EVERYTHING: tuple[Erasure, ...] = (
    in_peace, at_once, at_once, during_a_batch, during_a_batch, under_way, under_way, two_at_once, with_creates,
    by_a_tool,
)  # fmt: skip
