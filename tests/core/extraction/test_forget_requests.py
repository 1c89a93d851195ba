"""What asks to be forgotten, what asks to be kept out, and what merely sounds like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.extraction.reading import Asked, asked_of


@pytest.mark.parametrize(
    ("said", "subject"),
    [
        ("Forget that I'm vegetarian.", "I'm vegetarian"),
        ("please delete what you know about my knee", "my knee"),
        ("Hey, could you forget the thing about my ex? ", "my ex"),
        ("Remove my salary from your memory", "my salary"),
        ("You can stop remembering that I live in Leeds.", "I live in Leeds"),
        ("erase everything about my job hunt", "my job hunt"),
        ("Forget I ever mentioned Tom!", "Tom"),
        ("Delete from your memory that I smoke, please", "I smoke"),
        ("Vergiss bitte, dass ich Vegetarier bin", "ich Vegetarier bin"),
        ("Kannst du meine Adresse aus deinem Gedächtnis löschen?", "meine Adresse"),
        ("Lösche alles, was du über meinen Bruder weißt", "meinen Bruder"),
        ("Oublie que je suis végétarien", "je suis végétarien"),
        ("Olvida que soy vegetariana", "soy vegetariana"),
        ("Dimentica quello che ti ho detto su mia sorella", "mia sorella"),
        ("Esquece que eu moro em Lisboa", "eu moro em Lisboa"),
        ("Vergeet dat ik in Utrecht woon", "ik in Utrecht woon"),
        ("Zapomnij, że jestem wegetarianinem", "jestem wegetarianinem"),
        ("请忘掉我住在上海", "我住在上海"),
        ("Would you mind deleting the memory about my therapist?", "my therapist"),
        ("Zapomnij proszę o tym, co pisałam o bracie", "bracie"),
        ("ピーナッツアレルギーのことは忘れてください", "ピーナッツアレルギー"),
    ],
)
def test_an_order_to_forget_names_what_is_meant_and_is_nothing_to_learn_from(said: str, subject: str) -> None:
    assert asked_of(said) == Asked("", (subject,), single=True)


@pytest.mark.parametrize(
    "said",
    [
        "Don't forget that I'm vegetarian",
        "I forgot my password",
        "I always forget that I have a dentist appointment",
        "Forget about dinner, let's do lunch",
        "Can you help me forget my ex?",
        "How do I delete a file?",
        "Forget it.",
        "What did I forget to pack?",
        "Delete the second paragraph",
        "don't write this in Python",
        "Don't save this file to disk",
        "我忘了密码",
        "Não esquece que eu sou intolerante à lactose",
        "把菜单里的第三个菜删掉",
        "Nicht vergessen: ich bin Vegetarier",
        "No olvides que soy vegetariana",
    ],
)
def test_what_merely_sounds_like_it_stays_as_it_is(said: str) -> None:
    assert asked_of(said) == Asked(said)


@pytest.mark.parametrize(
    "said",
    [
        "Don't remember this, but I'm getting divorced",
        "Off the record: I hate my boss",
        "Between us, please don't save this: I'm pregnant. What should I eat?",
        "Merk dir das bitte nicht: ich suche eine neue Stelle",
        "No guardes esto, pero me voy a divorciar",
        "不要记住这个：我要离婚了",
    ],
)
def test_of_what_asks_to_be_kept_out_nothing_is_left(said: str) -> None:
    assert asked_of(said) == Asked("")


def test_two_things_are_two() -> None:
    asked = asked_of("Please purge both my phone number and my email address from your memory.")
    assert asked.forget == ("my phone number", "my email address")


def test_the_rest_of_the_message_stays() -> None:
    said = "I moved to Leeds. Forget that I live in Oslo, I sold the flat. What's a good soup?"
    assert asked_of(said) == Asked("I moved to Leeds. \nI sold the flat. What's a good soup?", ("I live in Oslo",))


@given(st.text(alphabet="forget thaI'my,. é忘记我\n", max_size=200))
def test_nothing_is_invented(said: str) -> None:
    asked = asked_of(said)
    assert set(asked.rest) <= set(said) | {"\n"}
    assert all(subject in said for subject in asked.forget)
