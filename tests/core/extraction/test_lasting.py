"""Clauses, whose words they are, and what the classifier makes of them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.extraction.lasting.classifier import STANDINGS, TYPES, Judgement, judge
from semmem.extraction.lasting.clauses import clauses, squeezed
from semmem.extraction.lasting.features import ELSEWHERE, NAMES, classes, features
from semmem.extraction.rules import PASSAGE_CHARS_MAX, asks_for_own, is_decision, passages
from semmem.memory import MemoryType, Standing
from tests.support.examples import examples


def texts(message: str) -> list[str]:
    return [clause.text for clause in clauses(squeezed(message))]


# --- clauses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (
            "I'm a carpenter, I live in Tromsø and I have a bad back. What helps?",
            ["I'm a carpenter", "I live in Tromsø", "and I have a bad back.", "What helps?"],
        ),
        (
            "Draft a mail to my team that our launch moved to May 14 instead of May 7",
            ["Draft a mail to my team", "that our launch moved to May 14 instead of May 7"],
        ),
        ("No, 14 not 12.", ["No, 14 not 12."]),
        ("Dr. Ito says it's e.g. 4.5 km", ["Dr. Ito says it's e.g. 4.5 km"]),
        ("我住在上海，我对花生过敏。推荐一家餐厅？", ["我住在上海", "我对花生过敏。", "推荐一家餐厅？"]),
        ("Ich wohne in Bern, weil meine Tochter dort lebt.", ["Ich wohne in Bern", "weil meine Tochter dort lebt."]),
        ("Vivo en Lugo y tengo tres gatos", ["Vivo en Lugo", "y tengo tres gatos"]),
        ("Ich wohne in Ulm und ich habe zwei Hunde", ["Ich wohne in Ulm", "und ich habe zwei Hunde"]),
        (
            "椅子は?腰が痛いです。犬を飼っていて、名前はモモです",
            ["椅子は?", "腰が痛いです。", "犬を飼っていて", "名前はモモです"],
        ),
        ("我对海鲜过敏 有什么菜推荐", ["我对海鲜过敏", "有什么菜推荐"]),
        ("Cobro el día 28. ¿Qué hago?", ["Cobro el día 28.", "¿Qué hago?"]),
        ("大事なことです——海老は食べません", ["大事なことです", "海老は食べません"]),
        ("- we are five\n- two are vegan", ["we are five", "two are vegan"]),
        ("budget  is\t900\n\n\nno  flights please", ["budget is 900", "no flights please"]),
    ],
)
def test_a_message_is_cut_into_clauses_as_they_are_written(message: str, found: list[str]) -> None:
    assert texts(message) == found


def test_of_a_long_message_its_beginning_and_its_end_are_looked_at() -> None:
    found = clauses("\n".join(f"line number {n}" for n in range(100)), clauses_max=10)
    assert [clause.text.split()[-1] for clause in found] == ["0", "1", "2", "3", "4", "95", "96", "97", "98", "99"]


def test_a_clause_knows_its_place() -> None:
    first, second, third = clauses("Some bare facts: we are five here?\n- and one more comes")
    assert (first.led, second.led, third.led) == (False, True, False)
    assert (second.asked, third.asked) == (True, False)
    assert (first.first, first.last, second.last) == (True, False, True)
    assert (third.sentence, third.listed) == (1, True)


WORDS = st.sampled_from(
    [
        "\n",
        *"I am vegan , . ? ! ; : - – — ( ) ' “ ” ` ``` > < <a> </a> and but so that my dog Dr. 4.5 我 。 ， =".split(),
    ]
)


@settings(max_examples=examples(300), deadline=None)
@given(st.one_of(st.text(max_size=300), st.lists(WORDS, max_size=60).map(" ".join)))
def test_clauses_stand_in_the_text_in_order_and_do_not_overlap(message: str) -> None:
    text = squeezed(message)
    found = clauses(text)
    assert all(" ".join(text[clause.start : clause.end].split()) == clause.text != "" for clause in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert all(0 <= value <= 1 for row in features(found) for value in row)


# --- other languages -------------------------------------------------------------------------------------------------


SAID_ELSEWHERE = [
    "on a déménagé à Nantes en avril",
    "ho due figli e faccio il panettiere",
    "живу в Омске, работаю сварщиком",
]


def met(text: str) -> set[str]:
    """The classes of which a text has a word."""
    return {name for name, value in zip(NAMES, classes(text), strict=True) if value}


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("Ich heiße Jonas und esse kein Fleisch", {"SELF", "NEGATED"}),
        ("heiße Jonas, wohne in Graz", {"OPENS"}),
        ("on a déménagé à Nantes en avril", {"ON"}),
        ("je ne mange pas de porc", {"SELF", "NEGATED"}),
        ("mi hija nació en mayo y vivimos en Lugo", {"WE", "ENDING"}),
        ("ho cambiato lavoro, adesso faccio il panettiere", {"SELF", "OPENS", "CHANGE"}),
        ("não como carne e moro em Braga", {"SELF", "NEGATED"}),
        ("ik heb altijd een hond gehad", {"SELF", "HAVE", "ALWAYS"}),
        ("Kupiłam rower, mój syn też", {"ENDING", "MY"}),
        ("у меня двое детей", {"ME", "ON"}),
        ("İzmir'de oturuyorum, kızım beş", {"ENDING", "MY"}),
        ("我老婆对花生过敏", {"SELF", "MY"}),
        ("対象外ですが、母は蕎麦が食べられない", {"MY", "NEGATED", "BE"}),
        ("우리는 매일 걸어요", {"WE", "ALWAYS"}),
    ],
)
def test_whose_words_they_are_is_seen_in_other_languages(text: str, classes: set[str]) -> None:
    assert met(text) >= classes | {"ELSEWHERE"}


@pytest.mark.parametrize(
    "text", ["I have no car and my son is ill", "We changed the plan; it was hers", "What is 5 + 3?", ""]
)
def test_english_is_in_no_class_of_other_languages(text: str) -> None:
    assert met(text) == set()


def test_the_columns_of_other_languages_are_known() -> None:
    found = clauses("Ich heiße Jonas und esse kein Fleisch")
    [row] = features(found)
    assert row[ELSEWHERE] == classes(found[0].text)


@pytest.mark.parametrize("said", SAID_ELSEWHERE)
def test_by_form_alone_other_languages_are_told_by_their_words(said: str) -> None:
    rows = features(clauses(said))
    deaf = [[*row[: ELSEWHERE.start], *[0.0] * len(NAMES), *row[ELSEWHERE.stop :]] for row in rows]
    assert judge(rows, None)[0].lasting > 0.4 > judge(deaf, None)[0].lasting


# --- the classifier --------------------------------------------------------------------------------------------------


def test_a_judgement_has_a_probability_and_known_words() -> None:
    found = clauses("I live in Rome. What is a monad?")
    lives, asks = judge(features(found), None)
    assert 0 <= asks.lasting < 0.2 < lives.lasting <= 1
    assert (lives.type in TYPES, lives.standing in STANDINGS) == (True, True)
    assert judge([], None) == []


# --- what is kept ----------------------------------------------------------------------------------------------------


def judged(message: str, *lasting: float) -> list[str]:
    """What is kept when the clauses are so probably lasting."""
    found = clauses(squeezed(message))
    judgements = [Judgement(p, MemoryType.SEMANTIC, Standing.MUST) for p in lasting]
    return [passage.text for passage in passages(squeezed(message), found, judgements, cut=0.5, near=0.1)]


def test_a_sentence_is_kept_from_its_first_clause_that_counts_to_its_last() -> None:
    message = "Just a quick one, we are five here, two of us eat no meat, what should I cook?"
    assert judged(message, 0.0, 0.9, 0.3, 0.0) == ["we are five here, two of us eat no meat"]
    assert judged(message, 0.0, 0.4, 0.3, 0.0) == []


def test_a_conjunction_at_the_beginning_is_left_out() -> None:
    assert judged("It often rains and I have no car here", 0.0, 0.9) == ["I have no car here"]


def test_what_is_too_short_to_be_understood_is_kept_with_what_stands_before_it() -> None:
    assert judged("Book the table for Friday. No, 14 not.", 0.0, 0.9) == ["Book the table for Friday. No, 14 not."]
    assert judged("Book the table for Friday. No, 14 of us now.", 0.0, 0.9) == ["No, 14 of us now."]
    assert judged("Book the table for Friday. I'm vegan.", 0.0, 0.9) == ["I'm vegan."]


def test_figures_alone_are_nothing_about_anybody_unless_they_are_asked_for() -> None:
    assert judged("Water is wet. 2 + 2 = 4.", 0.1, 0.9) == []
    assert judged("Please remember: 47 11 22 88 99", 0.9) == ["47 11 22 88 99"]
    assert judged("My number is: 030 123 45 67", 0.0, 0.9) == ["My number is: 030 123 45 67"]


def test_what_is_too_long_for_one_memory_is_several() -> None:
    message = ", ".join(f"we own the old house with the number {n}" for n in range(12))
    kept = judged(message, *[0.9] * 12)
    assert len(kept) == 3
    assert all(len(text) <= PASSAGE_CHARS_MAX for text in kept)


def test_one_endless_clause_is_cut_between_words() -> None:
    [kept] = judged("we own " + "houses " * 60, 0.9)
    assert len(kept) <= PASSAGE_CHARS_MAX
    assert kept.endswith(" houses")


# --- plain forms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clause", "only_asks"),
    [
        ("Round 3: what's my budget for the trip?", True),
        ("and when is my next appointment?", True),
        ("How old is our oldest hen?", True),
        ("Wie hoch ist mein Budget?", True),
        ("¿Cuál es mi presupuesto?", True),
        ("Quel est mon budget ?", True),
        ("How do I stop my cat Mabel from scratching the sofa?", False),
        ("Where can I go dancing with a partner in a wheelchair?", False),
        ("Height 1.92, what's my ideal weight?", False),
        ("What's my budget is what I asked", False),
        ("My budget is what?", False),
    ],
)
def test_what_only_asks_for_something_of_the_users_own_tells_nothing(clause: str, only_asks: bool) -> None:
    assert asks_for_own(clause) is only_asks
    assert judged(clause, 0.9) == ([] if only_asks else [clause.lstrip("¿")])


@pytest.mark.parametrize(
    ("passage", "decided"),
    [
        ("We decided to use SQLite for the ledger", True),
        ("I've finally settled on the grey tiles", True),
        ("Wir haben uns für den Garten entschieden", True),
        ("nous avons décidé de vendre la barque", True),
        ("I have not decided on the tiles", False),
        ("My sister decided to move", False),
    ],
)
def test_a_decision_is_an_event(passage: str, decided: bool) -> None:
    assert is_decision(passage) is decided
    clause = clauses(passage)[0]
    [kept] = passages(passage, [clause], [Judgement(0.9, MemoryType.SEMANTIC, None)], cut=0.5, near=0.1)
    assert kept.best.type is (MemoryType.EPISODIC if decided else MemoryType.SEMANTIC)
