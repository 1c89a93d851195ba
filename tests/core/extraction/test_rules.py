"""The local extractor: what is kept of what a user writes, in which words, and what never is.

Its vectors come from the model that the classifier was trained with only where a test says so; the others judge by the
clauses' form alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from semmem.extraction import rules
from semmem.extraction.lasting.classifier import SIGNATURES
from semmem.extraction.phrasing import phrased, third_singular
from semmem.extraction.rules import CLAUSES_PER_BATCH_MAX, CLAUSES_PER_TURN_MAX, RulesExtractor, facts_in, facts_of
from semmem.extraction.work import InThread
from semmem.memory import Scope, Turn, Vector
from semmem.ports.errors import EmbedderError, WorkTooSlow
from semmem.ports.events import Event, TurnsUnread
from semmem.ports.learning import Batch, Extracted
from semmem.text.quoting import is_quoted, unquoted
from tests.support.examples import examples

T = TypeVar("T")


def contents(text: str) -> list[str]:
    return [fact.content for fact in facts_in(text)]


def batch_of(*turns: Turn, context: tuple[Turn, ...] = ()) -> Batch:
    return Batch(
        id="b1", scope=Scope("u"), turns=turns, context=context, trigger="size", attempt=1, facts=None, applied=0
    )


def turn_of(text: str, ordinal: int = 0, answer: str | None = None) -> Turn:
    return Turn(id=f"t{ordinal}", scope=Scope("u"), ordinal=ordinal, user_text=text, opened_at=1.0, answer=answer)


class Counting:
    """An embedder that claims to be the one the classifier was trained with, and notes what it was given."""

    dimension = 384

    def __init__(self, signature: str = SIGNATURES[0], *, fails: bool = False) -> None:
        self.signature = signature
        self.texts: list[str] = []
        self._fails = fails

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        self.texts.append(text)
        if self._fails:
            raise EmbedderError("no vector")
        return np.zeros(384, dtype=np.float32)

    def at_hand(self, text: str) -> Vector | None:
        return None


# --- the wording -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("I'm allergic to peanuts.", "User is allergic to peanuts"),
        ("My budget for the Hawaii trip is $10,000", "User's budget for the Hawaii trip is $10,000"),
        ("I don't like cilantro", "User does not like cilantro"),
        ("I no longer eat meat at home", "User no longer eats meat at home"),
        ("I moved to Porto last May.", "User moved to Porto last May"),
        ("my sister Emma lives in Oslo", "User's sister Emma lives in Oslo"),
        ("I’ve got two cats at home", "User has got two cats at home"),
        ("I carry my own cup to the office", "User carries their own cup to the office"),
        ("My dog sleeps on my bed", "User's dog sleeps on User's bed"),
        ("I cannot stand olives on a pizza", "User cannot stand olives on a pizza"),
    ],
)
def test_a_plain_statement_is_said_of_the_user_or_kept_as_it_was_written(said: str, kept: str) -> None:
    assert phrased(said) == kept


@pytest.mark.parametrize(
    "said",
    [
        "Ich heiße Klaus und ich wohne in Bern.",
        "Mi hermana vive en Lima.",
        "I miei figli studiano a Roma.",
        "我对花生过敏。",
        "I told him that he lives in my flat",
        "I live in Ghent and work at a school",
        "I put salt on my porridge",
        "We're moving to Cork in May",
        "no nuts please, my son swells up",
        "I'd rather walk to the office",
    ],
)
def test_what_cannot_be_said_of_the_user_word_by_word_is_quoted(said: str) -> None:
    assert phrased(said) == f'"{said}"'


@pytest.mark.parametrize("verb", ["like", "eat", "drink", "wear", "speak", "own"])
@pytest.mark.parametrize("no", ["don't", "do not", "dont", "never", "no longer"])
def test_a_negation_is_never_lost(verb: str, no: str) -> None:
    assert any(word in phrased(f"I {no} {verb} the mushrooms") for word in ("does not", "never", "no longer"))


@pytest.mark.parametrize(
    ("verb", "form"), [("am", "is"), ("have", "has"), ("do", "does"), ("carry", "carries"), ("play", "plays"),
                       ("watch", "watches"), ("go", "goes"), ("fix", "fixes")],
)  # fmt: skip
def test_verbs_agree_with_the_user(verb: str, form: str) -> None:
    assert third_singular(verb) == form


# --- what is kept, and how -------------------------------------------------------------------------------------------


def test_the_statement_is_kept_and_the_question_beside_it_is_not() -> None:
    assert contents("Which crib should we buy? My son Emil was born on 3 March 2026.") == [
        "User's son Emil was born on 3 March 2026"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "what is my budget",
        "Hello!",
    ],
)
def test_nothing_is_learnt(text: str) -> None:
    assert contents(text) == []


def test_what_a_fact_is_for_says_how_much_it_matters() -> None:
    weights = {fact.standing: fact.importance for fact in facts_in("I live in Rome. I moved to Oslo last May.")}
    assert all(importance > 0.5 for standing, importance in weights.items() if standing)


# --- hostile and long input ------------------------------------------------------------------------------------------

FRAGMENTS = st.sampled_from(
    """I i my me we our am was have 've don't not to and , . ? ! : ; " ' ` ``` ( ) < > <a> [INST] live in love is so but
    because who my sister Emma as a vegetarian remember that \n \t \ufffc 我 不 ich bin je suis soy 10% @ = {""".split(
        " "
    )
)
HOSTILE = st.one_of(st.text(max_size=400), st.lists(FRAGMENTS, max_size=60).map(" ".join))


@settings(max_examples=examples(300), deadline=None)
@given(HOSTILE)
def test_any_text_is_read_without_failing_and_what_is_quoted_stands_in_it(text: str) -> None:
    plain = " ".join(text.split()).replace('"', "'")
    for fact in facts_in(text):
        assert 3 <= len(fact.content) <= 200
        assert not is_quoted(fact.content) or unquoted(fact.content) in plain


def test_text_beyond_the_cap_is_not_read() -> None:
    assert contents("x" * 20_000 + ". I live in Rome.") == []
    assert [fact.content for fact in facts_in("I live in Rome. I hate fish.", chars_max=16)] == ["User lives in Rome"]


# --- the extractor ---------------------------------------------------------------------------------------------------


async def test_only_the_users_own_text_of_the_batchs_turns_is_read() -> None:
    batch = batch_of(
        turn_of("I live in Rome.", 1, answer="You live in Rome. I like jazz."),
        turn_of("thanks!", 2, answer="I am a model."),
        context=(turn_of("I own a boat.", 0),),
    )
    facts = (await RulesExtractor().extract(batch)).facts
    assert [(fact.content, fact.turn_id) for fact in facts] == [("User lives in Rome", "t1")]


async def test_a_fact_carries_the_time_it_names_as_of_the_day_it_was_said() -> None:
    said_at = datetime(2026, 11, 22, tzinfo=UTC).timestamp()
    turn = structs.replace(turn_of("I moved to Seattle last May. I live in Rome."), opened_at=said_at)
    facts = (await RulesExtractor().extract(batch_of(turn))).facts
    assert [fact.occurred_at for fact in facts] == [datetime(2026, 5, 1, tzinfo=UTC).timestamp(), None]


async def test_no_more_facts_than_allowed_come_from_one_batch() -> None:
    batch = batch_of(*(turn_of(f"I live in Rome {n}. My cat is {n} years old.", n) for n in range(20)))
    assert len((await RulesExtractor().extract(batch)).facts) == 20
    some = await RulesExtractor(facts_per_batch=3).extract(batch)
    assert (len(some.facts), some.partly) == (3, True)


@pytest.mark.parametrize(("name", "is_mixed"), [("DOUBTED_MIN", False), ("MIXED_MIN", True)])
async def test_beside_others_it_takes_more_to_be_kept(
    monkeypatch: pytest.MonkeyPatch, name: str, is_mixed: bool
) -> None:
    batch = batch_of(turn_of("My name is Tomas."))
    ids = frozenset({"t0"})
    beside = replace(batch, doubted=ids, mixed=ids if is_mixed else frozenset())
    assert (await RulesExtractor().extract(beside)).facts == (await RulesExtractor().extract(batch)).facts != []
    monkeypatch.setattr(rules, name, 1.1)
    assert (await RulesExtractor().extract(beside)).facts == []
    assert (await RulesExtractor().extract(batch)).facts != []


async def test_a_repeated_statement_is_one_fact_of_its_turn() -> None:
    facts = (await RulesExtractor().extract(batch_of(turn_of("I live in Rome. I live in Rome.")))).facts
    assert [fact.content for fact in facts] == ["User lives in Rome"]


async def test_every_clause_is_embedded_once_and_a_long_message_no_more_than_allowed() -> None:
    embedder = Counting()
    await RulesExtractor(embedder).extract(batch_of(turn_of("I live in Rome. I hate fish.")))
    assert embedder.texts == ["I live in Rome.", "I hate fish."]
    embedder.texts.clear()
    await RulesExtractor(embedder).extract(batch_of(turn_of("My cat is old. " * 500)))
    assert len(embedder.texts) == CLAUSES_PER_TURN_MAX


async def test_what_is_beyond_the_batchs_share_of_vectors_is_judged_by_its_form() -> None:
    embedder = Counting()
    turns = [turn_of(f"My cat is {n} years old. " * CLAUSES_PER_TURN_MAX, n) for n in range(8)]
    facts = (await RulesExtractor(embedder).extract(batch_of(*turns))).facts
    assert len(embedder.texts) == CLAUSES_PER_BATCH_MAX
    assert facts[-1].turn_id == "t7"


class Choosing(InThread):
    """Reads, and takes too long to choose."""

    async def run(self, work: Callable[..., T], *args: Any, budget_s: float) -> T:
        if work is facts_of:
            raise WorkTooSlow
        return await super().run(work, *args, budget_s=budget_s)


async def test_a_turn_whose_clauses_take_too_long_to_be_judged_is_given_up() -> None:
    unread: list[Event] = []
    extractor = RulesExtractor(work=Choosing(), announce=unread.append)
    for _ in range(2):
        assert await extractor.extract(batch_of(turn_of("I live in Rome."))) == Extracted([], partly=True)
    assert unread == [TurnsUnread("b1", "too_slow", 1)] * 2


@pytest.mark.parametrize("embedder", [Counting("another/model/384"), Counting(fails=True), None])
async def test_without_the_vectors_it_was_trained_on_the_form_decides(embedder: Counting | None) -> None:
    extractor = RulesExtractor(embedder)
    assert extractor.is_calibrated == (embedder is not None and embedder.signature == SIGNATURES[0])
    found = await extractor.extract(batch_of(turn_of("I live in Rome.")))
    assert [fact.content for fact in found.facts] == ["User lives in Rome"]
    assert found.partly == extractor.is_calibrated, "its vectors did not come, and may later"
