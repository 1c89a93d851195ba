"""Questions about the world, and questions that only look like it."""

from __future__ import annotations

import time

import pytest

from semmem.retrieval.decide.general_facts import CHARS_MAX, is_general_fact, refers_to_user


@pytest.mark.parametrize(
    "text",
    [
        "What is the capital of Mongolia?",
        "Hi, can you tell me what the capital of Mongolia is?",
        "what's the currency of Peru",
        "Who wrote Middlemarch?",
        "who invented the telegraph",
        "who played the wizard in the lord of the rings",
        "Who won the 1998 World Cup?",
        "who was the third president of the united states",
        "Who was the first woman in space?",
        "What is the highest mountain in Africa?",
        "How many ounces are in a pound?",
        "how many days are there in a leap year",
        "how many planets are in the solar system",
        "How many legs are in a centipede?",
        "when did the Korean War end?",
        "When was penicillin discovered?",
        "when did Portugal join the EU",
        "where was Lawrence of Arabia filmed",
        "Which of these rivers is the longest?",
        "In which century did Mozart compose?",
        "define serendipity",
        "what does ubiquitous mean?",
        "What is a quasar?",
        "how do you say good night in Finnish",
        "how do I say I love my wife in German?",
        "translate 'the sea is calm' into Italian please",
        "How do you spell rhythm?",
        "convert 12 miles to kilometers",
        "what's 8 ounces in grams",
        "2+2",
        "What is 15% of 240?",
        "(3 + 4) * 5 =",
        "what is twenty-five times three",
        "square root of 144",
        "¿Cuál es la capital de Bolivia?",
        "¿Quién pintó Las Meninas?",
        "Was ist die Hauptstadt von Kanada?",
        "Wer hat die Glühbirne erfunden?",
        "Quelle est la capitale du Canada ?",
        "Qui a écrit Germinal ?",
        "加拿大的首都是哪里？",
        "谁发明了电话",
    ],
)
def test_a_question_about_the_world_is_general(text: str) -> None:
    assert is_general_fact(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What is the name of that uncle?",
        "What is the name of the decision-maker at Initech?",
        "What is the education of the nephew?",
        "Who is my boss?",
        "What is the capital of my home country?",
        "What was the first research project about?",
        "Where does the spring festival take place?",
        "How much is the discount for new customers?",
        "How many letters has Joan received?",
        "When did Alex come out?",
        "When was Rex adopted?",
        "When was the company founded?",
        "Where does Maria live?",
        "Which country does Priya live in?",
        "Which European city did Ben visit?",
        "Who plays tennis on Sundays?",
        "Who painted the fence?",
        "Who wrote the memo?",
        "who was the man in the photo",
        "What does it mean?",
        "What is a good restaurant?",
        "translate my last note to Spanish",
        "how do you spell my sister's name",
        "What is the capital you mentioned earlier?",
        "555-1234",
        "12/05",
        "What is the best thing to do in Japan?",
        "What is the capital of France? " + "I ask because of a long story. " * 8,
    ],
)
def test_what_may_be_about_somebodys_own_life_is_not(text: str) -> None:
    assert not is_general_fact(text)


@pytest.mark.parametrize(
    "text",
    [
        "What is my budget?",
        "Where do we meet?",
        "What did you recommend?",
        "I'm late, whose turn is it",
        "the idea mentioned in March",
        "Remind Alex",
        "¿Dónde vivo yo?",
        "¿Cómo se llama nuestro perro?",
        "Wo habe ich geparkt?",
        "Wann kommt unsere Lieferung?",
        "J'habite où ?",
        "Où est ma voiture ?",
        "我住在哪里",
        "上次说的餐厅",
    ],
)
def test_a_person_or_an_earlier_talk_is_a_reference_to_the_user(text: str) -> None:
    assert refers_to_user(text)


@pytest.mark.parametrize(
    "text",
    [
        "Who won World War I?",
        "how many states are in the us",
        "the largest U.S. state",
        "How many pounds are in a ton?",
    ],
)
def test_letters_that_look_like_a_pronoun_are_not_one(text: str) -> None:
    assert not refers_to_user(text)


@pytest.mark.parametrize(
    "unit",
    [
        "one-",
        "one ",
        "1-1",
        "a hundred",
        "who plays in ",
        "which of these ",
        "when is the season ",
        "(1)",
        "1.,",
        "what ",
    ],
)
def test_no_text_takes_long(unit: str) -> None:
    text = (unit * CHARS_MAX)[: CHARS_MAX - 1] + "x"
    started = time.process_time()
    is_general_fact(text)
    assert time.process_time() - started < 0.05


def test_of_a_huge_text_the_beginning_and_the_end_are_read() -> None:
    filler = "Rome was not built in a day. " * 300_000
    started = time.thread_time()
    assert not refers_to_user(filler)
    assert refers_to_user(f"My trip. {filler}")
    assert refers_to_user(f"{filler} Have I been there?")
    assert time.thread_time() - started < 0.05
