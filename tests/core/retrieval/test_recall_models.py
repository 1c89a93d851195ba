"""Recall with what is optional: a model that writes queries, a reranker, and a question that looks back at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from msgspec import structs

from semmem.backends.in_process import InProcessStore
from semmem.memory import (
    CHANGES_STANDING,
    Controls,
    Conversation,
    Memory,
    MemoryType,
    Message,
    Role,
    Scope,
    Source,
    Vector,
)
from semmem.ports.errors import EmbedderError, ModelUnavailable
from semmem.ports.events import Event, Searched
from semmem.request.outcome import Outcome
from semmem.request.question import Deadline, Question
from semmem.request.verdicts import Verdicts
from semmem.retrieval.decide.decision import Decision, RequestVerdict, Verdict
from semmem.retrieval.decide.features import RequestWords
from semmem.retrieval.index.memory_index import Mask, MemoryIndex, Scores
from semmem.retrieval.models import Mode, QueryWriter, Reranking
from semmem.retrieval.recall import Recall, RecallRules
from semmem.retrieval.search import Strategy
from tests.core.retrieval.talk import asked
from tests.core.retrieval.test_models import Ranking as ScriptedReranker
from tests.core.retrieval.test_models import Scripted as ScriptedModel
from tests.support.decisions import Decided
from tests.support.fakes import HashEmbedder, hot

ADA = Scope("ada")


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


NOW = at("2026-11-22T15:30")


class World:
    """Ada's memories, and a Recall over them."""

    def __init__(
        self,
        *,
        model: ScriptedModel | None = None,
        mode: Mode = "rewrite",
        reranker: ScriptedReranker | None = None,
        embedder: HashEmbedder | None = None,
        decided: str = "search",
        decision: Decision | None = None,
        rules: RecallRules = RecallRules(threshold=0.0, limit=1),
    ) -> None:
        self.store = InProcessStore()
        self.extra_s: list[float] = []
        self.announced: list[Event] = []
        self.recall = Recall(
            hot(self.store),
            embedder or HashEmbedder(),
            rules,
            decision=decision or Decided(decided),
            announce=self.announced.append,
            writer=QueryWriter(model, mode=mode, timeout_s=5.0) if model else None,
            reranking=Reranking(reranker, 3.0) if reranker else None,
        )

    async def knows(self, *contents: str, said: float = NOW - 60) -> None:
        await self.store.open()
        for content in contents:
            vector = await HashEmbedder().embed(content)
            memory = Memory(
                f"mem_{content}",
                1,
                MemoryType.SEMANTIC,
                content,
                "ada",
                created_at=said,
                updated_at=said,
                embedding=vector,
            )
            await self.store.put(ADA, memory)

    @property
    def searches(self) -> list[str]:
        return [event.status for event in self.announced if isinstance(event, Searched)]

    async def found(self, conversation: Conversation, *, fact: bool | None = None) -> list[str] | str:
        async def extend_deadline(extra_s: float) -> None:
            self.extra_s.append(extra_s)

        deadline = Deadline(ask_for_more=extend_deadline)
        recalled = await self.recall.search(
            Question(conversation, ADA, NOW, verdicts=Verdicts(fact=fact), deadline=deadline)
        )
        if recalled.outcome in (Outcome.GREETING, Outcome.GENERAL_FACT):
            return recalled.outcome
        return [hit.memory.content for hit in recalled.hits]


VAGUE = asked("kitchen paint", "How much?")


@pytest.mark.parametrize("mode", ["rewrite", "hyde"])
@pytest.mark.parametrize("word", ["greeting", "general_fact"])
async def test_no_model_is_asked_about_what_is_plainly_refused(mode: Mode, word: str) -> None:
    model = ScriptedModel("how big is the kitchen budget")
    world = World(model=model, mode=mode, decided=word)
    await world.knows("the kitchen budget is big")
    assert await world.found(VAGUE) == word
    assert (len(model.prompts), world.extra_s) == (0, [])
    await world.found(VAGUE, fact=False)  # an earlier filter knows better
    assert (len(model.prompts), world.extra_s) == (1, [5.0])


async def test_a_rewritten_question_is_what_is_searched_with() -> None:
    world = World(model=ScriptedModel("how big is the kitchen budget"))
    await world.knows("kitchen paint is green", "the kitchen budget is big")
    assert await world.found(VAGUE) == ["the kitchen budget is big"]
    assert world.extra_s == [5.0]


async def test_without_the_model_the_key_terms_are_searched_with() -> None:
    world = World(model=ScriptedModel(ModelUnavailable("down")))
    await world.knows("kitchen paint is green", "the kitchen budget is big")
    assert await world.found(VAGUE) == ["kitchen paint is green"]


async def test_a_guess_pulls_the_search_its_way() -> None:
    world = World(model=ScriptedModel("User cello in Ghent"), mode="hyde", rules=RecallRules(threshold=0.2, limit=5))
    await world.knows("cello lessons Ghent", "boat")
    assert await world.found(asked("my instrument")) == ["cello lessons Ghent"]


