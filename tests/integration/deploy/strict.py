"""Objects that are no part of Kubernetes, strictly.

For .venv-deploy, which has the schemas. Istio's and the Prometheus operator's are models of packages, for which a field
that they do not know is an error here; the others are ours (gateway_schemas.yaml).
"""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import Any

import yaml

MODELS = {
    "monitoring.coreos.com/v1": "cloudcoil.models.prometheus_operator.v1",
    "networking.istio.io/v1": "cloudcoil.models.istio.networking.v1",
    "networking.istio.io/v1alpha3": "cloudcoil.models.istio.networking.v1alpha3",
    "security.istio.io/v1": "cloudcoil.models.istio.security.v1",
}
OURS = Path(__file__).with_name("gateway_schemas.yaml")


def problems(thing: dict[str, Any]) -> list[str]:
    """What is wrong with an object; also that nothing is known about its kind."""
    version, kind = thing["apiVersion"], thing["kind"]
    if version in MODELS:
        return _of_model(getattr(importlib.import_module(MODELS[version]), kind, None), thing)
    schema = _ours().get(f"{version}/{kind}")
    return [f"no schema for {version} {kind}"] if schema is None else _of_schema(schema, thing)


@cache
def _ours() -> Any:
    return yaml.safe_load(OURS.read_text())["kinds"]


def _of_model(model: Any, thing: dict[str, Any]) -> list[str]:
    if model is None:
        return [f"no model for {thing['apiVersion']} {thing['kind']}"]
    try:
        model.model_validate(thing, extra="forbid")
    except ValueError as refused:
        return [str(refused)]
    return []


def _of_schema(schema: dict[str, Any], thing: dict[str, Any]) -> list[str]:
    jsonschema = importlib.import_module("jsonschema")
    whole = {
        "type": "object",
        "required": ["metadata", "spec"],
        "properties": {"apiVersion": {}, "kind": {}, "metadata": {"required": ["name"]}, "spec": schema},
    }
    found = jsonschema.Draft202012Validator(closed(whole)).iter_errors(thing)
    return [f"{each.json_path}: {each.message}" for each in found]


def closed(schema: Any) -> Any:
    """The schema with no property allowed but those it lists; conditions stay open."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: value if key in ("if", "then") else closed(value) for key, value in schema.items()}
    return inner | {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else inner
