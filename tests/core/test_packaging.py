"""What is installed: the sidecar, and nothing that is built around it."""

from __future__ import annotations

import ast
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

from semmem.retrieval.decide import scenes
from semmem.retrieval.decide.trained import SHIPPED, SHIPPED_READER

HOME = Path(__file__).parents[2]
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text())


def test_the_wheel_holds_semmem_alone() -> None:
    targets = PROJECT["tool"]["hatch"]["build"]["targets"]

    assert targets["wheel"] == {"packages": ["semmem"]}


def test_what_was_learnt_and_what_it_was_learnt_from_is_in_the_wheel() -> None:
    """Everything below semmem/ is, but for what git is told to leave out."""
    read = {SHIPPED, SHIPPED_READER, *scenes.SENTENCES, *scenes.HERE.glob("*.jsonl")}
    ignored = [line.strip("/") for line in (HOME / ".gitignore").read_text().split()]
    assert len(read) > 4
    for file in read:
        path = file.relative_to(HOME)
        assert path.parts[0] == "semmem"
        assert file.stat().st_size > 1000
        assert not [
            line for line in ignored if fnmatch(str(path), line) or any(fnmatch(part, line) for part in path.parts)
        ]


def test_adapters_speak_to_semmem_and_do_not_import_it() -> None:
    """Whoever builds a graph does not install a sidecar with it."""
    files = [*(HOME / "adapters").rglob("*.py"), *(HOME / "examples").rglob("*.py")]
    assert len(files) > 10
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & {"semmem", "demo", "bench", "quality", "tests"}, file
    needed = tomllib.loads((HOME / "adapters" / "langgraph" / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {re.split(r"[<>=]", name)[0] for name in needed} == {"httpx", "langgraph-checkpoint"}


def test_no_command_is_installed_but_semmem() -> None:
    assert PROJECT["project"]["scripts"] == {"semmem": "semmem.cli:main"}
