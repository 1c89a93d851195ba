"""Names of other systems, taken for the keys that they mean or refused with the reason. The table is names.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from semmem.config.names import keys
from semmem.config.problems import Finding, Loc, dotted

ALIASES: Mapping[Loc, Loc] = {name.loc: name.target for name in keys() if name.becomes}
"""Another system's spelling on the left."""
ABSENT: Any = object()


class Adopted(NamedTuple):
    """A tree with keys of ours alone, what was wrong with others, and where the values that moved were written."""

    tree: dict[str, Any]
    findings: list[Finding]
    written: dict[Loc, Loc]


def adopt(tree: dict[str, Any]) -> Adopted:
    """The tree (left as it was) with every name of another system's in its own place, or gone with a finding."""
    findings: list[Finding] = []
    written: dict[Loc, Loc] = {}
    for name in keys():
        if (given := value_at(tree, name.loc)) is ABSENT:
            continue
        tree = _without(tree, name.loc)
        if not name.becomes:
            findings.append(Finding(name.loc, given, name.reason, name.instead))
            continue
        value, there = name.value(given), value_at(tree, name.target)
        if there is ABSENT:
            tree = _with(tree, name.target, value)
            written[name.target] = name.loc
        elif there != value:
            ours = dotted(written.get(name.target, name.target))
            findings.append(Finding(name.loc, given, f"differs from {ours}", f"keep {ours} alone"))
    return Adopted(tree, findings, written)


def value_at(tree: Any, loc: Loc) -> Any:
    """The value below keys of a plain tree, or ABSENT."""
    for part in loc:
        if not (isinstance(tree, dict) and part in tree):
            return ABSENT
        tree = tree[part]
    return tree


def _without(tree: dict[str, Any], loc: Loc) -> dict[str, Any]:
    head, rest = str(loc[0]), loc[1:]
    if rest:
        return {**tree, head: _without(tree[head], rest)}
    return {key: value for key, value in tree.items() if key != head}


def _with(tree: Any, loc: Loc, value: Any) -> Any:
    """A copy with one value set. Where a section should be and something else is, the schema refuses that."""
    if not loc:
        return value
    if not isinstance(tree, dict) and tree is not None:
        return tree
    section: dict[str, Any] = tree or {}
    return {**section, str(loc[0]): _with(section.get(str(loc[0])), loc[1:], value)}
