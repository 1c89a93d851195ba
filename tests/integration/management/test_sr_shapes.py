"""Paths, codes and shapes that clients of the vLLM Semantic Router's memory send and expect, over HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.support.harness import ADMIN_TOKEN, Json, SemmemProcess, semmem_process

HEADER = "x-authz-user-id"
ADMIN = {"authorization": f"Bearer {ADMIN_TOKEN}"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
FIELDS = {"id", "type", "content", "user_id", "source", "importance", "created_at", "updated_at"}
NAMES = ("mara", "mara_7", "mara.k@semmem.example", "team:mara", "org/mara-7", "1b4e28ba-2fa1-41d2-883f-0016d3cca427")


@dataclass(frozen=True)
class Api:
    """semmem's API, and the ids of what Mara keeps there."""

    semmem: SemmemProcess
    ids: tuple[str, ...]

    def call(self, method: str, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
        return self.semmem.http.request(
            method, self.semmem.api_url + path, headers=ADMIN if headers is None else headers
        )

    def told(self, path: str, headers: dict[str, str] | None = None) -> Any:
        answer = self.call("GET", path, headers)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture(scope="module")
def semmem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SemmemProcess]:
    config: Json = {"memory": {"backend": "in_process"}, "listeners": {"api": {"trusted_headers": [HEADER]}}}
    with semmem_process(tmp_path_factory.mktemp("shapes"), config) as running:
        yield running


@pytest.fixture
def api(semmem: SemmemProcess) -> Iterator[Api]:
    told = [("User repairs clocks", "semantic"), ("User went to Bruges", "episodic"), ("User sings alto", "semantic")]
    made = [
        semmem.api("POST", "/v1/memory", json={"user_id": "mara", "content": content, "type": kind})
        for content, kind in told
    ]
    yield Api(semmem, tuple(memory["id"] for memory in made))
    for user in ("mara", "otto"):
        semmem.api("DELETE", "/v1/memory", params={"user_id": user})


def refusal(answer: httpx.Response) -> tuple[int, str]:
    error = answer.json()["error"]
    assert error["message"]
    return answer.status_code, error["code"]


def test_a_list_is_memories_total_and_limit(api: Api) -> None:
    told = api.told("/v1/memory?user_id=mara")
    assert (told["total"], told["limit"], len(told["memories"])) == (3, 20, 3)
    assert [memory["id"] for memory in told["memories"]] == [*reversed(api.ids)]


def test_a_memory_has_the_known_fields_and_times_of_utc(api: Api) -> None:
    for memory in (
        api.told("/v1/memory?user_id=mara")["memories"][0],
        api.told(f"/v1/memory/{api.ids[2]}?user_id=mara"),
    ):
        assert memory.keys() >= FIELDS
        assert (memory["content"], memory["type"], memory["user_id"]) == ("User sings alto", "semantic", "mara")
        assert TIME.fullmatch(memory["created_at"])
        assert TIME.fullmatch(memory["updated_at"])
        assert 0 <= memory["importance"] <= 1


@pytest.mark.parametrize(("types", "number"), [("semantic", 2), ("episodic", 1), ("semantic,episodic", 3)])
def test_types_are_a_list_with_commas(api: Api, types: str, number: int) -> None:
    told = api.told(f"/v1/memory?user_id=mara&type={types}")
    assert (told["total"], {memory["type"] for memory in told["memories"]}) == (number, set(types.split(",")))


def test_a_limit_is_obeyed_and_one_too_large_is_no_error(api: Api) -> None:
    assert len(api.told("/v1/memory?user_id=mara&limit=2")["memories"]) == 2
    told = api.told("/v1/memory?user_id=mara&limit=100000")
    assert (len(told["memories"]), told["total"]) == (3, 3)
    assert told["limit"] < 100_000


