"""What earlier filters say: where it is read, what counts as said, and who wins when two speak."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from semmem.exchange import RequestResult
from semmem.request.head import RequestHead
from semmem.request.outcome import Outcome
from semmem.request.verdicts import NO_SOURCES, VerdictRules, Verdicts, VerdictSource, verdicts
from tests.core.exchange.world import BUDGET, PATIENT, QUESTION, World, as_body

ROUTER, GUARD = "semantic.router", "guard"
RULES = VerdictRules(
    fact=VerdictSource("x-fact", (ROUTER, "signals", "fact")),
    tool=VerdictSource("x-tool", (ROUTER, "signals", "tool")),
    blocked=VerdictSource("x-blocked", (GUARD, "blocked")),
    pii=VerdictSource("x-pii", (GUARD, "pii")),
)
OWN_MEMBERS = {"messages": [{"role": "user", "content": QUESTION}], "memory_config": {"retrieval_limit": 3}}


def head(headers: dict[str, tuple[str, ...]] | None = None, metadata: dict[str, Any] | None = None) -> RequestHead:
    return RequestHead("POST", "/v1/chat/completions", {"x-user-id": ("alice",)} | (headers or {}), metadata or {})


def heard(headers: dict[str, tuple[str, ...]] | None = None, metadata: dict[str, Any] | None = None) -> Verdicts:
    return verdicts(RULES, head(headers, metadata))


SAID: list[tuple[Any, bool | None]] = [
    *((value, True) for value in (True, "true", " TRUE ", "1", "Yes", 1.0, 3.0)),
    *((value, False) for value in (False, "false", "0", "NO", 0.0)),
    *((value, None) for value in ("", "maybe", "2", "tru e", math.nan, {}, {"true": True}, None)),
]


@pytest.mark.parametrize(("value", "meaning"), SAID, ids=lambda value: repr(value))
def test_booleans_words_and_numbers_say_something_and_nothing_else_does(value: Any, meaning: bool | None) -> None:
    assert heard(metadata={ROUTER: {"signals": {"fact": value, "tool": value}}}) == Verdicts(meaning, meaning)
    assert heard(metadata={GUARD: {"blocked": value}}).blocked is (meaning is True)
    assert heard(metadata={GUARD: {"pii": value}}).pii is (meaning is True)
    if isinstance(value, str):
        assert heard({"x-fact": (value,), "x-tool": (value,)}) == Verdicts(meaning, meaning)


@pytest.mark.parametrize("metadata", [{}, {ROUTER: {}}, {ROUTER: {"signals": True}}, {"signals": {"fact": True}}])
def test_metadata_that_is_not_there_says_nothing(metadata: dict[str, Any]) -> None:
    assert heard(metadata=metadata) == Verdicts()


def test_what_no_key_names_is_not_read() -> None:
    sent: dict[str, tuple[str, ...]] = {"": ("true",), "x-fact": ("true",), "x-blocked": ("true",)}
    assert verdicts(NO_SOURCES, head(sent, {"": {"": True}, GUARD: {"blocked": True}})) == Verdicts()


@pytest.mark.parametrize("metadata", [True, False])
def test_metadata_is_believed_and_not_the_header_that_says_otherwise(metadata: bool) -> None:
    sent = ("false" if metadata else "true",)
    found = heard({"x-fact": sent, "x-tool": sent}, {ROUTER: {"signals": {"fact": metadata, "tool": metadata}}})
    assert (found.fact, found.tool) == (metadata, metadata)


def test_a_header_is_heard_where_metadata_says_nothing() -> None:
    assert heard({"x-fact": ("yes",)}, {ROUTER: {"signals": {"fact": "perhaps"}}}).fact is True


@pytest.mark.parametrize("name", ["blocked", "pii"])
def test_one_voice_is_enough_to_stop(name: str) -> None:
    for header, metadata in ((("true",), False), (("false",), True), (("false", "true"), False)):
        assert getattr(heard({f"x-{name}": header}, {GUARD: {name: metadata}}), name) is True
    assert getattr(heard({f"x-{name}": ("false",)}, {GUARD: {name: False}}), name) is False


def test_a_fact_or_tool_header_sent_twice_says_nothing() -> None:
    assert heard({"x-fact": ("true", "true"), "x-tool": ("false", "true")}) == Verdicts()


# --- in an exchange --------------------------------------------------------------------------------------------------


async def asked(body: dict[str, Any] = OWN_MEMBERS, **given: Any) -> tuple[World, RequestResult]:
    world = World(upstream=RULES, rules=PATIENT, phase_s=20.0)
    await world.knows(BUDGET)
    return world, await world.exchange.request(head(**given), as_body(body))


@pytest.mark.parametrize(
    "given",
    [{"headers": {"x-blocked": ("true",)}}, {"metadata": {GUARD: {"blocked": True}}}],
    ids=["header", "metadata"],
)
async def test_a_blocked_request_neither_reads_nor_stores(given: dict[str, Any]) -> None:
    world, result = await asked(**given)
    expected = as_body({"messages": OWN_MEMBERS["messages"]})
    assert result == RequestResult(Outcome.BLOCKED, expected)
    assert list(world.journal) == []


async def test_a_request_with_personal_data_neither_reads_nor_stores() -> None:
    world, result = await asked(metadata={GUARD: {"pii": 2.0, "blocked": False}})
    assert result == RequestResult(Outcome.PII, as_body({"messages": OWN_MEMBERS["messages"]}))
    assert list(world.journal) == []


async def test_blocked_is_said_before_personal_data_and_before_anonymous_but_not_before_opted_out() -> None:
    both = {GUARD: {"pii": True, "blocked": True}}
    assert (await asked(metadata=both))[1].outcome is Outcome.BLOCKED
    assert (await asked(metadata=both, headers={"x-user-id": ()}))[1].outcome is Outcome.BLOCKED
    off = {"x-semmem-memory": ("off",)}
    assert (await asked(metadata=both, headers=off))[1].outcome is Outcome.OPTED_OUT


async def test_a_verdict_that_clears_a_request_lets_it_search() -> None:
    world, result = await asked(metadata={GUARD: {"pii": False, "blocked": "no"}}, headers={"x-blocked": ("0",)})
    assert (result.outcome, len(world.turns)) == (Outcome.INJECTED, 1)


async def test_a_fact_verdict_in_metadata_replaces_the_decision() -> None:
    world = World(upstream=RULES, rules=PATIENT, phase_s=20.0)
    await world.knows("The capital of Peru is where the user was born")
    world.decision.word = "general_fact"

    async def outcome(metadata: dict[str, Any]) -> Outcome:
        body = as_body("What is the capital of Peru?")
        return (await world.exchange.request(head(metadata=metadata), body)).outcome

    assert await outcome({}) is Outcome.GENERAL_FACT
    assert await outcome({ROUTER: {"signals": {"fact": False}}}) is Outcome.INJECTED
    assert await outcome({ROUTER: {"signals": {"fact": False, "tool": True}}}) is Outcome.TOOL_TURN


async def test_nothing_is_asked_of_the_store_for_a_blocked_request() -> None:
    world = World(upstream=RULES, rules=PATIENT, phase_s=20.0)
    world.store.list_delay_s = 60.0
    async with asyncio.timeout(60):
        result = await world.exchange.request(head({"x-blocked": ("1",)}), as_body(QUESTION))
    assert result.outcome is Outcome.BLOCKED
