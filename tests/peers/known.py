"""Differences that docs/peers.md lists with their reasons, and what a run is worth beside them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from demo.stack import HOME

LIST = HOME / "docs" / "peers.md"
_ROW = re.compile(r"^\| *(`[^|]+`) *\|(.*)\|$")
_STEP = re.compile(r"`(\w[\w-]*:\d+)`")

NOT_PLAYED = "not played"
"""How what is wrong begins where nothing was judged: no reason explains that."""

Found = Mapping[str, Sequence[str]]
"""By step: what did not come out as its system expects. Empty: nothing."""


def listed(page: Path = LIST) -> dict[str, str]:
    """Steps in the first column of a table, and the reason in its last. Raises ValueError for one without a reason."""
    known: dict[str, str] = {}
    for line in page.read_text(encoding="utf-8").splitlines():
        if row := _ROW.match(line):
            reason = row[2].split("|")[-1].strip()
            for step in _STEP.findall(row[1]):
                if not reason or step in known:
                    raise ValueError(f"{page.name}: {step} has no reason, or is listed twice")
                known[step] = reason
    return known


@dataclass(frozen=True, slots=True)
class Verdict:
    """``new``: differ and are not listed, or were not played. ``mended``: are listed, and do not differ or exist."""

    steps: int
    differing: Sequence[str]
    new: Sequence[str]
    mended: Sequence[str]

    @property
    def exit_code(self) -> int:
        return 1 if self.new or self.mended or not self.steps else 0

    @property
    def last_line(self) -> str:
        return f"peers: {self.steps} steps, {len(self.differing)} differ"


def judge(found: Found, known: Mapping[str, str], *, only: bool = False) -> Verdict:
    """``only``: a part of the steps was played, and says nothing of the others."""
    differing = [step for step, wrong in found.items() if wrong]
    new = [step for step in differing if step not in known or found[step][0].startswith(NOT_PLAYED)]
    mended = [step for step in known if not found.get(step) and (step in found or not only)]
    return Verdict(len(found), differing, new, mended)