@pytest.mark.parametrize(
    ("query", "refused"),
    [
        ("user_id=mara&limit=0", (400, "INVALID_LIMIT")),
        ("user_id=mara&limit=-1", (400, "INVALID_LIMIT")),
        ("user_id=mara&limit=many", (400, "INVALID_LIMIT")),
        ("user_id=mara&type=opinion", (400, "INVALID_TYPE")),
        (f"user_id={'m' * 300}", (400, "INVALID_USER_ID")),
        ("", (401, "MISSING_USER_ID")),
    ],
)
def test_what_is_wrong_with_a_list_has_a_code(api: Api, query: str, refused: tuple[int, str]) -> None:
    assert refusal(api.call("GET", f"/v1/memory?{query}")) == refused


@pytest.mark.parametrize("name", NAMES)
def test_usual_names_of_users_are_taken(api: Api, name: str) -> None:
    told = api.told(f"/v1/memory?user_id={name}")
    assert (told["memories"] != []) == (name == "mara")


def test_somebody_unknown_has_an_empty_list(api: Api) -> None:
    told = api.told("/v1/memory?user_id=otto")
    assert (told["memories"], told["total"]) == ([], 0)


def test_the_header_of_a_proxy_beats_the_query(api: Api) -> None:
    assert len(api.told("/v1/memory?user_id=otto", {HEADER: "mara"})["memories"]) == 3
    assert api.told("/v1/memory?user_id=mara", {HEADER: "otto"})["memories"] == []
    assert api.told(f"/v1/memory/{api.ids[0]}", {HEADER: "mara"})["id"] == api.ids[0]


@pytest.mark.parametrize("name", ['mara" || user_id != "', 'mara" && memory_type == "', 'x\\"; drop; --'])
def test_no_name_is_part_of_an_expression(api: Api, name: str) -> None:
    answer = api.call("GET", "/v1/memory", {HEADER: name})
    assert (answer.status_code, answer.json()["memories"]) == (200, [])
    deleted = api.call("DELETE", "/v1/memory", {HEADER: name})
    assert (deleted.json()["deleted"], api.told("/v1/memory?user_id=mara")["total"]) == (0, 3)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_what_is_not_there_or_somebody_else_s_is_not_found(api: Api, method: str) -> None:
    for path in (f"/v1/memory/{api.ids[0]}?user_id=otto", "/v1/memory/mem_none?user_id=mara"):
        assert refusal(api.call(method, path)) == (404, "NOT_FOUND")
    assert api.told("/v1/memory?user_id=mara")["total"] == 3


@pytest.mark.parametrize("odd", ["x%20||%20id!=", "x;drop", "x&&true", "x%22"])
def test_what_can_be_no_id_is_refused(api: Api, odd: str) -> None:
    assert refusal(api.call("GET", f"/v1/memory/{odd}?user_id=mara")) == (400, "INVALID_ID")


def test_one_memory_is_deleted(api: Api) -> None:
    answer = api.call("DELETE", f"/v1/memory/{api.ids[0]}?user_id=mara")
    assert (answer.status_code, answer.json()["success"]) == (200, True)
    assert answer.json()["message"]
    assert refusal(api.call("GET", f"/v1/memory/{api.ids[0]}?user_id=mara")) == (404, "NOT_FOUND")


@pytest.mark.parametrize(("query", "left"), [("", 0), ("&type=semantic", 1), ("&type=semantic,episodic", 0)])
def test_a_scope_is_deleted(api: Api, query: str, left: int) -> None:
    answer = api.call("DELETE", f"/v1/memory?user_id=mara{query}")
    assert (answer.status_code, answer.json()["success"]) == (200, True)
    assert answer.json()["message"]
    assert api.told("/v1/memory?user_id=mara")["total"] == left


def test_a_scope_of_nobody_is_not_deleted(api: Api) -> None:
    assert refusal(api.call("DELETE", "/v1/memory")) == (401, "MISSING_USER_ID")
    assert refusal(api.call("DELETE", "/v1/memory?type=opinion&user_id=mara")) == (400, "INVALID_TYPE")
    assert api.told("/v1/memory?user_id=mara")["total"] == 3
