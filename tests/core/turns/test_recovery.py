"""Every new message is learnt from, once; what was missed is made up for; what was declined or erased is not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from semmem.memory import Forgetting, Memory, MemoryType, Scope, Turn
from semmem.ports.recording import TurnClosed
from semmem.request.head import RequestHead
from semmem.request.permission import PermissionRules
from semmem.request.verdicts import VerdictRules, VerdictSource
from semmem.turns.observation import Ticket
from semmem.turns.recovery import CHARS_MAX, RecoveryRules, UnreadHistories
from tests.core.turns.talk import DAY_S, NOW, ReticentJournal, Talk, message
from tests.support.empty_journal import empty_journal
from tests.support.fakes import HashEmbedder

TEA, MILK, SUGAR, CAKE = "I like tea", "And milk", "I never take sugar", "My cake is carrot cake"
APIS = ["chat", "messages", "responses"]


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[ReticentJournal]:
    made = ReticentJournal(empty_journal(tmp_path / "journal.db"))
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def talk(journal: ReticentJournal) -> Talk:
    return Talk(journal)


# --- new messages ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capture", ["observe", "single_filter", "history", "off"])
@pytest.mark.parametrize("api", APIS)
async def test_three_new_messages_are_three_turns(journal: ReticentJournal, api: str, capture: str) -> None:
    talk = Talk(journal, capture=capture)
    await talk.ask(TEA, MILK, SUGAR, api=api, session="s")
    turns = await journal.waiting_turns("alice", "s")
    assert [(turn.ordinal, turn.user_text) for turn in turns] == [(1, TEA), (2, MILK), (3, SUGAR)]
    assert [turn.opened_at for turn in turns] == sorted({turn.opened_at for turn in turns})
    assert turns[-1].opened_at == talk.now
    assert await talk.learn() == {TEA: 1, MILK: 1, SUGAR: 1}


@pytest.mark.parametrize("chain", [{"conversation": "conv_1"}, {"previous_response_id": "resp_1"}])
async def test_three_new_messages_of_a_conversation_that_the_api_keeps(talk: Talk, chain: dict[str, Any]) -> None:
    await talk.ask(TEA, MILK, SUGAR, api="responses", **chain)
    await talk.ask(TEA, MILK, SUGAR, api="responses", **chain)
    await talk.ask(TEA, ">Noted.", MILK, ">Noted.", CAKE, api="responses", **chain)
    assert await talk.learn() == {TEA: 1, MILK: 1, SUGAR: 1, CAKE: 1}  # what an API keeps has no history to resend


async def test_the_answer_ends_all_turns_of_its_request_and_stands_at_the_last(talk: Talk) -> None:
    result = await talk.ask(TEA, MILK, session="s")
    tea, milk = await talk.journal.waiting_turns("alice", "s")
    assert result.ticket == Ticket(milk.id, "chat", (tea.id,))
    await talk.answer(result.ticket, text="With milk, then.")
    assert await talk.learn(later_s=0.0) == {TEA: 1, MILK: 1}  # nobody waits for an answer of their own
    assert talk.answers == {TEA: None, MILK: "With milk, then."}


@pytest.mark.parametrize("status", [400, 429])
async def test_a_refused_request_teaches_none_of_its_messages_now_or_from_a_history(talk: Talk, status: int) -> None:
    await talk.ask(SUGAR)
    await talk.answer((await talk.ask(SUGAR, ">Noted.", TEA, MILK)).ticket, status)
    await talk.ask(SUGAR, ">Noted.", TEA, MILK, ">Sorry.", CAKE)
    talk.restart()
    await talk.ask(SUGAR, ">Noted.", TEA, MILK, ">Sorry.", CAKE, ">Noted.", "Bye")
    assert await talk.learn() == {SUGAR: 1, CAKE: 1, "Bye": 1}


async def test_a_throttled_request_that_is_tried_again_teaches_all_of_its_messages(talk: Talk) -> None:
    await talk.answer((await talk.ask(TEA, MILK)).ticket, 429)
    await talk.answer((await talk.ask(TEA, MILK)).ticket)
    assert await talk.learn() == {TEA: 1, MILK: 1}


async def test_text_before_a_picture_is_a_turn(talk: Talk) -> None:
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}
    await talk.ask(TEA, picture)
    assert await talk.learn() == {TEA: 1}


async def test_more_new_messages_than_allowed_are_the_newest_and_the_others_are_counted(
    journal: ReticentJournal,
) -> None:
    talk = Talk(journal, rules=RecoveryRules(new_turns_max=3))
    await talk.ask(*(f"I own {number} cats" for number in range(100)))
    assert await talk.learn() == {"I own 97 cats": 1, "I own 98 cats": 1, "I own 99 cats": 1}
    assert talk.counted == {"over_limit": 97}


# --- messages that were missed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("session", [None, "s"])
@pytest.mark.parametrize("capture", ["observe", "single_filter", "history", "off"])
@pytest.mark.parametrize("api", APIS)
async def test_a_message_that_semmem_never_saw_is_recovered_with_its_answer(
    journal: ReticentJournal, api: str, capture: str, session: str | None
) -> None:
    talk = Talk(journal, capture=capture)
    await talk.ask(TEA, api=api, session=session)
    await talk.ask(TEA, ">Noted.", MILK, ">White it is.", SUGAR, api=api, session=session)  # MILK passed without semmem
    await talk.ask(TEA, ">Noted.", MILK, ">White it is.", SUGAR, ">Good.", CAKE, api=api, session=session)
    assert await talk.learn() == {TEA: 1, MILK: 1, SUGAR: 1, CAKE: 1}
    assert talk.answers[MILK] == "White it is."
    assert talk.counted == {"recovered": 1}


async def test_recovered_messages_stand_before_the_new_one(talk: Talk) -> None:
    await talk.ask(TEA, session="s")
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR, CAKE, ">c", "Bye", session="s")
    turns = await talk.journal.waiting_turns("alice", "s")
    assert [turn.user_text for turn in turns] == [TEA, MILK, SUGAR, CAKE, "Bye"]
    assert [turn.ordinal for turn in turns] == [1, 2, 3, 4, 5]
    await talk.learn()
    assert (talk.answers[SUGAR], talk.answers[CAKE]) == (None, "c")


async def test_known_messages_are_not_offered_again(talk: Talk) -> None:
    history: list[str] = []
    for number in range(50):
        await talk.ask(*history, f"I own {number} cats")
        history += [f"I own {number} cats", ">Noted."]
    await talk.exchange.request(*_request(*history, "Bye"))
    assert [half.user_text for half in talk.queue if isinstance(half, Turn)] == ["Bye"]


def _request(*said: str) -> tuple[RequestHead, bytes]:
    body = json.dumps({"model": "m", "messages": [message(each) for each in said]}).encode()
    return RequestHead("POST", "/v1/chat/completions", {"x-user-id": ("alice",)}), body


async def test_of_a_long_conversation_only_what_is_new_since_the_last_request_is_looked_at(
    journal: ReticentJournal,
) -> None:
    talk = Talk(journal, seen_max=2)  # so that each further look at the history would have to ask the journal
    history: list[str] = []
    for number in range(20):
        await talk.ask(*history, f"I own {number} cats")
        history += [f"I own {number} cats", ">Noted."]
    assert journal.asked == 0


async def test_examples_are_looked_for_in_the_journal_once(talk: Talk) -> None:
    for number in range(10):
        await talk.ask(*EXAMPLES, f"I own {number} cats")
    assert talk.journal.asked == 2


async def test_after_a_restart_the_journal_knows_what_was_seen(talk: Talk) -> None:
    await talk.ask(TEA)
    await talk.ask(TEA, ">a", MILK)
    await talk.learn()
    talk.restart()
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR, ">c", CAKE)
    assert await talk.learn() == {TEA: 1, MILK: 1, SUGAR: 1, CAKE: 1}


async def test_another_replica_makes_up_for_what_both_missed(talk: Talk, journal: ReticentJournal) -> None:
    other = Talk(journal)
    await talk.ask(TEA)
    await other.ask(TEA, ">a", MILK)
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR, ">c", CAKE)
    await other.ask(TEA, ">a", MILK, ">b", SUGAR, ">c", CAKE, ">d", "Bye")
    assert await talk.learn() == {TEA: 1, MILK: 1, SUGAR: 1, CAKE: 1, "Bye": 1}


async def test_a_session_that_begins_anew_after_a_pause_does_not_learn_its_history_again(talk: Talk) -> None:
    await talk.ask(TEA)
    await talk.ask(TEA, ">a", MILK, SUGAR)
    for restarted in (False, True):
        if restarted:
            talk.restart()
        talk.now += 3600.0
        await talk.ask(TEA, ">a", MILK, SUGAR, CAKE)  # and not what stood beside the new words, unanswered, either
        await talk.ask(TEA, ">a", MILK, SUGAR, CAKE, ">b", "Missed", ">c", "Bye")
    assert await talk.learn() == {TEA: 1, MILK: 1, SUGAR: 1, CAKE: 2, "Missed": 1, "Bye": 2}  # said anew: CAKE, Bye


async def test_an_edited_history_is_a_branch_of_its_own(talk: Talk) -> None:
    await talk.ask(TEA)
    await talk.ask(TEA, ">a", MILK)
    await talk.ask(TEA, ">a", "No milk", ">b", SUGAR)  # the edit itself passed without semmem
    await talk.ask(TEA, ">a", MILK, ">b", CAKE)  # and the old branch goes on
    assert await talk.learn() == {TEA: 1, MILK: 1, "No milk": 1, SUGAR: 1, CAKE: 1}


async def test_a_history_whose_beginning_was_cut_off_is_not_learnt_again(talk: Talk) -> None:
    said = [f"I own {number} cats" for number in range(12)]
    for newest in range(len(said)):
        window = said[max(0, newest - 3) : newest + 1]
        await talk.ask(*(each for text in window[:-1] for each in (text, ">ok")), window[-1], session="s")
    assert await talk.learn() == dict.fromkeys(said, 1)


async def test_after_turns_are_pruned_their_history_is_not_learnt_again(talk: Talk) -> None:
    await talk.ask(TEA)
    await talk.ask(TEA, ">a", MILK)
    await talk.learn()
    for _ in range(2):
        talk.now += 8 * DAY_S
        await talk.journal.prune(done_before=talk.now - 7 * DAY_S)
        await talk.ask(TEA, ">a", MILK, ">b", SUGAR)
        talk.restart()
    await talk.learn()
    assert (talk.learnt[TEA], talk.learnt[MILK]) == (1, 1)


async def test_the_newest_are_recovered_first_and_the_others_with_the_next_requests(journal: ReticentJournal) -> None:
    talk = Talk(journal, rules=RecoveryRules(history_turns_max=4))
    missed = [f"I own {number} cats" for number in range(10)]
    history = [TEA, ">a", *(each for text in missed for each in (text, ">ok"))]
    await talk.ask(TEA)
    await talk.ask(*history, MILK)
    assert await talk.learn() == dict.fromkeys([TEA, MILK, *missed[-4:]], 1)
    await talk.ask(*history, MILK, ">b", SUGAR)
    await talk.ask(*history, MILK, ">b", SUGAR, ">c", CAKE)
    assert await talk.learn() == dict.fromkeys([TEA, MILK, SUGAR, CAKE, *missed], 1)
    assert talk.counted == {"recovered": 10, "over_limit": 6 + 2}


async def test_what_a_full_queue_dropped_is_recovered(talk: Talk) -> None:
    await talk.ask(TEA)
    talk.queue.room = 0
    assert (await talk.ask(TEA, ">a", MILK)).ticket is None
    talk.queue.room = 1000
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR)
    assert await talk.learn() == {TEA: 1, MILK: 1, SUGAR: 1}


async def test_a_journal_that_does_not_answer_costs_the_history_until_it_does(talk: Talk) -> None:
    await talk.ask(TEA)
    talk.restart()
    talk.journal.silent = True
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR)
    assert await talk.learn() == {TEA: 1, SUGAR: 1}
    talk.journal.silent = False
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR, ">c", CAKE)
    assert await talk.learn() == {TEA: 1, MILK: 1, SUGAR: 1, CAKE: 1}
    assert talk.counted == {"unread": 2, "recovered": 1}


async def test_a_history_that_nobody_brings_again_is_read_when_the_journal_answers(talk: Talk) -> None:
    await talk.ask(TEA)
    talk.restart()
    talk.journal.silent = True
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR)
    await talk.read_again()
    assert await talk.learn() == {TEA: 1, SUGAR: 1}
    talk.journal.silent = False
    await talk.read_again()
    assert await talk.learn() == {TEA: 1, MILK: 1, SUGAR: 1}
    assert talk.answers[MILK] == "b"
    await talk.read_again()
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR, ">c", CAKE)
    assert await talk.learn() == {TEA: 1, MILK: 1, SUGAR: 1, CAKE: 1}
    assert not talk.recorder.unread


async def test_what_a_later_request_recovered_is_not_read_again(talk: Talk) -> None:
    await talk.ask(TEA)
    talk.restart()
    talk.journal.silent = True
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR)
    talk.journal.silent = False
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR, ">c", CAKE)
    assert not talk.recorder.unread
    assert await talk.learn() == {TEA: 1, MILK: 1, SUGAR: 1, CAKE: 1}


async def test_an_erasure_between_leaves_nothing_to_be_read_again(talk: Talk) -> None:
    await talk.ask(TEA)
    talk.restart()
    talk.journal.silent = True
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR)
    talk.journal.silent = False
    await talk.journal.erase("alice", talk.now + 1)
    await talk.read_again()
    assert await talk.learn() == {}


async def test_words_that_wait_to_be_compared_are_forgotten_at_once(talk: Talk) -> None:
    await talk.ask(TEA)
    talk.restart()
    talk.journal.silent = True
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR)
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR, user="bob")
    talk.recorder.unread.forget(Forgetting(Scope("alice"), talk.now + 1))
    assert [each.newest.scope.user for each in talk.recorder.unread.waiting()] == ["bob"]


async def test_whoever_erases_reaches_the_histories_that_wait(talk: Talk) -> None:
    waiting = UnreadHistories()
    assert replace(talk.recorder, unread=waiting).unread is waiting, "also while none waits"


async def test_a_long_history_waits_for_its_next_request_alone(talk: Talk) -> None:
    talk.journal.silent = True
    await talk.ask(TEA, ">" + "a" * CHARS_MAX, MILK)
    assert not talk.recorder.unread


async def test_what_a_dead_replica_had_not_written_is_recovered_by_another_one_as_soon_as_the_journal_answers(
    talk: Talk, journal: ReticentJournal
) -> None:
    other = Talk(journal)
    await talk.ask(TEA)
    await other.ask(TEA, ">a", MILK)
    talk.commit = nothing  # type: ignore[method-assign]
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR)  # and is killed
    journal.silent = True
    await other.ask(TEA, ">a", MILK, ">b", SUGAR, ">c", CAKE)
    assert await other.learn() == {TEA: 1, MILK: 1, CAKE: 1}
    journal.silent = False
    await other.ask(TEA, ">a", MILK, ">b", SUGAR, ">c", CAKE, ">d", "Bye")
    assert await other.learn() == {TEA: 1, MILK: 1, SUGAR: 1, CAKE: 1, "Bye": 1}


async def nothing() -> None:
    """No commit: what was offered stays in memory."""


async def test_a_journal_that_does_not_answer_costs_no_new_message(talk: Talk) -> None:
    talk.journal.silent = True
    await talk.ask(TEA, MILK, SUGAR)
    assert await talk.learn() == {TEA: 1, MILK: 1, SUGAR: 1}


# --- what is not the user's ------------------------------------------------------------------------------------------

EXAMPLES = ["My name is Bob", ">{name: Bob}", "I live in Rome", ">{home: Rome}"]


@pytest.mark.parametrize("session", [None, "s"])
async def test_examples_in_front_of_a_prompt_are_nobodys_words(talk: Talk, session: str | None) -> None:
    for user in ("alice", "ben", "cleo"):
        await talk.ask(*EXAMPLES, TEA, user=user, session=session)
        await talk.ask(*EXAMPLES, TEA, ">{}", MILK, user=user, session=session)
        talk.restart()
        await talk.ask(*EXAMPLES, TEA, ">{}", MILK, ">{}", SUGAR, ">{}", CAKE, user=user, session=session)
    assert await talk.learn() == dict.fromkeys([TEA, MILK, SUGAR, CAKE], 3)


async def test_examples_that_change_with_every_request_are_nobodys_words(talk: Talk) -> None:
    said: list[str] = []
    for number in range(8):
        examples = [f"My name is Bob {number}", ">{}", f"I live in town {number}", ">{}"] * (number % 3)
        await talk.ask(*examples, *said, f"I own {number} cats", session="s")
        said += [f"I own {number} cats", ">Noted."]
    assert await talk.learn() == {f"I own {number} cats": 1 for number in range(8)}


@pytest.mark.parametrize(
    ("mode", "learnt"),
    [("known_sessions", [MILK]), ("never", [MILK]), ("always", [TEA, MILK])],
)
async def test_a_history_that_begins_unseen_is_believed_only_where_the_operator_says_so(
    journal: ReticentJournal, mode: str, learnt: list[str]
) -> None:
    talk = Talk(journal, rules=RecoveryRules(mode=mode))
    await talk.ask(TEA, ">a", MILK)
    await talk.ask(TEA, ">a", MILK)
    assert await talk.learn() == dict.fromkeys(learnt, 1)


# --- what began while semmem was away

AWAY = RecoveryRules(away_until=NOW + 1000.0)


async def test_a_conversation_that_began_while_semmem_was_away_is_recovered_once(journal: ReticentJournal) -> None:
    talk = Talk(journal, rules=AWAY)
    for _ in range(2):
        await talk.ask(TEA, ">a", MILK)
    talk.restart()
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR)
    assert await talk.learn() == {TEA: 1, MILK: 1, SUGAR: 1}
    assert talk.answers[TEA] == "a"


async def test_long_after_a_start_a_beginning_proves_nothing(journal: ReticentJournal) -> None:
    talk = Talk(journal, rules=RecoveryRules(away_until=NOW))
    await talk.ask(TEA, ">a", MILK)
    assert await talk.learn() == {MILK: 1}
    assert talk.counted["unproven"] == 1


async def test_after_an_absence_what_stands_before_known_words_is_still_nobodys(journal: ReticentJournal) -> None:
    talk = Talk(journal, rules=AWAY)
    await talk.ask("My name is Bob", ">{}", TEA, session="s")
    talk.restart()
    await talk.ask("My name is Bob", ">{}", TEA, ">a", MILK, session="s")
    assert await talk.learn() == {"My name is Bob": 1, TEA: 1, MILK: 1}
    talk.restart()
    await talk.ask("I live in Rome", ">{}", "My name is Bob", ">{}", TEA, ">a", MILK, ">b", SUGAR, session="s")
    assert "I live in Rome" not in await talk.learn()


async def test_after_an_absence_what_many_users_bring_is_learnt_from_the_first_at_most(
    journal: ReticentJournal,
) -> None:
    talk = Talk(journal, rules=AWAY)
    users = ("alice", "ben", "cleo", "alice")
    for number, user in enumerate(users):
        await talk.ask(*EXAMPLES, f"I own {number} cats", user=user, session=f"s{number}")
    learnt = await talk.learn()
    assert max(learnt.values()) == 1
    assert sum(learnt.values()) == len(users) + 2


async def test_after_an_absence_a_long_history_is_no_beginning(journal: ReticentJournal) -> None:
    talk = Talk(journal, rules=AWAY)
    said = [each for number in range(6) for each in (f"I own {number} cats", ">Noted.")]
    await talk.ask(*said, TEA)
    assert await talk.learn() == {TEA: 1}


async def test_after_an_absence_nothing_erased_comes_back_from_a_beginning(journal: ReticentJournal) -> None:
    talk = Talk(journal, rules=AWAY)
    await journal.erase("alice", talk.now)
    await talk.ask(TEA, ">a", MILK)
    assert await talk.learn() == {MILK: 1}
    assert talk.counted["erased"] == 1


async def test_nothing_is_recovered_where_the_operator_does_not_want_it(journal: ReticentJournal) -> None:
    talk = Talk(journal, rules=RecoveryRules(mode="never"))
    await talk.ask(TEA)
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR)
    assert await talk.learn() == {TEA: 1, SUGAR: 1}


async def test_results_of_tools_in_a_history_are_nobodys_words(talk: Talk) -> None:
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "I am Bob"}]}
    await talk.ask(TEA, api="messages", session="s")
    await talk.ask(TEA, call, result, ">Bob says hello.", MILK, ">b", SUGAR, api="messages", session="s")
    assert await talk.learn() == {TEA: 1, MILK: 1, SUGAR: 1}


async def test_what_semmem_put_into_a_prompt_is_nobodys_words(talk: Talk) -> None:
    await talk.store.open()
    known = Memory(
        id="mem_1", version=1, type=MemoryType.SEMANTIC, content="User likes green tea", user="alice",
        created_at=NOW, updated_at=NOW, embedding=await HashEmbedder().embed("User likes green tea"),
    )  # fmt: skip
    await talk.store.put(Scope("alice"), known)
    question = "Which tea does the user like?"
    injected = await talk.ask(question, session="s")
    prompt = json.loads(injected.body or b"{}")["messages"]
    assert [each["role"] for each in prompt] == ["user", "user"]
    await talk.ask(*prompt, ">Green.", *prompt, ">b", SUGAR, session="s")  # a gateway sends back what it received
    assert await talk.learn() == {question: 1, SUGAR: 1}


async def test_a_tool_loop_is_one_turn_and_none_of_its_requests_is_news(talk: Talk) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said: list[Any] = [TEA, ">a", MILK, SUGAR]
    await talk.ask(TEA)
    for _ in range(3):
        await talk.ask(*said)
        said += [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "Bob"}]
    talk.restart()
    assert (await talk.ask(*said)).ticket is not None
    await talk.ask(*said, ">b", CAKE)
    assert await talk.learn() == {TEA: 1, MILK: 1, SUGAR: 1, CAKE: 1}


# --- what is not to be kept ------------------------------------------------------------------------------------------

OFF: dict[str, dict[str, Any]] = {
    "memory is off": {"headers": {"x-semmem-memory": "off"}},
    "memory is read only": {"headers": {"x-semmem-memory": "read"}},
    "the body says off": {"memory_config": {"enabled": False}},
    "the body says not to store": {"memory_config": {"auto_store": False}},
    "the body says so in SR's way": {"auto_store": False},
    "a filter refuses": {"headers": {"x-blocked": "true"}},
    "a filter found personal data": {"headers": {"x-pii": "true"}},
}
FILTERS = VerdictRules(blocked=VerdictSource("x-blocked", ()), pii=VerdictSource("x-pii", ()))


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("off", OFF)
async def test_what_was_said_not_to_be_kept_is_not_learnt_from_a_later_history(
    journal: ReticentJournal, off: str, api: str, restarted: bool
) -> None:
    talk = Talk(journal, upstream=FILTERS, capture="history")
    await talk.ask(TEA, api=api)
    await talk.ask(TEA, ">a", MILK, SUGAR, api=api, **OFF[off])
    if restarted:
        talk.restart()
    await talk.ask(TEA, ">a", MILK, SUGAR, ">Secret.", CAKE, api=api)
    await talk.ask(TEA, ">a", MILK, SUGAR, ">Secret.", CAKE, ">c", "Bye", api=api)
    assert await talk.learn() == {TEA: 1, CAKE: 1, "Bye": 1}
    assert b"Secret." not in _file_of(journal)
    assert MILK.encode() not in _file_of(journal)


def _file_of(journal: ReticentJournal) -> bytes:
    path = Path(journal._database._path)  # type: ignore[attr-defined]
    return b"".join(each.read_bytes() for each in path.parent.iterdir())


@pytest.mark.parametrize("permissions", [PermissionRules(enabled=False), PermissionRules(auto_store=False),
                                         PermissionRules(opt_in=True)])  # fmt: skip
async def test_what_the_operators_switch_kept_out_is_not_learnt_when_it_is_turned(
    talk: Talk, permissions: PermissionRules
) -> None:
    await talk.ask(TEA)
    talk.restart(permissions)
    await talk.ask(TEA, ">a", MILK)
    talk.restart()
    await talk.ask(TEA, ">a", MILK, ">b", CAKE)
    assert await talk.learn() == {TEA: 1, CAKE: 1}


async def test_what_nobody_known_said_is_not_learnt_when_they_are_known(talk: Talk) -> None:
    await talk.ask(TEA)
    await talk.ask(TEA, ">a", MILK, user=None)
    await talk.ask(TEA, ">a", MILK, ">b", CAKE)
    assert await talk.learn() == {TEA: 1, CAKE: 1}


async def test_what_follows_declined_words_unseen_counts_as_declined(talk: Talk) -> None:
    await talk.ask(TEA)
    await talk.ask(TEA, ">a", MILK, headers={"x-semmem-memory": "off"})
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR, ">c", CAKE)  # SUGAR passed without semmem
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR, ">c", CAKE, ">d", "Missed", ">e", "Bye")
    assert await talk.learn() == {TEA: 1, CAKE: 1, "Missed": 1, "Bye": 1}


async def test_declined_words_that_are_said_again_to_be_kept_are_kept(talk: Talk) -> None:
    await talk.ask(TEA, headers={"x-semmem-memory": "off"})
    await talk.ask(TEA)
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR)
    assert await talk.learn() == {TEA: 1, MILK: 1, SUGAR: 1}


async def test_declined_words_are_not_learnt_from_the_loop_of_a_tool(talk: Talk) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    loop: list[dict[str, Any]] = [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "20"},
    ]
    await talk.ask(TEA, headers={"x-semmem-memory": "off"})
    for _ in range(2):
        assert (await talk.ask(TEA, *loop)).ticket is None
        talk.restart()
    assert await talk.learn() == {}


async def test_declined_words_that_still_wait_unanswered_are_not_learnt_with_the_next(talk: Talk) -> None:
    await talk.ask(TEA, headers={"x-semmem-memory": "off"})
    talk.restart()
    await talk.ask(TEA, MILK)
    assert await talk.learn() == {MILK: 1}


async def test_a_pile_of_declined_words_is_remembered_by_its_beginning(journal: ReticentJournal) -> None:
    talk = Talk(journal, rules=RecoveryRules(new_turns_max=2))
    pile = [f"I own {number} cats" for number in range(9)]
    await talk.ask(TEA)
    await talk.ask(TEA, ">a", *pile, headers={"x-semmem-memory": "off"})
    assert talk.counted == {"declined": 2}
    await talk.ask(TEA, ">a", *pile, ">b", CAKE)
    assert await talk.learn() == {TEA: 1, CAKE: 1}


async def test_words_so_old_that_what_was_declined_after_them_may_be_forgotten_prove_nothing(
    journal: ReticentJournal,
) -> None:
    talk = Talk(journal, seen_max=2)
    await talk.ask(TEA)
    await talk.ask(TEA, ">a", MILK, headers={"x-semmem-memory": "off"})
    await talk.ask(TEA)
    await talk.ask(CAKE)  # of the two that this process remembers one is TEA
    talk.now += 8 * DAY_S
    await journal.prune(done_before=talk.now - 7 * DAY_S)
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR)
    await talk.learn()
    assert MILK not in talk.learnt


# --- what was erased -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["known_sessions", "always"])
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("session", [None, "s"])
async def test_what_was_said_before_an_erasure_does_not_come_back_from_a_history(
    journal: ReticentJournal, session: str | None, restarted: bool, mode: str
) -> None:
    talk = Talk(journal, rules=RecoveryRules(mode=mode))
    await talk.answer((await talk.ask(TEA, session=session)).ticket)
    await talk.ask(TEA, ">a", MILK, session=session)
    await journal.erase("alice", talk.now)
    if restarted:
        talk.restart()
    history = [TEA, ">a", MILK, ">b", "Missed", ">c"]
    await talk.ask(*history, SUGAR, session=session)
    await talk.ask(*history, SUGAR, ">d", CAKE, session=session)
    assert await talk.learn() == {SUGAR: 1, CAKE: 1}


async def test_what_is_missed_after_an_erasure_is_recovered_behind_words_said_after_it(talk: Talk) -> None:
    await talk.ask(TEA)
    await talk.journal.erase("alice", talk.now)
    await talk.ask(TEA, ">a", MILK)
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR, ">c", CAKE)
    assert await talk.learn() == {MILK: 1, SUGAR: 1, CAKE: 1}


@pytest.mark.parametrize("restarted", [False, True])
async def test_words_said_before_an_erasure_and_again_after_it_prove_nothing(talk: Talk, restarted: bool) -> None:
    """The user goes back to the first message, asks that again, and then goes on in the old branch."""
    await talk.answer((await talk.ask(TEA, session="s")).ticket)
    await talk.journal.erase("alice", talk.now)
    if restarted:
        talk.restart()
    await talk.ask(TEA, session="s")
    await talk.ask(TEA, ">a", "Missed before the erasure", ">b", SUGAR, session="s")
    await talk.learn()
    assert "Missed before the erasure" not in talk.learnt
    assert talk.counted == {"erased": 1}


async def test_when_nobody_says_whether_something_was_erased_nothing_is_recovered_yet(talk: Talk) -> None:
    await talk.ask(TEA)
    talk.journal.silent = True
    await talk.ask(TEA, ">a", MILK, ">b", SUGAR)
    assert await talk.learn() == {TEA: 1, SUGAR: 1}


async def test_half_of_a_recovered_answer_is_kept_like_any_other(talk: Talk) -> None:
    await talk.ask(TEA, session="s")
    await talk.exchange.request(*_request(TEA, ">a", MILK, ">" + "x" * 200_000, SUGAR))
    long = [half for half in talk.queue if isinstance(half, TurnClosed) and half.answer]
    assert all(len(half.answer or "") <= 64 * 1024 for half in long)


# --- other speakers --------------------------------------------------------------------------------------------------


def by(name: object, text: str) -> dict[str, Any]:
    return {"role": "user", "name": name, "content": text}


@pytest.mark.parametrize("name", ["mallory", " Mallory ", "alice2", 7, {"a": 1}, "x" * 5000, "a\x00b"], ids=range(7))
async def test_what_another_speaker_says_is_no_turn_now_or_from_a_history(talk: Talk, name: object) -> None:
    await talk.ask(TEA, ">Noted.", by(name, MILK))
    result = await talk.ask(TEA, ">Noted.", by(name, MILK), ">White it is.", SUGAR)
    assert result.ticket is not None
    talk.restart()
    await talk.ask(TEA, ">Noted.", by(name, MILK), ">White it is.", SUGAR, ">Good.", CAKE)
    assert set(await talk.learn()) == {SUGAR, CAKE}
    assert talk.counted["other_speaker"] == 1


@pytest.mark.parametrize("name", ["alice", "ALICE", " alice ", "", None])
async def test_the_users_own_name_and_none_are_the_user(talk: Talk, name: str | None) -> None:
    await talk.ask(by(name, TEA))
    assert await talk.learn() == {TEA: 1}
    assert not talk.counted


async def test_beside_another_speaker_the_user_is_learnt_from(talk: Talk) -> None:
    result = await talk.ask(TEA, by("mallory", MILK))
    assert result.ticket is not None
    await talk.answer(result.ticket, text="Tea for one.")
    assert await talk.learn() == {TEA: 1}
    assert talk.answers == {TEA: "Tea for one."}
    assert talk.counted == {"other_speaker": 1}


@pytest.mark.parametrize("session", [None, "s"])
async def test_an_answer_to_another_speaker_is_none_to_the_user(talk: Talk, session: str | None) -> None:
    await talk.answer((await talk.ask(TEA, session=session)).ticket, text="Noted.")
    result = await talk.ask(TEA, ">Noted.", by("mallory", MILK), session=session)
    assert result.ticket is None
    assert await talk.learn() == {TEA: 1}
    assert talk.answers == {TEA: "Noted."}


async def test_a_tool_loop_of_another_speaker_is_counted_once_and_is_no_turn(talk: Talk) -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {}}]}
    loop: list[dict[str, Any]] = [call, {"role": "tool", "tool_call_id": "c", "content": "12 cats"}]
    await talk.ask(by("mallory", MILK), session="s")
    assert (await talk.ask(by("mallory", MILK), *loop, session="s")).ticket is None
    assert await talk.learn() == {}
    assert talk.counted == {"other_speaker": 1}
