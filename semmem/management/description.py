"""The OpenAPI 3.1 description: of what the routes are declared with, and nothing that is kept beside them.

Paths, parameters, bodies and answers are the framework's reading of the routes; a route names its own codes by
``refuses``; codes of parameters and of the door in front of all routes are added here, as answers by status.
"""

import asyncio
import copy
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.routing import BaseRoute

from semmem import __version__
from semmem.management.access import AccessRules
from semmem.management.door import DoorRules
from semmem.management.idempotency import METHODS, READING
from semmem.management.problems import (
    EVERY_CALL,
    FIELD_CODES,
    OF_KEY,
    PROBLEM_TYPE,
    PROBLEMS,
    SHAPES,
    TABLE,
    ProblemShown,
    by_status,
)
from semmem.management.routes import MetadataLimits
from semmem.memory import OWN_METADATA

Json = dict[str, Any]

ABOUT = (
    "What semmem remembers, for whoever it is about and for whoever runs it. A refusal is a problem as of RFC 9457"
    f" (application/json, or application/problem+json for who accepts that); its stable codes are in {TABLE}."
    " A call that changes something may carry an Idempotency-Key of 1 to 255 visible ASCII characters: sent again with"
    " it, it is answered as before (Idempotency-Replayed: true), or with the counts of that answer alone (counts)."
)

SCHEMA_PLACE, ANSWER_PLACE = "#/components/schemas/", "#/components/responses/"
RETRY_TOLD = "in how many seconds the call may be tried again"


class Described(FastAPI):
    """An application that describes itself at /openapi.json."""

    def __init__(self, *, access: AccessRules, door: DoorRules, metadata: MetadataLimits) -> None:
        super().__init__(
            title="semmem",
            version=__version__,
            openapi_url=None,
            docs_url=None,
            redoc_url=None,
            generate_unique_id_function=lambda route: route.name,
        )
        limits = {name: getattr(door, name) for name in ("body_bytes_max", "body_values_max", "body_timeout_s")}
        self._parts = _schemes(access), limits, metadata  # of a field its limit stands at the field
        self.add_route("/openapi.json", self._tell)

    async def _tell(self, _request: Request) -> Response:
        """Made beside the event loop: it takes a tenth of a second and more, the first time."""
        told = await asyncio.to_thread(lambda: json.dumps(self.openapi(), ensure_ascii=False, separators=(",", ":")))
        return Response(told, media_type="application/json")

    def openapi(self) -> Json:
        """The description, made when it is first asked for. Its readers leave it as it is."""
        if self.openapi_schema is None:
            self.openapi_schema = _described(self, *self._parts)
        return self.openapi_schema

    def methods_at(self, path: str) -> list[str]:
        """Those of the most exact path among the routes that is this one; empty where none is."""
        found: dict[str, set[str]] = {}
        for route in api_routes(self.routes):
            if route.path_regex.match(path):
                found.setdefault(route.path, set()).update(route.methods or ())
        if not found:
            return []
        return sorted(found[min(found, key=lambda each: (each.count("{"), -len(each)))])


def api_routes(routes: Iterable[BaseRoute]) -> Iterator[APIRoute]:
    """All that are there, those of routers that were included among them: the framework keeps these as they came."""
    for route in routes:
        if isinstance(route, APIRoute):
            yield route
        elif (included := getattr(route, "original_router", None)) is not None:
            yield from api_routes(included.routes)


def _described(api: FastAPI, schemes: Json, limits: Json, metadata: MetadataLimits) -> Json:
    told: Json = get_openapi(title=api.title, version=api.version, description=ABOUT, routes=api.routes)
    answers: Json = {}
    for path, method, operation in operations(told):
        for parameter in operation.get("parameters", []):
            parameter["schema"] = _without_null(parameter["schema"])
        if method in METHODS and path not in READING:
            operation[TABLE] = [*operation.get(TABLE, ()), *OF_KEY]
        operation["responses"] = _answers(operation, answers)
    schemas = told.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):  # the framework's own, which nobody is answered with
        schemas.pop(name, None)
    for shape in (ProblemShown, *SHAPES.values()):
        made = TypeAdapter(shape).json_schema(mode="serialization", ref_template=SCHEMA_PLACE + "{model}")
        schemas |= made.pop("$defs", {}) | {shape.__name__: made}
    for body in ("NewMemory", "ChangedMemory"):
        _limit_metadata(schemas[body]["properties"], metadata)
    told["components"] |= {"responses": answers, "securitySchemes": schemes}
    told["security"] = [{name: []} for name in schemes]
    told["x-limits"] = limits
    told[TABLE] = {code: {"status": each.status, "title": each.title} for code, each in PROBLEMS.items()}
    return told


