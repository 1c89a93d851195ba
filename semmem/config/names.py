"""What other systems call things: every configuration key, environment variable and header that their users bring.

names.toml is the one table. aliases.py and environment.py make settings of it, reference.py makes docs/names.md of it,
and a test tries every row.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from semmem.config.problems import Loc


class Kind(StrEnum):
    """Where a name is written."""

    KEY = "key"
    VARIABLE = "environment variable"
    HEADER = "request header"


def as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Name:
    """A name as another system spells it, dotted for a key inside a section.

    ``becomes`` is the key of ours that it sets, or of a header what governs it; empty: it is refused, since ``reason``,
    and ``instead`` says what does the same here. ``value`` makes ours of its values; what it does not know stays as it
    is, and is refused as any value of that key. ``note`` goes into the page.
    """

    kind: Kind
    origin: str
    name: str
    becomes: str = ""
    note: str = ""
    value: Callable[[Any], Any] = as_it_is
    reason: str = ""
    instead: str = ""

    @property
    def loc(self) -> Loc:
        return tuple(self.name.split("."))

    @property
    def target(self) -> Loc:
        return tuple(self.becomes.split("."))


def _model(value: Any) -> Any:
    """The one model that all of them name, each in its own way."""
    same = ("bert", "sentence-transformers/all-MiniLM-L6-v2", "Xenova/all-MiniLM-L6-v2")
    return "all-MiniLM-L6-v2" if value in same else value


def _flag(value: Any) -> Any:
    return {0: False, 1: True}[value] if type(value) is int and value in (0, 1) else value


def _seconds(value: Any) -> Any:
    return value / 1000 if type(value) in (int, float) else value


def _read(told: str | Mapping[str, str]) -> Callable[[Any], Any]:
    """What reads the values of a row: a word for one of the above, or their words with ours."""
    if isinstance(told, str):
        return {"as_it_is": as_it_is, "model": _model, "flag": _flag, "seconds": _seconds}[told]
    return lambda value: told.get(value, value) if isinstance(value, str) else value


def _names() -> Iterator[Name]:
    rows = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["names"]
    for row in rows:
        yield Name(Kind(row.pop("kind")), value=_read(row.pop("value", "as_it_is")), **row)


NAMES = tuple(_names())


def keys() -> Iterator[Name]:
    """Keys that are spelled otherwise here, or refused."""
    return (name for name in NAMES if name.kind is Kind.KEY and name.name != name.becomes)


def variables() -> dict[str, Name]:
    """Environment variables by name."""
    return {name.name: name for name in NAMES if name.kind is Kind.VARIABLE}
