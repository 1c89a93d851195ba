"""Grounding: a fact must be made of the user's own words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.text.grounding import SourceText, content_words, numbers
from tests.support.cpu_time import within_cpu_s


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        ("User lives in Tucson", "I live in Tucson."),
        ("User works as a welder, mostly on ship hulls", "I'm a welder, mostly ship hulls."),
        ("User is allergic to latex", "latex makes my skin blister, doctor says it's an allergy"),
        ("User's budget for the Hawaii vacation is $10,000", "we want to go to Hawaii\nmy budget is 10k"),
        ("User's budget is $10,000", "budget: 10.000"),
        ("User has two cats", "my 2 cats wake me up"),
        ("User walks to the office 2 times a week, 3 miles", "I walk to the office two times a week, it's 3 miles"),
        ("User's sister is called Anna-Lena", "Anna-Lena, my sister, is visiting"),
        ("User does not like mushrooms", "I really don't like mushrooms, the texture is just awful"),
        ("User dislikes mushrooms", "I really don't like mushrooms, the texture is just awful"),
        ("User is vegetarian", "I don't eat meat, I'm vegetarian"),
        ("User's mother's birthday is on 3 May", "Don't forget my mother's birthday is on 3 May"),
        ('"soy vegana."', "No olvides que soy vegana."),
        ("User 在北京跑完了马拉松", "上周六我在北京跑完了人生第一个马拉松"),
        ("User's balance is 3.50", "my balance is 3.5"),
        ("User turned 40", "I turned 40!"),
    ],
)
def test_what_the_user_said_in_other_words_is_grounded(fact: str, said: str) -> None:
    assert SourceText(said).grounds(fact)


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        ("User's budget for Hawaii is $10,000", "how do I get to Hawaii?"),
        ("User's budget for Hawaii is $15,000", "my budget for Hawaii is $10,000"),
        ("User lives in Paris", "what is the capital of France?"),
        ("The capital of France is Paris", "what is the capital of France?"),
        ("User is allergic to peanuts", "is peanut butter healthy?"),
        ("User owns a red bicycle", "my boat is blue"),
        ("User has three cats", "my 2 cats wake me up"),
        ("User's boss is called Rosalind", "my boss is called away all the time"),
        ("User likes mushrooms", "I really don't like mushrooms"),
        ("User is allergic to nuts", "I am not allergic to nuts"),
        ("User dislikes jazz", "I love jazz"),
        ("User likes jazz", "I can't stand jazz"),
        ("User likes it", "I like it"),
        ("User 住在上海", "我住在北京"),
        ("User plans a trip", ""),
    ],
)
def test_what_the_user_did_not_say_is_not_grounded(fact: str, said: str) -> None:
    assert not SourceText(said).grounds(fact)


def test_earlier_words_lend_names_but_no_numbers() -> None:
    said = SourceText("about 10k I think", context="planning a vacation in Hawaii for 3 weeks")
    assert SourceText("my budget is 10k", context="planning a vacation in Hawaii").grounds(
        "User's budget for the Hawaii vacation is $10,000"
    )
    assert not said.grounds("User's Hawaii vacation takes 3 weeks")
    assert not said.grounds("User plans a vacation in Hawaii")


def test_the_share_of_found_words_is_a_setting() -> None:
    said = SourceText("my parrot whistles")
    fact = "User's parrot whistles opera arias"
    assert said.grounds(fact, share_min=0.5)
    assert not said.grounds(fact, share_min=0.6)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("10,000 and 10k and 10000", {10000.0}),
        ("1.5k", {1500.0}),
        ("3.50 or 3,5", {3.5}),
        ("2 million people", {2e6}),
        ("on 2026-11-21 at 9:30", {2026.0, 11.0, 21.0, 9.0, 30.0}),
        ("the 6th of April", {6.0}),
        ("12.11.2026", {12112026.0}),
        ("twelve monkeys, one zoo", {12.0}),
        ("no number", set()),
    ],
)
def test_numbers_are_read_as_values(text: str, values: set[float]) -> None:
    assert numbers(text) == values


def test_overlap_counts_shared_words_and_numbers() -> None:
    assert SourceText("my dog weighs 31 kilos").overlap("User's dog weighs 31 kg") == 3
    assert SourceText("nothing of it").overlap("User's dog weighs 31 kg") == 0


def test_words_that_only_carry_a_statement_are_no_content() -> None:
    assert content_words("User likes that they are now living with her") == set()


@given(st.text(max_size=200), st.text(max_size=200))
def test_no_text_makes_it_fail(fact: str, said: str) -> None:
    assert SourceText(said, said).grounds(fact) in (True, False)


def test_a_whole_batch_of_long_texts_takes_little_time() -> None:
    def ground(_: int) -> None:
        said = SourceText("I like turtles. My neighbour Bob has 7 of them, but not in winter! " * 2500)
        for _again in range(20):
            assert said.grounds("User's neighbour Bob has 7 turtles")

    assert within_cpu_s(4.0, ground, tries=2)
