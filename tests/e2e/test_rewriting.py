"""A question rewritten by a model that takes longer than Envoy's own patience, through a real Envoy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.test_llm_learning import in_a_thread
from tests.support.harness import House, StandInModel, eventually, house
from tests.support.scripted_llm import Body, Reply, ScriptedLLM

BUDGET = "User's budget for the family trip to Hawaii in June is $10,000"
QUESTION = "What is my budget for the family trip to Hawaii?"
THINKS_S = 0.9


def rewriting(body: Body) -> Reply:
    """Slower than message_timeout (0.5 s); about the moon it never answers."""
    if "moon" in str(body["messages"]):
        return Reply(hang=True)
    return Reply(QUESTION, slow_s=THINKS_S)


@pytest.fixture(scope="module")
def llm() -> Iterator[ScriptedLLM]:
    with in_a_thread(ScriptedLLM(rewriting)) as running:
        yield running


@pytest.fixture(scope="module")
def study(model: StandInModel, llm: ScriptedLLM, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    override = {
        "memory": {"query": {"mode": "rewrite"}},
        "deadlines": {"rewrite_ms": 1400, "max_message_timeout_ms": 2000},
        "external_models": [
            {"model_role": "memory_rewrite", "llm_endpoint": {"url": llm.base_url}, "llm_model_name": "scripted"}
        ],
    }
    with house(tmp_path_factory.mktemp("study"), model, override, as_shipped=True) as running:
        yield running


def follow_up(topic: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": topic}, {"role": "assistant", "content": "Nice."}]


def test_envoy_waits_for_a_model_that_takes_longer_than_its_message_timeout(
    study: House, llm: ScriptedLLM, alice: str
) -> None:
    study.semmem.remember(alice, BUDGET)
    timeouts = study.envoy.stat("http.llm.ext_proc.semmem_mutate.message_timeouts")
    reply = study.chat(alice, "How much?", messages=follow_up("We talked of the family trip"))
    assert reply.outcome == "injected"
    assert BUDGET in str(reply.messages)
    assert reply.seconds >= THINKS_S
    assert llm.requests[-1]["max_tokens"] == 100
    assert study.semmem.metric("semmem_query_rewrites_total", result="written") == 1
    assert study.envoy.stat("http.llm.ext_proc.semmem_mutate.message_timeouts") == timeouts


def test_a_model_that_never_answers_costs_its_deadline_and_nothing_else(study: House, alice: str) -> None:
    study.semmem.remember(alice, "User's budget for the moon is $3")
    reply = study.chat(alice, "How much?", messages=follow_up("The moon budget"))
    assert reply.status == 200
    assert reply.outcome == "injected"
    eventually(
        lambda: (
            sum(study.semmem.metric("semmem_query_rewrites_total", result=word) for word in ("late", "failed")) == 1
        ),
        within_s=60,
        what="the late rewrite is counted",
    )


def test_a_clear_question_does_not_wait(study: House, llm: ScriptedLLM, alice: str) -> None:
    study.semmem.remember(alice, BUDGET)
    asked = len(llm.requests)
    assert study.chat(alice, QUESTION).outcome == "injected"
    assert len(llm.requests) == asked
