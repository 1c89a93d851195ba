"""SECURITY.md against the tests that it names: each claim is held by one that exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "SECURITY.md").read_text(encoding="utf-8")
_NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


@cache
def held_in(path: str) -> frozenset[str]:
    file = TESTS / path
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if file.is_file() else ()
    functions = (node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(name for name in functions if name.startswith("test_"))


def missing(page: str) -> list[str]:
    """Tests that the page names and that are not there."""
    return [f"{path}::{name}" for path, name in _NAMED.findall(page) if name not in held_in(path)]


def unheld(page: str) -> list[str]:
    """First cells of rows that name no test."""
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    return [
        row.split("|")[1].strip()
        for row in rows
        if not _NAMED.search(row) and not row.startswith(("| Who ", "| Door "))
    ]


def test_every_test_that_is_named_exists() -> None:
    assert missing(PAGE) == []
    assert len(_NAMED.findall(PAGE)) > 50


def test_every_row_has_a_claim_that_a_test_holds() -> None:
    assert unheld(PAGE) == []


def test_a_claim_without_its_test_is_noticed() -> None:
    name = "core/test_security_page.py::test_every_test_that_is_named_exists"
    assert missing(f"| a | `{name}` |") == []
    assert missing(f"| a | `{name}_now` |") == [f"{name}_now"]
    assert missing("`core/nowhere.py::test_a`") == ["core/nowhere.py::test_a"]
    assert unheld(f"| Who | b |\n| a | `{name}` |\n| c | d |") == ["c"]


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)", PAGE))
def test_every_link_leads_to_a_page(target: str) -> None:
    assert (TESTS.parent / target).is_file()
