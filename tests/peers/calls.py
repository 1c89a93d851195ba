"""Steps that are calls of the API. SR's as they are; OmniRoute's with semmem's path and name for whose memories."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from semmem.memory import MemoryType
from tests.peers.steps import Json, Step
from tests.peers.world import World

FIELDS = frozenset(
    "scenario source kind note gap given request headers expect expect_status expect_keys expect_code".split()
)
IN_THE_STORE = "mem-1"
"""An id that SR's scenarios take for that of one of HOLDER's memories."""
HOLDER, OTHER = "user-alice", "user-bob"
HELD = [
    {"content": "User plays the cello.", "type": "semantic"},
    {"content": "User moved to Ghent in May.", "type": "episodic"},
    {"content": "User reads the news at breakfast.", "type": "semantic"},
]
OTHER_WORDS = {"/api/memory": "/v1/memory", "apiKeyId=": "user_id="}
"""OmniRoute's path and its name for whose memories they are."""
Check = Callable[[Json], bool]


def call(world: World, step: Step) -> list[str]:
    """One call, held against status, code, keys, and what the scenario expects beside them."""
    if step.scenario in BY_HAND:
        return BY_HAND[step.scenario](world, step)
    method, path = _request(step)
    if "given" in step.row:
        user = parse_qs(urlsplit(path).query)["user_id"][0]
        world.forget(user)
        world.give(user, step.given)
    else:
        path = _with_memories(world, path)
    return _differences(step, world.call(method, path, headers=step.row.get("headers")))


def _request(step: Step) -> tuple[str, str]:
    method, path = step.row["request"].split(" ", 1)
    for theirs, ours in OTHER_WORDS.items():
        path = path.replace(theirs, ours)
    return method, path


def _with_memories(world: World, path: str) -> str:
    """HOLDER has memories, OTHER has none; one of them in the place of the id that is taken for one."""
    for user in (HOLDER, OTHER):
        world.forget(user)
    first, *_ = world.give(HOLDER, HELD)
    return re.sub(rf"/{IN_THE_STORE}(?=\?|$)", f"/{first}", path)


def _differences(step: Step, answer: httpx.Response) -> list[str]:
    row, told = step.row, answer.json()
    code = told.get("error", {}).get("code") if isinstance(told, dict) else None
    wrong = []
    if "expect_status" in row and answer.status_code != row["expect_status"]:
        wrong.append(f"status {answer.status_code}")
    if "expect_code" in row and code != row["expect_code"]:
        wrong.append(f"code {code}")
    wrong += [f"no {key}" for key in row.get("expect_keys", ()) if key not in told]
    if isinstance(row.get("expect"), dict):
        wrong += _members(row["expect"], told)
    if not wrong and answer.is_success and step.scenario in BESIDE and not BESIDE[step.scenario](told):
        wrong.append("another answer")
    return wrong


def _members(expected: Mapping[str, Any], told: Json) -> list[str]:
    """``keys`` are those of the memories, ``len`` how many they are; anything else is a member."""
    memories = told.get("memories", [])
    found = told | {"keys": sorted(str(memory["key"]) for memory in memories), "len": len(memories)}
    if "stats" in expected and (stats := told.get("stats")):
        found["stats"] = {"total": stats["total"], "byType": stats["by_type"]}
    return [f"{name} is {found.get(name)}" for name, value in expected.items() if found.get(name) != value]


def _all_of(user: str, number: int | None = None, kinds: frozenset[str] = frozenset(MemoryType)) -> Check:
    def check(told: Json) -> bool:
        memories = told["memories"]
        right = [memory["user_id"] == user and memory["type"] in kinds for memory in memories]
        return all(right) and len(memories) == (len(HELD) if number is None else number)

    return check


BESIDE: dict[str, Check] = {
    "sr_api_list": _all_of(HOLDER),
    "sr_api_list_type": _all_of(HOLDER, 2, frozenset({"semantic"})),
    "sr_api_list_types": _all_of(HOLDER, 3, frozenset({"semantic", "episodic"})),
    "sr_api_list_limit": _all_of(HOLDER, 2),
    "sr_api_limit_cap": _all_of(HOLDER),
    "sr_api_list_empty": _all_of(OTHER, 0),
    "sr_api_header_wins": _all_of(HOLDER),
    "sr_api_get": lambda told: told["user_id"] == HOLDER,
    "sr_api_delete_scope": lambda told: told["success"] is True,
}
"""What a status and keys do not say, and the notes or names of these scenarios do."""


def _clear(world: World, step: Step) -> list[str]:
    world.give(step.user, step.given)
    deleted = world.call("DELETE", "/v1/memory", params={"user_id": step.user}).json()["deleted"]
    found = {"deletedCount": deleted, "remaining": len(world.memories(step.user))}
    return [f"{name} is {found[name]}" for name, value in step.row["expect"].items() if found[name] != value]


def _by_session(world: World, step: Step) -> list[str]:
    """Of the user of the scenario that this one goes on with."""
    user, wrong = f"{step.story}.key-a", []
    for session, words in step.row["expect"].items():
        listed = world.call("GET", "/v1/memory", params={"user_id": user, "session_id": session}).json()["memories"]
        contents = [memory["content"] for memory in listed]
        if len(contents) != len(words) or any(word not in text for word, text in zip(words, contents, strict=True)):
            wrong.append(f"{session} has {len(contents)} memories")
    return wrong


BY_HAND = {"or_clear_all": _clear, "or_session_scope_list": _by_session}
