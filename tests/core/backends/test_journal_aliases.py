"""Contract of every journal's aliases, which go with their user; and when users were last seen."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.backends.sql.marks import digest
from semmem.memory import Forgetting, Scope, Turn
from semmem.ports.erasure import Mark
from semmem.ports.memory_records import Uses
from tests.support.journal_samples import HOSTILE, Place

LATER = 4e9
"""Behind any clock."""


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(place)
    await made.open()
    yield made
    await made.close()


async def erase(journal: SqlJournal, scope: Scope, at: float) -> int:
    what = Forgetting(scope, at=at)
    hold, counts = await journal.begin_erasure(what, now=at)
    await journal.finish_erasure(what, hold)
    return counts["aliases"]


async def test_the_last_alias_stands_and_an_empty_one_takes_it_away(journal: SqlJournal) -> None:
    for alias in ("Ada", "Ada's laptop"):
        await journal.set_alias("key_1", alias)
    await journal.set_alias("key_2", "Ada's laptop")
    assert await journal.aliases(["key_1", "key_2", "key_3"]) == dict.fromkeys(["key_1", "key_2"], "Ada's laptop")
    await journal.set_alias("key_1", "")
    assert await journal.aliases(["key_1", "key_2"]) == {"key_2": "Ada's laptop"}


async def test_names_that_look_alike_are_each_somebody(journal: SqlJournal) -> None:
    for number, user in enumerate(HOSTILE):
        await journal.set_alias(user, f"{number} {user}")
    assert await journal.aliases(HOSTILE) == {user: f"{number} {user}" for number, user in enumerate(HOSTILE)}


async def test_an_alias_goes_with_its_user_and_with_nothing_less(journal: SqlJournal) -> None:
    for user in ("ada", "bob"):
        await journal.set_alias(user, f"the {user}")
    assert await erase(journal, Scope("ada", project="p"), LATER) == 0
    assert await erase(journal, Scope("ada"), 100.0) == 0  # only what was said until then
    assert await journal.aliases(["ada"]) == {"ada": "the ada"}
    assert await erase(journal, Scope("ada"), LATER) == 1
    assert await journal.aliases(["ada", "bob"]) == {"bob": "the bob"}


async def test_who_has_an_alias_alone_is_known_so_that_an_erasure_of_everybody_finds_them(journal: SqlJournal) -> None:
    await journal.set_alias("zoe", "Zoë")
    assert await journal.users_after("", limit=10) == ["zoe"]


async def test_an_older_copy_does_not_bring_it_back(journal: SqlJournal) -> None:
    """What is restored has the alias; that its user was erased since is told by a mark."""
    await journal.set_alias("ada", "Ada")
    await journal.add_marks([Mark((digest("ada"), "", "", ""), LATER)])
    for what in await journal.erased_scopes():
        await journal.begin_erasure(what, now=LATER)
    assert await journal.aliases(["ada"]) == {}


async def test_users_were_last_seen_when_they_said_something_or_were_given_a_memory(journal: SqlJournal) -> None:
    said = [("ada", 100.0), ("ada", 300.0), ("ada", 200.0), ("bob", 150.0)]
    turns = [Turn(f"t_{at}", Scope(user, session=f"s{at}"), 1, "Hello", at) for user, at in said]
    await journal.record(turns, [])
    await journal.record_uses(
        [("bob", "m1", Uses(1, 170.0)), ("bob", "m2", Uses(3, 160.0)), ("eve", "m3", Uses(1, 5.0))]
    )
    await journal.register_user("zoe")
    assert await journal.last_seen(["ada", "bob", "eve", "zoe"]) == {"ada": 300.0, "bob": 170.0, "eve": 5.0}
    assert await journal.last_seen(["bob"]) == {"bob": 170.0}
    await erase(journal, Scope("ada"), LATER)
    assert await journal.last_seen(["ada", ""]) == {}
