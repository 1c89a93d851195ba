"""What other systems call things: every configuration key, environment variable and header that their users bring.

names.toml is the one table: each name is taken for the key that it means, or refused with the reason. schema.py
makes docs/names.md of it, and a test tries every row.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from semmem.config.problems import Finding, Loc, dotted


class Kind(StrEnum):
    """Where a name is written."""

    KEY = "key"
    VARIABLE = "environment variable"
    HEADER = "request header"


def as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Name:
    """A name as another system spells it, dotted for a key inside a section. ``becomes`` is the key of ours that it
    sets, or of a header what governs it; empty: it is refused, since ``reason``, and ``instead`` says what does the
    same here. ``value`` makes ours of its values; what it does not know stays as it is, and is refused as any value of
    that key. ``note`` goes into the page."""

    kind: Kind
    origin: str
    name: str
    becomes: str = ""
    note: str = ""
    value: Callable[[Any], Any] = as_it_is
    reason: str = ""
    instead: str = ""

    @property
    def loc(self) -> Loc:
        return tuple(self.name.split("."))

    @property
    def target(self) -> Loc:
        return tuple(self.becomes.split("."))


def _model(value: Any) -> Any:
    """The one model that all of them name, each in its own way."""
    same = ("bert", "sentence-transformers/all-MiniLM-L6-v2", "Xenova/all-MiniLM-L6-v2")
    return "all-MiniLM-L6-v2" if value in same else value


def _flag(value: Any) -> Any:
    return {0: False, 1: True}[value] if type(value) is int and value in (0, 1) else value


def _seconds(value: Any) -> Any:
    return value / 1000 if type(value) in (int, float) else value


def _read(told: str | Mapping[str, str]) -> Callable[[Any], Any]:
    """What reads the values of a row: a word for one of the above, or their words with ours."""
    if isinstance(told, str):
        return {"as_it_is": as_it_is, "model": _model, "flag": _flag, "seconds": _seconds}[told]
    return lambda value: told.get(value, value) if isinstance(value, str) else value


NAMES = tuple(
    Name(Kind(row.pop("kind")), value=_read(row.pop("value", "as_it_is")), **row)
    for row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["names"]
)


def keys() -> Iterator[Name]:
    """Keys that are spelled otherwise here, or refused."""
    return (name for name in NAMES if name.kind is Kind.KEY and name.name != name.becomes)


def variables() -> dict[str, Name]:
    """Environment variables by name."""
    return {name.name: name for name in NAMES if name.kind is Kind.VARIABLE}


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
        tree = without(tree, name.loc)
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


def without(section: dict[str, Any], loc: Loc) -> dict[str, Any]:
    """A copy without the value there, or without the outermost list around it."""
    head, rest = loc[0], loc[1:]
    inner = section.get(str(head))
    if isinstance(inner, dict) and rest:
        return {**section, str(head): without(inner, rest)}
    return {key: value for key, value in section.items() if key != head}


def _with(tree: Any, loc: Loc, value: Any) -> Any:
    """A copy with one value set. Where a section should be and something else is, the schema refuses that."""
    if not loc:
        return value
    if not isinstance(tree, dict) and tree is not None:
        return tree
    section: dict[str, Any] = tree or {}
    return {**section, str(loc[0]): _with(section.get(str(loc[0])), loc[1:], value)}
