"""What the tests of the configuration share: a file in, settings or problems out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from semmem.config import Problem, Settings, examine, load

LONG_SECRET = "0123456789abcdef-s3cr3t"
MODEL = "{model_role: memory_extraction, llm_endpoint: {address: qwen}, llm_model_name: qwen3}"


def write(directory: Path, text: str | bytes) -> Path:
    """A config.yaml with this text."""
    file = directory / "config.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def loaded(directory: Path, text: str, environ: dict[str, str] | None = None) -> Settings:
    return load(write(directory, text), environ or {})


def check(path: Path | None, environ: Mapping[str, str], *, here: bool = False) -> list[Problem]:
    """Everything that would keep ``load`` from succeeding, and ``here``: what this machine lacks."""
    return examine(path, environ, here=here)[1]


def problems(directory: Path, text: str | bytes, environ: dict[str, str] | None = None) -> list[Problem]:
    return check(write(directory, text), environ or {})


def only(found: list[Problem]) -> Problem:
    assert len(found) == 1, [str(problem) for problem in found]
    return found[0]


def at(tree: Any, path: tuple[str | int, ...]) -> Any:
    """The value at a place of a plain tree."""
    for part in path:
        tree = tree[part]
    return tree
