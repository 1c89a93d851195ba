"""Contract of every journal's request log: halves in any order, who reads what, how long, and that erasing takes it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.backends.sql import server
from semmem.backends.sql.database import JournalLimits
from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Forgetting, Memory, MemoryType, Scope
from semmem.ports.erasure import Mark
from semmem.ports.errors import JournalError
from semmem.ports.request_log import KeptRequest, LoggedAnswer, LoggedRequest
from tests.support.journal_samples import HOSTILE, Place, change, erase, rows_of

ADA = Scope("ada", session="s1")


def request(key: str, scope: Scope = ADA, *, at: float = 100.0, id: str = "", **rest: Any) -> LoggedRequest:
    told: dict[str, Any] = {"turn": f"t_{key}", "api": "chat", "model": "m", "outcome": "injected"} | rest
    return LoggedRequest(key=key, id=id or f"r_{key}", scope=scope, at=at, **told)


def answer(key: str, *, at: float = 101.0) -> LoggedAnswer:
    return LoggedAnswer(key, at, "answered", 12, 3, 8)


WHOLE = request(
    "k1",
    Scope("ada", "atlas", "agent", "s1"),
    memories=2,
    tokens=31,
    shown=("m1", "m2"),
    weighed=(("m2", 1.25), ("m3", None)),
    left=(("m4", "limit", -0.5), ("m5", "near_duplicate", None)),
    purpose="recall",
    steps=(("reading", 0.25), ("finding", 3.5)),
)


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(place)
    await made.open()
    yield made
    await made.close()


async def kept(journal: SqlJournal, user: str = "ada") -> list[str]:
    return [each.request.key for each in await journal.logged(user, outcome=None, limit=100)]


async def test_a_request_comes_back_as_it_was_with_how_its_answer_ended(journal: SqlJournal) -> None:
    halves: list[LoggedRequest | LoggedAnswer] = [WHOLE, answer("k1")]
    for order in itertools.permutations([*halves, *halves]):
        for half in order:
            assert await journal.log_requests([half]) == 0
        assert await journal.logged("ada", outcome=None, limit=9) == [KeptRequest(WHOLE, answer("k1"))]
    assert await journal.log_requests([request("k2", at=99.0)]) == 0
    assert await journal.logged_request("r_k2", None) == KeptRequest(request("k2", at=99.0), None)
    assert WHOLE.milliseconds == 3.75


async def test_an_answer_alone_is_nobodys_request(journal: SqlJournal) -> None:
    await journal.log_requests([answer("k1")])
    assert await journal.logged("", outcome=None, limit=9) == []
    assert await journal.logged_request("", None) is None


async def test_the_newest_come_first_and_only_a_users_own(journal: SqlJournal) -> None:
    bobs = request("b", Scope("bob"), at=500.0)
    second = request("k2", at=200.0, outcome="no_hits")
    await journal.log_requests([request("k1"), request("k3", at=300.0), second, bobs])
    assert await kept(journal) == ["k3", "k2", "k1"]
    found = await journal.logged("ada", outcome="injected", limit=1)
    assert [each.request.key for each in found] == ["k3"]
    assert [each.request.key for each in await journal.logged("ada", outcome="no_hits", limit=9)] == ["k2"]


async def test_an_id_that_was_sent_again_is_the_newest_and_of_the_user_who_asks(journal: SqlJournal) -> None:
    await journal.log_requests([request("k1", id="same"), request("k2", id="same", at=200.0)])
    await journal.log_requests([request("b", Scope("bob"), id="same", at=300.0)])

    async def found(user: str | None) -> str:
        known = await journal.logged_request("same", user)
        assert known is not None
        return known.request.key

    assert [await found(user) for user in (None, "ada", "bob")] == ["b", "k2", "b"]
    assert await journal.logged_request("same", "eve") is None
    assert await journal.logged_request("other", None) is None


async def test_names_are_kept_apart_whatever_they_are(journal: SqlJournal) -> None:
    await journal.log_requests([request(f"k{number}", Scope(name)) for number, name in enumerate(HOSTILE)])
    for number, name in enumerate(HOSTILE):
        expected = KeptRequest(request(f"k{number}", Scope(name)), None)
        assert await journal.logged(name, outcome=None, limit=9) == [expected]


async def test_an_erased_user_takes_what_was_until_then_and_late_halves_are_turned_away(journal: SqlJournal) -> None:
    await journal.log_requests([request("k1"), answer("k1"), request("b", Scope("bob"))])
    await journal.log_requests([request("later", at=1001.0)])
    _, counts = await journal.begin_erasure(Forgetting(Scope("ada"), 1000.0), now=1000.0)
    assert counts["requests"] == 1
    assert await kept(journal) == ["later"]
    bobs = request("b2", Scope("bob"), at=200.0)
    assert (
        await journal.log_requests([request("late", at=1000.0), answer("late"), request("new", at=1000.5), bobs]) == 1
    )
    assert await kept(journal) == ["later", "new"]
    assert await kept(journal, "bob") == ["b2", "b"]
    assert not [row for row in (await rows_of(journal))["request_log"] if "r_late" in map(str, row)]


async def test_an_erased_session_takes_its_own_requests_alone(journal: SqlJournal) -> None:
    other = request("k2", Scope("ada", session="s2"), at=50.0)
    await journal.log_requests([request("k1"), other, request("k3", at=1001.0)])
    await erase(journal, ADA)
    assert await kept(journal) == ["k3", "k2"]


@pytest.mark.parametrize("memory", ["m2", "m4"])
async def test_an_erased_memory_takes_the_requests_that_it_was_or_might_have_been_in(
    journal: SqlJournal, memory: str
) -> None:
    await journal.log_requests([WHOLE, request("k2", shown=("m9",)), request("b", Scope("bob"), shown=("m2", "m4"))])
    assert await journal.forget_requests("ada", [memory, "m7"]) == 1
    assert await journal.forget_requests("ada", []) == 0
    assert await kept(journal) == ["k2"]
    assert await kept(journal, "bob") == ["b"]


async def test_what_cannot_be_read_goes_with_any_memory_and_is_said_till_then(journal: SqlJournal) -> None:
    await journal.log_requests([request("k1"), request("k2", at=101.0)])
    await change(journal, "UPDATE request_log SET body = '{' WHERE key = 'k1'")
    with pytest.raises(JournalError, match="a request that cannot be read"):
        await kept(journal)
    assert await journal.forget_requests("ada", ["m1"]) == 1
    assert await kept(journal) == ["k2"]


async def test_a_request_from_before_a_memory_was_erased_is_turned_away_when_it_comes_late(journal: SqlJournal) -> None:
    memory = Memory("m1", 1, MemoryType.SEMANTIC, "User lives in Oslo", "ada", created_at=1.0, updated_at=1.0)
    await journal.mark_memories([memory], at=1000.0)
    assert await journal.log_requests([request("late", at=999.0, shown=("m1",)), request("after", at=1001.0)]) == 1
    assert await kept(journal) == ["after"]


@pytest.mark.parametrize("told", [{"shown": ("m1",)}, {"left": (("m1", "limit", None),)}])
async def test_what_another_replica_gave_an_erased_memory_before_it_heard_of_it_is_turned_away(
    journal: SqlJournal, told: dict[str, Any]
) -> None:
    memory = Memory("m1", 1, MemoryType.SEMANTIC, "User lives in Oslo", "ada", created_at=1.0, updated_at=1.0)
    await journal.mark_memories([memory], at=1000.0)
    bobs = request("b", Scope("bob"), at=1000.2, **told)
    assert await journal.log_requests([request("late", at=1000.2, **told), request("k1", shown=("m2",)), bobs]) == 1
    assert (await kept(journal), await kept(journal, "bob")) == (["k1"], ["b"])


async def test_what_another_replica_gave_memories_of_an_erased_scope_before_it_heard_of_it_is_turned_away(
    journal: SqlJournal,
) -> None:
    await journal.begin_erasure(Forgetting(ADA, 1000.0), now=1000.0)
    await journal.withhold_answers("ada", [], now=1000.5)  # by now every replica hides them
    elsewhere = Scope("ada", session="s2")
    assert (
        await journal.log_requests([request("late", elsewhere, at=1000.5), request("new", elsewhere, at=1000.6)]) == 1
    )
    assert await kept(journal) == ["new"]


async def test_marks_out_of_a_copy_take_everything(journal: SqlJournal) -> None:
    await journal.log_requests([request("k1"), request("b", Scope("bob"))])
    await journal.add_marks([Mark(("0" * 64, "", "", ""), 5.0)])
    assert await kept(journal) == await kept(journal, "bob") == []
    await journal.log_requests([request("k1")])
    await journal.erase_marked()
    assert await kept(journal) == []


async def test_what_is_too_old_or_too_much_goes(journal: SqlJournal) -> None:
    await journal.log_requests([request(f"k{number}", at=100.0 * number) for number in range(1, 8)])
    await journal.log_requests([answer("lonely", at=50.0)])
    assert await journal.prune_requests(before=200.0, number=100) == 2, "the lonely answer as well"
    assert await kept(journal) == ["k7", "k6", "k5", "k4", "k3", "k2"]
    assert await journal.prune_requests(before=0.0, number=4) == 2
    assert await kept(journal) == ["k7", "k6", "k5", "k4"]
    assert await journal.prune_requests(before=0.0, number=4) == 0


async def test_of_many_that_came_at_once_no_more_go_than_are_too_many(journal: SqlJournal) -> None:
    await journal.log_requests([request(f"k{number}") for number in range(9)])
    assert await journal.prune_requests(before=100.0, number=4) == 5
    assert len(await kept(journal)) == 4


async def test_other_writes_come_in_between_when_much_goes(place: Place) -> None:
    journal = SqlJournal(place, limits=JournalLimits(prune_rows_max=4))
    await journal.open()
    await journal.log_requests([request(f"k{number}", at=100.0 * number) for number in range(1, 8)])
    assert [await journal.prune_requests(before=650.0, number=100) for _ in range(3)] == [4, 2, 0]
    assert await kept(journal) == ["k7"]
    await journal.close()


async def test_replicas_that_write_each_others_halves_do_not_wait_in_a_circle(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "TRIES_MAX", 1)  # else one that the server ended is tried again
    one, two = SqlJournal(place), SqlJournal(place)
    await one.open()
    await two.open()
    for number in range(10):
        own, other = ([f"{name}{number}_{each}" for each in range(300)] for name in "ab")
        await asyncio.gather(
            one.log_requests([*(request(key) for key in own), *(answer(key) for key in other)]),
            two.log_requests([*(request(key) for key in other), *(answer(key) for key in own)]),
        )
    await one.close()
    await two.close()


async def test_what_no_server_stores_is_looked_for_and_not_found(journal: SqlJournal) -> None:
    assert await journal.logged("ada", outcome="\0", limit=9) == []
    assert await journal.logged_request("\0", "\0") is None


async def test_whoever_has_nothing_but_requests_is_among_everybody(journal: SqlJournal) -> None:
    await journal.log_requests([request("k1")])
    assert await journal.users_after("", limit=9) == ["ada"]


_TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20)


@settings(max_examples=30, deadline=None)
@given(model=_TEXT, shown=st.lists(_TEXT, max_size=4), weighed=st.floats(allow_nan=False, allow_infinity=False))
async def test_whatever_a_client_calls_its_model_comes_back(
    tmp_path_factory: pytest.TempPathFactory, model: str, shown: list[str], weighed: float
) -> None:
    journal = SqlJournal(tmp_path_factory.mktemp("log") / "journal.db")
    await journal.open()
    told = request("k", model=model, shown=tuple(shown), weighed=tuple((each, weighed) for each in shown))
    await journal.log_requests([told])
    assert await journal.logged_request("r_k", "ada") == KeptRequest(told, None)
    await journal.close()
