"""What pytest's report says of how a run went."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path


def counted(report: Path) -> tuple[int, int]:
    """How many tests there were, and how many of them failed; (0, 1) without a report."""
    if not report.exists():
        return 0, 1
    suites = list(ET.parse(report).getroot().iter("testsuite"))
    bad = sum(int(suite.get(kind, "0")) for suite in suites for kind in ("failures", "errors"))
    return sum(int(suite.get("tests", "0")) for suite in suites), bad
