"""What newcomers try first: a plain statement is kept wherever it stands in a message. With the embedder and the heads
that are shipped; hardly any of these statements is learnt from."""

from __future__ import annotations

import asyncio

import pytest

from semmem.extraction.rules import RulesExtractor
from semmem.memory import Scope, Turn
from semmem.ports.learning import Batch
from tests.support.shipped import shipped_embedder

STATEMENTS = (
    *("I prefer tables over long text.", "I'm vegetarian.", "I am celiac.", "My name is Tomas.", "I live in Berlin."),
    *(
        "I work at a bank.",
        "I have two kids.",
        "My dog is a beagle named Otto.",
        "I don't drink alcohol.",
        "I use Vim.",
    ),
    *("I'm learning Spanish.", "I play the cello.", "I take metformin.", "I can't stand coriander.", "I love hiking."),
    *("My favourite colour is green.", "I manage a small hotel.", "I'm a morning person.", "I wear hearing aids."),
    *(
        "Ich bin Vegetarier.",
        "Ich wohne in Bremen.",
        "Je m'appelle Jeanne.",
        "J'ai deux enfants.",
        "Soy alérgica al polen.",
    ),
    *("Trabajo en un banco.", "仙台に住んでいます。", "お酒は飲みません。"),
)
PLACES = (
    "{}",
    "Hi! {}",
    "{} Suggest a dinner.",
    "{} What should I do this weekend?",
    "btw {}",
    "ok so {} anyway, thanks",
)
OTHERS = (
    "I want a shorter one",
    "I don't get the third step",
    "is my sentence right?",
    "I love it, thanks!",
    "make mine red",
)
LOST_MAX = 5
"""Of 162."""


@pytest.fixture(scope="module")
def kept() -> dict[str, list[str]]:
    """What is kept of each message, by message."""

    async def read() -> dict[str, list[str]]:
        embedder = shipped_embedder()
        await embedder.open()
        rules = RulesExtractor(embedder)
        messages = [*(place.format(said) for said in STATEMENTS for place in PLACES), *OTHERS]
        found = {}
        for text in messages:
            turn = Turn("t-1", Scope("ann", session="s-1"), 0, text, opened_at=1_000_000.0)
            facts = (await rules.extract(Batch("b-1", turn.scope, (turn,), (), "size", 1))).facts
            found[text] = [fact.content for fact in facts]
        await embedder.close()
        return found

    return asyncio.run(read())


def test_a_plain_statement_is_kept_wherever_it_stands(kept: dict[str, list[str]]) -> None:
    lost = [message for said in STATEMENTS for place in PLACES if not kept[message := place.format(said)]]
    assert len(lost) <= LOST_MAX, lost


def test_what_is_as_short_and_lasts_not_is_left(kept: dict[str, list[str]]) -> None:
    assert {message: kept[message] for message in OTHERS if kept[message]} == {}


def test_a_statement_of_two_words_is_cut_from_the_request_behind_it(kept: dict[str, list[str]]) -> None:
    assert kept["I am celiac. Suggest a dinner."] == ["User is celiac"]
