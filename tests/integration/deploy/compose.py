"""A compose file as its readers see it.

For .venv-deploy, which has two readers of the Compose Specification: a parser, and models for which a key that they do
not know is an error.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any

import yaml

_VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


def replaced(text: str, values: Mapping[str, str]) -> str:
    """With ``${NAME}``, ``${NAME:-default}``, ``${NAME:?why}`` replaced. KeyError: a value is missing."""

    def value(found: re.Match[str]) -> str:
        name, kind, rest = found.groups()
        if given := values.get(name):
            return given
        if kind == "-":
            return str(rest)
        raise KeyError(f"{name}: {rest}")

    return _VARIABLE.sub(value, text)


def read(text: str) -> Any:
    """The file as plain data. ValueError when one of the readers refuses it."""
    spec: Any = importlib.import_module("compose_spec")
    whole = yaml.safe_load(text)
    # The parser does not know Docker's word for the machine that the containers run on.
    spec.PyCompose.from_yaml(yaml.safe_dump(whole, sort_keys=False).replace(":host-gateway", ":192.0.2.1"))
    plain = {key: value for key, value in whole.items() if not key.startswith("x-")}
    spec.ComposeSpecification.model_validate(plain, extra="forbid")
    return plain
