"""Steps about memories that are put there: what a search finds, what a prompt is given, what upkeep makes of them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from quality.peers import unexpected_in_prompt
from tests.peers.steps import Json, Step
from tests.peers.world import World

SEARCH_FIELDS = frozenset(
    """scenario source kind note corrected step user session api message query given given_recipe config limit fault
    expect expect_results expect_top must_not_top expect_unique expect_in_prompt match must_not""".split()
)
FIELDS = frozenset(
    """scenario source kind given memories question budget_tokens expect expect_groups expect_order expect_in_prompt
    must_not expect_count""".split()
)
DAY_S = 86_400.0


# --- searches ---------------------------------------------------------------------------------------------------------


def search(world: World, step: Step) -> list[str]:
    row = step.row
    world.give(step.user, step.given)
    asked = {"user_id": step.user, "query": row.get("query") or step.message, "limit": row.get("limit", 10)}
    answer = world.call("POST", "/v1/memory/search", json=asked)
    if not answer.is_success:
        return [f"status {answer.status_code}"]
    found = [memory["content"] for memory in answer.json()["memories"]]
    text, top = "\n".join(found), (found or [""])[0]
    wrong = [f"not found: {one}" for one in row.get("expect_results", ()) if one not in text]
    wrong += [f"found: {one}" for one in row.get("must_not", ()) if one in text]
    if row.get("expect_top", "") not in top or any(one in top for one in row.get("must_not_top", ())):
        wrong.append("another one is first")
    return wrong + ["the same twice"] * (bool(row.get("expect_unique")) and len(set(found)) != len(found))


def over_budget(world: World, step: Step) -> list[str]:
    """Each memory alone is more than the budget."""
    world.give(step.user, step.given)
    body = {"model": "stand-in", "messages": [{"role": "user", "content": step.given[0]["content"]}]}
    sent = world.send(step.user, body, headers={"x-semmem-memory": "read"})
    return sent.wrong + ["over the budget"] * bool(sent.notes)


# --- upkeep -----------------------------------------------------------------------------------------------------------


def stored(world: World, step: Step) -> list[str]:
    """Memories that are put there, and a question through Envoy; or in which order they are found."""
    row = step.row
    if "expect_order" in row:
        return _order(world, step)
    world.give(step.user, [{"content": content} for content in row["memories"]])
    body = {"model": "stand-in", "messages": [{"role": "user", "content": row["question"]}]}
    sent = world.send(step.user, body, headers={"x-semmem-memory": "read"})
    wrong = sent.wrong or unexpected_in_prompt(row, sent.notes)
    for word, count in row.get("expect_count", {}).items():
        number = sum(word in note for note in sent.notes)
        wrong += [f"{number} times: {word}"] * (number != count)
    return wrong


def _order(world: World, step: Step) -> list[str]:
    """Memories of different ages, by a question that is as near to one as to the other: the words they share."""
    memories = step.row["memories"]
    told = [_line(step.user, number, memory) for number, memory in enumerate(memories)]
    world.call("POST", "/v1/import", json={"lines": told}).raise_for_status()
    first, second = (memory["content"].split() for memory in memories)
    shared = " ".join(word for word in first if word in second)
    answer = world.call("POST", "/v1/memory/search", json={"user_id": step.user, "query": shared, "threshold": 0})
    found = [memory["content"] for memory in answer.json()["memories"]]
    expected = [memories[place]["content"] for place in step.row["expect_order"]]
    return [] if found == expected else [f"in another order, {len(found)} of {len(memories)}"]


def _line(user: str, number: int, memory: Json) -> str:
    """A memory of an age, as `semmem import` takes it."""
    at = time.time() - memory["age_days"] * DAY_S
    told = {"id": f"mem_aged_{number}", "version": 1, "type": "semantic", "content": memory["content"], "user": user}
    told |= {"created_at": at, "updated_at": at, "source": {"role": "api", "time": at}}
    return json.dumps({"kind": "memory", "memory": told})


def consolidate(world: World, step: Step) -> list[str]:
    contents = step.row["memories"]
    ids = world.give(step.user, [{"content": content} for content in contents])
    done = world.call("POST", "/v1/memory/consolidate", json={"user_id": step.user}).json()
    groups = [{group["kept"]["id"], *(one["id"] for one in group["merged"])} for group in done["groups"]]
    groups += [{one} for one in ids if not any(one in group for group in groups)]
    found = sorted(sorted(ids.index(one) for one in group) for group in groups)
    return [] if found == sorted(map(sorted, step.row["expect_groups"])) else [f"groups {json.dumps(found)}"]


def summarise(world: World, step: Step) -> list[str]:
    """What a summary of everything would take, and what it leaves alone."""
    owners: dict[str, list[Json]] = {}
    for memory in step.given:
        owners.setdefault(f"{step.story}.{memory.get('user', 'u')}", []).append(memory)
    for user, memories in owners.items():
        world.give(user, memories)
    user, *others = owners or [step.user]
    before = {other: world.memories(other) for other in others}
    asked = {"user_id": user, "older_than_days": 0, "dry_run": not others}
    done = world.call("POST", "/v1/memory/summarize", json=asked).json()
    wrong = [f"{other[-1]} was changed" for other, theirs in before.items() if world.memories(other) != theirs]
    expected = step.row["expect"]
    if isinstance(expected, dict):
        wrong += _summary(expected, done)
    return wrong


def _summary(expected: Mapping[str, Any], done: Json) -> list[str]:
    found = {"originalCount": done["candidates"], "summarizedCount": len(done["groups"])}
    found["tokensSaved"] = done["tokens_saved"]
    wrong = []
    for name, number in found.items():
        right = number > 0 if expected[name] == ">0" else number == expected[name]
        wrong += [f"{name} is {number}"] * (not right)
    return wrong
