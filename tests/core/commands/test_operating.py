"""Commands that ask a running semmem for one thing, against an API over real HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from semmem.cli import main
from semmem.commands.operating import shown_users
from tests.core.commands.test_previewing import TOKEN, running


@pytest.fixture(autouse=True)
def with_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMMEM_LISTENERS__API__ADMIN_TOKEN", TOKEN)


def test_what_is_added_is_shown_with_its_versions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(tmp_path) as url:
        for home in ("Porto", "Lisbon"):
            assert main(["add", f"User lives in {home}", "--user", "alice", "--key", "home", "--api", url]) == 0
        told = capsys.readouterr().out.splitlines()
        memory_id = told[0].split()[0]
        assert told[1] == f"{memory_id} version 2, active"
        assert main(["show", memory_id, "--user", "alice", "--api", url]) == 0
    old, new, used = capsys.readouterr().out.splitlines()
    assert old == "  1  2001-09-09  active       User lives in Porto  (updated)"
    assert new == "  2  2001-09-09  active       User lives in Lisbon"
    assert used == "used 0 times"


def test_a_token_is_made_used_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(tmp_path) as url:
        making = ["token", "create", "--role", "user", "--user", "alice", "--label", "her phone", "--api", url]
        assert main(making) == 0
        token = capsys.readouterr().out.strip()
        mine = {"authorization": f"Bearer {token}"}
        assert httpx.get(f"{url}/v1/memory", headers=mine).json()["total"] == 1
        assert main(["token", "list", "--api", url]) == 0
        [row] = capsys.readouterr().out.splitlines()
        assert row.split(maxsplit=6)[1:] == ["user", "one", "user", "2001-09-09", "good", "her phone"]
        assert token not in row
        assert main(["token", "revoke", row.split()[0], "--api", url]) == 0
        assert httpx.get(f"{url}/v1/memory", headers=mine).status_code == 401
        assert main(["token", "revoke", "--user", "alice", "--api", url]) == 0
    assert capsys.readouterr().out == "1 revoked\n0 revoked\n"


def test_users_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(tmp_path) as url:
        assert main(["users", "--limit", "2", "--api", url]) == 0
    assert capsys.readouterr().out == "alice\nbob\nmore: --after bob\n"


def test_a_user_has_an_alias_until_it_is_taken_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path) as url:
        whose = ["--user", "bob", "--api", url]
        for asked in ([], [" Ute of Hamm "], [], ["--json"]):
            assert main(["alias", *asked, *whose]) == 0
        assert main(["alias", "x" * 65, *whose]) == 1
        assert main(["alias", "", *whose]) == 0
        monkeypatch.setenv("A_TOKEN", TOKEN)
        assert main(["alias", "Ute", "--token-env", "A_TOKEN", "--api", url]) == 2, "nobody is named"
    shown = capsys.readouterr().out.splitlines()
    assert shown[:3] == ["no alias", "Ute of Hamm", "Ute of Hamm"]
    assert json.loads("".join(shown[3:-1])) == {"user_id": "bob", "alias": "Ute of Hamm"}
    assert shown[-1] == "no alias"
    told = {"users": ["alice", "bob"], "aliases": {"bob": "Ute of Hamm"}, "next_after": None}
    assert list(shown_users(told)) == ["alice", "bob  Ute of Hamm"]


def test_switches_are_set_one_at_a_time_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(tmp_path) as url:
        for asked in (
            ["--user", "alice", "--reading", "off"],
            ["--user", "alice", "--storing", "off"],
            ["--user", "alice", "--reading", "unsaid"],
            ["--user", "alice"],
            ["--group", "staff", "--reading", "off"],
            [],
        ):
            assert main(["switches", *asked, "--api", url]) == 0
        assert main(["switches", "--reading", "off", "--api", url]) == 2
    assert capsys.readouterr().out.splitlines() == [
        "alice: reading off, storing unsaid",
        "alice: reading off, storing off",
        "alice: reading unsaid, storing off",
        "alice: reading unsaid, storing off",
        "staff: reading off, storing unsaid",
        "staff: reading off, storing unsaid",
        "1 groups, 1 users",
    ]


def test_a_part_that_does_not_work_is_an_exit_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(tmp_path) as url:
        assert main(["status", "--api", url]) == 1
        told = capsys.readouterr().out.splitlines()
        assert main(["status", "--json", "--api", url]) == 1
    assert told[0].startswith("embedder   works, ")
    assert told[1].startswith("store      StoreUnavailable, ")
    assert told[2] == "does not work"
    assert json.loads(capsys.readouterr().out)["working"] is False


def test_a_refusal_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(tmp_path) as url:
        assert main(["token", "create", "--role", "user", "--api", url]) == 1
    assert "one of a reader may have one" in capsys.readouterr().err
