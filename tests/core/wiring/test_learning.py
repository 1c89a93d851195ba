"""Learning as a configuration wires it, with a language model behind real HTTP: turns in, memories out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.backends.sql.journal import SqlJournal
from semmem.background import Tasks
from semmem.config import Settings
from semmem.extraction.result import BatchResult
from semmem.memory import UNSETTLED, Memory, MemoryStatus, MemoryType, Scope, Source, Turn, TurnEnding
from semmem.ports.learning import BatchRules
from semmem.ports.recording import TurnClosed
from semmem.telemetry.metrics import Metrics
from semmem.wiring.backends import Backends, hot_memories
from semmem.wiring.learning import learning
from semmem.wiring.models import ModelClients
from tests.support.configuration import loaded
from tests.support.empty_journal import empty_journal
from tests.support.fakes import HashEmbedder
from tests.support.scripted_llm import Body, Reply, ScriptedLLM

ALICE = Scope("alice", session="s-1")
RULES = BatchRules(size=1, answer_wait_s=0.0, lease_s=600.0)
NOW = 1_790_000_000.0


class World:
    """What one user says, learnt from by the parts of a configuration."""

    def __init__(self, settings: Settings, journal: SqlJournal, store: InProcessStore, tasks: Tasks) -> None:
        memories = hot_memories(settings, store, tasks.spawn, asyncio.to_thread)
        backends = Backends(memories, HashEmbedder(), journal, ModelClients(Metrics()).of(settings)[0])
        self.learning = learning(settings, backends)
        self.models = backends.models
        self.journal = journal
        self.store = store
        self._said = 0

    async def learn(self, *texts: str, ends: bool = False, model: str = "") -> BatchResult:
        for text in texts:
            self._said += 1
            turn = Turn(f"t-{self._said}", ALICE, self._said, text, NOW + self._said, model=model)
            await self.journal.record([turn], [TurnClosed(turn.id, TurnEnding.ANSWERED, turn.opened_at, "Fine.")])
        if ends:
            await self.journal.end_session("alice", "s-1", now=NOW + self._said)
        batch = await self.journal.claim(RULES, now=NOW + self._said)
        assert batch is not None
        return await self.learning.learn(batch)

    async def found(self) -> dict[str, tuple[int, str]]:
        memories = await self.store.list(Scope("alice"))
        return {memory.content: (memory.version, memory.status.value) for memory in memories}


@asynccontextmanager
async def world(folder: Path, llm: ScriptedLLM, **extraction: Any) -> AsyncIterator[World]:
    model = {"model_role": "memory_extraction", "llm_endpoint": {"url": llm.base_url}, "llm_model_name": "tiny"}
    config = {"memory": {"extraction": {"engine": "llm", **extraction}}, "external_models": [model]}
    journal, store = SqlJournal(empty_journal(folder / "journal.db")), InProcessStore()
    await journal.open()
    await store.open()
    tasks = Tasks()
    made = World(loaded(folder, json.dumps(config)), journal, store, tasks)
    yield made
    await tasks.cancel()
    for model_client in made.models.values():
        await model_client.close()
    await journal.close()
    await store.close()


def facts(*contents: str, **more: object) -> str:
    items = [{"turn": 1, "type": "semantic", "content": content, **more} for content in contents]
    return json.dumps({"facts": items})


def asks_for(word: str, body: Body) -> bool:
    return f'"{word}"' in body["messages"][0]["content"]


async def test_custom_instructions_and_categories_reach_the_model_and_count(tmp_path: Path) -> None:
    answer = json.dumps(
        {
            "facts": [
                {"turn": 1, "type": "semantic", "content": "User is allergic to nuts", "category": "health"},
                {"turn": 1, "type": "semantic", "content": "User rows in Toruń", "category": "other"},
            ]
        }
    )
    async with ScriptedLLM(answer) as llm:
        adding = {"custom_instructions": "Write in plain words.", "categories": ["health", "diet"]}
        async with world(tmp_path, llm, **adding) as alice:
            result = await alice.learn("I am allergic to nuts and I row in Toruń")
            assert result.stored == {"semantic": 1}
            assert list(await alice.found()) == ["User is allergic to nuts"]
        [request] = llm.requests
        assert "Write in plain words." in request["messages"][0]["content"]
        assert '"health", "diet"' in request["messages"][0]["content"]
        assert '["health", "diet", "other"]' in json.dumps(request["response_format"])


@pytest.mark.parametrize(
    ("verdict", "found"),
    [
        (
            {"replaces": [1], "repeats": []},
            {"User drives a red van": (2, "superseded"), "User drives a bus": (1, "active")},
        ),
        (  # which loses the bus, so the model is not believed
            {"replaces": [], "repeats": [1]},
            {"User drives a red van": (1, "active"), "User drives a bus": (1, "active")},
        ),
        ({"replaces": [], "repeats": []}, {"User drives a red van": (1, "active"), "User drives a bus": (1, "active")}),
    ],
    ids=["replaces", "repeats", "neither"],
)
async def test_the_model_judges_what_a_new_fact_is_to_an_old_one(
    tmp_path: Path, verdict: dict[str, list[int]], found: dict[str, tuple[int, str]]
) -> None:
    script = [facts("User drives a red van"), facts("User drives a bus"), json.dumps(verdict)]
    async with ScriptedLLM(*script) as llm, world(tmp_path, llm) as alice:
        await alice.learn("I drive a red van")
        await alice.learn("I drive a bus")
        assert await alice.found() == found
        assert [asks_for("replaces", request) for request in llm.requests] == [False, False, True]


def by_what_is_asked(body: Body) -> str:
    if asks_for("summary", body):
        return json.dumps({"summary": "User drives a bus."})
    if asks_for("replaces", body):
        return json.dumps({"replaces": [1], "repeats": []})
    return facts("User drives a bus" if "a bus" in body["messages"][1]["content"] else "User drives a red van")


@pytest.mark.parametrize(
    ("setting", "asked"),
    [("upstream", ["tiny", "large", "large", "large"]), ("configured", ["tiny", "tiny", "tiny", "tiny"])],
)
async def test_whoever_learns_upstream_asks_the_model_that_the_turns_went_to(
    tmp_path: Path, setting: str, asked: list[str]
) -> None:
    async with ScriptedLLM(by_what_is_asked) as llm, world(tmp_path, llm, model=setting) as alice:
        await alice.learn("I drive a red van")  # no model is known of this turn
        await alice.learn("I drive a bus", ends=True, model="large")
        assert (await alice.found())["User drives a bus"] == (1, "active")
        assert [request["model"] for request in llm.requests] == asked
        questions = [[word for word in ("facts", "summary", "replaces") if asks_for(word, r)] for r in llm.requests]
        assert questions == [["facts"], ["facts"], ["summary"], ["replaces"]]


async def test_pairs_that_nobody_has_settled_are_asked_about_in_the_same_call(tmp_path: Path) -> None:
    def judging(body: Body) -> str:
        if not asks_for("replaces", body):
            return facts("User drives a bus" if "a bus" in body["messages"][1]["content"] else "User drives a red van")
        lines = body["messages"][1]["content"].split("\n")[1:-1]
        pairs = {(pair["old"], pair["new"]): pair["pair"] for pair in map(json.loads, lines)}
        assert len(pairs) == 2
        return json.dumps({"replaces": [pairs["User lives in Boston", "User moved to Seattle"]], "repeats": []})

    async with ScriptedLLM(judging) as llm, world(tmp_path, llm) as alice:
        for name, content, other in (("b", "User lives in Boston", "s"), ("s", "User moved to Seattle", "b")):
            vector = await HashEmbedder().embed(content)
            source = Source(time=NOW - (name == "b"))
            marked = Memory(name, 1, MemoryType.SEMANTIC, content, "alice", source=source, embedding=vector)
            await alice.store.put(Scope("alice"), replace(marked, metadata={UNSETTLED: [other]}))
        await alice.learn("I drive a red van")
        assert len(llm.requests) == 1  # without a doubt of its own a batch costs no call
        result = await alice.learn("I drive a bus")
        assert len(llm.requests) == 3
        found = await alice.found()
        assert (found["User lives in Boston"], found["User moved to Seattle"]) == ((2, "superseded"), (2, "active"))
        assert [(gone.reason, gone.id, gone.by) for gone in result.removals] == [("contradicted", "b", "s")]
        assert result.pairs == {"contradicted": 1}


async def test_three_new_values_are_three_versions(tmp_path: Path) -> None:
    budget = "User's budget for the big summer family vacation in Hawaii next year is {} dollars"
    amounts = ("10000", "15000", "12000", "9000")
    script: list[str] = []
    for amount in amounts:
        script += [facts(budget.format(amount)), '{"replaces": [1], "repeats": []}']
    del script[1]
    async with ScriptedLLM(*script) as llm, world(tmp_path, llm) as alice:
        for amount in amounts:
            await alice.learn(budget.format(amount).replace("User's", "My"))
        assert await alice.found() == {budget.format("9000"): (4, "active")}
        [memory] = await alice.store.list(Scope("alice"))
        earlier = await alice.journal.versions(Scope("alice"), memory.id)
        assert [old.content for old in earlier] == [budget.format(amount) for amount in amounts[:3]]


async def test_without_the_check_by_the_model_the_rules_judge(tmp_path: Path) -> None:
    script: list[str | Reply] = [
        facts("User's rent is 500 euros"),
        facts("User's rent is 700 euros"),
        Reply(status=500),
    ]
    async with ScriptedLLM(*script) as llm, world(tmp_path, llm, contradiction_check=False) as alice:
        await alice.learn("My rent is 500 euros")
        await alice.learn("My rent is 700 euros")
        assert (await alice.found())["User's rent is 500 euros"] == (2, MemoryStatus.SUPERSEDED)
        assert len(llm.requests) == 2


async def test_a_session_that_ends_twice_has_one_summary_in_two_versions(tmp_path: Path) -> None:
    def answer(body: Body) -> str:
        if not asks_for("summary", body):
            return facts()
        later = "Gdańsk" in body["messages"][1]["content"]
        return json.dumps({"summary": "User rents 2 kayaks in Toruń" + (" and sails from Gdańsk." if later else ".")})

    async with ScriptedLLM(answer) as llm, world(tmp_path, llm) as alice:
        await alice.learn("I want to rent 2 kayaks", "In Toruń, please", ends=True)
        [summary] = await alice.store.list(Scope("alice"))
        assert (summary.type, summary.content) == (MemoryType.EPISODIC, "User rents 2 kayaks in Toruń.")
        assert summary.occurred_at == NOW + 1
        await alice.learn("Then I sail from Gdańsk", ends=True)
        assert await alice.found() == {"User rents 2 kayaks in Toruń and sails from Gdańsk.": (2, "active")}


@pytest.mark.parametrize("extraction", [{"episodic_summary": False}, {"engine": "rules"}])
async def test_no_summary_where_none_is_wanted(tmp_path: Path, extraction: dict[str, Any]) -> None:
    async with ScriptedLLM(facts()) as llm, world(tmp_path, llm, **extraction) as alice:
        await alice.learn("We went to the market", "It was a fine day", ends=True)
        assert not any(asks_for("summary", request) for request in llm.requests)
