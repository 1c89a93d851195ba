"""Config, headers and body: the most restrictive wins."""

from __future__ import annotations

import pytest

from semmem.memory import Controls
from semmem.request.head import RequestHead
from semmem.request.permission import EVERYTHING, NOTHING, Permission, PermissionRules, permission

READ_ONLY = Permission(read=True, store=False)
WRITE_ONLY = Permission(read=False, store=True)


def allowed(
    headers: dict[str, tuple[str, ...]] | None = None,
    controls: Controls = Controls(),
    rules: PermissionRules = PermissionRules(),
) -> Permission:
    return permission(rules, RequestHead("POST", "/v1/chat/completions", headers or {}), controls)


def test_memory_is_on_by_default() -> None:
    assert allowed() == EVERYTHING


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-disable-router-memory", "true"),
        ("x-disable-router-memory", "TRUE"),
        ("x-omniroute-no-memory", "true"),
        ("x-omniroute-no-memory", "1"),
        ("x-omniroute-no-memory", "Yes"),
        ("x-semmem-memory", "off"),
        ("x-semmem-memory", "no-such-word"),
    ],
)
def test_off_stops_reading_and_storing(name: str, value: str) -> None:
    assert allowed({name: (value,)}) == NOTHING


@pytest.mark.parametrize("value", ["false", "0", ""])
def test_an_off_switch_that_is_not_thrown_does_nothing(value: str) -> None:
    assert allowed({"x-disable-router-memory": (value,), "x-omniroute-no-memory": (value,)}) == EVERYTHING


def test_reading_and_storing_are_switched_apart() -> None:
    assert allowed({"x-semmem-memory": ("read",)}) == READ_ONLY
    assert allowed({"x-semmem-memory": ("write",)}) == WRITE_ONLY
    assert allowed(controls=Controls(auto_store=False)) == READ_ONLY
    assert allowed({"x-semmem-memory": ("write",)}, Controls(auto_store=False)) == NOTHING


def test_a_header_sent_twice_counts_twice() -> None:
    assert allowed({"x-semmem-memory": ("read", "write")}) == NOTHING


def test_the_most_restrictive_voice_wins() -> None:
    assert allowed({"x-semmem-memory": ("on",)}, Controls(enabled=False)) == NOTHING
    assert allowed({"x-semmem-memory": ("off",)}, Controls(enabled=True)) == NOTHING
    assert allowed({"x-enable-memory": ("true",)}, Controls(enabled=True), PermissionRules(enabled=False)) == NOTHING
    assert allowed({}, Controls(auto_store=True), PermissionRules(auto_store=False)) == READ_ONLY


def test_opt_in_waits_to_be_asked() -> None:
    rules = PermissionRules(opt_in=True)
    assert allowed(rules=rules) == NOTHING
    assert allowed({"x-enable-memory": ("true",)}, rules=rules) == EVERYTHING
    assert allowed({"x-semmem-memory": ("read",)}, rules=rules) == READ_ONLY
    assert allowed(controls=Controls(enabled=True), rules=rules) == EVERYTHING
    assert allowed({"x-enable-memory": ("true",)}, Controls(enabled=False), rules) == NOTHING
