"""Steps that say something: what reached the model with it, and what was learnt from it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby

from quality.peers import unexpected_in_prompt, unexpected_in_store
from tests.peers.steps import Json, Step
from tests.peers.world import FACT_HEADER, Sent, World

FIELDS = frozenset(
    """
    scenario source step user session kind note corrected conflict sr_expect or_type or_keys or_must_not semmem_type
    message message_recipe config given given_recipe api system history model control signals assistant_answer store
    expect_in_prompt match must_not expect_system_kept expect_role expect_position expect_last_message_kept
    expect_untouched expect_search not_greeting expect_stored stored_must_not must_not_stored_as expect_count
    expect_min_facts expect_facts expect_max_length expect_stored_count expect_stored_session
    """.split()
)
SEARCHED = frozenset({"injected", "cold_dense", "degraded", "embedder_busy", "no_hits"})
NOT_SEARCHED = frozenset({"greeting", "general_fact", "tool_turn", "no_question"})
READS_ONLY = {"x-semmem-memory": "read"}

Wrong = dict[str, list[str]]


def talk(world: World, steps: Sequence[Step]) -> Iterator[tuple[Step, list[str]]]:
    """Play the steps of one story. A session ends, and is learnt from, when another step begins."""
    turns: dict[str, int] = defaultdict(int)
    for (user, session), theirs in groupby(steps, key=lambda step: (step.user, step.session)):
        conversation = list(theirs)
        for step in conversation:
            world.give(user, step.given)
        before = {(memory["id"], memory["version"]) for memory in world.memories(user)}
        history: list[Json] = []
        wrong = [_say(world, step, history) for step in conversation]
        turns[user] += sum("control" not in step.row for step in conversation)
        world.settle(user, session, turns[user])
        learnt = [m for m in world.memories(user) if (m["id"], m["version"]) not in before]
        for step, found in zip(conversation, wrong, strict=True):
            yield step, found + _stored(step, learnt, len(before) + len(learnt))


def gate(world: World, step: Step) -> list[str]:
    """Whether a message is searched for. Nothing is learnt from it, so that every step finds the same."""
    if not world.memories(step.user):
        world.give(step.user, [{"content": "User keeps bees on the roof."}])
    signalled = {FACT_HEADER: "true"} if step.row.get("signals", {}).get("fact") else {}
    sent = world.send(step.user, _body(step, []), headers=READS_ONLY | signalled)
    outcome, expected = str(sent.reply.outcome), step.row.get("expect_search")
    wrong = list(sent.wrong)
    if expected is not None and outcome not in (SEARCHED if expected else NOT_SEARCHED):
        wrong.append(f"{outcome}: {'not ' if expected else ''}searched")
    return wrong + ["taken for a greeting"] * (bool(step.row.get("not_greeting")) and outcome == "greeting")


def _say(world: World, step: Step, history: list[Json]) -> list[str]:
    """One step, once for each way in which its request can say what it says."""
    wrong: list[str] = []
    for headers, members in _controls(step):
        if answer := step.row.get("assistant_answer"):
            world.scripted(answer)
        body = _body(step, history if step.row.get("history") else []) | members
        path = "/v1/responses" if step.row.get("api") == "responses" else "/v1/chat/completions"
        sent = world.send(step.user, body, path=path, headers={"x-session-id": step.session} | headers)
        wrong += sent.wrong or _prompt(step, sent)
        history += _said(step, sent)
    return wrong


def _body(step: Step, history: list[Json]) -> Json:
    model, system = step.row.get("model", "stand-in"), step.row.get("system")
    if step.row.get("api") == "responses":
        storing = {"auto_store": True} if step.row.get("store") else {}
        return {"model": model, "input": step.message} | ({"instructions": system} if system else {}) | storing
    first = [{"role": "system", "content": system}] if system else []
    return {"model": model, "messages": [*first, *history, {"role": "user", "content": step.message}]}


def _controls(step: Step) -> list[tuple[dict[str, str], Json]]:
    """Each header and each body member that shall have the same effect."""
    control = step.row.get("control", {})
    header, _, value = control.get("header", "").partition(":")
    ways: list[tuple[dict[str, str], Json]] = [({header: value.strip()}, {})] if header else []
    ways += [({}, control["body"])] if "body" in control else []
    return ways or [({}, {})]


def _said(step: Step, sent: Sent) -> list[Json]:
    answer = json.loads(sent.reply.body)
    if "choices" not in answer:
        return []
    return [{"role": "user", "content": step.message}, answer["choices"][0]["message"]]


def _prompt(step: Step, sent: Sent) -> list[str]:
    row, received = step.row, sent.received
    wrong = unexpected_in_prompt(row, sent.notes)
    if row.get("expect_system_kept") and row["system"] not in _system(received):
        wrong.append("the system prompt is not there")
    if row.get("expect_untouched") and received != sent.body:
        wrong.append("the request was changed")
    if row.get("expect_last_message_kept") and received["messages"][-1] != sent.body["messages"][-1]:
        wrong.append("the last message was changed")
    roles = [message["role"] for message in received.get("messages", []) if "<semmem-memory" in message["content"]]
    if "expect_role" in row and roles != [row["expect_role"]]:
        wrong.append(f"memories in role {', '.join(roles) or 'none'}")
    if row.get("expect_position") == "first" and "<semmem-memory" not in received["messages"][0]["content"]:
        wrong.append("memories are not in the first message")
    return wrong


def _system(received: Json) -> str:
    messages = [message["content"] for message in received.get("messages", []) if message["role"] == "system"]
    return "\n".join([str(received.get("instructions", "")), *messages])


def _stored(step: Step, learnt: Sequence[Json], in_all: int) -> list[str]:
    row = step.row
    wrong = unexpected_in_store(row, [memory["content"] for memory in learnt])
    wrong += unexpected_in_store({"stored_must_not": row.get("or_must_not", ())}, [m["content"] for m in learnt])
    if "semmem_type" in row and (kinds := {str(memory["type"]) for memory in learnt} - {row["semmem_type"]}):
        wrong.append(f"stored as {', '.join(sorted(kinds))}")
    if "or_keys" in row and (keys := sorted(set(row["or_keys"]) - {memory["key"] for memory in learnt})):
        wrong.append(f"no key {', '.join(keys)}")
    if "expect_stored_count" in row and in_all != row["expect_stored_count"]:
        wrong.append(f"{in_all} memories")
    if "expect_stored_session" in row:
        sessions = {str(memory["session_id"]) for memory in learnt}
        wrong += [f"stored for session {name}" for name in sorted(sessions - {row["expect_stored_session"]})]
    return wrong
