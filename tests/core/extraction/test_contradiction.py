"""Pairs of statements: what the rules make of them. The cosines in the file are those of all-MiniLM-L6-v2."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.extraction.contradiction.pair_model import Likelihoods, parts, trained_for
from semmem.extraction.contradiction.quantities import Number, take_quantities
from semmem.extraction.contradiction.reading import read, repeats, same_quantity
from semmem.extraction.contradiction.verdict import Judged, Verdict, closed, contains, decided, loses, may
from tests.support.cpu_time import within_cpu_s

PAIRS = [json.loads(line) for line in Path(__file__).with_name("pairs_sentences.jsonl").read_text("utf-8").splitlines()]
KNOWN = [pair["old"] for pair in PAIRS]
MILLISECONDS_A_PAIR_MAX = 2.0
"""Ten times what it takes on an idle core, so that only another order of magnitude fails."""


def judge(old: str, new: str, cosine: float) -> Verdict:
    """By the closed forms alone: what they leave open is different."""
    return closed(old, new, cosine) or Verdict.DIFFERENT


def judged(pair: dict[str, Any]) -> Verdict:
    return judge(pair["old"], pair["new"], pair["cosine"])


def test_the_pairs_are_many_and_of_every_kind() -> None:
    assert len(PAIRS) >= 120
    assert min(Counter(pair["label"] for pair in PAIRS).values()) >= 40
    assert Counter(pair["split"] for pair in PAIRS)["held_out"] >= 40


def test_nothing_is_dropped_that_is_not_said_word_for_word_and_number_for_number() -> None:
    dropped = [(pair["old"], pair["new"]) for pair in PAIRS if judged(pair) is Verdict.SAME]
    assert [pair for pair in dropped if not repeats(*pair) and not same_quantity(*pair)] == []


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ("User's interview is at 15:00", "User's interview is at 3 pm", Verdict.SAME),
        ("User's interview is at 15:00", "User's interview is at 4 pm", Verdict.CONTRADICTION),
        ("User earns 28k a year", "User earns 28,000 a year", Verdict.SAME),
        ("User's walk takes 60 minutes", "User's walk takes 1 hour", Verdict.SAME),
        ("User's dog weighs 20 kg", "User's dog weighs 44 lb", Verdict.SAME),
        ("User's dog weighs 20 kg", "User's dog weighs 45 lb", Verdict.CONTRADICTION),
        ("User's code is 0042", "User's code is 42", Verdict.CONTRADICTION),
    ],
)
def test_a_number_written_in_another_way_is_the_same_number(old: str, new: str, verdict: Verdict) -> None:
    assert judge(old, new, 0.95) is verdict


@pytest.mark.parametrize(
    ("old", "new", "contained"),
    [
        ("User is allergic to walnuts", "User has a walnut allergy", True),
        ("User has a walnut allergy", "User is allergic to walnuts", True),
        ("User owns a canoe", "User has a canoe", True),
        ("User has a canoe", "User owns a red canoe", False),
        ("User's canoe is called Nelly", "User's canoe has the name Nelly", True),
        ("User's canoe is called Nelly", "User's canoe has the name Polly", False),
        ("User isn't able to swim", "User is unable to swim", True),
        ("User is able to swim", "User is unable to swim", False),
        ("User's shed is locked", "User's shed is unlocked", False),
        ("User wants to adopt a parrot", "User adopted a parrot", False),
        ("User lives with the ex-wife's parents", "User lives with the parents", False),
        ("User rides from Jena to Ulm", "User rides from Ulm to Jena", False),
        ("User moved to Ulm", "User moved from Ulm", False),
        ("User sold the canoe", "User has a canoe", False),
        ("User has 3 canoes", "User has 4 canoes", False),
        ("User is single", "User is single-minded", False),
        ("User paints boats for the sake of the sea", "User paints boats", False),
    ],
)
def test_what_has_every_word_of_it_contains_a_statement(old: str, new: str, contained: bool) -> None:
    assert contains(old, new) is contained


def test_a_likely_repetition_never_retires_what_it_is_not() -> None:
    old, new = "User plays the lute", "User took lute lessons during a stay in Graz"
    assert decided(old, new, Likelihoods(0.6, 0.3, 0.1)) == Judged(Verdict.DIFFERENT, unsettled=True)


def test_who_denies_one_of_two_things_keeps_the_other() -> None:
    likely = Likelihoods(0.0, 0.97, 0.03)
    assert decided("User is afraid of dogs and of cats", "User is no longer afraid of dogs", likely).unsettled
    assert decided("User is afraid of dogs", "User is no longer afraid of dogs", likely) == Judged(
        Verdict.CONTRADICTION
    )


def test_a_correction_that_names_nothing_corrects_only_what_was_said_just_before() -> None:
    likely = Likelihoods(0.0, 0.95, 0.05)
    assert decided("My boat is called Nelly", "Sorry, I meant Polly", likely).verdict is Verdict.DIFFERENT
    assert decided("My boat is called Nelly", "Sorry, I meant Polly", likely, True).verdict is Verdict.CONTRADICTION
    assert decided("My boat is called Nelly", "No, my boat is Polly", likely).verdict is Verdict.CONTRADICTION


def test_what_replaces_one_of_two_things_keeps_the_other() -> None:
    old, new = "User manages 4 engineers and a designer named Mei", "User manages 3 engineers now"
    assert decided(old, new, Likelihoods(0.0, 0.97, 0.03)) == Judged(Verdict.DIFFERENT, unsettled=True)


def test_what_a_relative_does_is_no_change_of_what_the_user_does() -> None:
    likely = Likelihoods(0.02, 0.9, 0.08)
    assert decided("User's sister smokes", "User does not smoke", likely).verdict is Verdict.DIFFERENT
    assert decided("User smokes a pipe", "User stopped smoking", likely).verdict is Verdict.CONTRADICTION


def test_what_stays_true_is_never_taken_for_untrue() -> None:
    assert [pair for pair in PAIRS if pair["label"] == "different" and judged(pair) is not Verdict.DIFFERENT] == []


@pytest.mark.parametrize(
    ("old", "new", "cosine", "verdict"),
    [
        ("User is allergic to peanuts", "User is not allergic to peanuts", 0.98, Verdict.CONTRADICTION),
        ("User's budget is $10k", "User's budget is $15k", 0.95, Verdict.CONTRADICTION),
        ("User's flight is on Tuesday", "User's flight is on Thursday", 0.97, Verdict.CONTRADICTION),
        ("User lives in Boston", "User moved to Seattle", 0.61, Verdict.DIFFERENT),
        ("User works at Google", "User works at Meta", 0.54, Verdict.DIFFERENT),
        ("User sold the kayak", "User bought the kayak back", 0.8, Verdict.DIFFERENT),
        ("User has no children", "User has a son", 0.7, Verdict.DIFFERENT),
        ("User's favourite tea is Assam", "User's favourite tea is Darjeeling", 0.8, Verdict.DIFFERENT),
        ("User is allergic to peanuts", "The user is allergic to peanuts.", 0.99, Verdict.SAME),
        ("User has two cats, Miso and Momo", "User has 2 cats: Miso and Momo", 0.99, Verdict.SAME),
        ("User isn't married", "User is not married", 0.99, Verdict.SAME),
        ("User is allergic to peanuts", "User has a peanut allergy", 0.89, Verdict.DIFFERENT),
        ("User's daughter Mia is 7 years old", "User's daughter Mia loves horses", 0.6, Verdict.DIFFERENT),
        ("Project Falcon's budget is 50000", "Project Falcon uses Rust", 0.6, Verdict.DIFFERENT),
        ("User prefers tea to coffee", "User prefers coffee to tea", 0.99, Verdict.DIFFERENT),
        ("User programs in C", "User programs in C++", 0.95, Verdict.DIFFERENT),
        ("User's budget is $500", "User's budget is €500", 0.95, Verdict.DIFFERENT),
        ("User's team has 4 engineers", "User's team has now 3 engineers", 0.9, Verdict.CONTRADICTION),
        ("User's team has 4 engineers and a designer", "User's team has 3 engineers", 0.9, Verdict.DIFFERENT),
        ("User lives in texas", "User lives in canada", 0.6, Verdict.DIFFERENT),
        ("user lives in texas", "user moved to canada", 0.6, Verdict.DIFFERENT),
        ("User lives in texas", "User lives in a trailer", 0.6, Verdict.DIFFERENT),
        ("User visited Rome in 2019", "User visited Rome in 2023", 0.97, Verdict.DIFFERENT),
        ("User flies from Oslo on 3 May", "User flies to Oslo on 5 May", 0.97, Verdict.DIFFERENT),
        ("User plays tennis on Mondays", "User plays tennis on Fridays", 0.95, Verdict.DIFFERENT),
        ("User eats at a fish restaurant", "User does not eat fish", 0.8, Verdict.DIFFERENT),
        ("User's daughter Emma is five", "User's sister Emma is thirty", 0.9, Verdict.DIFFERENT),
        ("User likes jazz", "User dislikes techno", 0.6, Verdict.DIFFERENT),
        ("User likes jazz", "User also likes techno", 0.6, Verdict.DIFFERENT),
        ("User visited Rome", "User visited Oslo", 0.6, Verdict.DIFFERENT),
        ("User speaks Spanish", "User speaks Portuguese", 0.83, Verdict.DIFFERENT),
        ("User lives in Boston", "User lives in a tower", 0.6, Verdict.DIFFERENT),
        ("User works at Google", "User works as a welder", 0.5, Verdict.DIFFERENT),
        ("User's staging port is 5433", "User's production port is 5432", 0.92, Verdict.DIFFERENT),
        ("User's phone code is 4821", "User's laptop code is 7730", 0.92, Verdict.DIFFERENT),
    ],
)
def test_measured_traps(old: str, new: str, cosine: float, verdict: Verdict) -> None:
    assert judge(old, new, cosine) is verdict


def test_stories_that_share_a_word_do_not_retire_each_other() -> None:
    old = "User's family goes camping at the lake every summer because it brings them closer together"
    new = "User lost the tent on the way home and never found out who took it from the camping ground"
    assert judge(old, new, 0.5) is Verdict.DIFFERENT


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("90 minutes", "an hour and a half"),
        ("1,000 square feet", "93 m²"),
        ("3 pm", "15:00"),
        ("christmas day", "25 december"),
        ("$10k", "10,000 dollars"),
        ("a pair of shoes", "two shoes"),
        ("ninety-five pages", "95 pages"),
        ("daily", "every day"),
        ("half past six", "6:30"),
        ("20 degrees celsius", "68 fahrenheit"),
    ],
)
def test_the_same_quantity_in_other_words(one: str, other: str) -> None:
    (a,), (b,) = take_quantities(one)[0], take_quantities(other)[0]
    assert a[0] == b[0]
    assert a[1].agrees(b[1]) if isinstance(a[1], Number) and isinstance(b[1], Number) else a[1] == b[1]


def test_what_was_written_in_one_unit_must_agree_exactly() -> None:
    assert not Number(100.0, "kg").agrees(Number(99.0, "kg"))
    assert Number(100.0, "kg").agrees(Number(99.8, "lb"))
    assert not Number(100.0, "kg").agrees(Number(90.0, "lb"))


def test_two_negations_are_none() -> None:
    assert read("User no longer refuses to fly").negations == 1
    assert closed("User can't fly", "User can fly", 0.9) is Verdict.CONTRADICTION
    assert closed("User never can not fly", "User can fly", 0.9) is None


def test_who_tells_is_the_user_in_both_persons() -> None:
    assert closed('"I am not allergic to nuts"', "User is allergic to nuts", 0.9) is None
    assert closed('"I\'m not allergic to nuts"', '"I am allergic to nuts"', 0.9) is Verdict.CONTRADICTION
    assert closed('"My budget is 500"', '"My budget is 700"', 0.9) is Verdict.CONTRADICTION
    assert repeats("User likes tea", "User likes tea.") is True


ALIKE, AGAINST = Likelihoods(0.97, 0.02, 0.01), Likelihoods(0.02, 0.95, 0.03)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("User runs every day", "User goes running 5 km each day"),
        ("User's sister cooks well", "User's brother is a good cook"),
        ("User has a dog", "User keeps a dog called Rex at home"),
        ("User is at ease on planes", "User does not feel ill at ease on a plane"),
        ("User is left-handed", "User is right-handed"),
        ("User is fond of sailing", "User now loves to sail"),
        ("User takes the pills before meals", "User swallows the tablets after eating"),
        ("User takes the ferry from Kiel", "User goes by boat to the town of Kiel"),
        ("User drives to the sea with Rosa", "User goes to the coast by car"),
    ],
    ids=["number", "person", "name", "negation", "one word for another", "change", "time", "direction", "company"],
)
def test_no_likelihood_makes_a_statement_go_that_says_more(old: str, new: str) -> None:
    assert decided(old, new, ALIKE).verdict is not Verdict.SAME


def test_a_paraphrase_goes_that_is_likely_enough() -> None:
    old, new = "User cycles to work", "User rides a bike to the office"
    assert decided(old, new, ALIKE).verdict is Verdict.SAME
    assert decided("User is a commuter by bike", new, ALIKE).verdict is Verdict.SAME  # "to" on one side turns nothing
    assert decided(old, new, Likelihoods(0.5, 0.05, 0.45)).verdict is Verdict.DIFFERENT


def test_what_says_more_than_what_replaces_it_stays_and_is_unsettled() -> None:
    old, new = "User leads 4 engineers and a designer called Mei", "User now leads 3 engineers"
    assert loses(old, new)
    judged = decided(old, new, AGAINST)
    assert (judged.verdict, judged.unsettled) == (Verdict.DIFFERENT, True)
    assert not may(Verdict.CONTRADICTION, old, new)
    assert decided("User leads 4 engineers", new, AGAINST).verdict is Verdict.CONTRADICTION


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("User's dog Rex is a beagle from Spain", "User's dog is a poodle", True),
        ("User flies from Oslo to Rome", "User flies to Porto", True),
        ("User flies from Oslo to Rome", "User flies from Oslo to Porto", False),
        ("User works at Blue Heron Books", "User works at Google", False),
        ("User likes Rome and Oslo", "User likes Porto and Graz", True),
    ],
)
def test_a_name_that_no_other_one_replaces_is_not_lost(old: str, new: str, lost: bool) -> None:
    assert loses(old, new) is lost


def test_a_correction_needs_less_than_other_news() -> None:
    likely = Likelihoods(0.05, 0.45, 0.5)
    old, new = '"I drive the diesel van"', '"No, it is the petrol van, not the diesel"'
    assert decided(old, new, likely).verdict is Verdict.DIFFERENT
    assert decided(old, new, likely, corrects=True).verdict is Verdict.CONTRADICTION
    assert decided(old, '"The van is a petrol one"', likely, corrects=True).verdict is Verdict.DIFFERENT


def test_what_is_left_of_two_texts_that_share_a_word_is_without_it() -> None:
    assert parts('"I have moved to Jena"', "User moved here from Ulm") == ("have to jena", "here from ulm")


def test_nothing_is_taken_from_texts_that_share_no_word_but_those_of_grammar() -> None:
    assert parts('"I have moved to Jena"', "User comes to Ulm") == ("I have moved to Jena", "User comes to Ulm")


def test_what_comes_on_top_replaces_nothing() -> None:
    assert decided("User plays chess", "User also plays go", AGAINST).verdict is Verdict.DIFFERENT


def test_the_judge_is_known_for_the_embedder_that_it_was_trained_for_alone() -> None:
    model = trained_for("sentence-transformers/all-MiniLM-L6-v2/384/fp32")
    assert model is not None
    assert model.directions.shape[:2] == (5, 384)
    assert trained_for("another/model/384") is None


@given(st.text(max_size=80), st.text(max_size=80), st.floats(-1, 1))
def test_no_text_breaks_the_rules(old: str, new: str, cosine: float) -> None:
    assert judge(old, new, cosine) in Verdict


@given(st.sampled_from(["1", "-", "1,", "a'", "9-", ".", "not ", "€", "1:", "٣", "² "]), st.integers(1, 4000))
def test_a_hostile_text_takes_no_longer_than_an_honest_one(piece: str, times: int) -> None:
    assert within_cpu_s(0.1, lambda _: judge(piece * times, f"User {piece * times}", 0.5))


def test_a_comparison_is_cheap() -> None:
    def judge_all(_: int) -> None:
        for pair in PAIRS:
            judge(pair["old"], pair["new"], pair["cosine"])

    assert within_cpu_s(MILLISECONDS_A_PAIR_MAX / 1000 * len(PAIRS), judge_all)


@pytest.mark.parametrize(("cosine", "expected"), [(0.95, Verdict.CONTRADICTION), (0.85, Verdict.DIFFERENT)])
def test_in_a_script_that_the_rules_cannot_read_another_number_replaces_what_is_near(
    cosine: float, expected: Verdict
) -> None:
    assert judge("用户的预算是一万美元", "用户的预算是两万美元", cosine) is expected


def test_in_a_script_that_the_rules_cannot_read_nothing_else_replaces() -> None:
    assert judge("用户的女儿小美七岁", "用户的女儿小美喜欢马", 0.98) is Verdict.DIFFERENT
    assert judge("用户2019年去了东京", "用户2023年去了东京", 0.98) is Verdict.DIFFERENT
    assert judge("用户的女儿小美七岁", "用户的女儿小美七岁。", 0.99) is Verdict.SAME


@given(st.text(max_size=60), st.text(max_size=60))
def test_who_repeats_says_it_in_both_directions(old: str, new: str) -> None:
    assert repeats(old, old)
    assert repeats(old, new) == repeats(new, old)


@given(st.sampled_from(KNOWN), st.sampled_from("Rex Texas 7 never horses 2019 not €".split()), st.integers(0, 12))
def test_a_word_more_is_never_a_repetition(text: str, word: str, place: int) -> None:
    words = text.split()
    assert not repeats(text, " ".join([*words[:place], word, *words[place:]]))


def test_what_may_be_another_thing_of_its_kind_is_not_taken_for_a_paraphrase() -> None:
    assert judge("User owns a boat", "User owns a canoe", 0.83) is Verdict.DIFFERENT


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ("My friend Gegenesilo is a dentist.", "My friend Tomemekima is a dentist.", Verdict.DIFFERENT),
        ("User's colleague Ana plays the violin", "User's colleague Eve plays the violin", Verdict.DIFFERENT),
        ("Mein Freund Karl wohnt in Kassel", "Mein Freund Otto wohnt in Kassel", Verdict.DIFFERENT),
        ("My friend Ana is a dentist.", "My friend Ana is a nurse.", Verdict.CONTRADICTION),
        ("User's manager Ana approves leave", "User's manager is Eve now", Verdict.CONTRADICTION),
        ("User lives in Oslo", "User lives in Rome", Verdict.CONTRADICTION),
    ],
)
def test_what_is_said_of_somebody_else_of_that_name_ends_nothing(old: str, new: str, verdict: Verdict) -> None:
    likely = Likelihoods(same=0.01, contradiction=0.98, different=0.01)
    assert decided(old, new, likely).verdict is verdict
