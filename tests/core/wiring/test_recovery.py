"""From config.yaml to what proves that a message of a history may be recovered."""

from __future__ import annotations

from pathlib import Path

import pytest

from semmem.wiring import request
from tests.support.configuration import loaded

DAY_S = 86_400.0


@pytest.mark.parametrize(("retention_days", "marks_days", "days"), [(7, 30, 7), (30, 2, 2), (7, 0, 0)])
def test_words_prove_nothing_when_an_erasure_since_may_be_forgotten(
    tmp_path: Path, retention_days: int, marks_days: int, days: int
) -> None:
    text = f"journal: {{retention_days: {retention_days}}}\nerasure: {{marks_days: {marks_days}}}\n"
    assert request.recovery_rules(loaded(tmp_path, text), began=0.0).kept_s == days * DAY_S
