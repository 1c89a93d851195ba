"""Overrides from environment variables: ``SEMMEM_MEMORY__MILVUS__ADDRESS`` sets ``memory.milvus.address``.

Two underscores step into a section, a number names a list's element, case does not matter. Text is taken as it
stands; everything else is read as YAML (``true``, ``7``, ``[a, b]``). Variables of other systems are in names.py.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from semmem.config import schema
from semmem.config.names import ALIASES, Name, keys, value_at
from semmem.config.names import variables as names_of_others
from semmem.config.problems import Loc, Problem, dotted
from semmem.config.yaml_source import Unreadable, parse

PREFIX = "SEMMEM_"
RESERVED = frozenset({"SEMMEM_CONFIG"})
"""Read by the command line: the path of the configuration file."""

_KUBERNETES = re.compile(r"SEMMEM(_[A-Z0-9]+)*_(SERVICE_(HOST|PORT(_[A-Z0-9]+)*)|PORT(_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?)?)")
"""Variables that Kubernetes puts into every pod beside a Service named semmem or semmem-..."""


@dataclass(frozen=True, slots=True)
class Overridden:
    """A tree with the overrides in it, which variable set which place, and what could not be set."""

    tree: dict[str, Any]
    variables: dict[Loc, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


class _Refused(Exception):
    """One variable cannot be used; ``problem`` says why."""

    def __init__(self, name: str, path: str, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.problem = Problem(path, "", reason, remedy, name)


def variable_name(loc: Loc) -> str:
    """The environment variable that sets a place."""
    return PREFIX + "__".join(str(part).upper() for part in loc)


def override(tree: dict[str, Any], environ: Mapping[str, str]) -> Overridden:
    """The tree (left as it was) with every ``SEMMEM_`` variable applied; whole lists before their elements."""
    variables: dict[Loc, str] = {}
    problems: list[Problem] = []
    for name, text in sorted(_ours(environ), key=_whole_lists_first):
        try:
            loc = _place(name)
            if loc in variables:
                raise _Refused(name, dotted(loc), f"sets what {variables[loc]} sets too", "keep one of them")
            tree = _with(tree, loc, _translated(name, _value(name, loc, text)), name, loc)
        except _Refused as refused:
            problems.append(refused.problem)
        else:
            variables[loc] = name
    for other, text in _of_others(environ):
        try:
            tree = _adopted(tree, variables, other, text)
        except _Refused as refused:
            problems.append(refused.problem)
    return Overridden(tree, variables, tuple(problems))


def _of_others(environ: Mapping[str, str]) -> Iterator[tuple[Name, str]]:
    """Variables that other systems have, as far as they are set to anything and mean something here. The rest may well
    be meant for another program beside this one: remarks() tells of them, and nothing stops."""
    return ((known, environ[name]) for name, known in names_of_others().items() if known.becomes and environ.get(name))


def _adopted(tree: dict[str, Any], variables: dict[Loc, str], other: Name, text: str) -> dict[str, Any]:
    """The tree with what another system's variable means; of the rank of our own. Raises _Refused."""
    loc = other.target
    value = other.value(_value(other.name, loc, text))
    if (first := variables.get(loc)) is None:
        variables[loc] = other.name
        return _with(tree, loc, value, other.name, loc)  # type: ignore[no-any-return]
    if value_at(tree, loc) != value:
        raise _Refused(other.name, dotted(loc), f"differs from {first}, which sets the same", "keep one of them")
    return tree


def _ours(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, text in environ.items():
        upper = name.upper()
        if upper.startswith(PREFIX) and upper not in RESERVED and not _KUBERNETES.fullmatch(upper):
            yield name, text


def _whole_lists_first(item: tuple[str, str]) -> tuple[list[tuple[int, str]], str]:
    parts = item[0].lower().split("__")
    return [(int(part) if _is_index(part) else -1, part) for part in parts], item[0]


def _is_index(part: str) -> bool:
    return re.fullmatch(r"[0-9]{1,4}", part) is not None


def _place(name: str) -> Loc:
    loc: Loc = tuple(int(part) if _is_index(part) else part for part in name[len(PREFIX) :].lower().split("__"))
    loc = ALIASES.get(loc, loc)
    annotation = schema.type_at(loc)
    if annotation is None:
        raise _Refused(name, dotted(loc), "names no key of the configuration", _nearest_variable(name))
    if schema.is_section(annotation):
        example = variable_name((*loc, next(iter(annotation.model_fields))))
        raise _Refused(name, dotted(loc), "names a whole section", f"set its keys one by one, for example {example}")
    return loc


def _translated(name: str, value: Any) -> Any:
    """A value of another system's, where the variable is made of its key."""
    return next((key.value(value) for key in keys() if key.becomes and variable_name(key.loc) == name.upper()), value)


def _nearest_variable(name: str) -> str:
    known = (variable_name(leaf.path) for leaf in schema.leaves())
    flat = {variable.replace("__", "_"): variable for variable in known}
    near = difflib.get_close_matches(name.upper().replace("__", "_"), flat, n=1, cutoff=0.75)
    return f"did you mean {flat[near[0]]}?" if near else "unset it, or see docs/configuration.md for the keys"


def _value(name: str, loc: Loc, text: str) -> Any:
    if schema.is_text(schema.type_at(loc)):
        return text
    try:
        document = parse(text, name)
    except Unreadable as unreadable:
        raise _Refused(name, dotted(loc), unreadable.problem.reason, f"give {schema.describe(loc)}") from None
    for problem in document.problems:
        raise _Refused(name, dotted(loc), f"{problem.path}: {problem.reason}", problem.remedy)
    return document.tree


def _with(tree: Any, path: Loc, value: Any, name: str, loc: Loc) -> Any:
    """A copy with one value set. Aliased YAML nodes are shared, so nothing is changed in place."""
    if not path:
        return value
    head, rest = path[0], path[1:]
    container: Any = [] if isinstance(head, int) else {}
    if tree is not None and not isinstance(tree, type(container)):
        raise _Refused(name, dotted(loc), "cannot be set inside a value of another kind", "correct the file first")
    if isinstance(head, str):
        section: dict[str, Any] = tree or {}
        return {**section, head: _with(section.get(head), rest, value, name, loc)}
    items: list[Any] = list(tree or ())
    if head > len(items):
        raise _Refused(name, dotted(loc), f"skips elements: the list has {len(items)}", "number them from 0 on")
    items[head : head + 1] = [_with(items[head] if head < len(items) else None, rest, value, name, loc)]
    return items
