"""Answers of the management API against its own description: a status, a code or a field that is not in it fails."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import httpx
import jsonschema_rs
from fastapi import FastAPI

from semmem.management.description import api_routes

Json = dict[str, Any]
TELLING = frozenset({"retry-after", "www-authenticate"})


def described_client(app: FastAPI, base_url: str = "http://semmem", **options: Any) -> httpx.AsyncClient:
    """A client of the application; an answer that is not as described fails the test that asked."""
    promised = _promised(app)

    async def check(answer: httpx.Response) -> None:
        await answer.aread()
        promised.check(answer.request.method, answer.request.url.path, answer)

    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url=base_url, event_hooks={"response": [check]}, **options
    )


_KNOWN: dict[frozenset[tuple[str, str]], Promised] = {}


def _promised(app: FastAPI) -> Promised:
    """One description for all applications with the same routes: to make it takes longer than most tests."""
    routes = frozenset((route.path, method) for route in api_routes(app.routes) for method in route.methods or ())
    if routes not in _KNOWN:
        _KNOWN[routes] = Promised(app.openapi())
    return _KNOWN[routes]


class Promised:
    """A description, read strictly: an object has the members that are described, and no other."""

    def __init__(self, told: Json) -> None:
        self._told: Json = json.loads(json.dumps(told))
        for schema in self._told["components"]["schemas"].values():
            if "properties" in schema:
                schema.setdefault("unevaluatedProperties", False)
        self._paths = sorted(self._told["paths"], key=lambda path: path.count("{"))

    def operation(self, method: str, path: str) -> Json | None:
        """That which answers; None where nothing is there."""
        for template in self._paths:
            parts = re.split(r"(\{\w+\})", template)
            name = "(.+)" if template.endswith("/end") else "([^/]*)"
            wanted = "".join(name if part.startswith("{") else re.escape(part) for part in parts)
            found: Json | None = self._told["paths"][template].get(method.lower())
            if found is not None and re.fullmatch(wanted, path):
                return found
        return None

    def check(self, method: str, path: str, answer: httpx.Response) -> None:
        """Raises AssertionError."""
        operation = self.operation(method, path)
        where = f"{method} {path}: {answer.status_code} {answer.text[:300]}"
        if operation is None:
            assert answer.status_code in (200, 401, 403, 404, 405, 400), where
            return
        promised = operation["responses"].get(str(answer.status_code))
        assert promised is not None, f"{where}: a status that is not described"
        self._check_headers(self._followed(promised).get("headers", {}), answer, where)
        content = self._followed(promised)["content"]
        media_type = answer.headers["content-type"].partition(";")[0]
        assert media_type in content, f"{where}: {media_type} is not described"
        if media_type.endswith("json"):
            self._check_body(content[media_type]["schema"], answer.json(), where)

    def _check_headers(self, promised: Json, answer: httpx.Response, where: str) -> None:
        """Those that say what a client shall do are described, and those that are promised are there."""
        known = {name.lower(): header for name, header in promised.items()}
        for name in TELLING & {*answer.headers}:
            assert name in known, f"{where}: {name} is not described"
            said = answer.headers[name]
            schema = known[name]["schema"]
            value = int(said) if schema.get("type") == "integer" and said.isdigit() else said
            assert jsonschema_rs.is_valid(schema, value), f"{where}: {name}: {said}"
        missing = {name for name, header in known.items() if header.get("required")} - {*answer.headers}
        assert not missing, f"{where}: without {missing}"

    def _check_body(self, schema: Json, body: Any, where: str) -> None:
        validator = jsonschema_rs.Draft202012Validator({**schema, "components": self._told["components"]})
        wrong = [f"{'/'.join(map(str, error.instance_path))}: {error.message}" for error in validator.iter_errors(body)]
        assert not wrong, f"{where}: {wrong}"

    def _followed(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        name = answer.get("$ref", "").removeprefix("#/components/responses/")
        followed: Mapping[str, Any] = self._told["components"]["responses"][name] if name else answer
        return followed
