"""The tables of the text room: stop words, number words, irregular verbs."""

from __future__ import annotations

from semmem.retrieval.rank import rank
from semmem.text import number_words, stop_words
from semmem.text.grounding import content_words, numbers
from semmem.text.stems import IRREGULAR_VERBS, SAME_FORM
from semmem.text.times.tokens import WORDS
from semmem.text.words import words
from tests.core.retrieval.talk import hit


def test_every_stop_word_is_a_word_as_the_tokeniser_gives_it() -> None:
    lists = (stop_words.ENGLISH, stop_words.NEGATED_AUXILIARIES, stop_words.SPANISH, stop_words.GERMAN)
    for word in frozenset().union(*lists, stop_words.FRENCH):
        assert words(word) == [word]


def test_a_word_of_grammar_stands_in_one_class() -> None:
    assert sum(map(len, stop_words.CLASSES.values())) == len(stop_words.ENGLISH)


def test_numbers_count_up_in_every_language() -> None:
    assert number_words.CARDINALS["nineteen"] == 19
    assert number_words.CARDINALS["ninety"] == 90
    assert number_words.ORDINALS["nineteenth"] == 19
    assert number_words.ORDINALS["twentieth"] == 20
    assert number_words.GERMAN["zwölf"] == number_words.SPANISH["doce"] == number_words.FRENCH["douze"] == 12
    assert number_words.CHINESE_DIGITS["九"] == 9


def test_one_table_of_numbers_serves_who_reads_them() -> None:
    assert numbers("seventy people and one dog") == {70.0}
    assert "seventy" not in content_words("seventy people")
    assert WORDS["fifteen"] == ("N", 15)


def test_two_memories_that_differ_in_a_number_word_are_two_facts() -> None:
    told = "User's aunt, who lives in the old white house by the lake with three dogs and a very loud parrot, is {age}"
    ages = [hit(told.format(age=age), id=age) for age in ("sixty", "seventy")]
    ranked = rank(ages, said=[], limit=5, now=0.0)
    assert [verdict.reason for verdict in ranked] == ["kept", "kept"]


def test_irregular_verbs_know_their_forms() -> None:
    assert IRREGULAR_VERBS["go"] == ("went", "gone")
    assert {"put", "come"} <= SAME_FORM
    assert "bake" not in IRREGULAR_VERBS
