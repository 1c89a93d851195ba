"""Switches of an administrator's: a user's own word beats that of groups, one group's off that of others."""

from __future__ import annotations

import pytest

from semmem.memory import Controls, Scope
from semmem.ports.accounts import UNSAID, Switch, SwitchRow
from semmem.request.asker import Asker, AskerRules, read_asker
from semmem.request.head import RequestHead
from semmem.request.identity import GROUPS_MAX, IdentityRules, groups_of
from semmem.request.outcome import Outcome
from semmem.request.permission import EVERYTHING, NOTHING, READING, Permission, PermissionRules, Switched
from semmem.request.switches import Groups, Switches, group_key, user_key

OFF, ON = Switch(False, False), Switch(True, True)
WRITING = Permission(read=False, store=True)
NAMESPACE = "envoy.filters.http.jwt_authn"
IDENTITY = IdentityRules(
    trusted_headers=("x-user-id",), group_claim=("jwt_payload", "groups"), group_headers=("x-groups",)
)


def of_user(user: str, switch: Switch, number: int = 1) -> SwitchRow:
    return SwitchRow(user_key(user), "", switch, number, 0.0)


def of_group(group: str, switch: Switch, number: int = 1) -> SwitchRow:
    return SwitchRow(group_key(group), group, switch, number, 0.0)


@pytest.mark.parametrize(
    ("rows", "groups", "allowed"),
    [
        ([], ("staff",), EVERYTHING),
        ([of_user("bob", OFF)], (), EVERYTHING),
        ([of_user("alice", OFF)], (), NOTHING),
        ([of_user("alice", Switch(reading=False))], (), WRITING),
        ([of_user("alice", Switch(storing=False))], (), READING),
        ([of_group("staff", OFF)], (), EVERYTHING),
        ([of_group("alice", OFF)], (), EVERYTHING),  # a group of a user's name is no user
        ([of_group("staff", OFF)], ("staff",), NOTHING),
        ([of_group("staff", ON), of_group("guests", OFF)], ("staff", "guests"), NOTHING),
        ([of_group("staff", OFF), of_user("alice", ON)], ("staff",), EVERYTHING),
        ([of_group("staff", OFF), of_user("alice", Switch(reading=True))], ("staff",), READING),
        ([of_group("staff", ON), of_user("alice", OFF)], ("staff",), NOTHING),
        ([of_group("staff", Switch(storing=False))], None, READING),  # too many groups to read: perhaps in this one
        ([of_group("staff", OFF), of_user("alice", ON)], None, EVERYTHING),
        ([of_user("bob", OFF)], None, EVERYTHING),
    ],
)
def test_the_users_own_word_wins_and_then_any_groups_off(
    rows: list[SwitchRow], groups: Groups, allowed: Permission
) -> None:
    assert Switches(rows).allowed("alice", groups) == allowed


def test_what_is_taken_later_holds_and_what_is_not_said_any_more_is_gone() -> None:
    known = Switches([of_user("alice", OFF, 1), of_group("staff", OFF, 2)])
    known.take([of_user("alice", ON, 3)])
    assert (known.of_user("alice"), known.number_set) == (ON, 2)
    known.take([of_user("alice", UNSAID, 4)])
    assert (known.of_user("alice"), [row.group for row in known.groups()]) == (UNSAID, ["staff"])


def test_taken_whole_they_are_these_and_no_others() -> None:
    known = Switches([of_user("alice", OFF, 8)])
    known.take([of_user("bob", OFF, 2)], whole=True)
    assert (known.of_user("alice"), known.of_user("bob")) == (UNSAID, OFF)


def test_of_a_user_no_name_is_in_the_key() -> None:
    assert "alice" not in user_key("alice")
    assert user_key("alice") != group_key("alice")


# --- groups of a request ---------------------------------------------------------------------------------------------


def head(claim: object = None, *groups: str, **headers: str) -> RequestHead:
    sent: dict[str, tuple[str, ...]] = {"x-user-id": ("alice",)}
    sent.update({name.replace("_", "-"): (value,) for name, value in headers.items()})
    if groups:
        sent["x-groups"] = groups
    metadata = {} if claim is None else {NAMESPACE: {"jwt_payload": {"groups": claim}}}
    return RequestHead("POST", "/v1/chat/completions", sent, metadata)


@pytest.mark.parametrize(
    ("request_head", "groups"),
    [
        (head(), ()),
        (head("staff"), ("staff",)),
        (head(["staff", "guests"]), ("staff", "guests")),
        (head(["staff", 7, ""]), ("staff",)),
        (head({"name": "staff"}), ()),
        (head(None, "staff, guests"), ("staff", "guests")),
        (head(None, "staff", "guests"), ("staff", "guests")),
        (head("crew", " staff ,,"), ("crew", "staff")),
        (head(["g"] * GROUPS_MAX), ("g",) * GROUPS_MAX),
        (head(["g"] * (GROUPS_MAX + 1)), None),
        (head(None, "g," * 30_000), None),
    ],
)
def test_groups_come_from_the_claim_and_from_trusted_headers(request_head: RequestHead, groups: Groups) -> None:
    assert groups_of(IDENTITY, request_head) == groups


def test_no_group_is_believed_that_the_operator_did_not_ask_for() -> None:
    assert groups_of(IdentityRules(), head(["staff"], "guests")) == ()


# --- a request -------------------------------------------------------------------------------------------------------


def asker(switches: Switches, request_head: RequestHead | None = None, controls: Controls = Controls()) -> Asker:
    rules = AskerRules(IDENTITY, PermissionRules(), switches=switches)
    return read_asker(rules, head() if request_head is None else request_head, controls)


@pytest.mark.parametrize(
    ("switch", "headers", "allowed", "switched", "refusal"),
    [
        (OFF, {}, NOTHING, Switched.BOTH, Outcome.SWITCHED_OFF),
        (Switch(reading=False), {}, WRITING, Switched.READING, None),
        (Switch(storing=False), {}, READING, Switched.STORING, None),
        (Switch(storing=False), {"x_semmem_memory": "write"}, NOTHING, Switched.STORING, Outcome.SWITCHED_OFF),
        (OFF, {"x_semmem_memory": "off"}, NOTHING, Switched.NOTHING, Outcome.OPTED_OUT),
        (ON, {"x_semmem_memory": "off"}, NOTHING, Switched.NOTHING, Outcome.OPTED_OUT),
        (ON, {"x_semmem_memory": "read"}, READING, Switched.NOTHING, None),
    ],
)
def test_a_switch_takes_away_from_what_the_request_asks_for_and_never_adds(
    switch: Switch, headers: dict[str, str], allowed: Permission, switched: Switched, refusal: Outcome | None
) -> None:
    said = asker(Switches([of_user("alice", switch)]), head(**headers))
    assert (said.allowed, said.switched, said.refusal) == (allowed, switched, refusal)


def test_a_group_of_the_request_is_heard() -> None:
    switches = Switches([of_group("staff", OFF)])
    assert asker(switches, head(["staff"])).refusal is Outcome.SWITCHED_OFF
    assert asker(switches, head(None, "staff")).refusal is Outcome.SWITCHED_OFF
    assert asker(switches).refusal is None


def test_where_nobody_is_known_nobody_is_switched_off() -> None:
    rules = AskerRules(IDENTITY, PermissionRules(), switches=Switches([of_group("staff", OFF)]))
    said = read_asker(rules, RequestHead("POST", "/v1/chat/completions", {"x-groups": ("staff",)}), Controls())
    assert (said.scope, said.switched) == (None, Switched.NOTHING)
    assert asker(Switches()).scope == Scope("alice")
