"""``semmem requests``: a line for each, and why one was answered so, against answers over real HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from semmem.cli import main
from tests.core.commands.test_previewing import TOKEN
from tests.support.scripted_api import Answer, answering, refusal

LISTED: dict[str, Any] = {
    "id": "a/\x1bb",
    "time": "2026-11-29T10:00:00.123Z",
    "outcome": "injected",
    "milliseconds": 12.34,
    "memories": 2,
    "tokens": 31,
    "api": "chat",
    "model": "gpt-4o",
    "purpose": "",
    "answer": None,
}
CAT, TEA = {"content": "User has a cat"}, {"content": "User likes tea"}
ONE: dict[str, Any] = LISTED | {
    "purpose": "recall",
    "steps": {"reading": 0.5, "finding": 11.8},
    "answer": {"ending": "answered", "milliseconds": 1500.0, "tokens_in": 120, "tokens_out": None, "cached_tokens": 80},
    "in_prompt": [CAT | {"is_new": True, "log_odds": 1.5}, TEA | {"is_new": False, "log_odds": None}],
    "gone": 1,
    "left_out": [{"content": "User owns a kayak", "reason": "limit"}],
    "learnt": [{"content": "User moved to Oslo", "type": "semantic"}],
}


@pytest.fixture(autouse=True)
def with_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMMEM_LISTENERS__API__ADMIN_TOKEN", TOKEN)


def test_a_users_requests_are_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    with answering([Answer(200, {"requests": [LISTED]})]) as (url, asked):
        assert main(["requests", "--user", "alice", "--outcome", "injected", "--limit", "3", "--api", url]) == 0
    assert all(part in asked[0] for part in ("user_id=alice", "outcome=injected", "limit=3"))
    assert capsys.readouterr().out == "2026-11-29 10:00:00  injected              12.3 ms   2 memories  a/ b\n"


def test_of_one_everything_that_is_known_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with answering([Answer(200, ONE), Answer(200, ONE)]) as (url, asked):
        named = ["requests", "a/b", "--user", "alice", "--api", url]
        assert main(named) == 0
        shown = capsys.readouterr().out.splitlines()
        assert main([*named, "--json"]) == 0
    assert asked[0] == "GET /v1/requests/a%2Fb"
    assert shown == [
        "2026-11-29 10:00:00  injected, about: recall, chat, gpt-4o",
        "took 12.34 ms (reading 0.5, finding 11.8); 31 tokens added",
        "answer: answered after 1500.0 ms; tokens_in 120, cached_tokens 80",
        "in the prompt  log-odds 1.5    User has a cat",
        "in the prompt  from earlier    User likes tea",
        "in the prompt  1 more, that are gone",
        "left out       limit           User owns a kayak",
        "learnt         semantic        User moved to Oslo",
    ]
    assert json.loads(capsys.readouterr().out) == ONE


def test_of_one_without_an_answer_nothing_is_made_up(capsys: pytest.CaptureFixture[str]) -> None:
    bare = LISTED | {"steps": {}, "in_prompt": [], "gone": 0, "left_out": [], "learnt": []}
    with answering([Answer(200, bare)]) as (url, _):
        assert main(["requests", "r", "--user", "alice", "--api", url]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("about: not decided, chat, gpt-4o")


def test_one_that_is_not_kept_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    with answering([refusal(404, "NOT_FOUND", "no such request, or it is not kept any more")]) as (url, _):
        assert main(["requests", "r", "--user", "alice", "--api", url]) == 5
    assert "not kept any more" in capsys.readouterr().err
