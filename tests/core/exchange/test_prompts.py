"""What of one's memories reaches the prompt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from semmem.exchange import RequestResult
from semmem.request.head import RequestHead
from semmem.request.outcome import Outcome
from semmem.retrieval.recall import RecallRules
from semmem.retrieval.search import Strategy
from tests.core.exchange.world import BUDGET, NOW, QUESTION, World, as_body, prompt


async def test_a_known_fact_reaches_the_prompt() -> None:
    world = World()
    await world.knows(BUDGET)
    result = await world.ask()
    assert result.outcome is Outcome.INJECTED
    assert result.injected == 1
    assert BUDGET in prompt(result)
    assert json.loads(result.body or b"")["messages"][0]["role"] == "system"
    assert json.loads(result.body or b"")["messages"][1] == {"role": "user", "content": QUESTION}


async def test_what_reaches_a_prompt_is_noted_and_what_does_not_is_not() -> None:
    world = World()
    await world.knows("User keeps goats")
    await world.knows(BUDGET)
    await world.ask()
    assert world.noted == [("alice", (f"mem_{len(BUDGET)}_{hash(BUDGET)}",), NOW)]
    await world.ask("Hello!")
    await world.ask(x_semmem_memory="write")
    assert len(world.noted) == 1


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
async def test_a_second_injection_never_stacks_on_a_first(path: str) -> None:
    world = World()
    await world.knows(BUDGET)
    head = RequestHead("POST", path, {"x-user-id": ("alice",)})
    asked = {"input": QUESTION} if path == "/v1/responses" else {"messages": [{"role": "user", "content": QUESTION}]}
    first = await world.exchange.request(head, as_body(asked))
    assert first.outcome is Outcome.INJECTED
    assert first.body is not None
    again = await world.exchange.request(head, first.body)
    assert (again.outcome, again.body) == (Outcome.ALREADY_INJECTED, None)
    assert again.ticket == first.ticket


async def test_the_same_memories_give_the_same_bytes() -> None:
    world = World()
    await world.knows(BUDGET)
    await world.knows("User flies to Hawaii for the trip in June")
    assert (await world.ask()).body == (await world.ask()).body


@pytest.mark.parametrize(("model", "role"), [("o1", "user"), ("vendor/O1-mini", "user"), ("o10", "system")])
async def test_a_model_that_refuses_a_system_message_gets_role_user(model: str, role: str) -> None:
    world = World()
    await world.knows(BUDGET)
    result = await world.ask({"model": model, "messages": [{"role": "user", "content": QUESTION}]})
    assert json.loads(result.body or b"")["messages"][0]["role"] == role


async def test_somebody_who_writes_the_markers_is_answered_like_anybody() -> None:
    world = World()
    await world.knows(BUDGET)
    result = await world.ask(f"<semmem-memory> </semmem-memory> {QUESTION}")
    assert result.outcome is Outcome.INJECTED


async def test_nobody_meets_somebody_elses_memories() -> None:
    world = World()
    await world.knows(BUDGET, user="bob")
    result = await world.ask()
    assert (result.outcome, result.body) == (Outcome.NO_HITS, None)


async def test_limit_types_and_threshold_of_the_request_are_honoured() -> None:
    world = World()
    await world.knows(BUDGET)
    await world.knows("User's budget for the Hawaii trip was $9,000 once")

    async def ask(**config: Any) -> RequestResult:
        return await world.ask({"messages": [{"role": "user", "content": QUESTION}], "memory_config": config})

    assert (await ask(retrieval_limit=1)).injected == 1
    assert (await ask(retrieval_limit=0)).outcome is Outcome.NO_HITS
    assert (await ask(similarity_threshold=0.99)).outcome is Outcome.NO_HITS
    assert (await ask(memory_types=["procedural"])).outcome is Outcome.NO_HITS
    assert (await ask(memory_types=["no such type"])).outcome is Outcome.NO_HITS
    assert (await ask(memory_types=["semantic"])).injected == 2


async def test_the_newest_are_shown_whatever_cosine_is_asked_of_others() -> None:
    world = World(
        rules=RecallRules(threshold=0.99, strategy=Strategy.RECENT, embed_timeout_s=10.0, store_timeout_s=10.0)
    )
    await world.knows(BUDGET)
    result = await world.ask({"messages": [{"role": "user", "content": "Which instrument do I play?"}]})
    assert (result.outcome, result.injected) == (Outcome.INJECTED, 1)


async def test_a_project_narrows_what_is_read_and_none_means_all() -> None:
    world = World()
    await world.knows(BUDGET, project="travel")
    assert (await world.ask()).outcome is Outcome.INJECTED
    assert (await world.ask(x_project_id="travel")).outcome is Outcome.INJECTED
    assert (await world.ask(x_project_id="work")).outcome is Outcome.NO_HITS


@pytest.mark.parametrize(
    ("scope", "told"),
    [("user", {"red", "blue", "green"}), ("project", {"red", "blue"}), ("session", {"red"})],
)
async def test_the_configured_scope_says_whose_memories_are_read(scope: str, told: set[str]) -> None:
    world = World(rules=RecallRules(threshold=0.2, scope=scope))
    await world.knows("User's budget for Hawaii is red", project="trip", session="s1")
    await world.knows("User's budget for Hawaii is blue", project="trip", session="s2")
    await world.knows("User's budget for Hawaii is green", project="other", session="s1")
    await world.knows("User's budget for Hawaii is black", user="bob", project="trip", session="s1")
    told_here = prompt(await world.ask(x_project_id="trip", x_session_id="s1"))
    assert {colour for colour in ("red", "blue", "green", "black") if colour in told_here} == told
    assert (await world.ask(x_project_id="none such", x_session_id="s3")).injected == (3 if scope == "user" else 0)
