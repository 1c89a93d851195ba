"""What is imported as if other libraries were not installed, and what the process is spared so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import semmem
from semmem.imports import as_if_absent

ROOT = Path(semmem.__file__).parents[1]


SPARED = ("pandas", "requests", "rich", "scipy", "torch")
LATER = ("scipy", "rich", "httpx._main")
SERVING = f"""
import importlib, json, sys, semmem.wiring.app
brought = [name for name in {SPARED} if name in sys.modules]
later = dict()
for name in {LATER}:
    try:
        later[name] = importlib.import_module(name) is sys.modules[name]
    except ImportError as error:
        later[name] = str(error)
print(json.dumps([brought, later]))
"""


@pytest.fixture(scope="module")
def serving() -> tuple[list[str], dict[str, object]]:
    """What a process that serves has brought along, and what became of each import in it later. One process: semmem is
    imported in seconds."""
    argv = [sys.executable, "-c", SERVING]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.returncode == 0, done.stderr
    brought, later = json.loads(done.stdout)
    return brought, later


def test_inside_an_import_fails_and_afterwards_it_does_not() -> None:
    assert "this" not in sys.modules
    with pytest.raises(ImportError), as_if_absent("this"):
        import this  # noqa: F401
    assert "this" not in sys.modules


def test_what_is_imported_already_stays() -> None:
    with as_if_absent("subprocess", "this"):
        assert sys.modules["subprocess"] is subprocess
    assert sys.modules["subprocess"] is subprocess


def test_the_process_that_serves_is_spared_what_it_never_uses(serving: tuple[list[str], dict[str, object]]) -> None:
    assert serving[0] == []


@pytest.mark.parametrize("name", LATER)
def test_whoever_imports_it_later_gets_it(serving: tuple[list[str], dict[str, object]], name: str) -> None:
    assert serving[1][name] is True
