"""``semmem journal recover``: files and their names, who is in the way, and what is not done without a word."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from semmem.backends.sql.file import OnlyProcess
from semmem.backends.sql.journal import SqlJournal
from semmem.backends.sql.recovering import salvage
from semmem.cli import main
from semmem.memory import Scope
from tests.core.backends.test_recovering import PAGE, root_page, whole, with_log, without, zeroed
from tests.support.journal_samples import turn

AGAIN = "--accept-lost-erasures"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text(f"data_dir: {tmp_path / 'data'}\n")
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def run(data: Path, *words: str) -> int:
    return main(["journal", "recover", "--json", "--config", str(data.parent / "config.yaml"), *words])


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def refused(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().err.splitlines()[-1])["error"]
    return found


def names(data: Path) -> list[str]:
    return sorted(path.name for path in data.iterdir() if not path.name.endswith(".lock"))


def test_the_damaged_file_is_kept_beside_the_new_one_and_a_second_run_changes_nothing(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = data / "journal.db"
    path.write_bytes(without("turns"))
    path.chmod(0o644)
    assert run(data) == 0
    done = told(capsys)
    assert done["damaged"] is True
    assert done["lost"] == {"turns": "all or some"}
    assert done["saved"]["versions"] == 200
    assert done["erasures_known"] is True
    assert names(data) == ["journal.db", "journal.db.damaged-1"]
    assert (data / "journal.db.damaged-1").read_bytes() == without("turns")
    assert [each.stat().st_mode & 0o777 for each in (path, data / "journal.db.damaged-1")] == [0o600] * 2
    new = path.read_bytes()
    assert run(data) == 0
    assert told(capsys) == {"journal": str(path), "damaged": False}
    assert (path.read_bytes(), names(data)) == (new, ["journal.db", "journal.db.damaged-1"])


@pytest.mark.parametrize("bad", ["a table of erasures", "nothing in it", "a text", "zeros at the beginning"])
def test_without_all_that_was_erased_nothing_is_changed_until_that_is_accepted(
    data: Path, capsys: pytest.CaptureFixture[str], bad: str
) -> None:
    content = {
        "a table of erasures": without("pending_erasures"),
        "nothing in it": b"",
        "a text": b"dear diary\n" * 1000,
        "zeros at the beginning": zeroed(0),
    }[bad]
    (data / "journal.db").write_bytes(content)
    assert run(data) == 1
    why = refused(capsys)
    assert why["code"] == "ERASURES_LOST"
    assert "pending_erasures" in why["lost"]
    assert AGAIN in why["reason"]
    assert (names(data), (data / "journal.db").read_bytes()) == (["journal.db"], content)
    assert run(data, AGAIN) == 0
    assert told(capsys)["erasures_known"] is False
    assert names(data) == ["journal.db", "journal.db.damaged-1"]


async def test_a_damaged_log_counts_as_lost_erasures_and_is_kept_with_its_file(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = await with_log(data)
    shutil.rmtree(data / "running")
    log = data / "journal.db-wal"
    log.write_bytes(log.read_bytes()[: -PAGE - 24] + bytes(PAGE + 24))
    bad, content = log.read_bytes(), path.read_bytes()[:PAGE] + bytes(PAGE) + path.read_bytes()[2 * PAGE :]
    path.write_bytes(content)
    assert run(data) == 1
    assert refused(capsys)["erasures_known"] is False
    assert log.read_bytes() == bad
    assert run(data, AGAIN) == 0
    assert names(data) == ["journal.db", "journal.db.damaged-1", "journal.db.damaged-1-wal"]
    assert (data / "journal.db.damaged-1-wal").read_bytes() == bad


async def test_nothing_is_done_while_a_semmem_has_the_journal(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data / "journal.db").write_bytes(without("turns"))
    semmem = OnlyProcess(data / "journal.db")
    semmem.open()
    assert run(data) == 1
    assert "another semmem process has" in refused(capsys)["reason"]
    assert (data / "journal.db").read_bytes() == without("turns")
    semmem.close()
    assert run(data) == 0


def killed(*_given: object, **_more: object) -> None:
    raise KeyboardInterrupt


def salvaged_and_killed(path: Path, new: Path, *, now: float) -> None:
    salvage(path, new, now=now)
    raise KeyboardInterrupt


@pytest.mark.parametrize("cut_off_at", ["salvage", "link", "rename", "replace"])
async def test_a_run_that_is_killed_costs_nothing_and_the_next_one_does_it(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, cut_off_at: str
) -> None:
    path = await with_log(data)
    shutil.rmtree(data / "running")
    at = (root_page("answers") - 1) * PAGE
    path.write_bytes(path.read_bytes()[:at] + bytes(PAGE) + path.read_bytes()[at + PAGE :])

    with monkeypatch.context() as broken:
        broken.setattr(Path, "unlink", lambda *_given, **_more: None)  # who is killed tidies nothing up
        if cut_off_at == "salvage":
            broken.setattr("semmem.wiring.backup.salvage", salvaged_and_killed)
        else:
            broken.setattr(os if cut_off_at == "link" else Path, cut_off_at, killed)
        assert run(data) == 130
    assert path.exists()
    assert run(data) == 0, capsys.readouterr().err
    assert told(capsys)["saved"]["turns"] == 401
    kept = [name for name in names(data) if name != "journal.db"]
    assert kept == ["journal.db.damaged-1", "journal.db.damaged-1-wal"]


async def test_what_is_recovered_is_served_from(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data / "journal.db").write_bytes(whole()[: len(whole()) // 2])
    assert run(data, AGAIN) == 0
    journal = SqlJournal(data / "journal.db")
    await journal.open()
    await journal.record([turn("new", Scope("u1"), opened_at=20_000.0)], [])
    await journal.close()


@pytest.mark.parametrize("missing", ["no journal", "a server", "an unfinished restore"])
def test_where_there_is_nothing_to_recover_it_says_why(
    data: Path, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    if missing == "a server":
        with (data.parent / "config.yaml").open("a") as config:
            config.write("journal: {url: 'postgresql://nowhere/semmem'}\nmemory: {milvus: {address: 'm:19530'}}\n")
    if missing == "an unfinished restore":
        (data / "restoring").mkdir()
    assert run(data) == 1
    word = {"no journal": "no journal at", "a server": "own tools", "an unfinished restore": "not finished"}[missing]
    assert word in refused(capsys)["reason"]
