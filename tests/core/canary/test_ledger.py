"""The judge is judged: what counts as a leak, a return, a loss, and what does not."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from demo.model import Received
from semmem.extraction.rules import facts_in
from tests.canary.after import look_at_journal, look_at_logs
from tests.canary.extractor import Extractor
from tests.canary.ledger import CONVERSATION, NOBODY, ONE_MEMORY, ONE_PROJECT, ONE_SESSION, Fact, Ledger
from tests.canary.model import Asked, Prompts, memory_in
from tests.canary.sentences import FACTS, MOVES
from tests.canary.words import NUMBERS_MAX, USERS_MAX, Words

ALICE, BOB = 0, 1


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now

    def tick(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(clock: Clock) -> Ledger:
    return Ledger(Words(7), users=3, clock=clock)


def told(ledger: Ledger, clock: Clock, user: int = ALICE, *, project: str = "", session: str = "") -> Fact:
    """A fact that was told and answered."""
    fact = ledger.tell(user, project=project, session=session, way=CONVERSATION, question="")
    ledger.created(fact, expected=True)
    clock.tick()
    return fact


def erased(ledger: Ledger, clock: Clock, user: int = ALICE) -> None:
    sent = clock()
    clock.tick()
    ledger.erased(user, sent, "DELETE")
    clock.tick()


# --- words -----------------------------------------------------------------------------------------------------------


def test_a_word_tells_its_user_and_number_in_any_case_and_among_others() -> None:
    words = Words(3)
    for user in range(0, USERS_MAX, 31):
        for number in range(0, NUMBERS_MAX, 997):
            word = words.word(user, number)
            assert list(words.found(f"User's s_{word.upper()}-1, {word}'s")) == [(user, number)] * 2
    assert list(Words(4).found(words.word(5, 6))) != [(5, 6)]


def test_a_word_has_its_limits() -> None:
    for user, number in ((USERS_MAX, 0), (0, NUMBERS_MAX), (-1, 0)):
        with pytest.raises(ValueError, match="no word"):
            Words(1).word(user, number)


@pytest.mark.parametrize("sentence", [sentence for sentence, _ in (*FACTS, MOVES)])
def test_the_rules_find_one_fact_with_its_canary_in_each_sentence(sentence: str) -> None:
    words = Words(11)
    for number in range(40):
        (fact,) = facts_in(sentence.format(words.word(2, number)))
        assert list(words.found(fact.content)) == [(2, number)]


# --- leaks -----------------------------------------------------------------------------------------------------------


def test_anothers_word_or_name_is_a_leak_and_ones_own_is_none(ledger: Ledger, clock: Clock) -> None:
    mine, theirs = told(ledger, clock), told(ledger, clock, BOB)
    ledger.saw(ALICE, f"{ledger.word(mine)} {ledger.words.word(ALICE, 0)}", began=clock(), where="a list")
    assert not ledger.findings.leaks
    ledger.saw(ALICE, ledger.word(theirs), began=clock(), where="a list")
    ledger.saw(ALICE, ledger.words.word(BOB, 0), began=clock(), where="a header")
    assert set(ledger.findings.leaks) == {(ALICE, BOB, 1), (ALICE, BOB, 0)}
    assert not ledger.findings.returns


def test_a_word_that_was_never_given_away_is_none_of_anybodys(ledger: Ledger, clock: Clock) -> None:
    ledger.saw(ALICE, ledger.words.word(BOB, 9) + ledger.words.word(700, 1), began=clock(), where="a list")
    assert not ledger.findings.leaks


def test_anothers_word_outside_of_the_block_is_a_leak_too(ledger: Ledger, clock: Clock) -> None:
    theirs = told(ledger, clock, BOB)
    ledger.saw(ALICE, f"system: {ledger.word(theirs)}", own="", began=clock(), where="a prompt")
    assert ledger.findings.leaks


def test_anybodys_word_in_a_log_is_a_leak(ledger: Ledger, clock: Clock, tmp_path: Path) -> None:
    log = tmp_path / "semmem.log"
    log.write_text(f"started\nlearnt from a session of {ledger.words.word(BOB, 0)}\n")
    assert look_at_logs([log], ledger) == 2
    assert list(ledger.findings.leaks) == [(NOBODY, BOB, 0)]


def test_an_extraction_prompt_that_shows_two_users_is_a_leak(ledger: Ledger, clock: Clock) -> None:
    lines = [json.dumps({"turn": 1, "user": f"I like {ledger.word(told(ledger, clock, user))}."}) for user in (0, 1)]
    rules = {"role": "system", "content": '{"facts": []}'}
    for shown in lines, [lines[0]]:
        ledger.findings.leaks.clear()
        body = {"messages": [rules, {"role": "user", "content": "\n".join(shown)}]}
        assert len(json.loads(Extractor(ledger).answer(body))["facts"]) == len(shown)
        assert len(ledger.findings.leaks) == 2 * len(shown) - 2


# --- returns ---------------------------------------------------------------------------------------------------------


def test_what_was_told_before_an_erasure_returns_when_something_after_it_shows_it(ledger: Ledger, clock: Clock) -> None:
    fact = told(ledger, clock)
    before = clock.tick()
    erased(ledger, clock)
    ledger.saw(ALICE, ledger.word(fact), began=before, where="an answer to what was asked before")
    assert not ledger.findings.returns
    ledger.saw(ALICE, ledger.word(fact).lower(), began=clock(), where="a list")
    ledger.saw(ALICE, ledger.word(fact), began=clock(), where="a list")
    assert list(ledger.findings.returns) == [(ALICE, 1)]
    assert ledger.findings.sightings == 2


@pytest.mark.parametrize(("sent_again", "returns"), [(False, True), (True, False)])
def test_a_note_of_a_conversation_may_have_only_what_its_client_sent_again(
    ledger: Ledger, clock: Clock, sent_again: bool, returns: bool
) -> None:
    fact = told(ledger, clock)
    ledger.repeats(ALICE, ledger.word(fact))  # before the erasure, which excuses nothing
    clock.tick()
    erased(ledger, clock)
    if sent_again:
        ledger.repeats(ALICE, ledger.word(fact))
    clock.tick()
    note = f'- Conversation "What is it?"; the answer was: "{ledger.word(fact)}". (noted 3 November 2026)\n- x'
    for text in (json.dumps({"content": f"<>\n{note}"}), json.dumps([{"content": note[2:]}])):
        ledger.saw(ALICE, text, began=clock(), where="a prompt")
        assert bool(ledger.findings.returns) is returns


@pytest.mark.parametrize(
    "line",
    [
        '- "{}"',
        "- User decided {}. Conversation ended",
        '- Conversation "What is it?"\n- {}',
        "Conversation {}",
    ],
)
def test_a_memory_may_not_have_it_though_a_note_beside_it_may(ledger: Ledger, clock: Clock, line: str) -> None:
    fact = told(ledger, clock)
    erased(ledger, clock)
    ledger.repeats(ALICE, ledger.word(fact))
    clock.tick()
    text = json.dumps({"system": f'<>\n- Conversation "{ledger.word(fact)}"\n{line.format(ledger.word(fact))}'})
    ledger.saw(ALICE, text, began=clock(), where="a prompt")
    assert ledger.findings.returns


def test_what_was_told_after_an_erasure_may_be_seen_and_may_not_be_missing(ledger: Ledger, clock: Clock) -> None:
    erased(ledger, clock)
    fact = told(ledger, clock)
    ledger.saw(ALICE, ledger.word(fact), began=clock(), where="a list")
    assert not ledger.findings.returns
    ledger.missing(ALICE, {1})
    assert not ledger.findings.lost
    ledger.missing(ALICE, set())
    assert list(ledger.findings.lost) == [(ALICE, 1)]


def test_what_was_told_alongside_an_erasure_may_stay_or_go(ledger: Ledger, clock: Clock) -> None:
    sent = clock()
    clock.tick()
    alongside = ledger.tell(ALICE, project="", way="the API", question="")
    clock.tick()
    ledger.erased(ALICE, sent, "DELETE")
    ledger.created(alongside, expected=True)
    clock.tick()
    ledger.saw(ALICE, ledger.word(alongside), began=clock(), where="a list")
    ledger.missing(ALICE, set())
    assert not ledger.findings.returns
    assert not ledger.findings.lost


def test_a_turn_that_the_model_had_before_the_erasure_goes_with_it(ledger: Ledger, clock: Clock) -> None:
    under_way = ledger.tell(ALICE, project="", way=CONVERSATION, question="")
    under_way.settled = clock.tick()
    clock.tick()
    erased(ledger, clock)
    ledger.answered(under_way, expected=True)
    ledger.saw(ALICE, ledger.word(under_way), began=clock(), where="a list")
    assert ledger.findings.returns


def test_erasing_a_project_or_another_user_leaves_the_others(ledger: Ledger, clock: Clock) -> None:
    garden, harbour, theirs = (
        told(ledger, clock, user, project=project) for user, project in ((0, "garden"), (0, "harbour"), (1, "garden"))
    )
    ledger.erased(ALICE, clock.tick(), ONE_PROJECT, project="garden")
    assert [bool(fact.gone) for fact in (garden, harbour, theirs)] == [True, False, False]


def test_erasing_a_session_leaves_what_was_said_in_others_and_in_none(ledger: Ledger, clock: Clock) -> None:
    first, second, nowhere = (told(ledger, clock, project="garden", session=name) for name in ("s1", "s2", ""))
    ledger.erased(ALICE, clock.tick(), ONE_SESSION, session="s1")
    assert [fact.gone for fact in (first, second, nowhere)] == [ONE_SESSION, "", ""]


def test_erasing_a_memory_takes_what_it_held_and_leaves_open_what_was_not_listed(ledger: Ledger, clock: Clock) -> None:
    held, listed, unlisted = (told(ledger, clock) for _ in range(3))
    ledger.erased_memory(ALICE, clock.tick(), {held.number}, {held.number, listed.number})
    assert [fact.gone for fact in (held, listed, unlisted)] == [ONE_MEMORY, "", ""]
    assert [fact.free for fact in (held, listed, unlisted)] == [False, False, True]


def test_erasing_a_memory_need_not_take_what_a_summary_says_as_well(ledger: Ledger, clock: Clock) -> None:
    fact = told(ledger, clock)
    rules, note = '{"content": <text>}', json.dumps(f"User likes {ledger.word(fact)} tea")
    body = {"messages": [{"role": "system", "content": rules}, {"role": "user", "content": note}]}
    assert json.loads(Extractor(ledger).answer(body)) == {"content": f"User likes {ledger.word(fact)} tea."}
    ledger.erased_memory(ALICE, clock.tick(), {fact.number}, {fact.number})
    assert (fact.gone, fact.free) == ("", True)


def test_what_was_erased_returns_when_the_extraction_model_is_shown_it(ledger: Ledger) -> None:
    fact = ledger.tell(ALICE, project="", way=CONVERSATION, question="")
    fact.gone, fact.erased_at = "DELETE", time.monotonic() - 10
    shown = json.dumps({"turn": 1, "user": f"I like {ledger.word(fact)}."})
    body = {"messages": [{"role": "system", "content": '{"facts": []}'}, {"role": "user", "content": shown}]}
    Extractor(ledger).answer(body)
    assert list(ledger.findings.returns) == [(ALICE, 1)]


def test_a_kill_may_take_what_was_said_just_before_and_nothing_older(ledger: Ledger, clock: Clock) -> None:
    older = told(ledger, clock)
    clock.tick()
    newer = told(ledger, clock)
    open_still = ledger.tell(ALICE, project="", way=CONVERSATION, question="")
    assert open_still.ended == math.inf
    clock.now -= 0.5
    ledger.killed()
    assert [fact.free for fact in (older, newer, open_still)] == [False, True, True]


# --- prompts ---------------------------------------------------------------------------------------------------------

HEADS = ("<semmem-memory>", '<semmem-memory mark="a1b2c3">', "\\u003csemmem-memory\\u003e")


def prompt(content: str, user_text: str = "") -> Received:
    """``content`` as it is written into JSON."""
    body = (
        f'{{"messages": [{{"role": "system", "content": "{content}"}}, {{"role": "user", "content": "{user_text}"}}]}}'
    )
    return Received("POST", "/v1/chat/completions", [("x-request-id", "r1")], body.encode())


@pytest.mark.parametrize("head", HEADS)
def test_the_block_is_memory_and_the_rest_of_a_prompt_are_the_clients_words(
    ledger: Ledger, clock: Clock, head: str
) -> None:
    fact = told(ledger, clock)
    erased(ledger, clock)
    prompts = Prompts(ledger)
    prompts.under_way["r1"] = Asked(ALICE, clock(), None)
    prompts.heard(prompt("Be kind.", f"I said that I like {ledger.word(fact)}."))
    assert not ledger.findings.returns

    tail = head.replace("semmem", "/semmem").partition(" ")[0].removesuffix(">").removesuffix("\\u003e") + ">"
    prompts.heard(prompt(f"Be kind.\\n{head}".replace('="a1b2c3"', "=a1b2c3") + f"\\n- {ledger.word(fact)}\\n{tail}"))
    assert list(ledger.findings.returns) == [(ALICE, 1)]


def test_several_blocks_are_memory_and_what_is_between_them_is_not() -> None:
    assert memory_in("a <semmem-memory x=1>b</semmem-memory> c <semmem-memory>d</semmem-memory> e") == (
        "<semmem-memory x=1>b</semmem-memory>\n<semmem-memory>d</semmem-memory>"
    )


# --- the journal -----------------------------------------------------------------------------------------------------


def journal(folder: Path, rows: list[tuple[str, str]]) -> Path:
    """Rows of project and text in ``turns``, all of session s1, and the texts in ``versions``."""
    with closing(sqlite3.connect(folder / "journal.db")) as database, database:
        database.execute("create table turns (id integer, project text, session text, user_text text)")
        database.execute("create table versions (body text)")
        database.execute("create table conversations (id text, project text, session text)")
        database.executemany("insert into turns values (1, ?, 's1', ?)", rows)
        database.executemany("insert into versions values (?)", [(text,) for _, text in rows[1:]])
    return folder


@pytest.mark.parametrize(("kind", "project"), [("DELETE", ""), (ONE_PROJECT, "garden"), (ONE_SESSION, "")])
def test_an_erased_fact_in_any_table_returns(
    ledger: Ledger, clock: Clock, tmp_path: Path, kind: str, project: str
) -> None:
    in_turns, in_versions, kept = (told(ledger, clock, project=project, session="s1") for _ in range(3))
    for fact in in_turns, in_versions:
        fact.gone, fact.erased_at = kind, clock()
    rows = [(project, ledger.word(in_turns)), ("", ledger.word(in_versions)), (project, ledger.word(kept))]
    assert look_at_journal(journal(tmp_path, rows), ledger) == 5
    assert set(ledger.findings.returns) == {(ALICE, 1), (ALICE, 2)}


def test_what_was_said_may_hold_what_its_client_sent_again_or_whose_memory_alone_was_deleted(
    ledger: Ledger, clock: Clock, tmp_path: Path
) -> None:
    first, again, alone = (told(ledger, clock) for _ in range(3))
    erased(ledger, clock)
    alone.gone = ONE_MEMORY
    ledger.repeats(ALICE, ledger.word(again))
    rows = [("", ledger.word(first)), ("", ledger.word(again)), ("", ledger.word(alone))]
    with closing(sqlite3.connect(journal(tmp_path, rows) / "journal.db")) as database, database:
        database.execute("delete from versions")
    look_at_journal(tmp_path, ledger)
    assert set(ledger.findings.returns) == {(ALICE, first.number)}


def test_another_sessions_words_may_hold_what_was_deleted_with_a_session(
    ledger: Ledger, clock: Clock, tmp_path: Path
) -> None:
    there, elsewhere = (told(ledger, clock, session=session) for session in ("s1", "s2"))
    for fact in there, elsewhere:
        fact.gone, fact.erased_at = ONE_SESSION, clock()
    look_at_journal(journal(tmp_path, [("", ledger.word(elsewhere))]), ledger)
    assert not ledger.findings.returns
    with closing(sqlite3.connect(tmp_path / "journal.db")) as database, database:
        database.execute("insert into turns values (2, '', 's1', ?)", [ledger.word(there)])
    look_at_journal(tmp_path, ledger)
    assert set(ledger.findings.returns) == {(ALICE, there.number)}


@pytest.mark.parametrize(
    ("line", "is_repeated", "returns"),
    [
        ("- Conversation of 3 May: the user said {}", True, False),
        ("- Conversation of 3 May: the user said {}", False, True),
        ("- the answer was: {}", True, False),
        ("- the answer was: {}", False, True),
        ('- "What is it?" the answer was: {}', True, False),
        ("- {}", True, True),
    ],
    ids=[
        "a note of what was sent again",
        "a note of what was not",
        "its gist",
        "a gist of what was not",
        "a gist beside a passage",
        "a memory",
    ],
)
def test_what_was_shown_may_note_a_conversation_in_which_the_client_sent_it_again(
    ledger: Ledger, clock: Clock, tmp_path: Path, line: str, is_repeated: bool, returns: bool
) -> None:
    fact = told(ledger, clock)
    erased(ledger, clock)
    if is_repeated:
        ledger.repeats(ALICE, ledger.word(fact))
    body = json.dumps({"text": "\n".join(["<semmem-memory x=1>", "Notes", line.format(ledger.word(fact))])})
    with closing(sqlite3.connect(journal(tmp_path, []) / "journal.db")) as database, database:
        database.execute("create table shown_blocks (body text)")
        database.execute("insert into shown_blocks values (?)", [body])
    look_at_journal(tmp_path, ledger)
    assert bool(ledger.findings.returns) == returns
