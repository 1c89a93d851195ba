"""Holes made on purpose, to see that they are found: something is stored behind the ledger's back.

It is stored among ``keepers``: users who from now on erase nothing that they have not listed just before.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.canary.ledger import Fact, Ledger
from tests.canary.sentences import STORED
from tests.support.harness import SemmemProcess

Place = tuple[int, int, int]
"""Who sees it, whose it is, and which of theirs."""


def plant_leak(semmem: SemmemProcess, ledger: Ledger, keepers: Sequence[int], dice: random.Random) -> Place | None:
    """One user's fact is stored among another's, a keeper's; None when nobody has told anything."""
    if not (facts := [fact for fact in ledger.all_facts() if not fact.gone]):
        return None
    fact = dice.choice(facts)
    return _store(semmem, ledger, dice.choice([user for user in keepers if user != fact.user]), fact)


def plant_return(semmem: SemmemProcess, ledger: Ledger, keepers: Sequence[int], dice: random.Random) -> Place | None:
    """Something that a keeper erased is stored again; None when none has erased anything."""
    if not (facts := [fact for fact in ledger.all_facts() if fact.gone and fact.user in keepers]):
        return None
    fact = dice.choice(facts)
    return _store(semmem, ledger, fact.user, fact)


def _store(semmem: SemmemProcess, ledger: Ledger, user: int, fact: Fact) -> Place:
    content = STORED[0][0].format(ledger.word(fact))
    semmem.api("POST", "/v1/memory", json={"user_id": ledger.words.word(user, 0), "content": content})
    return user, fact.user, fact.number


Plant = Callable[[SemmemProcess, Ledger, Sequence[int], random.Random], Place | None]
PLANTS: dict[str, Plant] = {"leak": plant_leak, "return": plant_return}
