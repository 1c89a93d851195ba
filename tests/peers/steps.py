"""The steps of scenarios, as JSON Lines describe them. Nothing of their wordings is in this repository."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

Json = dict[str, Any]

FILES = "*_scenarios*.jsonl"
CONTINUES = {"or_session_scope_list": "or_session_scope", "or_full_pipeline_o1": "or_full_pipeline"}
"""Scenarios that go on with the users of the one before."""


class NoSteps(Exception):
    """The folder holds none, or what no step can be."""


@dataclass(frozen=True, slots=True)
class Step:
    """One row. ``id``: its scenario and its place in it, from 1. Steps of one ``story`` share users and memories."""

    id: str
    scenario: str
    story: str
    row: Json

    @property
    def user(self) -> str:
        return f"{self.story}.{self.row.get('user', 'u')}"

    @property
    def session(self) -> str:
        return str(self.row.get("session", "s"))

    @property
    def message(self) -> str:
        recipe = self.row.get("message_recipe")
        return str(self.row.get("message", "")) if recipe is None else spelt_out(recipe)

    @property
    def given(self) -> list[Json]:
        """Memories that are there before, each with its ``content``."""
        if recipe := self.row.get("given_recipe"):
            return [{"content": content} for content in several(recipe)]
        return [{"content": one} if isinstance(one, str) else one for one in self.row.get("given", ())]


def read(folder: Path) -> list[Step]:
    """All steps of a folder, file by file. Raises NoSteps."""
    files = sorted(folder.glob(FILES)) if folder.is_dir() else []
    if not files:
        raise NoSteps(f"{folder} holds no {FILES}: give the folder of the scenarios")
    return [step for file in files for step in _steps(file)]


def stories(steps: Sequence[Step]) -> Iterator[list[Step]]:
    for _, theirs in groupby(steps, key=lambda step: step.story):
        yield list(theirs)


def _steps(file: Path) -> list[Step]:
    try:
        rows: list[Json] = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        places: Counter[str] = Counter()
        numbers = defaultdict(list)
        for row in rows:
            numbers[row["scenario"]].append(row.get("step"))
        return [_step(row, places, numbers[row["scenario"]]) for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NoSteps(f"{file}: {type(error).__name__}: {error}") from error


def _step(row: Json, places: Counter[str], numbers: list[int | None]) -> Step:
    name: str = row["scenario"]
    places[name] += 1
    is_story = None not in numbers and len(set(numbers)) == len(numbers)
    story: str = CONTINUES.get(name, name) if is_story or len(numbers) == 1 else f"{name}.{places[name]}"
    return Step(f"{name}:{places[name]}", name, story, row)


# --- texts that are described instead of written out -----------------------------------------------------------------


def spelt_out(recipe: str) -> str:
    """``'a ' + 'x'*3`` is ``a xxx``. Raises ValueError for anything else."""
    return _text(ast.parse(recipe, mode="eval").body)


def several(recipe: str) -> list[str]:
    """``3 x RECIPE``: as many texts, with the number of each in the place of its single ``i``."""
    found = re.fullmatch(r"(\d+) x (.+)", recipe)
    if found is None:
        raise ValueError("not a number and a recipe")
    return [re.sub(r"\bi\b", str(number), spelt_out(found[2]), count=1) for number in range(int(found[1]))]


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left) + _text(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant(value=int(times))):
            return _text(left) * times
    raise ValueError("only texts, + and * are understood")