def operations(told: Json) -> Iterator[tuple[str, str, Json]]:
    """Every operation of a description, after its path and method."""
    for path, methods in told["paths"].items():
        yield from ((path, method.upper(), operation) for method, operation in methods.items())


def _without_null(schema: Json) -> Json:
    """A parameter is there or is not: there is no way to write null."""
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    only: Json = kinds[0]
    return only | {name: value for name, value in schema.items() if name != "anyOf"}


def _answers(operation: Json, kept: Json) -> Json:
    """What the route gives where it succeeds, and every problem it can give, by status: references to what is kept."""
    parameters = [(each["name"], each["in"]) for each in operation.get("parameters", [])]
    of_parameters = [FIELD_CODES[name] for name, place in parameters if name in FIELD_CODES and place != "header"]
    codes = sorted({*EVERY_CALL, *of_parameters, *operation.get(TABLE, ())})
    operation[TABLE] = codes
    answers = {status: answer for status, answer in operation["responses"].items() if status < "300"}
    for status, those in by_status(codes).items():
        name = ".".join(those)
        kept[name] = _refusal(status, those)
        answers[str(status)] = {"$ref": ANSWER_PLACE + name}
    return answers


def _refusal(status: int, codes: Sequence[str]) -> Json:
    shapes: dict[str, list[str]] = {}
    for code in codes:
        shapes.setdefault(SHAPES.get(code, ProblemShown).__name__, []).append(code)
    kinds = [
        {"$ref": SCHEMA_PLACE + shape, "properties": {"code": {"enum": those}, "status": {"const": status}}}
        for shape, those in shapes.items()
    ]
    schema = kinds[0] if len(kinds) == 1 else {"oneOf": kinds}
    answer: Json = {
        "description": "; ".join(f"{code}: {PROBLEMS[code].title}" for code in codes),
        "content": {kind: {"schema": copy.deepcopy(schema)} for kind in ("application/json", PROBLEM_TYPE)},
    }
    headers: Json = {}
    if "UNAUTHENTICATED" in codes:
        headers["WWW-Authenticate"] = {"schema": {"const": "Bearer"}}
    if later := [code for code in codes if PROBLEMS[code].retry_after_s]:
        always = len(later) == len(codes)
        headers["Retry-After"] = {
            "description": RETRY_TOLD if always else f"{RETRY_TOLD}; with {', '.join(later)}",
            "required": always,
            "schema": {"type": "integer", "minimum": 1},
        }
    return answer | ({"headers": headers} if headers else {})


def _schemes(access: AccessRules) -> Json:
    """Those by which this listener knows callers as it is configured."""
    bearer = {"type": "http", "scheme": "bearer"}
    schemes: Json = {"token": {**bearer, "description": "the administrator's, or one that POST /v1/tokens made"}}
    if access.web_tokens is not None:
        told = "signed by a key of listeners.api.jwt.keys; its user's own memories alone"
        schemes["jwt"] = {**bearer, "bearerFormat": "JWT", "description": told}
    told = "the user, as a proxy says that has verified them; the user's own memories alone"
    for header in access.trusted_headers:
        schemes[f"header_{header}"] = {"type": "apiKey", "in": "header", "name": header, "description": told}
    return schemes


def _limit_metadata(properties: Mapping[str, Json], limits: MetadataLimits) -> None:
    schema = properties["metadata"]
    for kind in [schema, *schema.get("anyOf", [])]:
        if kind.get("type") == "object":
            kind["maxProperties"] = limits.keys_max
            kind["propertyNames"] = {"not": {"enum": sorted(OWN_METADATA)}}
    schema["description"] = (
        f"at most {limits.keys_max} keys on all levels together, {limits.depth_max} levels and {limits.bytes_max}"
        " bytes as JSON, what it is merged with included"
    )
