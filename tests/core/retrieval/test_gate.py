"""The gate on a question's vector: its words, its guards, and whose vectors it believes."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from semmem.backends.in_process import InProcessStore
from semmem.config import Settings
from semmem.memory import Conversation, Scope, Vector
from semmem.ports.events import Event, Searched
from semmem.request.outcome import Outcome
from semmem.request.question import Question
from semmem.request.verdicts import Verdicts
from semmem.retrieval.decide import gate
from semmem.retrieval.recall import Recall, RecallRules
from semmem.wiring.request import vector_gate
from tests.core.retrieval.talk import NOW, asked
from tests.support.fakes import HashEmbedder, hot

SURE = dict.fromkeys(gate.CUTS, 0.9)


def test_probabilities_are_four_and_sum_to_one_also_for_extreme_vectors() -> None:
    for scale in (0.0, 1.0, 1e4):
        found = gate.classify(np.full(384, scale, dtype=np.float32))
        assert len(found) == len(gate.CLASSES) == 4
        assert sum(found) == pytest.approx(1.0)
        assert all(0 <= probability <= 1 for probability in found)


@pytest.mark.parametrize(
    ("text", "suspicion"),
    [
        ("What is the tallest tower in Dubai?", "general"),
        ("Who was the wife of the president?", "general_guarded"),
        ("世界上最高的山是什么？", None),
        ("Where would you find the deepest lake?", "general_sure"),
        ("who sang let me love you", "general_sure"),
        ("Which US river is longest?", "general"),
        ("TELL US WHICH RIVER IS LONGEST", None),
        ("who sang at our wedding", None),
        ("Which lake is deepest for my trip?", None),
        ("What did the dentist say?", None),
        ("Which of the films mentioned earlier is the longest?", None),
        ("What did you say about the deepest lake when I asked?", None),
        ("lake " * 101, None),
    ],
)
def test_the_more_a_question_may_be_the_users_own_the_surer_the_vector_has_to_be(
    text: str, suspicion: str | None
) -> None:
    assert gate.suspicion(text) == suspicion


def test_a_cut_is_the_least_probability_that_skips() -> None:
    assert gate.decision("What is a lake?", 0.0, 0.9, SURE) == "general_fact"
    assert gate.decision("What is a lake?", 0.0, 0.89, SURE) == "search"
    assert gate.decision("ahoy hoy", 0.9, 0.0, SURE) == "greeting"
    assert gate.decision("ahoy hoy", 0.89, 0.0, SURE) == "search"


def test_a_suspicion_needs_its_own_cut() -> None:
    cuts = SURE | {"general": 0.4, "general_guarded": 0.6}
    assert gate.decision("What is a lake?", 0.0, 0.5, cuts) == "general_fact"
    assert gate.decision("What is a house?", 0.0, 0.5, cuts) == "search"
    assert gate.decision("Where would you find a lake?", 0.0, 0.8, cuts) == "search"


@pytest.mark.parametrize("text", ["hey, who is it", "hello my dog", "hi, where did i park", "hey " * 200])
def test_no_courtesy_asks_of_somebody(text: str) -> None:
    assert gate.decision(text, 1.0, 0.0, SURE) == "search"


def test_rules_alone_have_no_gate() -> None:
    rules = Settings.model_validate({"signals": {"engine": "rules"}})
    assert vector_gate(rules, gate.SIGNATURE) is None
    assert vector_gate(Settings(), gate.SIGNATURE) is gate.gate


def test_another_models_vectors_are_not_judged_and_the_log_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert vector_gate(Settings(), "sentence-transformers/another/384/fp32") is None
    [record] = caplog.records
    assert "sentence-transformers/another/384/fp32" in record.getMessage()


# --- in the search ---------------------------------------------------------------------------------------------------


class Judge:
    """Remembers what it was asked, and always says the same."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.asked: list[str] = []

    def __call__(self, text: str, vector: Vector) -> str:
        assert vector.shape == (384,)
        self.asked.append(text)
        return self.word


class Desk:
    """A search with a judge before an open, empty store."""

    def __init__(self, word: str) -> None:
        self.judge = Judge(word)
        self.announced: list[Event] = []
        self.store = InProcessStore()

    @property
    def searches(self) -> list[str]:
        return [event.status for event in self.announced if isinstance(event, Searched)]

    async def search(self, conversation: Conversation, fact: bool | None = None) -> Outcome:
        await self.store.open()
        recall = Recall(
            hot(self.store),
            HashEmbedder(),
            RecallRules(),
            gate=self.judge,
            announce=self.announced.append,
        )
        question = Question(conversation, Scope("ada"), NOW, verdicts=Verdicts(fact=fact))
        return (await recall.search(question)).outcome


@pytest.mark.parametrize("word", ["greeting", "general_fact"])
async def test_a_skipped_question_is_not_searched_for(word: str) -> None:
    desk = Desk(word)
    assert await desk.search(asked("Which metal did the Romans call plumbum?")) == word
    assert desk.searches == []


async def test_a_question_that_is_not_skipped_is_searched_for() -> None:
    desk = Desk("search")
    assert await desk.search(asked("Which metal did the Romans call plumbum?")) is Outcome.NO_HITS
    assert desk.searches == ["miss"]


async def test_a_vague_question_is_not_judged_since_its_vector_is_of_more_than_it_says() -> None:
    desk = Desk("general_fact")
    assert await desk.search(asked("We are planning a trip to Hawaii", "How much?")) is Outcome.NO_HITS
    assert (desk.judge.asked, desk.searches) == ([], ["miss"])


async def test_an_earlier_filters_no_overrules_the_vector() -> None:
    desk = Desk("general_fact")
    assert await desk.search(asked("Which metal is it?"), fact=False) is Outcome.NO_HITS
    assert await desk.search(asked("Which metal is it?"), fact=None) == "general_fact"
    assert await Desk("greeting").search(asked("Which metal is it?"), fact=False) == "greeting"


@pytest.mark.parametrize(
    "text", ["会议几点开始？", "Где работает Анна?", "안나는 어디서 일해?", "¿Dónde vivo?", "Wann kommt Anna?"]
)
def test_a_question_in_another_language_is_no_courtesy(text: str) -> None:
    assert not gate.is_courteous(text)
    assert gate.decision(text, 1.0, 0.0, gate.CUTS) == gate.SEARCH
