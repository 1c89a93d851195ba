"""How a model's statement becomes the content of a memory."""

from __future__ import annotations

import pytest

from semmem.extraction.phrasing import SENTENCE_CHARS, ShownTexts, TurnText
from semmem.extraction.screen import Ruling, screen
from semmem.memory import Fact, MemoryType


def phrased(text: str, content: str, subject: str = "", before: str = "", answer: str = "") -> str | None:
    return TurnText(text, ShownTexts([before, text], [answer])).phrased(content, subject)


@pytest.mark.parametrize(
    ("text", "content", "expected"),
    [
        ("I keep bees", "The user keeps bees", "User keeps bees"),
        ("I keep bees", "USER: keeps bees", "User keeps bees"),
        ("I keep bees", "* the user's bees are calm", "User's bees are calm"),
        ("I keep bees", "User, a doctor, keeps bees", "User, a doctor, keeps bees"),
        ("I don't eat meat", "I don't eat meat", "User does not eat meat"),
        ("I've two cats", "I've two cats", "User has two cats"),
        ("My dog is called Rex", "My dog is called Rex", "User's dog is called Rex"),
        ("I'm vegan and so is my dog", "You're vegan, and your dog is too", '"I\'m vegan and so is my dog"'),
        ("I'm allergic to peanuts", "Allergic to peanuts", "User is allergic to peanuts"),
        ("I really love hiking", "Loves hiking", "Loves hiking"),
        ("I love hiking", "Loves hiking", "User loves hiking"),
        ("I carry an inhaler", "Carries an inhaler", "User carries an inhaler"),
        ("I have two cats", "Has two cats", "User has two cats"),
        ("My cats sleep here", "Cats sleep here", "Cats sleep here"),
        ("I row in Boston", "Boston is where user rows", "Boston is where user rows"),
        ("Budget 900 for the Rome trip", "User's budget for Rome is 900", "User's budget for Rome is 900"),
    ],
)
def test_an_english_statement_begins_with_the_user_where_that_is_certain(
    text: str, content: str, expected: str
) -> None:
    assert phrased(text, content) == expected


@pytest.mark.parametrize(
    ("text", "content", "subject", "expected"),
    [
        ("I'm Priya. I work at Acme", "Priya works at Acme", "", "User works at Acme"),
        ("I'm Priya, and I work at Acme", "Priya Rao works at Acme", "user", "User works at Acme"),
        ("Omar here. I run a bakery", "Omar runs a bakery", "user", "User runs a bakery"),
        ("I want a CV for a baker\n\nThanks,\nOmar", "Omar is a baker", "user", "User is a baker"),
        ("I run a bakery", "Lena runs a bakery", "Lena", "User runs a bakery"),
        ("I run a bakery", "Lena's bakery is open", "Lena", "User's bakery is open"),
        ("My sister Lena runs a bakery", "Lena runs a bakery", "Lena", "Lena runs a bakery"),
        ("My sister Lena runs a bakery", "Lena runs a bakery", "user", "Lena runs a bakery"),
        ("I run a bakery", "Lena runs a bakery", "sister", "Lena runs a bakery"),
        ("I'm German and like tea", "German is what Emma speaks", "", "German is what Emma speaks"),
        ("I rather drink tea", "Prefers tea", "", "Prefers tea"),
    ],
)
def test_a_name_is_the_users_only_when_nobody_else_can_be_meant(
    text: str, content: str, subject: str, expected: str
) -> None:
    assert phrased(text, content, subject) == expected


def test_a_name_may_have_been_given_before_or_be_what_the_answer_called_the_user() -> None:
    assert phrased("I work at Acme", "Priya works at Acme", before="I'm Priya.") == "User works at Acme"
    assert phrased("I work at Acme", "Priya works at Acme", answer="Sure, Priya!") == "User works at Acme"
    assert phrased("I work at Acme", "Priya works at Acme", "user") == "Priya works at Acme"


