"""What is installed: the sidecar, and nothing that is built around it."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatch
from pathlib import Path

from semmem.retrieval.decide import scenes
from semmem.retrieval.decide.trained import SHIPPED

HOME = Path(__file__).parents[2]
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text())


def test_the_wheel_holds_semmem_alone() -> None:
    targets = PROJECT["tool"]["hatch"]["build"]["targets"]

    assert targets["wheel"] == {"packages": ["semmem"]}


def test_what_was_learnt_and_what_it_was_learnt_from_is_in_the_wheel() -> None:
    """Everything below semmem/ is, but for what git is told to leave out."""
    read = {SHIPPED, *scenes.SENTENCES, *scenes.HERE.glob("*.jsonl")}
    ignored = [line.strip("/") for line in (HOME / ".gitignore").read_text().split()]
    assert len(read) > 4
    for file in read:
        path = file.relative_to(HOME)
        assert path.parts[0] == "semmem"
        assert file.stat().st_size > 1000
        assert not [
            line for line in ignored if fnmatch(str(path), line) or any(fnmatch(part, line) for part in path.parts)
        ]


def test_no_command_is_installed_but_semmem() -> None:
    assert PROJECT["project"]["scripts"] == {"semmem": "semmem.cli:main"}