async def test_a_guess_does_not_make_a_general_question_the_users_own() -> None:
    world = World(model=ScriptedModel("User x"), mode="hyde", decided="general_fact")
    await world.knows("cello lessons")
    assert await world.found(asked("cello lessons")) == "general_fact"


async def test_a_clear_question_takes_no_extra_time() -> None:
    model = ScriptedModel("x")
    world = World(model=model)
    await world.knows("kitchen paint is green")
    assert await world.found(asked("Which kitchen paint is green?")) == ["kitchen paint is green"]
    assert (model.prompts, world.extra_s) == ([], [])


async def test_a_guess_that_cannot_be_embedded_leaves_the_question() -> None:
    class Once(HashEmbedder):
        async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
            if text.startswith("User"):
                raise EmbedderError("gone")
            return await super().embed(text)

    world = World(model=ScriptedModel("User cello"), mode="hyde", embedder=Once())
    await world.knows("kitchen paint is green")
    assert await world.found(asked("kitchen paint")) == ["kitchen paint is green"]


async def test_a_reranker_chooses_among_the_candidates() -> None:
    contents = ["kitchen paint is green", "kitchen paint is old", "kitchen"]
    reranker = ScriptedReranker({contents[0]: 0.1, contents[1]: 0.9, contents[2]: 0.5})
    world = World(reranker=reranker)
    await world.knows(*contents)
    assert await world.found(asked("Is kitchen paint green?")) == ["kitchen paint is old"]
    assert world.extra_s == [3.0]
    assert reranker.asked[0][0] == "Is kitchen paint green?"
    assert sorted(reranker.asked[0][1]) == sorted(contents)


async def test_a_reranker_that_fails_changes_nothing() -> None:
    world = World(reranker=ScriptedReranker(ModelUnavailable("down")))
    await world.knows("kitchen paint is green", "kitchen")
    assert await world.found(asked("Is the kitchen paint green?")) == ["kitchen paint is green"]


@pytest.mark.parametrize("strategy", [Strategy.HYBRID, Strategy.RECENT])
async def test_a_reranker_is_not_asked_where_it_decides_nothing(strategy: Strategy) -> None:
    reranker = ScriptedReranker({})
    limit = 2 if strategy is Strategy.HYBRID else 1
    world = World(reranker=reranker, rules=RecallRules(threshold=-1.0, limit=limit, strategy=strategy))
    await world.knows("kitchen paint is green", "kitchen")
    assert len(await world.found(asked("Which kitchen paint?"))) == limit
    assert reranker.asked == []


async def test_what_is_below_the_threshold_is_not_sent_to_a_reranker() -> None:
    reranker = ScriptedReranker({"kitchen paint is green": 0.0, "kitchen paint": 1.0})
    world = World(reranker=reranker, rules=RecallRules(threshold=0.3, limit=1))
    await world.knows("kitchen paint is green", "kitchen paint", "boats sail far away today")
    assert await world.found(asked("Which kitchen paint?")) == ["kitchen paint"]
    assert len(reranker.asked[0][1]) == 2


# --- time ------------------------------------------------------------------------------------------------------------

RULES = RecallRules(limit=5)


async def timed(**told: Sequence[str]) -> World:
    world = World(rules=RULES)
    for day, contents in told.items():
        await world.knows(*contents, said=at(day[1:].replace("_", "-")))
    return world


async def test_a_question_that_looks_back_sees_the_memories_of_that_time_first() -> None:
    world = await timed(d2026_05_20=["User went to Lisbon"], d2026_11_20=["User went to Oslo"])
    question = "Where did I go, the User went to which town in May?"
    assert await world.found(asked(question)) == ["User went to Lisbon", "User went to Oslo"]
    assert (await world.found(asked(question.replace("May", "November"))))[0] == "User went to Oslo"


async def test_where_only_the_time_fits_the_time_is_enough() -> None:
    world = await timed(d2026_05_20=["Lisbon was sunny"], d2026_11_20=["Oslo was cold"])
    assert await world.found(asked("What did I do last May?")) == ["Lisbon was sunny"]


async def test_of_that_time_only_what_fits_is_seen_where_something_does() -> None:
    world = await timed(
        d2026_11_10=["the budget for the roof is small", "boats sail"], d2026_05_20=["the budget is huge"]
    )
    found = await world.found(asked("What did we say last week about the budget for the roof?"))
    assert found[0] == "the budget for the roof is small"
    assert "boats sail" not in found


async def test_what_only_names_the_time_is_shown_where_nothing_else_fits() -> None:
    world = await timed(d2026_11_20=["Oslo by boat", "Bergen in May 2026"])
    assert await world.found(asked("What did I do last May?")) == ["Bergen in May 2026"]


