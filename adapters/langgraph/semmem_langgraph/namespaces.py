"""Namespaces: which label names the user, what the others are, and how LangGraph matches them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langgraph.store.base import InvalidNamespaceError, ListNamespacesOp, MatchCondition, validate_op_namespace

from semmem_langgraph.errors import NotServed

Namespace = tuple[str, ...]
Part = Literal["user", "project", "session"] | None

ANY = "*"
_PARTS = ("user", "project", "session", None)


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memories, and which part of them, as the API names them. ``user`` None: the user the token is bound to."""

    user: str | None
    project: str | None = None
    session: str | None = None

    def named(self) -> dict[str, str]:
        """For a body or a query."""
        told = {"user_id": self.user, "project_id": self.project, "session_id": self.session}
        return {name: value for name, value in told.items() if value is not None}

    def owner(self) -> dict[str, str]:
        """The user alone: a memory is found by its id wherever it is."""
        return {} if self.user is None else {"user_id": self.user}


class Layout:
    """What the first labels of every namespace are: ``user``, ``project``, ``session``, or None for a plain label.

    ``("user",)``: ("alice", "memories") is alice's. ``(None, "user")``: ("memories", "alice") is. ``user``: whose all
    of it is, where no label says so; None for the user that the token is bound to. Raises ValueError for a part that
    there is not, or twice.
    """

    def __init__(self, parts: Sequence[Part] = ("user",), *, user: str | None = None) -> None:
        known = [part for part in parts if part is not None]
        if any(part not in _PARTS for part in parts) or len(set(known)) < len(known):
            raise ValueError(f"layout: {tuple(parts)!r} is not of 'user', 'project', 'session' (once each) and None")
        if user is not None and "user" in known:
            raise ValueError("layout: a label names the user, so no other user can be given")
        self.parts = tuple(parts)
        self._user = user

    def scope(self, namespace: Namespace, place: str) -> Scope:
        """Of a namespace or the beginning of one. Raises NotServed where it does not reach the user's label."""
        named: Mapping[str, str] = {part: label for part, label in zip(self.parts, namespace, strict=False) if part}
        if "user" in self.parts and "user" not in named:
            at = self.parts.index("user")
            raise NotServed(place, f"names no user (label {at} does); semmem reads one user at a time")
        return Scope(named.get("user", self._user), named.get("project"), named.get("session"))

    def whole(self, namespace: Namespace, place: str) -> Scope:
        """Of a namespace in which something is kept. Raises InvalidNamespaceError for one without a label for each
        part."""
        if len(namespace) < max(1, len(self.parts)):
            raise InvalidNamespaceError(f"{place}: has {len(namespace)} labels, the layout is of {len(self.parts)}")
        return self.scope(namespace, place)

    def of_others(self, memory: Mapping[str, Any], known: Namespace, label: str) -> Namespace:
        """Where a memory appears that nobody put here: its scope's labels, and ``label`` for all that has none.
        ``known``: labels by which the user was asked for."""
        filled = [
            known[at] if part == "user" else _spelled(memory.get(f"{part}_id"), label) if part else label
            for at, part in enumerate(self.parts)
        ]
        return (*filled, label)


def _spelled(name: object, label: str) -> str:
    """A name as a label, where LangGraph would take it for one."""
    return name if isinstance(name, str) and name and not {".", "\0"} & set(name) else label


def checked(op: Any) -> None:
    """Raises InvalidNamespaceError: what is given to ``batch`` directly passed no check of LangGraph's."""
    validate_op_namespace(op)


def prefix_of(op: ListNamespacesOp) -> Namespace:
    """The labels that every match begins with."""
    prefixes = [match.path for match in op.match_conditions or () if match.match_type == "prefix"]
    fixed: list[Namespace] = []
    for path in prefixes:
        end = path.index(ANY) if ANY in path else len(path)
        fixed.append(tuple(path[:end]))
    return max(fixed, key=len, default=())


def listed(found: set[Namespace], op: ListNamespacesOp) -> list[Namespace]:
    """Those that are asked for, in order: matched first, cut to ``max_depth`` then, and each once."""
    matching = {one for one in found if all(matches(condition, one) for condition in op.match_conditions or ())}
    cut = {one[: op.max_depth] for one in matching} if op.max_depth is not None else matching
    return sorted(cut)[op.offset : op.offset + op.limit]


def matches(condition: MatchCondition, namespace: Namespace) -> bool:
    """By the beginning or the end; ``*`` is any one label."""
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in (ANY, label) for wanted, label in zip(path, part, strict=True))
