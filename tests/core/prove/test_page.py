"""docs/proof.md: rows stay until their suite is run again, and the page says which are older than the code."""

from __future__ import annotations

import pytest

from demo.stack import HOME
from tests.prove import page
from tests.prove.__main__ import main
from tests.prove.page import Row, older, read, written
from tests.prove.suites import SUITES

OLD = Row(
    "faults", "abc1234", "2026-11-24", "2 cores", "812", "faults: 9 cells, 1 differ", "a | DIFFERS; exit status 1"
)
NEW = Row("soak", "def5678", "2026-11-25", "2 cores", "640", "soak: fine", "-")
CHANGES = {"abc1234": 3, "def5678": 0}


def test_a_page_is_read_as_it_was_written() -> None:
    text = written(["faults", "soak"], {"faults": OLD, "soak": NEW}, CHANGES.get)
    assert read(text) == {"faults": OLD, "soak": NEW}


def test_a_suite_that_was_never_run_has_a_row_that_says_so() -> None:
    assert read(written(["faults", "soak"], {"faults": OLD}, CHANGES.get))["soak"] == Row("soak", verdict=page.NEVER)


def test_the_page_says_which_rows_are_older_than_the_code() -> None:
    assert older([OLD, NEW, Row("fleet")], CHANGES.get) == [
        "faults: 3 commits of semmem/",
        "fleet: not run yet",
    ]
    assert "3 commits of semmem/" in written(["faults"], {"faults": OLD}, CHANGES.get)
    assert "No row is older" in written(["soak"], {"soak": NEW}, CHANGES.get)


def test_a_commit_that_is_not_in_this_history_is_named_and_one_with_changes_is_its_commit() -> None:
    assert older([Row("x", "fff0000")], CHANGES.get) == ["x: seen at fff0000, which is not in this history"]
    assert older([Row("x", "def5678+changes")], CHANGES.get) == []
    assert page.changes_since("no-such-commit") is None


def test_the_page_here_has_a_row_for_each_suite_and_whoever_checks_it_is_told_and_does_not_fail(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = page.PAGE.read_text()
    assert list(read(text)) == [suite.name for suite in SUITES]
    assert text.startswith(page.HEAD)
    assert main(["--check"]) == 0
    assert f"of {len(SUITES)} rows are of today's code" in capsys.readouterr().out
    assert HOME / "docs" in page.PAGE.parents


def test_a_suite_that_does_not_exist_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--smoke", "--only", "faults,weather"])
    assert "no such suite: weather" in capsys.readouterr().err