async def test_without_a_memory_of_that_time_all_times_are_searched() -> None:
    world = await timed(d2026_11_20=["User went to Oslo"])
    assert await world.found(asked("What was it, User went to which town last May?")) == ["User went to Oslo"]


async def test_without_an_index_the_stores_hits_of_that_time_come_first() -> None:
    world = await timed(d2026_05_20=["User went to Lisbon"], d2026_11_20=["User went to Oslo"])

    async def never(_user: str, *, wait_s: float) -> None:
        await asyncio.sleep(0)

    world.recall.memories.index = never  # type: ignore[method-assign, assignment]
    question = Conversation(
        (Message(Role.USER, "Where was it that User went to last May?"),), controls=Controls(threshold=0.0)
    )
    assert await world.found(question) == ["User went to Lisbon", "User went to Oslo"]
    earlier = structs.replace(question, messages=(Message(Role.USER, "Where was it that User went to this month?"),))
    assert await world.found(earlier) == ["User went to Oslo", "User went to Lisbon"]


async def test_a_preview_takes_the_same_path() -> None:
    world = World(model=ScriptedModel("how big is the kitchen budget"), rules=RecallRules(threshold=0.0, limit=1))
    await world.knows("kitchen paint is green", "the kitchen budget is big")
    preview = await world.recall.preview(Question(VAGUE, ADA, NOW))
    assert preview.query == "how big is the kitchen budget"
    assert [one.hit.memory.content for one in preview.ranked if one.kept] == ["the kitchen budget is big"]


# --- standing memories, and who asks for himself ---------------------------------------------------------------------


class Standing(Decided):
    """Shows everything; memories with "must" in them stand, and a question with "who am I" lists the profile."""

    def verdict(
        self,
        text: str,
        vector: Vector,
        index: MemoryIndex,
        scores: Scores,
        members: Mask,
        *,
        wants: bool = False,
        said: RequestWords | None = None,
    ) -> Verdict:
        standing = np.array(["must" in memory.content for memory in index.memories], dtype=np.bool_)
        logits = np.arange(len(members), dtype=np.float32)
        return Verdict(members, standing, logits, RequestVerdict(1.0, True, "advice", False, "who am I" in text))


async def standing_world(*contents: str) -> World:
    world = World(rules=RecallRules(limit=1, standing_max=2, profile_max=3), decision=Standing())
    await world.knows(*contents)
    return world


async def test_the_limit_is_the_most_that_is_shown_standing_memories_included() -> None:
    world = await standing_world("tea", "must rest", "must walk", "must swim", "coffee")
    assert len(await world.found(asked("what now"))) == 1


async def test_a_limit_of_the_requests_own_is_taken() -> None:
    world = await standing_world("tea", "must rest", "must walk", "coffee")
    own = structs.replace(asked("what now"), controls=Controls(limit=2))
    assert len(await world.found(own)) == 2
    assert len(await world.found(structs.replace(asked("who am I"), controls=Controls(limit=2)))) == 2


async def test_a_question_about_the_user_as_a_person_lists_more() -> None:
    world = await standing_world("tea", "coffee", "boats", "cats", "kites")
    assert len(await world.found(asked("what now"))) == 1
    assert len(await world.found(asked("who am I"))) == 3


# --- a plain refusal -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [None, 0.0])
async def test_a_general_question_is_searched_for_and_shown_nothing(threshold: float | None) -> None:
    world = World(decided="general_fact", rules=RecallRules(threshold=threshold))
    await world.knows("which metal the romans called plumbum")
    assert await world.found(asked("Which metal did the Romans call plumbum?")) == "general_fact"
    assert world.searches == ["miss"]


async def test_an_earlier_filters_no_overrules_what_was_decided() -> None:
    world = World(decided="general_fact", rules=RecallRules())
    await world.knows("metal the Romans call plumbum")
    question = asked("Which metal did the Romans call plumbum?")
    assert await world.found(question, fact=False) == ["metal the Romans call plumbum"]
    assert await world.found(question, fact=None) == "general_fact"


@pytest.mark.parametrize(
    ("limit", "shown"),
    [(None, ["User eats meat again", "User paints kitchens"]), (1, ["User paints kitchens"])],
)
async def test_a_change_is_said_back_beside_what_is_asked_for_unless_the_request_sets_a_limit(
    limit: int | None, shown: list[str]
) -> None:
    world = World(rules=RecallRules(threshold=0.3, limit=1))
    await world.knows("User paints kitchens", "User eats meat again")
    [meat] = [each for each in await world.store.list(ADA, limit=5) if "meat" in each.content]
    vector = await HashEmbedder().embed(meat.content)
    source, flag = Source(time=NOW - 60), {CHANGES_STANDING: True}
    await world.store.put(ADA, replace(meat, version=2, metadata=flag, source=source, embedding=vector))
    question = structs.replace(asked("User paints kitchens, in which colours?"), controls=Controls(limit=limit))
    assert sorted(await world.found(question)) == shown
