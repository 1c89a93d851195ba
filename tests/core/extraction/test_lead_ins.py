"""What people put before the thing itself, and what they ask to be remembered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.extraction.lasting.classifier import Judgement
from semmem.extraction.lasting.clauses import READ_CHARS_MAX, clauses, lead_in, squeezed
from semmem.extraction.rules import facts_in, passages
from semmem.memory import MemoryType
from tests.support.cpu_time import within_cpu_s


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Remember: I live in Boston.", "I live in Boston."),
        ("Remember, I am allergic to nuts.", "I am allergic to nuts."),
        ("Please remember that my dog is called Rex.", "my dog is called Rex."),
        ("Don't forget my mother arrives on Sunday.", "my mother arrives on Sunday."),
        ("Oh, and please keep in mind that I hate coriander.", "I hate coriander."),
        ("Hey, keep in mind that I hate coriander.", "I hate coriander."),
        ("Can you remember that my locker is number 14?", "my locker is number 14"),
        ("Bitte merk dir: ich wohne in Ulm.", "ich wohne in Ulm."),
        ("Recuerda que yo soy celíaco.", "yo soy celíaco."),
    ],
)
def test_what_is_of_the_users_own_and_to_be_remembered_is_kept_without_its_lead_in(text: str, said: str) -> None:
    found = clauses(text)
    assert [clause.text for clause in found if clause.to_keep] == [said]


@pytest.mark.parametrize(
    "text",
    [
        "Remember my name.",
        "Do you remember my dog?",
        "Do you remember that I like tea?",
        "Can you remember my dog's name?",
        "Remember to answer in French.",
        "Remember when I moved to Ulm?",
        "Keep in mind that the essay should have 500 words.",
        "Note that I is an operator here.",
        "I remember that my uncle was kind.",
    ],
)
def test_other_words_of_remembering_ask_for_nothing(text: str) -> None:
    assert not any(clause.to_keep for clause in clauses(text))


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("Remember: I live in Boston.", "User lives in Boston"),
        ("Please remember that my badge number is 4417-B.", "User's badge number is 4417-B"),
        ("By the way, I am allergic to nuts.", "User is allergic to nuts"),
    ],
)
def test_it_is_phrased_as_if_it_had_been_said_alone(text: str, content: str) -> None:
    assert [fact.content for fact in facts_in(text)] == [content]


def test_a_correction_keeps_the_word_that_tells_it_is_one() -> None:
    [clause] = clauses(text := "Actually, I moved to Rome.")
    assert (clause.text, text[clause.start :]) == ("I moved to Rome.", text)


def test_and_what_is_nothing_without_that_word_keeps_it_too() -> None:
    assert [clause.text for clause in clauses("Sorry, 14 not 12.")] == ["Sorry, 14 not 12."]


def test_what_is_asked_in_the_same_breath_is_asked_all_the_same() -> None:
    text = "Remember that I am a vegan, what should I cook for eight people?"
    assert [(clause.to_keep, clause.asked) for clause in clauses(text)] == [(True, True), (False, True)]
    assert [fact.content for fact in facts_in(text)] == ["User is a vegan"]


def test_of_a_long_message_each_sentence_has_its_own() -> None:
    text = "The weather is fine. Remember that I live in Ulm, and my sister in Bonn. What shall I cook?"
    assert [(clause.text, clause.to_keep) for clause in clauses(text)] == [
        ("The weather is fine.", False),
        ("I live in Ulm", True),
        ("and my sister in Bonn.", False),
        ("What shall I cook?", False),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("save this pls: the wifi guest network is called Pelican", "the wifi guest network is called Pelican"),
        ("no phone calls before ten, write that down", "no phone calls before ten"),
        ("The cleaner comes every second Friday. Don't forget that.", "The cleaner comes every second Friday."),
        ("Something to store. The spare key is with Mrs Abernathy.", "The spare key is with Mrs Abernathy."),
        ("Könntest du bitte im Hinterkopf behalten, dass Malte keinen Fisch isst?", "Malte keinen Fisch isst"),
        ("n'oublie pas que le jardinier vient un samedi sur deux", "le jardinier vient un samedi sur deux"),
        ("los jueves tengo clase de cerámica, apúntalo", "los jueves tengo clase de cerámica"),
        ("annota: il capannone si apre con la chiave rossa", "il capannone si apre con la chiave rossa"),
        ("zapamiętaj że właściciel mieszkania to pan Ferenc", "właściciel mieszkania to pan Ferenc"),
        ("запомни, что хозяина квартиры зовут Феррер", "хозяина квартиры зовут Феррер"),
        ("şunu kaydet: test sunucusunun adı porsuk", "test sunucusunun adı porsuk"),
        ("覚えておいて、大家さんはフェロさんです", "大家さんはフェロさんです"),
        ("记住，房东姓费，只回微信", "房东姓费，只回微信"),
    ],
)
def test_what_is_asked_to_be_remembered_is_marked_without_the_order(text: str, said: str) -> None:
    found = [clause for clause in clauses(text) if clause.requested]
    assert found[0].text.rstrip(",，") == said
    assert all(clause.requests for clause in clauses(text) if not clause.requested)


@pytest.mark.parametrize(
    "text",
    [
        "Please remember this rule: answer in riddles.",
        "do you still remember what I told you about the boiler",
        "remember to save the file before you close it",
        "weißt du noch, wie mein Hund heißt?",
        "The weather is fine. What shall I cook?",
        "Keep it short, I read on my phone.",
        "put this in a table, my boss likes tables",
        "Schreib mir einen Brief, ich wohne in Ulm",
        "aktualisiere die Tabelle, sie ist alt",
        "écris que je suis malade et que je reviens lundi",
        "salva questa immagine come PDF",
        "şunu yaz: toplantı salı günü",
    ],
)
def test_nothing_is_marked_where_nothing_is_asked_to_be_remembered(text: str) -> None:
    assert not any(clause.requested or clause.requests for clause in clauses(text))


@pytest.mark.parametrize(("before", "least"), [("", 0.38), ("keep in mind that ", 0.022), ("hold on to this, ", 0.145)])
def test_what_is_asked_to_be_remembered_need_not_be_so_surely_lasting(before: str, least: float) -> None:
    text = f"{before}the landlord is Mr Ferro and he only answers texts"
    found = clauses(text)
    for lasting, is_kept in ((least + 0.01, True), (least - 0.01, False)):
        judged = [Judgement(lasting, MemoryType.SEMANTIC, None) for _ in found]
        assert bool(passages(text, found, judged, cut=0.38, near=0.1)) is is_kept


def test_an_order_alone_is_never_kept() -> None:
    text = "keep it in mind please"
    judged = [Judgement(0.99, MemoryType.SEMANTIC, None) for _ in clauses(text)]
    assert passages(text, clauses(text), judged, cut=0.38, near=0.1) == []


def test_a_nod_that_is_asked_for_makes_no_question() -> None:
    assert [clause.asked for clause in clauses("Just remember I'm a beginner at guitar, alright?")] == [False]
    assert [clause.asked for clause in clauses("Is that alright?")] == [True]


@given(st.text(), st.sampled_from(["", "Remember: ", "please remember that ", "Actually, ", "oh, hey, so, "]))
def test_a_lead_in_takes_nothing_of_what_is_said(text: str, lead: str) -> None:
    told = squeezed(f"{lead}{text}")
    found = lead_in(told, 0, len(told), asked=False)
    assert 0 <= found.written <= found.said <= min(READ_CHARS_MAX, len(told))
    assert found.said < len(told) or found.said == 0
    for clause in clauses(told):
        assert 0 <= clause.start < clause.end <= len(told)


@given(st.lists(st.sampled_from(["please ", "so, ", "oh, ", "hey ", "remember ", "that ", "can you ", "no, "])))
def test_no_order_of_them_takes_long(words: list[str]) -> None:
    text = "".join(words)
    assert within_cpu_s(0.02, lambda _: lead_in(text, 0, len(text), asked=False))
