"""``semmem forget`` against an API over real HTTP: by what is chosen, its dry run, and its receipt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.cli import main
from semmem.commands.command import Exit
from semmem.memory import Scope
from semmem.ports.errors import StoreUnavailable
from tests.core.commands.test_previewing import TOKEN, running
from tests.support.scripted_api import Answer, answering, refusal

ALICE = ("forget", "--user", "alice")
TOLD = {"semantic": "User likes green tea", "episodic": "User went to Rome", "procedural": "User wants short answers"}


class Stuck(InProcessStore):
    """Keeps what it has, when told to."""

    stuck = False

    async def forget_scope(self, scope: Scope, *args: Any, **more: Any) -> int:
        if self.stuck:
            raise StoreUnavailable("away")
        return await super().forget_scope(scope, *args, **more)


class Home:
    def __init__(self, url: str, store: Stuck, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = url
        self.store = store
        self._capsys = capsys

    def run(self, *words: str, status: int = 0) -> str:
        assert main([*words, "--api", self.url]) == status, self._capsys.readouterr().err
        return self._capsys.readouterr().out

    def told(self, *words: str, status: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run(*words, "--json", status=status))
        return found

    def contents(self, user: str = "alice") -> set[str]:
        return {memory["content"] for memory in self.told("list", "--user", user)["memories"]}


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """Alice has a memory of each type, the episodic one of project p; bob has one."""
    monkeypatch.setenv("SEMMEM_LISTENERS__API__ADMIN_TOKEN", TOKEN)
    store = Stuck()
    with running(tmp_path, store=store) as url:
        home = Home(url, store, capsys)
        home.run("add", TOLD["episodic"], "--user", "alice", "--type", "episodic", "--project", "p")
        home.run("add", TOLD["procedural"], "--user", "alice", "--type", "procedural")
        home.run("add", TOLD["semantic"], "--user", "bob")
        yield home


CHOICES = [
    (("--type", "episodic"), {"episodic"}),
    (("--type", "episodic", "--type", "procedural"), {"episodic", "procedural"}),
    (("--project", "p"), {"episodic"}),
    (("--text", "GREEN"), {"semantic"}),
    (("--query", "User likes green tea", "--similarity-min", "0.9"), {"semantic"}),
    (("--older-than-days", "0"), set(TOLD)),
    ((), set(TOLD)),
]


@pytest.mark.parametrize(("choice", "gone"), CHOICES, ids=lambda each: " ".join(sorted(each)) or "everything")
def test_what_is_chosen_goes_after_a_dry_run_has_named_it(home: Home, choice: tuple[str, ...], gone: set[str]) -> None:
    expected = {TOLD[kind] for kind in gone}
    dry = home.told(*ALICE, *choice, "--dry-run")
    assert dry["dry_run"] is True
    assert {memory["content"] for memory in dry["memories"]} == expected
    assert home.contents() == set(TOLD.values())
    done = home.told(*ALICE, *choice)
    assert (done["deleted"], done["receipt"]["memories"]) == (len(gone), len(gone))
    assert home.contents() == set(TOLD.values()) - expected
    assert home.contents("bob") == {TOLD["semantic"]}


def test_an_age_that_nothing_has_takes_nothing(home: Home) -> None:
    monday = 365 * 30.0  # the test's clock stands still in 2001
    assert home.told(*ALICE, "--older-than-days", str(monday), "--dry-run")["memories"] == []


def test_single_memories_go_by_their_ids_with_one_receipt_and_one_purge(home: Home) -> None:
    ids = [m["id"] for m in home.told("list", "--user", "alice")["memories"] if m["type"] != "semantic"]
    words = [word for each in ids for word in ("--id", each)]
    assert len(home.told(*ALICE, *words, "--dry-run")["memories"]) == 2
    done = home.told(*ALICE, *words, "--purge")
    assert (done["deleted"], done["receipt"]["memories"], done["purged"]) == (2, 2, True)
    assert home.contents() == {TOLD["semantic"]}


def test_the_receipt_is_text_for_people(home: Home) -> None:
    home.run("add", "User lives in Porto", "--user", "alice", "--key", "home")
    home.run("add", "User lives in Lisbon", "--user", "alice", "--key", "home")
    dry = home.run(*ALICE, "--type", "semantic", "--dry-run").splitlines()
    assert dry[-1] == "2 memories would be forgotten, and nothing was"
    told = home.run(*ALICE, "--purge").splitlines()
    assert told[:2] == ["4 memories forgotten", "1 earlier versions of them"]
    assert told[-1].startswith("the files were rewritten in ")


def test_an_erasure_that_is_pending_prints_its_receipt_and_has_a_status_of_its_own(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.store.stuck = True
    told = home.told(*ALICE, "--purge", status=Exit.PENDING)
    assert (told["pending"], told["outlives_restart"], told["deleted"]) == (True, True, 0)
    assert home.contents() == set(), "hidden at once"
    assert main([*ALICE, "--api", home.url]) == Exit.PENDING
    printed = capsys.readouterr()
    assert "pending: what is left is hidden from every answer" in printed.out
    assert "semmem forget: " in printed.err


@pytest.mark.parametrize(
    "words",
    [
        ("--id", ""),
        ("--query", ""),
        ("--text", ""),
        ("--project", ""),
        ("--id", "mem_1", "--type", "semantic"),
        ("--query", "tea", "--type", "semantic"),
        ("--text", "tea", "--older-than-days", "3"),
        ("--text", "tea", "--query", "tea"),
        ("--older-than-days", "-1"),
        ("--limit", "3"),
        ("--all",),
    ],
    ids=" ".join,
)
def test_choices_that_do_not_go_together_forget_nothing(home: Home, words: tuple[str, ...]) -> None:
    home.run(*ALICE, *words, status=Exit.MISUSED)
    assert home.contents() == set(TOLD.values())


def test_everybody_is_asked_for_by_name_and_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, home: Home
) -> None:
    receipt = {"success": True, "deleted": 5, "users": 3, "receipt": {"memories": 5}}
    with answering([Answer(200, receipt)]) as (url, asked):
        assert main(["forget", "--all", "--purge", "--api", url]) == 0
    assert asked == ["DELETE /v1/memory?all=true&purge=true"]
    assert capsys.readouterr().out == "5 memories of 3 users forgotten\n"
    assert home.run("forget", "--all", "--dry-run") == "all memories of 4 users would be forgotten, and nothing was\n"
    assert home.contents() == set(TOLD.values())


def test_a_purge_that_failed_is_no_success(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMMEM_LISTENERS__API__ADMIN_TOKEN", TOKEN)
    with answering([refusal(507, "STORE_FULL", "no room")]) as (url, _):
        assert main([*ALICE, "--purge", "--api", url]) == 1
    assert "STORE_FULL: no room" in capsys.readouterr().err
