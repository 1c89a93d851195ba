"""The runner of other systems' scenarios on scenarios of our own: what is right passes, what is wrong is told."""

from __future__ import annotations

from pathlib import Path

from tests.core.peers.test_steps import written
from tests.peers.play import play_in
from tests.peers.steps import Json, read
from tests.peers.world import World
from tests.support.harness import House


def played(home: House, folder: Path, *rows: Json) -> dict[str, list[str]]:
    return play_in(World(home), read(written(folder, *rows)))


def said(scenario: str, number: int, message: str, **more: object) -> Json:
    return {"scenario": scenario, "step": number, "user": "u", "session": f"s{number}", "message": message, **more}


def test_a_story_is_told_learnt_and_asked_for(home: House, tmp_path: Path, alice: str) -> None:
    found = played(
        home,
        tmp_path,
        said(f"{alice}", 1, "I play the cello in Ghent.", api="responses", expect_stored=["cello"]),
        said(f"{alice}", 2, "Which instrument do I play?", expect_in_prompt=["cello"], must_not=["flute"]),
        said(
            f"{alice}", 3, "Which instrument do I play?", control={"header": "x-semmem-memory: off"}, must_not=["cello"]
        ),
        said(f"{alice}", 4, "Which instrument do I play?", expect_in_prompt=["flute"], must_not=["cello"]),
        said(f"{alice}", 5, "I repair clocks.", expect_stored=["trumpets"], expect_facts=0, or_keys=["clock"]),
    )
    right, wrong = (
        [found[f"{alice}:{number}"] for number in (1, 2, 3)],
        [found[f"{alice}:{number}"] for number in (4, 5)],
    )
    assert right == [[], [], []]
    assert wrong[0] == ["prompt lacks flute", "prompt holds cello"]
    assert wrong[1] == ["not stored: trumpets", "facts where none are", "no key clock"]


def test_what_is_searched_for_and_what_a_header_switches_off(home: House, tmp_path: Path, alice: str) -> None:
    gate: Json = {"scenario": f"{alice}.g", "step": 1, "user": "u"}
    header: Json = {"scenario": f"{alice}.h", "kind": "control", "headers": {"x-omniroute-no-memory": "yes"}}
    found = played(
        home,
        tmp_path,
        gate | {"message": "Hello!", "expect_search": False},
        gate | {"message": "Hello!", "expect_search": True, "not_greeting": True},
        gate | {"message": "Where are my bees?", "expect_search": True},
        header | {"expect": "no read, no write"},
        header | {"expect": "memory on"},
    )
    assert [*found.values()] == [
        [],
        ["greeting: not searched", "taken for a greeting"],
        [],
        [],
        ["the step says something else"],
    ]


def test_calls_are_held_against_status_code_and_members(home: House, tmp_path: Path, alice: str) -> None:
    call: Json = {"scenario": f"{alice}.c", "kind": "api"}
    page = {
        "given": [{"content": "User likes tea", "key": "tea"}],
        "request": f"GET /api/memory?apiKeyId={alice}&q=tea",
    }
    found = played(
        home,
        tmp_path,
        call
        | {"request": f"GET /v1/memory?user_id={alice}&limit=0", "expect_status": 400, "expect_code": "INVALID_LIMIT"},
        call
        | {"request": "GET /v1/memory", "expect_status": 400, "expect_code": "INVALID_LIMIT", "expect_keys": ["x"]},
        call | page | {"expect": {"keys": ["tea"], "total": 1}},
        call | page | {"expect": {"keys": ["jam"], "len": 2}},
    )
    assert [*found.values()] == [
        [],
        ["status 401", "code MISSING_USER_ID", "no x"],
        [],
        ["keys is ['tea']", "len is 1"],
    ]


def test_searches_and_upkeep_are_held_against_what_they_find(home: House, tmp_path: Path, alice: str) -> None:
    search: Json = {
        "scenario": f"{alice}.s",
        "kind": "search",
        "query": "green tea",
        "given": ["User drinks green tea"],
    }
    merge: Json = {"scenario": f"{alice}.m", "kind": "consolidate"}
    merge["memories"] = ["User drinks green tea", "User drinks green tea.", "User repairs clocks"]
    found = played(
        home,
        tmp_path,
        search | {"expect_results": ["green tea"], "expect_top": "green tea", "expect_unique": True},
        search | {"expect_results": ["coffee"], "must_not": ["tea"], "must_not_top": ["green"]},
        merge | {"expect_groups": [[2], [0, 1]]},
        merge | {"expect_groups": [[0], [1], [2]]},
    )
    assert [*found.values()] == [
        [],
        ["not found: coffee", "found: tea", "another one is first"],
        [],
        ["groups [[0, 1], [2]]"],
    ]
