"""numpy's products run in the thread that asks for them: more threads would wait in busy loops for so little."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ASKED = """
import os, sys
import semmem.cli
assert "numpy" not in sys.modules, "it would have read its settings already"
try:
    semmem.cli.main(["--help"])
except SystemExit:
    pass
sys.stderr.write("threads " + os.environ["OPENBLAS_NUM_THREADS"])
"""


@pytest.mark.parametrize(("given", "expected"), [(None, "1"), ("4", "4")])
def test_one_thread_unless_something_else_is_asked_for(given: str | None, expected: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    environment |= {} if given is None else {"OPENBLAS_NUM_THREADS": given}
    done = subprocess.run([sys.executable, "-c", ASKED], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stderr.endswith(f"threads {expected}"), done.stderr
