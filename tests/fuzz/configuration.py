"""Configuration: whatever the file and the environment say, there are settings or a ConfigError that can be printed."""

from __future__ import annotations

import atexit
import functools
import tempfile
from pathlib import Path

from semmem.config import ConfigError, effective, load, schema
from semmem.config.loading import variable_name
from tests.fuzz.choices import Choices

_KEYS = tuple(sorted({str(part) for loc, *_ in schema.leaves() for part in loc}))
FRAGMENTS = (
    *(f"{key}:".encode() for key in _KEYS[:180]),
    b"\n",
    b"\n  ",
    b"\n    ",
    b"\n  - ",
    b" true",
    b" 7",
    b" -1",
    b" 0.5",
    b" .inf",
    b" .nan",
    b" null",
    b' "text"',
    b" [a, b]",
    b" {a: 1}",
    b" &a",
    b" *a",
    b" !!int x",
    b" !!binary a",
    b" !!float _",
    b" !!set {a}",
    b" <<: *a",
    b" 0x_",
    b" 1:60",
    b" 2026-01-01",
    b" ${HOME}",
    b" |\n   x",
    b"? ",
    b"#",
    b"---",
    b"%YAML 9.9",
    b"\t",
)


def config(data: bytes) -> None:
    """The target."""
    choices = Choices(data)
    environ = {_variable(choices): choices.text() for _ in range(choices.below(3))}
    _file().write_bytes(choices.rest() if choices.below(2) == 0 else choices.joined(FRAGMENTS))
    try:
        effective(load(_file(), environ))
    except ConfigError as error:
        error.add_note(str(error))  # it can be printed


def _variable(choices: Choices) -> str:
    variables = _variables()
    known = variables[int.from_bytes(choices.take(2), "big") % len(variables)]
    return known + choices.text() if choices.below(4) == 3 else known


@functools.cache
def _variables() -> list[str]:
    return [variable_name(loc) for loc, *_ in schema.leaves()]


@functools.cache
def _file() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="semmem-fuzz-")
    atexit.register(folder.cleanup)
    return Path(folder.name) / "config.yaml"
