"""The description of the API: made of the routes, and all that they may answer is in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
from fastapi import FastAPI

import semmem.management
from semmem import __version__
from semmem.lifecycle.erasure import ErasurePending, Receipt
from semmem.management.access import AccessRules
from semmem.management.api import create_api
from semmem.management.description import ABOUT, operations
from semmem.management.problems import (
    CODES,
    EVERY_CALL,
    FIELD_CODES,
    PROBLEM_TYPE,
    PROBLEMS,
    TABLE,
    TYPE_PREFIX,
    error,
    problem,
)
from semmem.management.routes import refuses
from tests.core.management.test_api import ADMIN, Api
from tests.core.management.test_roles import NEEDS, Guarded
from tests.support.described import Promised

CODE = Path(semmem.management.__file__).parent
NO_OPERATION = {"METHOD_NOT_ALLOWED"}
"""Met where there is no operation that could name it."""

Json = dict[str, Any]


def spelled() -> Iterator[str]:
    """Every code that the code names."""
    for file in CODE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            given = [each.value for each in node.args if isinstance(each, ast.Constant)]
            if node.func.id in ("Denied", "error", "problem") and given:
                yield str(given[0])
    yield from CODES.values()
    yield from FIELD_CODES.values()


def test_every_code_that_is_answered_with_is_in_the_table() -> None:
    assert len(PROBLEMS) > 20
    assert set(spelled()) == set(PROBLEMS)
    assert {status: PROBLEMS[code].status for status, code in CODES.items()} == {status: status for status in CODES}
    assert {PROBLEMS[code].status for code in FIELD_CODES.values()} == {400}


def test_a_route_cannot_name_a_code_that_the_table_has_not() -> None:
    with pytest.raises(KeyError, match="NO_SUCH"):
        refuses("NO_SUCH")


async def test_every_code_is_met_by_some_operation(guarded: Guarded) -> None:
    told = guarded.app.openapi()
    met = {code for _, _, operation in operations(told) for code in operation[TABLE]}
    assert met == set(PROBLEMS) - NO_OPERATION
    assert set(told[TABLE]) == set(PROBLEMS)


async def test_every_route_is_described_with_what_it_does_and_what_it_answers(guarded: Guarded) -> None:
    told = guarded.app.openapi()
    assert {(method.upper(), path) for path, methods in told["paths"].items() for method in methods} == set(NEEDS)
    for _, _, operation in operations(told):
        name = operation["operationId"]
        assert operation.get("description"), f"{name} has no docstring"
        assert TABLE in operation, f"{name} does not say what it refuses: give its decorator **refuses(...)"
        assert set(EVERY_CALL) <= set(operation[TABLE]), name
        (done,) = [answer for status, answer in operation["responses"].items() if status < "300"]
        for media_type, content in done["content"].items():
            assert media_type != "application/json" or _says_something(content["schema"]), f"{name} answers with what?"
    assert len({operation["operationId"] for _, _, operation in operations(told)}) == len(NEEDS)


def _says_something(schema: Json) -> bool:
    return "$ref" in schema or schema["title"] == "Response Get Configuration"  # as many keys as there are settings


async def test_it_is_of_the_version_that_serves(guarded: Guarded) -> None:
    assert guarded.app.openapi()["info"] == {"title": "semmem", "version": __version__, "description": ABOUT}


async def test_every_schema_is_one(guarded: Guarded) -> None:
    told = guarded.app.openapi()
    assert told["openapi"].startswith("3.1.")
    schemas = told["components"]["schemas"].values()
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    assert [schema["title"] for schema in schemas if not jsonschema_rs.meta.is_valid({**dialect, **schema})] == []


async def test_a_body_is_closed_and_its_fields_have_limits(guarded: Guarded) -> None:
    schemas = guarded.app.openapi()["components"]["schemas"]
    bodies = [schemas[name] for name in ("NewMemory", "ChangedMemory", "SearchQuery", "ForgetFound", "NewToken")]
    assert all(body["additionalProperties"] is False for body in bodies)
    assert schemas["NewMemory"]["properties"]["metadata"]["maxProperties"] == 128
    assert "merged" in schemas["NewMemory"]["properties"]["metadata"]["propertyNames"]["not"]["enum"]
    assert guarded.app.openapi()["x-limits"]["body_bytes_max"] == 1024 * 1024


@pytest.mark.parametrize(
    ("access", "schemes"),
    [
        (AccessRules(), {"token": "http"}),
        (AccessRules(trusted_headers=("x-user",)), {"token": "http", "header_x-user": "apiKey"}),
    ],
)
async def test_the_ways_of_saying_who_calls_are_those_that_are_configured(
    api: Api, access: AccessRules, schemes: dict[str, str]
) -> None:
    told = create_api(api.memories, access).openapi()
    assert {name: each["type"] for name, each in told["components"]["securitySchemes"].items()} == schemes
    assert [set(each) for each in told["security"]] == [{name} for name in schemes]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/v1/memory", "DELETE, GET, POST"),
        ("PATCH", "/v1/memory/mem_0", "DELETE, GET, PUT"),
        ("PATCH", "/v1/memory/search", "GET, POST"),
        ("GET", "/v1/sessions/a/b/end", "POST"),
    ],
)
async def test_a_method_that_is_not_there_is_told_which_are(api: Api, method: str, path: str, allowed: str) -> None:
    answer = await api.client.request(method, path, headers=ADMIN)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


# --- problems --------------------------------------------------------------------------------------------------------


async def test_a_refusal_is_a_problem_and_has_the_shape_of_other_systems(api: Api) -> None:
    answer = await api.client.get("/v1/memory/mem_0", params={"user_id": "alice"}, headers=ADMIN)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "type": "/openapi.json#/x-problems/NOT_FOUND",
        "title": PROBLEMS["NOT_FOUND"].title,
        "status": 404,
        "detail": "no such memory",
        "code": "NOT_FOUND",
        "error": {"code": "NOT_FOUND", "message": "no such memory"},
    }


@pytest.mark.parametrize(
    ("accept", "named"),
    [
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("application/json, Application/Problem+JSON", PROBLEM_TYPE),
    ],
)
@pytest.mark.parametrize("path", ["/v1/memory", "/v1/nothing", "/v1/memory?user_id=a&limit=0"])
async def test_a_problem_is_called_one_for_who_knows_problems(api: Api, accept: str, named: str, path: str) -> None:
    answer = await api.client.get(path, headers={**ADMIN, "accept": accept})
    assert (answer.headers["content-type"], answer.headers["vary"]) == (named, "accept")
    assert answer.status_code == answer.json()["status"]


async def test_what_succeeds_is_never_called_a_problem(api: Api) -> None:
    answer = await api.client.get("/v1/memory?user_id=a", headers={**ADMIN, "accept": PROBLEM_TYPE})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")


async def test_the_type_of_a_problem_leads_to_what_it_means(api: Api) -> None:
    place, _, pointer = problem("INVALID_CURSOR", "")["type"].partition("#")
    told = (await api.client.get(place)).json()
    for part in pointer.strip("/").split("/"):
        told = told[part]
    assert told == {"status": 400, "title": PROBLEMS["INVALID_CURSOR"].title}
    assert TYPE_PREFIX.endswith(f"{TABLE}/")


async def test_a_pending_erasure_is_a_problem_with_more_to_say(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def pending(*_: Any, **__: Any) -> Receipt:
        raise ErasurePending(Receipt(turns=2), remembered=True)

    monkeypatch.setattr(api.memories, "forget_scope", pending)
    answer = await api.client.delete("/v1/memory?user_id=alice", headers=ADMIN)  # is compared with its description
    told = answer.json()
    assert (answer.status_code, told["code"], told["pending"], told["receipt"]["turns"]) == (
        503,
        "ERASURE_PENDING",
        True,
        2,
    )
    assert answer.headers["retry-after"] == "5"


async def test_whoever_may_try_again_is_told_when_and_the_description_says_so(api: Api) -> None:
    later = {code: each.retry_after_s for code, each in PROBLEMS.items() if each.retry_after_s}
    assert {code for code, each in PROBLEMS.items() if each.status in (429, 503)} <= set(later)
    assert {code: error(code, "").headers.get("retry-after") for code in PROBLEMS} == {
        code: str(later[code]) if code in later else None for code in PROBLEMS
    }
    for name, answer in api.app.openapi()["components"]["responses"].items():
        codes = name.split(".")
        header = answer.get("headers", {}).get("Retry-After")
        assert (header is None) == (not set(codes) & set(later)), name
        assert header is None or header["required"] == (set(codes) <= set(later)), name


# --- the comparison that the tests of routes make --------------------------------------------------------------------


def _answer(app: FastAPI, status: int, body: Any, headers: dict[str, str] | None = None) -> str:
    request = httpx.Request("GET", "http://semmem/v1/whoami")
    answer = httpx.Response(status, json=body, request=request, headers=headers)
    try:
        Promised(app.openapi()).check("GET", "/v1/whoami", answer)
    except AssertionError as failure:
        return str(failure)
    return ""


ME = {"role": "user", "may": ["read"], "user_id": "alice", "token_id": None, "memory_switches": None}


async def test_an_answer_that_is_not_as_described_is_noticed(guarded: Guarded) -> None:
    assert _answer(guarded.app, 200, ME) == ""
    assert "more" in _answer(guarded.app, 200, ME | {"more": 1})
    assert "token_id" in _answer(guarded.app, 200, {name: value for name, value in ME.items() if name != "token_id"})
    assert "not described" in _answer(guarded.app, 409, problem("BUSY", ""))
    assert _answer(guarded.app, 401, problem("UNAUTHENTICATED", "")) == ""
    assert "code" in _answer(guarded.app, 401, problem("MISSING_USER_ID", ""))
    assert "more" in _answer(guarded.app, 401, {**problem("UNAUTHENTICATED", ""), "more": 1})


@pytest.mark.parametrize(("said", "noticed"), [("2", ""), (None, "without"), ("soon", "soon"), ("0", "0")])
async def test_a_header_that_is_promised_and_not_as_described_is_noticed(
    guarded: Guarded, said: str | None, noticed: str
) -> None:
    headers = {"retry-after": said} if said is not None else {}
    told = _answer(guarded.app, 503, problem("IDENTITY_NOT_AVAILABLE", ""), headers)
    assert bool(told) is bool(noticed)
    assert noticed in told
    assert "not described" in _answer(guarded.app, 401, problem("UNAUTHENTICATED", ""), {"retry-after": "2"})