@pytest.mark.parametrize(
    ("text", "content", "expected"),
    [
        ("Ich vertrage keine Nüsse. Was koche ich?", "Der Nutzer verträgt keine Nüsse", '"Ich vertrage keine Nüsse."'),
        ("Ich bin Veganer", "User is vegan", '"Ich bin Veganer"'),
        ("Ich bin da. Uta malt gern Boote.", "Sie malt gern Boote", '"Uta malt gern Boote."'),
        ("Vivo en Sevilla con mi hija. ¿Qué cocino?", "User vive en Sevilla", '"Vivo en Sevilla con mi hija."'),
        ("Je déteste les olives", "L'utilisateur déteste les olives", '"Je déteste les olives"'),
        ("Sou alérgico a amendoim", "User is allergic to peanuts", '"Sou alérgico a amendoim"'),
        ("我对花生过敏，今晚做什么菜好？", "用户对花生过敏", '"我对花生过敏，今晚做什么菜好？"'),
        ("私はピーナッツアレルギーです。", "ユーザーはピーナッツアレルギー", '"私はピーナッツアレルギーです。"'),
        ('Sie sagte "nie" zu mir', 'Sie sagte "nie"', "\"Sie sagte 'nie' zu mir\""),
    ],
)
def test_what_is_not_english_is_said_by_the_users_own_sentence(text: str, content: str, expected: str) -> None:
    assert phrased(text, content) == expected


@pytest.mark.parametrize(
    ("text", "content", "expected"),
    [
        (
            "Hallo! Meine Frau heißt Uta. Sie verträgt keine Nüsse.",
            "Die Frau des Nutzers verträgt keine Nüsse",
            '"Meine Frau heißt Uta. Sie verträgt keine Nüsse."',
        ),
        (
            "My sister is here. She is allergic to nuts.",
            "She is allergic",
            '"My sister is here. She is allergic to nuts."',
        ),
        ("Sie verträgt keine Nüsse. Hm.", "Die Frau verträgt keine Nüsse", '"Sie verträgt keine Nüsse."'),
        (f"Das ist Uta{' und so' * 20}. Sie {'sehr ' * 10}mag Nüsse.", "Uta mag Nüsse", None),
    ],
)
def test_a_sentence_that_points_at_somebody_is_quoted_with_the_one_before(
    text: str, content: str, expected: str | None
) -> None:
    assert phrased(text, content) == (expected or f'"Sie {"sehr " * 10}mag Nüsse."')


@pytest.mark.parametrize("text", ["Ich bin Veganer", "我对花生过敏", "Je déteste les olives"])
def test_an_own_sentence_passes_the_screen(text: str) -> None:
    content = phrased(text, "User is something")
    assert content is not None
    assert screen(Fact(MemoryType.SEMANTIC, content, "t"), text).outcome is Ruling.KEEP


def test_the_users_own_words_in_quotes_stay_as_they_are_and_other_words_lose_their_quotes() -> None:
    assert phrased("Well, I keep\nbees.", '"I keep bees"') == '"I keep bees"'
    assert phrased("Well, I keep bees.", '"The user keeps bees"') == "User keeps bees"


def test_of_a_long_sentence_the_clause_is_quoted() -> None:
    text = f"Ich wohne in Köln, {'und noch etwas, ' * 20}aber meine Mutter lebt in Graz."
    assert phrased(text, "User wohnt in Köln") == '"Ich wohne in Köln"'
    unbroken = "Ich bin " + "sehr" * len(SENTENCE_CHARS)
    assert phrased(unbroken, "User ist sehr") == "User ist sehr"


def test_what_no_sentence_says_is_left_to_the_screen() -> None:
    text = "Ich bin Veganer. Ich wohne in Köln."
    assert phrased(text, "User hat drei Katzen") == "User hat drei Katzen"
    assert phrased("Ich koche gern. Mein Vater kocht gern.", "User isst gern") == "User isst gern"


def test_what_only_points_at_somebody_is_said_by_the_users_own_sentence() -> None:
    text = "My sister moved to Madrid. Nobody knows why."
    assert phrased(text, "She moved to Madrid", "user") == '"My sister moved to Madrid."'
    assert phrased(text, "She has a parrot", "user") == "She has a parrot"


@pytest.mark.parametrize(
    ("text", "content", "subject", "kept"),
    [
        ("What is BFS?", "The assistant explained BFS", "", False),
        ("What is BFS?", "BFS visits level by level", "assistant", False),
        ("What is BFS?", "AI explains BFS", "", False),
        ("AI is my field", "AI is user's field", "user", True),
        ("Thanks", "The assistant's desk is user's", "user", True),
    ],
)
def test_nothing_is_kept_about_the_machine(text: str, content: str, subject: str, kept: bool) -> None:
    assert (phrased(text, content, subject) is not None) is kept
