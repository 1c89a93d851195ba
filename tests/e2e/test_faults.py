"""The short forms of ``make faults`` and ``make crashes``: a fault or two of each kind, and five kills."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from tests.faults import crashes, suite, table

pytestmark = pytest.mark.timeout(400)


@pytest.mark.long(50)
def test_a_fault_of_each_kind_changes_no_answer(tmp_path: Path) -> None:
    cells = suite.run_short(tmp_path)
    assert [str(cell) for cell in cells if cell.different] == []
    assert [str(cell) for cell in cells if not cell.proof] == []
    assert len(cells) == sum(map(len, table.SHORT.values())) > 40


@pytest.mark.long(30)
def test_what_is_accepted_is_learnt_once_whenever_semmem_is_killed(tmp_path: Path) -> None:
    seed = secrets.randbelow(10**6)
    tally = crashes.crash(5, seed, tmp_path, say=print)
    assert (tally.lost, tally.doubled, tally.wrong) == ([], [], []), f"seed {seed}"
    assert tally.kills == 5
    assert tally.accepted
    assert tally.tears == 5 * crashes.TEARS
