"""The invented people of the benchmarks."""

from __future__ import annotations

from collections import Counter

from bench.facts import FACTS_PER_PERSON, GENERAL, USERS, first, turns, world


def test_the_world_is_the_same_every_time_and_another_one_with_another_seed() -> None:
    assert world() == world()
    assert world().facts != world(seed=2).facts


def test_every_user_has_as_many_facts_and_every_fact_one_question_that_it_answers() -> None:
    known = world()
    assert Counter(fact.user for fact in known.facts) == dict.fromkeys({f.user for f in known.facts}, 120)
    assert len({fact.user for fact in known.facts}) == USERS
    by_number = {fact.number: fact for fact in known.facts}
    assert len(by_number) == len(known.facts) == len(known.asked)
    for fact, asked in zip(known.facts, known.asked, strict=True):
        assert asked.gold == {fact.number}
        assert asked.user == fact.user
        assert not asked.named or fact.person in asked.text


def test_no_two_users_know_people_of_one_name() -> None:
    known = world()
    users_of = {(fact.person, fact.user) for fact in known.facts if fact.person}
    assert max(Counter(person for person, _ in users_of).values()) == 1
    assert set(Counter(fact.person for fact in known.facts if fact.person).values()) == {FACTS_PER_PERSON}


def test_a_smaller_world_asks_about_what_it_holds() -> None:
    small = first(world(), 50)
    assert {number for asked in small.asked for number in asked.gold} == {fact.number for fact in small.facts}


def test_every_second_turn_tells_something_as_the_user_would_say_it() -> None:
    said = turns(2400)
    assert all(text in GENERAL for text in said[1::2])
    assert not [text for text in said[0::2] if "The user" in text or text in GENERAL]
    assert "By the way, I am saving money for a houseboat." in said
