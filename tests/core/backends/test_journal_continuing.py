"""Contract of every journal: one request after another goes on with a conversation, and what became of each."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Role, Scope
from semmem.ports.continuing import BROKEN, IDLE, UNRESOLVED, Continued
from semmem.ports.conversations import (
    FIRST_ANSWER,
    KeptConversation,
    Said,
    SaidHalf,
    Step,
    Wanted,
    Whole,
    conversation_id,
    new_conversation_id,
)
from semmem.ports.erasure import Mark
from tests.core.backends.test_journal_conversations import LIMITS, journal, say, titles
from tests.support.journal_samples import HOSTILE, erase, turn

__all__ = ["journal"]
TALK = Scope("ada", session="talk")


async def claim(
    journal: SqlJournal, seen: Continued | None, name: str = "c1", *, scope: Scope = TALK, now: float = 100.0
) -> bool:
    return await journal.claim_conversation(scope, seen, name, now=now, per_user_max=10)


async def begun(journal: SqlJournal, scope: Scope = TALK) -> Continued:
    """Claimed, and its first turn in the journal."""
    assert await claim(journal, None, scope=scope)
    await journal.record([turn("t_1", scope, opened_at=100.0, text="Hello")], [])
    return await standing(journal, scope)


async def standing(journal: SqlJournal, scope: Scope = TALK) -> Continued:
    found = await journal.continued(scope)
    assert found is not None
    return found


def half(name: str = "c1", *answers: Said, whole: int = Whole.BEGINS, **rest: Any) -> SaidHalf:
    return SaidHalf("t_1", Step("", FIRST_ANSWER, 100.0, whole, name), answers, **rest)


def answer(answer_id: str = "r1", whole: int = Whole.BEGINS) -> Said:
    return Said(FIRST_ANSWER, Role.ASSISTANT, "Hi!", 101.0, answer_id=answer_id, whole=whole)


async def test_one_of_those_that_come_at_once_begins_it(journal: SqlJournal) -> None:
    assert await journal.continued(TALK) is None
    assert sorted(await asyncio.gather(*(claim(journal, None, f"c{n}") for n in range(5)))) == [False] * 4 + [True]
    found = await standing(journal)
    assert (found.is_open, found.is_free, found.last_answer) == (True, False, "")


async def test_one_of_those_that_come_at_once_goes_on_with_it(journal: SqlJournal) -> None:
    seen = await begun(journal)
    assert not await claim(journal, replace(seen, progress=IDLE), "c2")
    await journal.record_said([half("c1", answer())], LIMITS)
    seen = await standing(journal)
    assert (seen.progress, seen.last_answer, seen.messages) == ("done c1", "r1", 2)
    assert sorted(await asyncio.gather(*(claim(journal, seen, f"d{n}") for n in range(5)))) == [False] * 4 + [True]


async def test_a_request_without_an_answer_leaves_it_as_it_was(journal: SqlJournal) -> None:
    await begun(journal)
    await journal.record_said([half(failed=True)], LIMITS)
    seen = await standing(journal)
    assert (seen.progress, seen.last_answer, seen.is_free) == ("failed c1", "", True)
    await journal.record_said([half("c1", answer())], LIMITS)  # it came all the same, heard of elsewhere
    assert (await standing(journal)).progress == "done c1"
    assert await claim(journal, await standing(journal), "c2")
    await journal.record_said([half("c1", failed=True), half("c1", answer("r9"))], LIMITS)
    assert await standing(journal) == Continued(conversation_id(TALK), "open c2", "r1", 2)


async def test_what_is_told_twice_counts_once(journal: SqlJournal) -> None:
    await begun(journal)
    for _ in range(2):
        await journal.record_said([half("c1", answer()), half(failed=True)], LIMITS)
    assert (await standing(journal)).progress == "done c1"


@pytest.mark.parametrize(
    "told",
    [
        half("c1", answer(whole=Whole.NO)),
        half("c1", answer(answer_id="")),
        half(UNRESOLVED, answer(whole=Whole.NO)),
    ],
    ids=["not to the letter", "without a name", "without its history"],
)
async def test_an_answer_that_no_history_can_have_ends_it_for_good(journal: SqlJournal, told: SaidHalf) -> None:
    await begun(journal)
    await journal.record_said([told], LIMITS)
    assert (await standing(journal)).progress == BROKEN
    await journal.record_said([half("c1", answer())], LIMITS)
    assert (await standing(journal)).progress == BROKEN


async def test_one_that_did_not_begin_here_never_does(journal: SqlJournal) -> None:
    await say(journal, "t_0", "Hello", "Hi!", scope=TALK)
    await journal.record_said([SaidHalf("t_0", half(UNRESOLVED).step, (answer(),))], LIMITS)
    seen = await standing(journal)
    assert (seen.progress, seen.is_free, seen.is_open) == ("", False, False)
    assert not await claim(journal, None)


async def test_another_project_and_a_recorded_conversation_are_not_begun_again(journal: SqlJournal) -> None:
    await begun(journal, Scope("ada", "atlas", session="talk"))
    assert (await standing(journal)).progress == ""
    named = Scope("ada", session=conversation_id(Scope("ada", "atlas", session="talk")))
    assert (await standing(journal, named)).progress == BROKEN
    assert await journal.continued(replace_user(TALK)) is None
    assert await journal.continued(replace_user(named)) is None


def replace_user(scope: Scope) -> Scope:
    return Scope("bob", scope.project, scope.agent, scope.session)


async def test_an_empty_one_is_kept_goes_with_its_scope_and_when_its_time_is_over(journal: SqlJournal) -> None:
    async def made() -> Continued | None:
        name = new_conversation_id(Scope("ada"))
        scope = Scope("ada", session=name)
        kept = KeptConversation(name, scope, "Mine", 100.0, 100.0, progress=IDLE)
        assert (await journal.put_conversation(kept, [], LIMITS)) == kept
        return await journal.continued(scope)

    seen = await made()
    assert seen is not None
    assert seen.is_free
    await journal.prune_conversations(said_before=100.0)
    assert await titles(journal, Wanted(), Scope("ada")) == ["Mine"]
    await journal.prune_conversations(said_before=101.0)
    assert await titles(journal, Wanted(), Scope("ada")) == []

    seen = await made()
    assert seen is not None
    assert await journal.forget_conversation(Scope("ada"), seen.id, now=150.0) == 0
    assert await titles(journal, Wanted(), Scope("ada")) == []
    await made()
    await erase(journal, Scope("ada"), at=100.0)
    assert await titles(journal, Wanted(), Scope("ada")) == []
    kept = KeptConversation("conv_old", TALK, "Mine", 100.0, 100.0, progress=IDLE)
    assert await journal.put_conversation(kept, [], LIMITS) is None


async def test_an_older_copy_of_an_empty_one_that_was_removed_goes_too(journal: SqlJournal) -> None:
    name = new_conversation_id(Scope("ada"))
    kept = KeptConversation(name, Scope("ada", session=name), "Mine", 100.0, 100.0, progress=IDLE)
    await journal.put_conversation(kept, [], LIMITS)
    await journal.add_marks([Mark(("", "", "", ""), 150.0, conversation=name)])
    assert (await journal.erase_marked())["conversations"] == 1
    assert await titles(journal, Wanted(), Scope("ada")) == []


async def test_nothing_of_before_an_erasure_begins_or_goes_on(journal: SqlJournal) -> None:
    seen = await begun(journal)
    await journal.record_said([half("c1", answer())], LIMITS)
    seen = await standing(journal)
    await erase(journal, Scope("ada"), at=150.0)
    assert await journal.continued(TALK) is None
    assert not await claim(journal, seen, "c2", now=160.0)
    assert not await claim(journal, None, "c2", now=150.0)
    assert await claim(journal, None, "c2", now=151.0)


async def test_a_history_that_lost_something_between_is_not_gone_on_with(journal: SqlJournal) -> None:
    await begun(journal)
    await journal.record_said([half("c1", answer())], LIMITS)
    seen = await standing(journal)
    await journal.record([turn("t_2", TALK, opened_at=200.0, text="More")], [])
    await journal.record_said([SaidHalf("t_2", Step("", FIRST_ANSWER, 200.0))], LIMITS)
    await erase(journal, Scope("ada"), at=150.0)
    assert (await standing(journal)).progress == seen.progress
    assert not await claim(journal, replace(seen, messages=3), "c2", now=300.0)


async def test_conversations_that_begin_crowd_out_the_oldest(journal: SqlJournal) -> None:
    for number in range(4):
        scope = Scope("ada", session=f"s{number}")
        await journal.claim_conversation(scope, None, "c", now=100.0 + number, per_user_max=2)
    assert (await journal.conversation_counts("ada")).conversations == 2
    assert await journal.continued(Scope("ada", session="s1")) is None


async def test_any_name_leads_to_its_conversation_and_to_no_other(journal: SqlJournal) -> None:
    for number, name in enumerate(HOSTILE):
        scope = Scope("ada", session=name)
        assert await journal.continued(scope) is None
        assert await journal.claim_conversation(scope, None, f"c{number}", now=100.0, per_user_max=100)
        assert (await standing(journal, scope)).progress == f"open c{number}"


async def test_another_journal_that_takes_it_over_knows_how_far_it_is(journal: SqlJournal) -> None:
    await begun(journal)
    await journal.record_said([half("c1", answer())], LIMITS)
    ((kept, messages),) = await journal.kept_conversations(after="", limit=10)
    assert (kept.progress, kept.last_answer) == ("done c1", "r1")
    await journal.put_conversation(replace(kept, progress="open there"), messages, LIMITS)
    assert (await standing(journal)).progress == "open there"


@given(st.text(min_size=1, max_size=30), st.text(max_size=10), st.text(max_size=10))
def test_a_made_name_is_the_conversation_of_nobody_else(user: str, project: str, other: str) -> None:
    scope = Scope(user, project or None)
    name = new_conversation_id(scope)
    assert conversation_id(Scope(user, project or None, session=name)) == name
    assert conversation_id(Scope(user + "x", project or None, session=name)) != name
    assert conversation_id(Scope(user, project + "x", session=name)) != name
    assert conversation_id(Scope(user, project or None, "agent", name)) != name
    assert conversation_id(Scope(user, project or None, session=name[:-1])) != name
    assert conversation_id(Scope(user, project or None, session=name + other)) != name or not other
