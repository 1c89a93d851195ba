"""``semmem conversations``: list, show, export and delete, against answers over real HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from semmem.cli import main
from tests.core.commands.test_previewing import TOKEN
from tests.support.scripted_api import Answer, answering, refusal

KEPT: dict[str, Any] = {
    "id": "conv_1",
    "title": "The \x1bmove",
    "updated_at": "2026-11-22T10:00:00Z",
    "messages": 2,
}
CALL = {"id": "c", "name": "maps", "arguments": "{}"}
SAID: list[dict[str, Any]] = [
    {"role": "user", "content": "Where to?", "at": "2026-11-22T10:00:00Z", "model": None, "tool_calls": []},
    {"role": "assistant", "content": "", "at": "2026-11-22T10:00:01.5Z", "model": "gpt-4o", "tool_calls": [CALL]},
]


@pytest.fixture(autouse=True)
def with_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMMEM_LISTENERS__API__ADMIN_TOKEN", TOKEN)


def test_a_list_shows_a_line_each_and_where_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    page = {"conversations": [KEPT], "next_cursor": "abc", "recording": False}
    with answering([Answer(200, page)]) as (url, asked):
        assert main(["conversations", "list", "--user", "alice", "--tag", "home", "--api", url]) == 0
    assert "tag=home" in asked[0]
    assert "user_id=alice" in asked[0]
    assert capsys.readouterr().out.splitlines() == [
        "conv_1  2026-11-22      2  The  move",
        "nothing is recorded: conversations.enabled is false",
        "more: --cursor abc",
    ]


def test_all_pages_of_one_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    pages = [
        Answer(200, {"conversation": KEPT, "messages": [said], "next_cursor": cursor})
        for said, cursor in zip(SAID, ("next", None), strict=True)
    ]
    with answering(pages) as (url, asked):
        assert main(["conversations", "show", "conv_1", "--user", "alice", "--api", url]) == 0
    assert "cursor=next" in asked[1]
    shown = capsys.readouterr().out
    assert "user  2026-11-22 10:00:00\n  Where to?\n" in shown
    assert "assistant  2026-11-22 10:00:01  gpt-4o\n  calls maps: {}\n" in shown


def test_one_is_exported_and_deleted_and_one_that_is_not_there_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    whole = {"conversation": KEPT, "messages": SAID}
    answers = [
        Answer(200, whole), Answer(200, {"success": True, "messages": 2}), refusal(404, "NOT_FOUND", "no such thing")
    ]  # fmt: skip
    with answering(answers) as (url, asked):
        named = ["conv_1", "--user", "alice", "--api", url]
        assert main(["conversations", "export", *named, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == whole
        assert main(["conversations", "delete", *named]) == 0
        assert capsys.readouterr().out == "2 messages deleted\n"
        assert main(["conversations", "export", *named]) == 5
    assert ["format=json" in asked[0], asked[1].startswith("DELETE"), "format=markdown" in asked[2]] == [True] * 3
