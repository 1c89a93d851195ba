"""Holes made on purpose stay open until somebody has looked."""

from __future__ import annotations

import random
from typing import Any, cast

from tests.canary.ledger import CONVERSATION, Ledger
from tests.canary.plants import plant_leak, plant_return
from tests.canary.words import Words
from tests.support.harness import SemmemProcess

FORGETFUL, KEEPER = 0, 1


class Stored:
    """Of semmem what plants are stored by."""

    def __init__(self) -> None:
        self.users: list[str] = []

    def api(self, _method: str, _path: str, *, json: dict[str, Any]) -> None:
        self.users.append(json["user_id"])


def told_and_erased(ledger: Ledger, user: int) -> None:
    fact = ledger.tell(user, project="", way=CONVERSATION, question="")
    ledger.created(fact, expected=True)
    ledger.erased(user, fact.ended + 1e-6, "DELETE")


def test_what_comes_back_is_a_keepers_who_does_not_erase_it_unseen() -> None:
    ledger, stored = Ledger(Words(7), users=2), Stored()
    semmem = cast(SemmemProcess, stored)
    told_and_erased(ledger, FORGETFUL)
    assert plant_return(semmem, ledger, [KEEPER], random.Random(1)) is None
    assert stored.users == []
    told_and_erased(ledger, KEEPER)
    for seed in range(20):
        assert plant_return(semmem, ledger, [KEEPER], random.Random(seed)) == (KEEPER, KEEPER, 1)
    assert set(stored.users) == {ledger.words.word(KEEPER, 0)}


def test_what_leaks_leaks_to_a_keeper_who_is_another_user() -> None:
    ledger, stored = Ledger(Words(7), users=3), Stored()
    semmem = cast(SemmemProcess, stored)
    assert plant_leak(semmem, ledger, [KEEPER, 2], random.Random(1)) is None
    ledger.tell(KEEPER, project="", way=CONVERSATION, question="")
    for seed in range(20):
        assert plant_leak(semmem, ledger, [KEEPER, 2], random.Random(seed)) == (2, KEEPER, 1)
