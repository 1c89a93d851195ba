"""Contract of every journal's conversations: each message once, in order, bounded, and gone with what is erased."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Forgetting, Memory, MemoryType, Role, Scope, Source, ToolCall
from semmem.ports.conversations import (
    FIRST_ANSWER,
    ConversationFacets,
    ConversationLimits,
    KeptConversation,
    KeptMessage,
    Matches,
    Recorded,
    Said,
    SaidHalf,
    Step,
    Wanted,
    conversation_id,
    message_id,
)
from semmem.ports.session_states import CurrentState, SessionState
from tests.support.journal_samples import ADA, HOSTILE, Place, erase, turn
from tests.support.newest_conversation import newest_conversation

LIMITS = ConversationLimits(messages_max=100, per_user_max=100, message_chars_max=200, search_messages_max=1000)
CALL = ToolCall("call_1", "weather", '{"city":"Lisbon"}')


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(place)
    await made.open()
    yield made
    await made.close()


def asked(turn_id: str, at: float = 100.0, *results: Said, **rest: Any) -> SaidHalf:
    return SaidHalf(turn_id, Step("", FIRST_ANSWER, at), results, **rest)


def replied(turn_id: str, text: str, *, at: float = 101.0, number: int = FIRST_ANSWER, **rest: Any) -> SaidHalf:
    said = Said(number, Role.ASSISTANT, text, at, **({"tokens_in": 10, "tokens_out": 3} | rest))
    return SaidHalf(turn_id, Step("", number, at - 1.0), (said,))


async def say(
    journal: SqlJournal, turn_id: str, words: str, answer: str = "", *, scope: Scope = ADA, at: float = 100.0
) -> None:
    await journal.record([turn(turn_id, scope, opened_at=at, text=words, model="gpt-asked")], [])
    halves = [asked(turn_id, at), *([replied(turn_id, answer, at=at + 1.0)] if answer else [])]
    await journal.record_said(halves, LIMITS)


async def read(journal: SqlJournal, scope: Scope = ADA) -> list[tuple[str, str]]:
    kept = await newest_conversation(journal, scope)
    if kept is None:
        return []
    return [(said.role.value, said.content) for said in await journal.messages(scope, kept.id)]


async def titles(journal: SqlJournal, wanted: Wanted, scope: Scope = ADA) -> list[str]:
    return [kept.title for kept in await journal.conversations(scope, wanted, LIMITS)]


async def test_a_turn_with_a_tool_is_read_in_the_order_in_which_it_was_said(journal: SqlJournal) -> None:
    await journal.record([turn("t_1", text="How warm is it?", model="gpt-asked")], [])
    calls = replied("t_1", "", at=101.0, calls=(CALL,), finish_reason="tool_calls", model="gpt-used")
    result = Said(FIRST_ANSWER + 1, Role.TOOL, "21 degrees", 102.0, answers="call_1")
    last = replied("t_1", "It is warm.", at=103.0, number=FIRST_ANSWER + 2, answer_id="resp_2", model="gpt-used")
    await journal.record_said([last, SaidHalf("t_1", last.step, (result,)), calls, asked("t_1")], LIMITS)
    kept = await newest_conversation(journal, ADA)
    assert kept is not None
    assert (kept.id, kept.title, kept.messages, kept.tokens_in, kept.tokens_out) == (
        conversation_id(ADA), "How warm is it?", 4, 20, 6
    )  # fmt: skip
    assert (kept.created_at, kept.updated_at) == (100.0, 103.0)
    user, called, told, answer = await journal.messages(ADA, kept.id)
    assert (user.role, user.content, user.model_asked, user.at) == (Role.USER, "How warm is it?", "gpt-asked", 100.0)
    assert (called.calls, called.finish_reason, called.model_asked) == ((CALL,), "tool_calls", "gpt-asked")
    assert (told.role, told.content, told.answers) == (Role.TOOL, "21 degrees", "call_1")
    assert (answer.content, answer.answer_id, answer.model, answer.tokens_out) == (
        "It is warm.",
        "resp_2",
        "gpt-used",
        3,
    )
    assert answer.id == message_id("t_1", "", FIRST_ANSWER + 2)
    assert await journal.messages(ADA, kept.id, after=called.place, limit=1) == [told]


async def test_halves_wait_for_their_turn_and_each_is_kept_once(journal: SqlJournal) -> None:
    halves = [replied("t_1", "Hello."), asked("t_1")]
    assert await journal.record_said(halves, LIMITS) == Recorded(waiting=tuple(halves))
    await journal.record([turn("t_1", text="Hi")], [])
    assert (await journal.record_said(halves, LIMITS)).kept == 2
    assert await journal.record_said([*halves, *halves], LIMITS) == Recorded()
    assert await read(journal) == [("user", "Hi"), ("assistant", "Hello.")]


async def test_a_later_answer_takes_the_place_of_an_earlier_one_in_whatever_order_they_come(
    journal: SqlJournal,
) -> None:
    await say(journal, "t_1", "Hi", "Later.", at=100.0)
    await journal.record_said([replied("t_1", "Earlier.", at=99.0)], LIMITS)
    assert await read(journal) == [("user", "Hi"), ("assistant", "Later.")]
    await journal.record_said([replied("t_1", "Again.", at=200.0)], LIMITS)
    assert await read(journal) == [("user", "Hi"), ("assistant", "Again.")]


async def test_an_answer_alone_brings_the_words_it_answers_and_those_before_them(journal: SqlJournal) -> None:
    await journal.record([turn("t_1", text="One"), turn("t_2", opened_at=100.1, text="Two")], [])
    await journal.record_said([replied("t_2", "Both.")], LIMITS)
    await journal.record_said([asked("t_2", earlier=("t_1",))], LIMITS)
    assert await read(journal) == [("user", "One"), ("user", "Two"), ("assistant", "Both.")]


async def test_sessions_projects_and_users_are_kept_apart(journal: SqlJournal) -> None:
    places = [ADA, Scope("ada", "atlas", session="s1"), Scope("ada", session="s2"), Scope("bob", session="s1")]
    for number, scope in enumerate(places):
        await say(journal, f"t_{number}", f"words {number}", scope=scope, at=100.0 + number)
    assert await titles(journal, Wanted(), Scope("ada")) == ["words 2", "words 1", "words 0"]
    assert await titles(journal, Wanted(), Scope("ada", "atlas")) == ["words 1"]
    stranger = conversation_id(places[3])
    assert await journal.conversation(Scope("ada"), stranger) is None
    assert await journal.messages(Scope("ada"), stranger) == []
    assert await journal.forget_conversation(Scope("ada"), stranger, now=200.0) is None
    assert await journal.change_conversation(Scope("ada"), stranger, title="x", tags=None, now=200.0) is None
    assert await titles(journal, Wanted(), Scope("bob")) == ["words 3"]


async def test_long_messages_are_cut_and_say_so(journal: SqlJournal) -> None:
    await say(journal, "t_1", "w" * 300, "a" * 300)
    kept = await newest_conversation(journal, ADA)
    assert kept is not None
    assert len(kept.title) == 80
    assert [(len(said.content), said.cut) for said in await journal.messages(ADA, kept.id)] == [(200, True)] * 2


async def test_of_too_many_messages_and_conversations_the_oldest_go(journal: SqlJournal) -> None:
    few = replace(LIMITS, messages_max=3, per_user_max=2)
    for number in range(3):
        await say(journal, f"t_{number}", f"words {number}", f"answer {number}", at=100.0 + number)
    assert (await journal.record_said([asked("t_0")], few)).removed == {"messages_max": 3}
    assert await read(journal) == [("assistant", "answer 1"), ("user", "words 2"), ("assistant", "answer 2")]
    assert await titles(journal, Wanted()) == ["words 2"]
    for number in range(2):
        await say(
            journal, f"u_{number}", f"other {number}", scope=Scope("ada", session=f"o{number}"), at=200.0 + number
        )
    assert (await journal.record_said([asked("u_0", 200.0)], few)).removed == {"per_user_max": 1}
    assert await titles(journal, Wanted(), Scope("ada")) == ["other 1", "other 0"]


# --- lists and search ------------------------------------------------------------------------------------------------


async def test_lists_are_narrowed_and_go_on_where_they_ended(journal: SqlJournal) -> None:
    for number in range(5):
        await say(
            journal, f"t_{number}", f"words {number}", scope=Scope("ada", session=f"s{number}"), at=100.0 + number
        )
    ada = Scope("ada")
    first = await journal.conversations(ada, Wanted(limit=2), LIMITS)
    assert [kept.title for kept in first] == ["words 4", "words 3"]
    after = (first[-1].updated_at, first[-1].id)
    assert await titles(journal, Wanted(limit=9, before=after), ada) == ["words 2", "words 1", "words 0"]
    assert await titles(journal, Wanted(since=103.0), ada) == ["words 4", "words 3"]
    assert await titles(journal, Wanted(until=100.5), ada) == ["words 0"]
    await journal.change_conversation(ada, first[0].id, title=None, tags=["move", "ho_me"], now=300.0)
    assert await titles(journal, Wanted(tag="move"), ada) == ["words 4"]
    assert await titles(journal, Wanted(tag="ho_me"), ada) == ["words 4"]
    assert await titles(journal, Wanted(tag="hoxme"), ada) == await titles(journal, Wanted(tag="mov"), ada) == []


async def test_words_are_searched_in_titles_and_messages_whatever_their_case(journal: SqlJournal) -> None:
    await say(journal, "t_1", "About the move", "To Ålesund, with 100% of the boxes_and\\all.")
    await say(journal, "t_2", "Dinner", "Soup.", scope=Scope("ada", session="s2"))
    await say(journal, "t_3", "The move", scope=Scope("bob", session="s1"))
    for words in (["MOVE"], ["ålesund"], ["ÅLESUND", "boxes"], ["100%"], ["boxes_and"], ["\\all"]):
        assert await titles(journal, Wanted(words=tuple(words)), Scope("ada")) == ["About the move"], words
        (kept,) = await journal.conversations(Scope("ada"), Wanted(words=tuple(words)), LIMITS)
        assert (await journal.matches(Scope("ada"), kept.id, words, LIMITS, limit=5)).total == 1, words
    for words in (["move", "soup"], ["100_"], ["boxes%and"], ["dinnerx"]):
        assert await titles(journal, Wanted(words=tuple(words)), Scope("ada")) == [], words
    near = replace(LIMITS, search_messages_max=1)
    assert await journal.conversations(Scope("ada"), Wanted(words=("boxes",)), near) == []


async def test_matches_of_one_conversation_are_its_own_newest_first_and_counted(journal: SqlJournal) -> None:
    for number in range(5):
        await say(journal, f"t_{number}", f"the move {number}", "a house" if number else "no", at=100.0 + 10 * number)
    await say(journal, "t_9", "the move elsewhere", scope=Scope("ada", session="s2"), at=500.0)
    (kept,) = await journal.conversations(Scope("ada", session=ADA.session), Wanted(), LIMITS)
    said = {one.id: one for one in await journal.messages(Scope("ada"), kept.id)}
    found = await journal.matches(Scope("ada"), kept.id, ["MOVE"], LIMITS, limit=2)
    assert [(one.at, one.role) for one in found.newest] == [(140.0, Role.USER), (130.0, Role.USER)]
    assert (found.total, {one.place for one in found.newest} < {one.place for one in said.values()}) == (5, True)
    assert [said[one.id].content for one in found.newest] == ["the move 4", "the move 3"]
    newest = replace(LIMITS, search_messages_max=3)
    assert (await journal.matches(Scope("ada"), kept.id, ["move"], newest, limit=9)).total == 1
    for scope, name in ((Scope("bob"), kept.id), (Scope("ada", project="other"), kept.id), (Scope("ada"), "conv_x")):
        assert await journal.matches(scope, name, ["move"], LIMITS, limit=9) == Matches(0, [])


async def test_messages_are_read_in_both_directions_from_a_place(journal: SqlJournal) -> None:
    for number in range(6):
        await say(journal, f"t_{number}", f"words {number}", at=100.0 + number)
    (kept,) = await journal.conversations(Scope("ada"), Wanted(), LIMITS)
    said = await journal.messages(ADA, kept.id)
    assert await journal.messages(ADA, kept.id, before=said[4].place, limit=2) == said[2:4]
    assert await journal.messages(ADA, kept.id, before=said[1].place, limit=2) == said[:1]
    assert await journal.messages(ADA, kept.id, before="", limit=2) == []
    assert await journal.messages(Scope("bob"), kept.id, before=said[4].place) == []


async def test_projects_and_tags_are_counted_with_the_most_frequent_first(journal: SqlJournal) -> None:
    tags = {"a": ["home", "move"], "b": ["home"], "c": [], "d": ["gone"]}
    for number, (name, tagged) in enumerate(tags.items()):
        scope = Scope("ada", project="atlas" if name in "ab" else name, session=name)
        await say(journal, f"t_{name}", "words", scope=scope, at=200.0 - number)
        await journal.change_conversation(scope, conversation_id(scope), title=None, tags=tagged, now=300.0)
    await say(journal, "t_x", "words", scope=Scope("bob", project="theirs", session="x"))
    await say(journal, "t_n", "words", scope=Scope("ada", session="n"), at=150.0)
    found = await journal.conversation_facets(Scope("ada"), read_max=3, limit=5)
    assert found == ConversationFacets([("atlas", 2), ("c", 1)], [("home", 2), ("move", 1)])
    assert await journal.conversation_facets(Scope("ada"), read_max=9, limit=1) == ConversationFacets(
        [("atlas", 2)], [("home", 2)]
    )
    await erase(journal, Scope("ada", project="atlas"))
    found = await journal.conversation_facets(Scope("ada"), read_max=9, limit=5)
    assert found == ConversationFacets([("c", 1), ("d", 1)], [("gone", 1)])


@pytest.mark.parametrize("name", HOSTILE)
async def test_any_name_and_any_text_come_back_as_they_were(journal: SqlJournal, name: str) -> None:
    scope = Scope(name, session=name)
    await say(journal, "t_1", name[:150], name[:150], scope=scope)
    assert await read(journal, scope) == [("user", name[:150]), ("assistant", name[:150])]
    words = Wanted(words=(name[:20],))
    for kept in await journal.conversations(Scope(name), words, LIMITS):
        assert (await journal.matches(Scope(name), kept.id, words.words, LIMITS, limit=5)).total == 2
        assert (await journal.matches(Scope("somebody"), kept.id, words.words, LIMITS, limit=5)).total == 0
    assert await journal.conversations(Scope("somebody"), Wanted(words=(name[:20],), tag=name[:20]), LIMITS) == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=4), tag=st.text(max_size=12))
@example(words=["c"], tag="").via("what a backslash is stored as")
@example(words=["\\005"], tag="").via("what a backslash is stored as")
@example(words=["\\ 100"], tag="").via("a backslash")
async def test_whatever_is_searched_for_only_what_says_it_is_found(
    journal: SqlJournal, words: list[str], tag: str
) -> None:
    text = "There were 7 swans_ 'on' the lake; \\ 100%."
    await say(journal, "t_1", text)
    found = (await journal.matches(Scope("ada"), conversation_id(ADA), words, LIMITS, limit=5)).newest
    assert bool(found) >= all(word in text for word in words)
    assert not found or all(word.casefold() in text.casefold() or not word.isascii() for word in words)
    assert await titles(journal, Wanted(tag=tag), Scope("ada")) == []


# --- chains ----------------------------------------------------------------------------------------------------------


async def test_a_chain_goes_back_along_the_answers_that_requests_went_on_from(journal: SqlJournal) -> None:
    async def ask(turn_id: str, words: str, answer_id: str, after: str, at: float) -> None:
        await journal.record([turn(turn_id, text=words, opened_at=at)], [])
        answer = replied(turn_id, f"to {words}", at=at + 1, answer_id=answer_id)
        await journal.record_said([answer, asked(turn_id, at, after=after)], LIMITS)

    await ask("t_1", "one", "resp_1", "", 100.0)
    await ask("t_2", "two", "resp_2", "resp_1", 110.0)
    await ask("t_3", "branch", "resp_3", "resp_1", 120.0)
    result = Said(FIRST_ANSWER + 1, Role.TOOL, "told", 130.0, answers="call_1")
    goes_on, last = Step("abc", FIRST_ANSWER + 2, 130.0), Said(FIRST_ANSWER + 2, Role.ASSISTANT, "end", 131.0)
    last = Said(FIRST_ANSWER + 2, Role.ASSISTANT, "end", 131.0, answer_id="resp_4")
    halves = [SaidHalf("t_2", goes_on, (last,)), SaidHalf("t_2", goes_on, (result,), after="resp_2")]
    await journal.record_said(halves, LIMITS)

    async def chain(answer_id: str, number: int = 99) -> list[str]:
        return [said.content for said in await journal.chain(Scope("ada"), answer_id, messages_max=number)]

    assert await chain("resp_4") == ["one", "to one", "two", "to two", "told", "end"]
    assert await chain("resp_3") == ["one", "to one", "branch", "to branch"]
    assert await chain("resp_4", 3) == ["to two", "told", "end"]
    assert await chain("resp_9") == []
    assert await journal.chain(Scope("bob"), "resp_1", messages_max=9) == []


# --- erasure ---------------------------------------------------------------------------------------------------------


async def left(journal: SqlJournal) -> int:
    return (await journal.conversation_counts(None)).messages


@pytest.mark.parametrize(
    "scope", [Scope("ada"), Scope("ada", "atlas"), Scope("ada", session="s1"), Scope("ada", "atlas", session="s1")]
)
async def test_what_is_erased_goes_and_no_half_brings_it_back(journal: SqlJournal, scope: Scope) -> None:
    mine = Scope("ada", "atlas", session="s1")
    await say(journal, "t_1", "secret", "known", scope=mine)
    await say(journal, "t_2", "not yours", scope=Scope("bob", "atlas", session="s1"))
    await journal.record([turn("t_3", mine, text="waits")], [])
    hold, counts = await journal.begin_erasure(Forgetting(scope, 150.0), now=150.0, turned_away=["t_4"])
    assert (counts["conversations"], counts["messages"]) == (1, 2)
    assert await left(journal) == 1
    halves = [asked("t_1"), replied("t_1", "known"), asked("t_3"), replied("t_3", "late"), replied("t_4", "queued")]
    assert await journal.record_said(halves, LIMITS) == Recorded(turned_away=5)
    await journal.record([turn("t_1", mine, text="secret")], [])
    assert await journal.record_said(halves[:1], LIMITS) == Recorded(turned_away=1)
    await journal.finish_erasure(Forgetting(scope, 150.0), hold)
    await journal.record([turn("t_1", mine, opened_at=160.0, text="secret")], [])
    assert await journal.record_said([halves[1]], LIMITS) == Recorded(turned_away=1)  # of before; the words are new
    await journal.record_said([asked("t_1", 160.0)], LIMITS)
    assert await read(journal, mine) == [("user", "secret")]


async def test_a_part_of_a_conversation_goes_with_the_title_that_it_gave(journal: SqlJournal) -> None:
    await say(journal, "t_1", "old words", "old answer", at=100.0)
    await say(journal, "t_2", "new words", "new answer", at=200.0)
    await journal.change_conversation(ADA, conversation_id(ADA), title="Mine", tags=["t"], now=120.0)
    await erase(journal, Scope("ada"), at=150.0)
    kept = await newest_conversation(journal, ADA)
    assert kept is not None
    assert (kept.title, kept.tags, kept.messages, kept.tokens_in) == ("new words", (), 2, 10)
    await journal.change_conversation(ADA, kept.id, title="Given later", tags=None, now=300.0)
    assert (await journal.prune_conversations(said_before=150.0)) == {}
    assert await titles(journal, Wanted()) == ["Given later"]
    assert await journal.prune_conversations(said_before=250.0) == {"messages": 2, "conversations": 1}


async def test_a_removed_conversation_takes_the_users_states_of_sessions(journal: SqlJournal) -> None:
    await say(journal, "t_1", "secret", "known")
    for user in ("ada", "eve"):
        state = SessionState(user, "s1", 6, "d", 8, 100.0, 1000.0, CurrentState("Bees"))
        assert await journal.keep_state(state, [], per_session=2, per_user=5)
    await journal.forget_conversation(Scope("ada"), conversation_id(ADA), now=110.0)
    assert await journal.session_states("ada", "s1", now=500.0) == []
    assert len(await journal.session_states("eve", "s1", now=500.0)) == 1


async def test_a_removed_conversation_stays_away_and_may_begin_again(journal: SqlJournal) -> None:
    await say(journal, "t_1", "secret", "known")
    await journal.record([turn("t_2", opened_at=105.0, text="waits")], [])
    assert await journal.forget_conversation(Scope("ada"), conversation_id(ADA), now=110.0) == 2
    assert await journal.record_said([asked("t_1"), replied("t_2", "late", at=106.0)], LIMITS) == Recorded(
        turned_away=2
    )
    await say(journal, "t_3", "new", at=120.0)
    assert await read(journal) == [("user", "new")]


def learnt_from(turn_id: str) -> Memory:
    source = Source(turn=turn_id, time=100.0)
    return Memory(id="mem_1", version=1, type=MemoryType.SEMANTIC, content="x", user="ada", source=source)


async def test_the_turn_of_an_erased_memory_leaves_the_record(journal: SqlJournal) -> None:
    await say(journal, "t_1", "My number is 42", "Noted.")
    await say(journal, "t_2", "Nice weather", "Yes.", at=110.0)
    assert await journal.mark_memories([learnt_from("t_1")], at=150.0) == 2
    assert await read(journal) == [("user", "Nice weather"), ("assistant", "Yes.")]
    assert await titles(journal, Wanted()) == ["Nice weather"]
    assert await journal.record_said([asked("t_1"), replied("t_1", "Noted.")], LIMITS) == Recorded(turned_away=2)


async def test_an_older_copy_brings_nothing_back(journal: SqlJournal) -> None:
    """The copy is made of what the record had before; the marks of the erasures come to it from elsewhere."""
    scopes = [ADA, Scope("ada", session="s2"), Scope("ada", session="s3"), Scope("bob", session="s1")]
    for number, scope in enumerate(scopes):
        await say(journal, f"t_{number}", f"words {number}", "known", scope=scope)
    before = await journal.kept_conversations(after="", limit=100)
    assert len(before) == 4
    await erase(journal, scopes[0], at=150.0)
    await journal.forget_conversation(Scope("ada"), conversation_id(scopes[1]), now=150.0)
    await journal.mark_memories([learnt_from("t_2")], at=150.0)
    for kept, messages in before:
        await journal.put_conversation(kept, messages, LIMITS)
    assert await journal.conversation_counts("ada") == await journal.conversation_counts("nobody")
    assert await left(journal) == 2


async def test_marks_that_come_from_elsewhere_take_what_is_here(journal: SqlJournal) -> None:
    for number in range(3):
        await say(journal, f"t_{number}", f"words {number}", scope=Scope("ada", session=f"s{number}"))
    names = [conversation_id(Scope("ada", session=f"s{number}")) for number in range(3)]
    copies = await journal.kept_conversations(after="", limit=100)
    await journal.forget_conversation(Scope("ada"), names[0], now=150.0)
    await journal.mark_memories([learnt_from("t_1")], at=150.0)
    await erase(journal, Scope("ada", session="s2"), at=150.0)
    marks = await journal.marks()
    other = SqlJournal(journal._database._path.parent / "other.db") if hasattr(journal._database, "_path") else None
    if other is None:
        return  # one database is this test's
    await other.open()
    for kept, messages in copies:
        await other.put_conversation(kept, messages, LIMITS)
    await other.add_marks(marks)
    for what in await other.erased_scopes():
        await other.begin_erasure(what, now=200.0)
    assert (await other.erase_marked())["messages"] == 2
    assert (await other.conversation_counts(None)).messages == 0
    await other.close()


async def test_who_has_conversations_alone_is_known(journal: SqlJournal) -> None:
    message = KeptMessage(0, Role.USER, "Hello", 90.0, place="p1", turn="i_1", step="", turn_at=90.0)
    kept = KeptConversation("conv_x", Scope("zoe", session="s"), "", 90.0, 90.0)
    assert await journal.put_conversation(kept, [message], LIMITS) is not None
    assert await journal.users_after("", limit=10) == ["zoe"]
