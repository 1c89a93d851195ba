"""Contract of every Journal's states of sessions: what may be kept, for how long, and that erasing takes it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from msgspec import structs

from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Forgetting, Scope, Turn, TurnEnding
from semmem.ports.erasure import Mark
from semmem.ports.recording import TurnClosed
from semmem.ports.session_states import CurrentState, Place, SessionState
from tests.support.journal_samples import HOSTILE, turn
from tests.support.journal_samples import Place as Database

STATE = SessionState(
    "ada", "s1", 6, "d" * 32, 8, 100.0, 1000.0, CurrentState("Bees", ("A 1",), ("B \x00",), (), ("?",))
)
SAID = (Place("m_1", 1), Place("m_2", 2))


@pytest.fixture
async def journal(place: Database) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(place)
    await made.open()
    await made.record([said("m_1", 1, 50.0), said("m_2", 2, 60.0)], [])
    yield made
    await made.close()


def said(message_id: str, ordinal: int, at: float) -> Turn:
    return structs.replace(turn(f"t_{message_id}_{ordinal}", opened_at=at, message_id=message_id), ordinal=ordinal)


async def keep(journal: SqlJournal, state: SessionState = STATE, of: tuple[Place, ...] = SAID) -> bool:
    return await journal.keep_state(state, of, per_session=2, per_user=5)


async def kept(journal: SqlJournal, user: str = "ada", session: str = "s1", now: float = 500.0) -> list[SessionState]:
    return await journal.session_states(user, session, now=now)


async def test_a_state_comes_back_as_it_was(journal: SqlJournal) -> None:
    assert await keep(journal)
    assert await kept(journal) == [STATE]
    assert await kept(journal, "eve") == await kept(journal, session="s2") == await kept(journal, now=1000.0) == []


@pytest.mark.parametrize("name", HOSTILE)
async def test_names_are_names(journal: SqlJournal, name: str) -> None:
    state = structs.replace(STATE, user=name, session=name)
    assert await keep(journal, state, ())
    assert await kept(journal, name, name) == [state]
    assert await kept(journal) == ([STATE] if name == "nobody" else [])


@pytest.mark.parametrize(
    "of",
    [(*SAID, Place("m_3", 3)), (Place("m_1", 2),), (Place("m_2", 1),)],
    ids=["unknown", "elsewhere", "another place"],
)
async def test_of_messages_that_are_not_known_in_their_places_none_is_kept(
    journal: SqlJournal, of: tuple[Place, ...]
) -> None:
    assert not await keep(journal, of=of)
    assert await kept(journal) == []


async def test_of_a_message_that_was_declined_none_is_kept(journal: SqlJournal) -> None:
    await journal.record([], [TurnClosed("m_2.2", TurnEnding.DECLINED, 70.0)])
    assert not await keep(journal)


async def test_very_many_messages_are_looked_at(journal: SqlJournal) -> None:
    many = tuple(Place(f"n_{number}", number) for number in range(1, 1201))
    await journal.record([said(each.message_id, each.ordinal, 55.0) for each in many], [])
    assert await keep(journal, of=many)
    assert not await keep(journal, of=(*many[:-1], Place("n_1200", 7)))


@pytest.mark.parametrize(
    "what",
    [
        Forgetting(Scope("ada"), 200.0),
        Forgetting(Scope("ada", session="s2"), 200.0),
        Forgetting(Scope("ada", project="p"), 200.0),
        Forgetting(Scope("ada"), 200.0, memory_id="mem_1"),
    ],
    ids=["user", "another session", "a project", "one memory"],
)
async def test_any_erasure_of_a_users_takes_the_states_and_no_other_users(
    journal: SqlJournal, what: Forgetting
) -> None:
    eves = structs.replace(STATE, user="eve")
    assert await keep(journal)
    assert await keep(journal, eves, ())
    hold, _ = await journal.begin_erasure(what, now=200.0)
    assert await kept(journal) == []
    assert await kept(journal, "eve") == [eves]
    assert not await keep(journal, of=()), "while it is under way"
    await journal.finish_erasure(what, hold)
    if what.takes_turns:
        assert not await keep(journal), "said before it"
    await journal.record([said("m_9", 1, 201.0)], [])
    assert await keep(journal, of=(Place("m_9", 1),)), "said after it"


async def test_erasures_of_elsewhere_take_them_all(journal: SqlJournal) -> None:
    """Marks are digests: whose states they mean is not looked up."""
    assert await keep(journal)
    await journal.add_marks([Mark(("x", "", "", ""), 300.0)])
    assert await kept(journal) == []
    assert await keep(journal)
    await journal.erase_marked()
    assert await kept(journal) == []


async def test_what_is_past_its_time_goes(journal: SqlJournal) -> None:
    assert await keep(journal)
    await journal.prune_states(now=999.0)
    assert await kept(journal) == [STATE]
    await journal.prune_states(now=1000.0)
    assert await kept(journal, now=0.0) == []


async def test_the_newest_are_kept_of_a_session_and_of_a_user(journal: SqlJournal) -> None:
    for turns in (10, 20, 30):
        assert await keep(journal, structs.replace(STATE, turns=turns, made_at=100.0 + turns))
    assert [state.turns for state in await kept(journal)] == [30, 20]
    for number in range(5):
        assert await keep(journal, structs.replace(STATE, session=f"o{number}", made_at=200.0 + number))
    assert await kept(journal) == []
    assert len(await kept(journal, session="o0")) == 1


async def test_a_user_of_whom_only_a_state_is_left_is_known(journal: SqlJournal) -> None:
    """So that an erasure of everybody finds it."""
    assert await keep(journal, structs.replace(STATE, user="zoe"), ())
    assert "zoe" in await journal.users_after("ada", limit=10)
