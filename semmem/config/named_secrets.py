"""Secrets that stand in environment variables which the configuration names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from semmem.config import schema
from semmem.config.problems import NOTHING, REDACTED, Finding, Loc

ENDING = "_env"


def resolve_secrets(tree: dict[str, Any], environ: Mapping[str, str]) -> tuple[dict[str, Any], list[Finding]]:
    """The tree (left as it was) with every ``<secret>_env`` of the schema read into ``<secret>``."""
    findings: list[Finding] = []
    for path, _ in schema.leaves():
        if path[-1].endswith(ENDING):
            name = path[-1].removesuffix(ENDING)
            tree = _mapped(tree, path[:-1], (), partial(_filled, name, environ, findings))
    return tree, findings


def _mapped(tree: Any, path: tuple[str, ...], at: Loc, change: Callable[[Any, Loc], Any]) -> Any:
    """A copy with what stands at ``path`` changed, wherever it is there; ``N``: every element of a list."""
    if not path:
        return change(tree, at)
    head, rest = path[0], path[1:]
    if head == "N" and isinstance(tree, list):
        return [_mapped(item, rest, (*at, index), change) for index, item in enumerate(tree)]
    if not isinstance(tree, dict) or head not in tree:
        return tree
    return {**tree, head: _mapped(tree[head], rest, (*at, head), change)}


def _filled(name: str, environ: Mapping[str, str], findings: list[Finding], section: Any, at: Loc) -> Any:
    variable = section.get(f"{name}_env") if isinstance(section, dict) else None
    if not isinstance(variable, str) or not variable.isidentifier():  # The schema refuses what is not a name.
        return section
    if section.get(name):
        findings.append(Finding((*at, name), REDACTED, f"is given, and so is {name}_env", "keep one of them"))
        return section
    if environ.get(variable):
        return {**section, name: environ[variable]}
    named = f" {variable}" if variable.isupper() else ""  # Anything else may be the secret itself, pasted.
    reason = f"names an environment variable{named} that is not set"
    findings.append(Finding((*at, f"{name}_env"), NOTHING, reason, f"set it, or clear {name}_env"))
    return section
