"""What failed beside others passes only if it passes alone, and only where few failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import again

FAILING = "tests/core/test_again.py::test_nothing_of_this_name"
PASSING = "tests/core/test_again.py::test_something_that_passes"


def test_something_that_passes() -> None:
    """For the others here to run."""


@pytest.mark.parametrize(
    ("failed", "passes"),
    [
        ([PASSING], True),
        ([FAILING], False),
        ([PASSING, FAILING], False),
        ([PASSING] * (again.FEW + 1), False),
        ([], False),
    ],
)
def test_few_failed_tests_are_run_alone(tmp_path: Path, failed: list[str], passes: bool) -> None:
    file = tmp_path / "failed"
    file.write_text(json.dumps(failed))
    assert (again.main(file) == 0) is passes


def test_a_run_that_left_no_list_has_failed(tmp_path: Path) -> None:
    assert again.main(tmp_path / "missing") != 0
