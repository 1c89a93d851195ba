"""Which items a filter takes: equality as JSON has it, and LangGraph's six operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from semmem_langgraph.errors import NotServed


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Numbers are compared with numbers and texts with texts; anything else is in no order, and not taken."""

    def compared(value: Any, wanted: Any) -> bool:
        alike = (_is_number(value) and _is_number(wanted)) or (isinstance(value, str) and isinstance(wanted, str))
        return alike and compare(value, wanted)

    return compared


OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda value, wanted: equal(value, wanted),
    "$ne": lambda value, wanted: not equal(value, wanted),
    "$gt": _ordered(lambda value, wanted: value > wanted),
    "$gte": _ordered(lambda value, wanted: value >= wanted),
    "$lt": _ordered(lambda value, wanted: value < wanted),
    "$lte": _ordered(lambda value, wanted: value <= wanted),
}


def checked(wanted: Mapping[str, Any] | None) -> None:
    """Raises NotServed for an operator that there is not, before anything is read."""
    for condition in (wanted or {}).values():
        _check(condition)


def takes(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether an item's value has all that is asked for. A member that is not there is null."""
    return all(_takes(value.get(name), condition) for name, condition in (wanted or {}).items())


def _check(condition: Any) -> None:
    if not isinstance(condition, Mapping):
        return
    for name, part in condition.items():
        if name.startswith("$") and name not in OPERATORS:
            raise NotServed("filter", f"{name} is none of {', '.join(OPERATORS)}")
        if not name.startswith("$"):
            _check(part)


def _takes(value: Any, condition: Any) -> bool:
    if not isinstance(condition, Mapping):
        return equal(value, condition)
    if any(name.startswith("$") for name in condition):
        return all(_applied(name, value, wanted) for name, wanted in condition.items())
    return isinstance(value, Mapping) and all(_takes(value.get(name), part) for name, part in condition.items())


def _applied(name: str, value: Any, wanted: Any) -> bool:
    if name not in OPERATORS:
        raise NotServed("filter", f"{name} stands beside an operator and is none")
    return OPERATORS[name](value, wanted)


def equal(one: Any, other: Any) -> bool:
    """As JSON: true is not 1, and a tuple is a list."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
