"""After the load: what semmem has of everybody, by each replica's list and by its prompts."""

from __future__ import annotations

import random
import time
from collections import defaultdict

import httpx

from tests.canary.acts import say
from tests.canary.after import memories
from tests.canary.doors import Doors
from tests.canary.ledger import Ledger
from tests.canary.people import Person, Talk
from tests.fleet.journals import waiting
from tests.fleet.stack import Fleet
from tests.fleet.verdict import VERSIONS_MAX, Holding
from tests.support.harness import SemmemProcess

AT_REST_S = 240.0
LOOK_S = 0.5

Memories = dict[tuple[int, int], list[Holding]]


def at_rest(fleet: Fleet) -> int:
    """Wait until every turn is learnt from; how many are not, when that takes too long. Blocking."""
    deadline = time.monotonic() + AT_REST_S
    while (left := waiting(fleet.journals)) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return left


def held(semmem: SemmemProcess, ledger: Ledger, users: int) -> Memories:
    """The memories that hold a fact of their user, by user and number. Blocking."""
    found: Memories = defaultdict(list)
    for user in range(users):
        listed = list(memories(semmem, ledger.words.word(user, 0)))
        contents = {memory["id"]: memory["content"] for memory in listed}
        for memory in listed:
            ledger.saw(user, str(memory), began=time.monotonic(), where="the list after the load")
            by = memory["metadata"].get("superseded_by")
            holding = Holding(memory["id"], memory["version"], f"{contents.get(by, by)!r}" if by else "")
            for owner, number in set(ledger.words.found(memory["content"])):
                if owner == user and number:
                    found[user, number].append(holding)
    return found


def histories(semmem: SemmemProcess, ledger: Ledger, found: Memories) -> list[str]:
    """The versions of each memory that has more than it should. Blocking."""
    shown = []
    for (user, number), holding in found.items():
        for memory in holding:
            if memory.version > VERSIONS_MAX and not memory.superseded:
                query = {"user_id": ledger.words.word(user, 0)}
                told = semmem.api("GET", f"/v1/memory/{memory.id}/history", params=query)
                shown.append(f"fact {number} of user {user}: {told}")
    return shown


def unlike(lists: list[Memories]) -> list[str]:
    """What the lists of two replicas do not have in common."""
    first, *others = lists
    return [
        f"fact {number} of user {user}: {first.get((user, number))} on one, {other.get((user, number))} on another"
        for other in others
        for user, number in first.keys() | other.keys()
        if sorted(first.get((user, number), [])) != sorted(other.get((user, number), []))
    ]


async def ask_for_erased(doors: Doors, ledger: Ledger) -> int:
    """Each question that something erased would answer, in a conversation of its own; how many there were."""
    dice = random.Random(0)
    questions = {(fact.user, fact.question) for fact in ledger.all_facts() if fact.gone}
    for number, (user, question) in enumerate(sorted(questions)):
        person = Person(user, ledger.words.word(user, 0))
        await say(doors, person, Talk(f"after-{number}-{person.name}", ""), question, dice)
    return len(questions)


async def failed_open(fleet: Fleet) -> dict[str, int]:
    """What the metrics of Envoy say of requests that went on without semmem."""
    names = {side: rf"http\..*ext_proc\.semmem_{side}\.failure_mode_allowed" for side in ("mutate", "observe")}
    return {side: fleet.envoy.stat(name) for side, name in names.items()}


def client() -> httpx.AsyncClient:
    """One user's connections. A pool each: httpx looks at every connection of a pool for every request."""
    return httpx.AsyncClient(timeout=60.0, trust_env=False, verify=False, limits=httpx.Limits(keepalive_expiry=2.0))
