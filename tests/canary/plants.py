"""Holes made on purpose, to see that they are found: something is stored behind the ledger's back."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.canary.ledger import Fact, Ledger
from tests.canary.sentences import STORED
from tests.support.harness import SemmemProcess

Place = tuple[int, int, int]
"""Who sees it, whose it is, and which of theirs."""


def plant_leak(semmem: SemmemProcess, ledger: Ledger, keepers: Sequence[int], dice: random.Random) -> Place | None:
    """One user's fact is stored among a keeper's, who does not erase it unseen; None when nobody has told anything."""
    if not (facts := [fact for fact in ledger.all_facts() if not fact.gone]):
        return None
    fact = dice.choice(facts)
    return _store(semmem, ledger, dice.choice([user for user in keepers if user != fact.user]), fact)


def plant_return(semmem: SemmemProcess, ledger: Ledger, keepers: Sequence[int], dice: random.Random) -> Place | None:
    """Something erased is stored again, of a keeper where one has erased something; None when nobody has."""
    if not (facts := [fact for fact in ledger.all_facts() if fact.gone]):
        return None
    fact = dice.choice([fact for fact in facts if fact.user in keepers] or facts)
    return _store(semmem, ledger, fact.user, fact)


def _store(semmem: SemmemProcess, ledger: Ledger, user: int, fact: Fact) -> Place:
    content = STORED[0][0].format(ledger.word(fact))
    semmem.api("POST", "/v1/memory", json={"user_id": ledger.words.word(user, 0), "content": content})
    return user, fact.user, fact.number


Plant = Callable[[SemmemProcess, Ledger, Sequence[int], random.Random], Place | None]
PLANTS: dict[str, Plant] = {"leak": plant_leak, "return": plant_return}
