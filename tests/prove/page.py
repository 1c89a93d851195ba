"""docs/proof.md: a row for each suite, which stays until the suite is run again."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from demo.stack import HOME

PAGE = HOME / "docs" / "proof.md"
COLUMNS = ("suite", "commit", "date", "machine", "seconds", "verdict", "what fell short")
NEVER = "not run yet"
HEAD = """# Proof

What every long suite said when it was last run whole, and of which commit. `make prove` writes this page, and nobody
else does; it is the only place for such figures. `make prove ONLY=faults,canary` runs a part, and the other rows stay
as they are. What the suites try: [operations.md](operations.md#what-make-faults-tries).
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One suite, as the page has it."""

    suite: str
    commit: str = ""
    date: str = ""
    machine: str = ""
    seconds: str = ""
    verdict: str = NEVER
    short: str = ""

    def cells(self) -> tuple[str, ...]:
        return (self.suite, self.commit, self.date, self.machine, self.seconds, self.verdict, self.short)


def read(text: str) -> dict[str, Row]:
    """The rows of a page, by suite."""
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == len(COLUMNS) and cells[0] != COLUMNS[0] and set(cells[0]) != {"-"}:
            rows[cells[0]] = Row(*cells)
    return rows


def written(names: Sequence[str], rows: Mapping[str, Row], changes: Callable[[str], int | None]) -> str:
    """The page: a row for each name, and what is older than the code."""
    shown = [rows.get(name, Row(name)) for name in names]
    table = [
        _line(COLUMNS),
        _line(["---"] * len(COLUMNS)),
        *(_line([cell.replace("|", r"\|") for cell in row.cells()]) for row in shown),
    ]
    stale = older(shown, changes)
    said = [*(f"- {line}" for line in stale)] or ["No row is older than the code was when this page was written."]
    return "\n".join([HEAD, *table, "", "## Older than the code", "", *said, ""])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def older(rows: Sequence[Row], changes: Callable[[str], int | None]) -> list[str]:
    """A line for each row that says nothing of today's code. ``changes``: how many commits changed it since another."""
    found = []
    for row in rows:
        if not row.commit:
            found.append(f"{row.suite}: {NEVER}")
            continue
        since = changes(row.commit.partition("+")[0])
        if since is None:
            found.append(f"{row.suite}: seen at {row.commit}, which is not in this history")
        elif since:
            found.append(f"{row.suite}: {since} commits of semmem/")
    return found


def changes_since(commit: str) -> int | None:
    """How many commits have changed semmem/ since; None where git does not know."""
    argv = ["git", "-C", str(HOME), "rev-list", "--count", f"{commit}..HEAD", "--", "semmem"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return None
    return int(done.stdout) if done.returncode == 0 else None


def here() -> str:
    """This machine, in words."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB, Python {platform.python_version()}"


def rows_of(page: Path = PAGE) -> dict[str, Row]:
    return read(page.read_text()) if page.exists() else {}
