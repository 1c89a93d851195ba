"""A plain tree against the schema: the settings it makes, and a finding for every value the schema refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from semmem.config import schema
from semmem.config.problems import NOTHING, Finding, Loc, shown
from semmem.config.settings import Settings


class Validated(NamedTuple):
    """``settings`` has the default in place of every refused value, and of every list that holds one."""

    settings: Settings
    findings: list[Finding]


def validate(tree: dict[str, Any]) -> Validated:
    """Every refused value is a finding, and is left out, so that rules can still be tried on the rest."""
    try:
        return Validated(Settings.model_validate(tree), [])
    except ValidationError as error:
        details = error.errors(include_url=False)
    for detail in details:
        tree = _without(tree, detail["loc"])
    # Only elements of lists have required keys, so nothing can be missing now.
    return Validated(Settings.model_validate(tree), [_finding(detail) for detail in details])


def _without(section: dict[str, Any], loc: Loc) -> dict[str, Any]:
    """A copy without the value there, or without the outermost list around it."""
    head, rest = loc[0], loc[1:]
    inner = section.get(str(head))
    if isinstance(inner, dict) and rest:
        return {**section, str(head): _without(inner, rest)}
    return {key: value for key, value in section.items() if key != head}


def _finding(detail: ErrorDetails) -> Finding:
    loc, kind, value = detail["loc"], detail["type"], detail["input"]
    if kind == "extra_forbidden":
        return Finding(loc, value, "unknown key", schema.nearest_key(loc))
    wanted = schema.describe(loc)
    if kind == "missing":
        return Finding(loc, NOTHING, "is required", f"give {wanted}")
    return Finding(loc, value, *_reason_and_remedy(loc, kind, value, wanted, detail.get("ctx", {})))


def _reason_and_remedy(loc: Loc, kind: str, value: Any, wanted: str, context: Mapping[str, Any]) -> tuple[str, str]:
    if kind == "refused":
        return context["reason"], context["remedy"]
    if kind in ("too_long", "string_too_long"):
        return f"is longer than {context['max_length']}", "shorten it"
    if value in (None, ""):
        return "is empty", f"give {wanted}"
    if kind == "string_type" and isinstance(value, bool | int | float):
        return f"is not {wanted}", "put it in quotes"
    return f"is not {wanted}", _hint(loc, wanted)


def _hint(loc: Loc, wanted: str) -> str:
    field = schema.field_at(loc)
    if field is None or field.is_required() or schema.is_section(field.annotation) or isinstance(loc[-1], int):
        return f"give {wanted}"
    if schema.item_type(field.annotation) is not None:
        return "write it as [a, b]"
    return f"the default is {shown(field.get_default(), ())}"
