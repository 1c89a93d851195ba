"""How commands fail: a sentence with place and reason, or a document, and an exit status for each kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from semmem.cli import main
from semmem.commands.asking import TIMEOUT_S
from semmem.commands.command import Exit
from semmem.config import Settings
from tests.core.commands.test_previewing import TOKEN, running
from tests.support.scripted_api import Answer, answering, refusal

LIST = ["list", "--user", "alice"]


@pytest.fixture(autouse=True)
def with_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMMEM_LISTENERS__API__ADMIN_TOKEN", TOKEN)


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The error of a command that is asked for JSON; its exit status is the one that it tells."""
    status = main([*words, "--json"])
    printed = capsys.readouterr()
    assert printed.out == ""
    [line] = printed.err.splitlines()
    error: dict[str, Any] = json.loads(line)["error"]
    assert {"code", "path", "reason", "exit_status"} <= error.keys()
    assert error["exit_status"] == status
    return error


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (refusal(401, "UNAUTHENTICATED", "not known"), Exit.REFUSED, "--token-env"),
        (refusal(403, "FORBIDDEN", "only an administrator may"), Exit.REFUSED, "only an administrator may"),
        (refusal(404, "NOT_FOUND", "no such memory"), Exit.NOT_FOUND, "no such memory"),
        (refusal(409, "BUSY", "try again"), Exit.NOT_NOW, "try again"),
        (refusal(429, "TOO_MANY", "slowly", {"retry-after": "7"}), Exit.NOT_NOW, "try again in 7 s"),
        (refusal(503, "MEMORY_NOT_AVAILABLE", "later"), Exit.NOT_NOW, "later"),
        (refusal(400, "INVALID_LIMIT", "query.limit"), Exit.NOT_DONE, "query.limit"),
        (Answer(400, {"status": 400, "code": "INVALID_LIMIT", "detail": "no limit"}), Exit.NOT_DONE, "no limit"),
    ],
)
def test_a_refusal_is_told_with_its_place_reason_and_kind(
    capsys: pytest.CaptureFixture[str], answer: Answer, status: int, words: str
) -> None:
    with answering([answer]) as (url, _):
        error = told(capsys, *LIST, "--api", url)
        assert main([*LIST, "--api", url]) == status
    assert error["exit_status"] == status
    assert error["path"] == f"{url}/v1/memory"
    assert error["reason"].startswith(f"answered {answer.status} {error['code']}: ")
    assert words in error["reason"]
    line = capsys.readouterr().err
    assert line == f"semmem list: {url}/v1/memory: {error['reason']}\n"


@pytest.mark.parametrize("answer", [Answer(200, "<html>"), Answer(502, "<html>"), Answer(404, ["nothing"])])
def test_what_is_no_api_of_semmem_is_called_so(capsys: pytest.CaptureFixture[str], answer: Answer) -> None:
    with answering([answer]) as (url, _):
        assert told(capsys, *LIST, "--api", url)["code"] == "NOT_AN_API"


def test_an_address_where_nobody_listens_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    error = told(capsys, *LIST, "--api", "http://127.0.0.1:9")
    assert (error["code"], error["exit_status"]) == ("NO_SERVER", Exit.NO_ANSWER)
    assert error["path"] == "http://127.0.0.1:9/v1/memory"


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://localhost", "http://", "http://a:b:c", ""])
def test_a_url_that_leads_nowhere_is_an_argument_that_is_wrong(capsys: pytest.CaptureFixture[str], url: str) -> None:
    error = told(capsys, *LIST, f"--api={url}")
    assert (error["code"], error["path"], error["exit_status"]) == ("BAD_URL", "--api", Exit.MISUSED)


def test_without_a_token_nobody_is_asked(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEMMEM_LISTENERS__API__ADMIN_TOKEN")
    with answering([Answer(200, {})]) as (url, asked):
        error = told(capsys, *LIST, "--api", url)
        assert (error["code"], error["exit_status"]) == ("NO_TOKEN", Exit.REFUSED)
        assert "NOBODYS" in told(capsys, *LIST, "--api", url, "--token-env", "NOBODYS")["reason"]
    assert asked == []


def test_a_token_of_a_user_needs_no_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path) as url:
        assert main(["token", "create", "--role", "reader", "--user", "alice", "--api", url]) == 0
        monkeypatch.setenv("MINE", capsys.readouterr().out.strip())
        assert main(["list", "--token-env", "MINE", "--api", url]) == 0
        assert capsys.readouterr().out.startswith("user: alice\nmem_")
        assert main(["add", "User likes milk", "--token-env", "MINE", "--api", url]) == Exit.REFUSED
        assert "this token may only read" in capsys.readouterr().err
    assert told(capsys, "list", "--api", url)["path"] == "--user"


def test_a_configuration_that_is_wrong_is_told_with_every_problem(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = tmp_path / "semmem.yaml"
    config.write_text("memory: {default_retrieval_limit: many}\nlog: {level: loud}\n")
    error = told(capsys, *LIST, "--config", str(config))
    assert (error["code"], error["exit_status"]) == ("BAD_CONFIG", Exit.MISUSED)
    assert {problem["path"] for problem in error["problems"]} == {"memory.default_retrieval_limit", "log.level"}
    assert error["path"] in {problem["path"] for problem in error["problems"]}
    assert main(["check", str(config), "--json"]) == Exit.MISUSED
    checked = json.loads(capsys.readouterr().out)
    assert (checked["ok"], len(checked["problems"])) == (False, 2)


@pytest.mark.parametrize("words", [["frobnicate"], ["list", "--nope"], ["token"], ["token", "frob"], ["help", "frob"]])
def test_what_is_no_command_is_a_usage_error(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert told(capsys, *words)["code"] == "USAGE"


def test_a_file_that_cannot_be_read_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    error = told(capsys, "import", str(tmp_path / "nothing.jsonl"))
    assert (error["path"], error["reason"]) == (str(tmp_path / "nothing.jsonl"), "No such file or directory")


def test_an_exit_status_stays_the_number_that_it_is() -> None:
    assert [int(each) for each in Exit] == [*range(8), 130, 141]


def test_commands_wait_longer_than_the_api_waits_for_a_store() -> None:
    """Else they could not say which part does not answer."""
    memory = Settings().memory
    assert min(memory.milvus.call_timeout_s, memory.qdrant.call_timeout_s) < TIMEOUT_S
