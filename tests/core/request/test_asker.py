"""What a request says of itself, in one value: who asks, what is allowed, what earlier filters found."""

from __future__ import annotations

import pytest

from semmem.memory import Controls, Scope
from semmem.request.asker import Asker, AskerRules, read_asker
from semmem.request.head import RequestHead
from semmem.request.identity import IdentityRules
from semmem.request.outcome import Outcome
from semmem.request.permission import EVERYTHING, NOTHING, Permission, PermissionRules
from semmem.request.verdicts import VerdictRules, Verdicts, VerdictSource

RULES = AskerRules(
    IdentityRules(trusted_headers=("x-user-id",)),
    PermissionRules(),
    VerdictRules(blocked=VerdictSource("x-blocked"), pii=VerdictSource("x-pii")),
)


def asker(controls: Controls = Controls(), **headers: str) -> Asker:
    sent = {name.replace("_", "-"): (value,) for name, value in headers.items()}
    return read_asker(RULES, RequestHead("POST", "/v1/chat/completions", sent), controls)


def test_everything_is_read_at_once() -> None:
    said = asker(x_user_id="alice", x_project_id="p1", x_semmem_memory="read", x_pii="yes", x_request_id="r1")
    allowed = Permission(read=True, store=False)
    assert said == Asker(Scope("alice", project="p1"), allowed, Verdicts(pii=True), "r1")


def test_the_body_has_a_say_in_what_is_allowed_and_none_in_who_asks() -> None:
    said = asker(Controls(enabled=False, claimed_user="mallory", project="p1"), x_user_id="alice")
    assert (said.scope, said.allowed) == (Scope("alice", project="p1"), NOTHING)
    assert asker(Controls(claimed_user="mallory")).scope is None


@pytest.mark.parametrize(
    ("headers", "refusal"),
    [
        ({}, None),
        ({"x_semmem_memory": "read"}, None),
        ({"x_semmem_memory": "write"}, None),
        ({"x_semmem_memory": "off"}, Outcome.OPTED_OUT),
        ({"x_blocked": "1"}, Outcome.BLOCKED),
        ({"x_pii": "1"}, Outcome.PII),
        ({"x_pii": "1", "x_blocked": "1"}, Outcome.BLOCKED),
        ({"x_pii": "1", "x_blocked": "1", "x_semmem_memory": "off"}, Outcome.OPTED_OUT),
    ],
)
def test_a_request_is_refused_with_its_first_reason_whoever_asks(
    headers: dict[str, str], refusal: Outcome | None
) -> None:
    assert asker(Controls(), **headers).refusal is refusal
    assert asker(Controls(), x_user_id="alice", **headers).refusal is refusal


def test_a_name_of_a_request_that_no_log_could_show_is_none() -> None:
    assert asker(x_request_id="a\x00b").request_id == ""
    assert asker().request_id == ""
    assert asker().allowed == EVERYTHING
