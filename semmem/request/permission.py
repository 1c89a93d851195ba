"""What a request allows: reading memories, storing the turn, both or neither.

Three voices: the operator's config, the request's headers, the request's body. The most restrictive wins. What they
leave, an administrator's switch may take away (semmem.request.switches).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from semmem.memory import Controls
from semmem.request.head import RequestHead

MODE_HEADER = "x-semmem-memory"
OFF_HEADERS = {
    "x-disable-router-memory": frozenset({"true"}),
    "x-omniroute-no-memory": frozenset({"true", "1", "yes"}),
}
ON_HEADER = "x-enable-memory"


@dataclass(frozen=True, slots=True)
class Permission:
    """May this request's user's memories be read, and may its turn be stored and learnt from."""

    read: bool
    store: bool

    def __and__(self, other: Permission) -> Permission:
        return self if other is EVERYTHING else Permission(self.read and other.read, self.store and other.store)


EVERYTHING = Permission(read=True, store=True)
READING = Permission(read=True, store=False)
NOTHING = Permission(read=False, store=False)
MODES = {
    "on": EVERYTHING,
    "read": READING,
    "write": Permission(read=False, store=True),
    "off": NOTHING,
}


@dataclass(frozen=True, slots=True)
class PermissionRules:
    """The operator's voice. ``opt_in``: memory stays off unless the request asks for it."""

    enabled: bool = True
    opt_in: bool = False
    auto_store: bool = True


class Switched(StrEnum):
    """What a switch took away; empty for nothing."""

    NOTHING = ""
    READING = "reading"
    STORING = "storing"
    BOTH = "both"


def switched_off(asked: Permission, left: Permission) -> Switched:
    """What is in the first and not in the second."""
    reading, storing = asked.read and not left.read, asked.store and not left.store
    if reading and storing:
        return Switched.BOTH
    return Switched.READING if reading else Switched.STORING if storing else Switched.NOTHING


def permission(rules: PermissionRules, head: RequestHead, controls: Controls) -> Permission:
    """What all three voices together allow."""
    if not rules.enabled or (rules.opt_in and not _asked_for(head, controls)):
        return NOTHING
    config = EVERYTHING if rules.auto_store else READING
    return config & _headers_allow(head) & _body_allows(controls)


def _asked_for(head: RequestHead, controls: Controls) -> bool:
    mode = (head.header(MODE_HEADER) or "").lower()
    return controls.enabled is True or mode in ("on", "read", "write") or _says(head, ON_HEADER, frozenset({"true"}))


def _headers_allow(head: RequestHead) -> Permission:
    for name, words in OFF_HEADERS.items():
        if name in head.headers and _says(head, name, words):
            return NOTHING
    allowed = EVERYTHING
    for value in head.headers.get(MODE_HEADER, ()):  # an unknown word restricts: somebody wanted something
        allowed &= MODES.get(value.strip().lower(), NOTHING)
    return allowed


def _body_allows(controls: Controls) -> Permission:
    if controls.enabled is False:
        return NOTHING
    return READING if controls.auto_store is False else EVERYTHING


def _says(head: RequestHead, name: str, words: frozenset[str]) -> bool:
    values = head.headers.get(name)
    return values is not None and any(value.strip().lower() in words for value in values)
