"""What is imported as if other libraries were not installed, and what the process is spared so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import semmem
from semmem.imports import as_if_absent

ROOT = Path(semmem.__file__).parents[1]


def printed(program: str) -> str:
    """What a process of its own says."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_inside_an_import_fails_and_afterwards_it_does_not() -> None:
    assert "this" not in sys.modules
    with pytest.raises(ImportError), as_if_absent("this"):
        import this  # noqa: F401
    assert "this" not in sys.modules


def test_what_is_imported_already_stays() -> None:
    with as_if_absent("subprocess", "this"):
        assert sys.modules["subprocess"] is subprocess
    assert sys.modules["subprocess"] is subprocess


def test_the_process_that_serves_is_spared_what_it_never_uses() -> None:
    program = "import sys, semmem.wiring.app\n"
    program += "print([name for name in ('pandas', 'requests', 'rich', 'scipy', 'torch') if name in sys.modules])"
    assert printed(program) == "[]"


@pytest.mark.parametrize("name", ["httpx._main", "rich", "scipy"])
def test_whoever_imports_it_later_gets_it(name: str) -> None:
    assert printed(f"import sys, semmem.wiring.app, {name}; print(sys.modules[{name!r}] is not None)") == "True"
