"""The tests that failed beside others, once more alone: a busy machine, or a fault?

    python -m tests.again    (what ``make tests`` calls when tests failed)

Thousands of tests with real processes share a few cores, and one of them may wait longer than it says. What fails alone
too is a fault; what passes alone is named, so that somebody makes it steady. More than FEW is no matter of chance.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FAILED_FILE = Path(".pytest_cache/v/semmem/failed")
"""What ``tests/conftest.py`` writes: the tests of the last run that failed, as JSON."""
FEW = 3


def main(file: Path = FAILED_FILE) -> int:
    failed: list[str] = json.loads(file.read_text()) if file.exists() else []
    if not 0 < len(failed) <= FEW:
        return 1
    sys.stdout.write(f"once more, alone: {' '.join(failed)}\n")
    sys.stdout.flush()
    if code := subprocess.run([sys.executable, "-m", "pytest", *failed], check=False).returncode:
        return code
    sys.stdout.write(f"UNSTEADY: failed beside others and passed alone: {' '.join(failed)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
