"""What is installed: the sidecar, and nothing that is built around it."""

from __future__ import annotations

import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())


def test_the_wheel_holds_semmem_alone() -> None:
    targets = PROJECT["tool"]["hatch"]["build"]["targets"]

    assert targets["wheel"] == {"packages": ["semmem"]}


def test_no_command_is_installed_but_semmem() -> None:
    assert PROJECT["project"]["scripts"] == {"semmem": "semmem.cli:main"}
