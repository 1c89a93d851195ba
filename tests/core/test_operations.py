"""docs/operations.md against the code: every word is in its table, and every word, metric and log line exists."""

from __future__ import annotations

import ast
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import semmem
from semmem.background import at_once, writers
from semmem.extraction import work
from semmem.extraction.candidate import PAIR_FOUND, PAIR_REPLACED
from semmem.extraction.model_judge import KEPT
from semmem.management.problems import PROBLEMS
from semmem.memory import CONTRADICTED, REFUSED, REPEATED, TurnEnding
from semmem.request.outcome import Outcome
from semmem.telemetry.metrics import Metrics

CODE = Path(semmem.__file__).parent
PAGE = (CODE.parent / "docs" / "operations.md").read_text(encoding="utf-8")
CONDITIONS = (
    "Requests",
    "Requests without a word",
    "Turns",
    "Batches",
    "Turns learnt from at once",
    "Texts that are dear to read",
    "Components",
)
LEVELS = {"none", "debug", "info", "warning", "error", "critical"}
SEED_ROWS = {f"S{number}" for number in range(1, 9)}


@dataclass(frozen=True)
class Row:
    condition: str
    happens: str
    word: str
    metric: str
    log: str = "debug"
    """Of requests, whose table has no such column: all are the same."""


def section(title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


def cells(title: str) -> list[list[str]]:
    """The section's table without its head, cell by cell."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def table(title: str) -> list[Row]:
    return [Row(*row) for row in cells(title)]


def words(title: str) -> set[str]:
    return {row.word.strip("`") for row in table(title)} - {"none"}


ROWS = [row for title in CONDITIONS for row in table(title)]


# --- words -----------------------------------------------------------------------------------------------------------


def returned_words(tree: ast.AST, function: str) -> set[str]:
    """Every string that a function of this name may return."""
    bodies = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function]
    values = [node.value for body in bodies for node in ast.walk(body) if isinstance(node, ast.Return) and node.value]
    results = [value for given in values for value in _results(given)]
    return {value.value for value in results if isinstance(value, ast.Constant) and isinstance(value.value, str)}


def _results(value: ast.expr) -> list[ast.expr]:
    return [*_results(value.body), *_results(value.orelse)] if isinstance(value, ast.IfExp) else [value]


def first_arguments(tree: ast.AST, name: str) -> set[str]:
    """Every string that is the first argument of a call of this name."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.args]
    given = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == name]
    return {value.value for value in given if isinstance(value, ast.Constant) and isinstance(value.value, str)}


def turn_endings() -> set[str]:
    """The endings that an answer can have: those that its observation may return."""
    tree = ast.parse((CODE / "turns" / "observation.py").read_text())
    ending = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "_ending")
    named = [node for node in ast.walk(ending) if isinstance(node, ast.Attribute)]
    return {
        TurnEnding[node.attr] for node in named if isinstance(node.value, ast.Name) and node.value.id == "TurnEnding"
    }


def batch_endings() -> set[str]:
    from semmem.backends.sql.batches import EMPTY

    pipeline, result = (ast.parse((CODE / "extraction" / name).read_text()) for name in ("pipeline.py", "result.py"))
    return first_arguments(pipeline, "BatchResult") | returned_words(result, "_status") | {EMPTY}


def test_every_outcome_has_its_row_and_every_row_its_outcome() -> None:
    assert words("Requests") == {outcome.value for outcome in Outcome}


def test_every_ending_of_a_turn_has_its_row() -> None:
    assert words("Turns") == turn_endings()
    assert {"answered", "answer_lost", "refused", "continues"} <= turn_endings()


def test_every_ending_of_a_batch_has_its_row() -> None:
    assert words("Batches") == batch_endings()
    assert {"stored", "postponed", "gave_up", "extraction_failed"} <= batch_endings()


def test_every_result_of_learning_at_once_has_its_row() -> None:
    result = ast.parse((CODE / "extraction" / "result.py").read_text())
    learning = ast.parse((CODE / "extraction" / "at_once.py").read_text())
    worker = ast.parse((CODE / "background" / "at_once.py").read_text())
    spelled = first_arguments(learning, "BatchResult") | first_arguments(worker, "BatchResult")
    named = {at_once.OVERFLOW, at_once.LEFT, at_once.FAILED, REFUSED}
    assert words("Turns learnt from at once") == returned_words(result, "_status") | spelled | named


def test_every_reason_for_not_reading_a_text_has_its_row() -> None:
    assert {work.TOO_SLOW, work.BATCH_TOO_SLOW, work.WORKER_DIED} <= words("Texts that are dear to read")


def test_every_end_of_an_unsettled_pair_has_its_row() -> None:
    known = {PAIR_FOUND, PAIR_REPLACED, KEPT, CONTRADICTED, REPEATED}
    assert {word.strip("`") for word, _ in cells("Pairs that nobody has settled")} == known


def test_what_ends_without_a_word_says_so() -> None:
    assert words("Requests without a word") == set()
    assert words("Components") == set()


@pytest.mark.parametrize("mark", sorted(SEED_ROWS))
def test_each_failure_of_the_design_it_follows_has_its_row(mark: str) -> None:
    assert any(row.condition.startswith(f"{mark}:") for row in ROWS)


def test_no_row_is_incomplete_and_every_level_exists() -> None:
    assert len(ROWS) > 40
    assert [row for row in ROWS if not all((row.condition, row.happens, row.word, row.metric))] == []
    assert {row.log for row in ROWS} <= LEVELS


def test_every_refusal_of_the_api_has_its_row_and_every_row_its_refusal() -> None:
    """That the code answers with those of the table alone, test_description looks after."""
    documented = {(status, code.strip("`")) for _, status, code in cells("Calls of the API")}
    assert documented == {(str(problem.status), code) for code, problem in PROBLEMS.items()}


# --- metrics ---------------------------------------------------------------------------------------------------------


def samples() -> dict[str, set[str]]:
    """Every sample name that semmem can export, and its labels."""
    found: dict[str, set[str]] = {}
    metrics = Metrics()
    for family in (*vars(metrics).values(), *(counter for counter, _ in metrics.of_events.values())):
        name, kind = getattr(family, "_name", None), getattr(family, "_type", None)
        if name is None:
            continue
        suffixes = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}[str(kind)]
        found |= {name + suffix: set(family._labelnames) for suffix in suffixes}
    return found


NAMED = re.findall(r"\b((?:semmem|llm_memory)_[a-z_]+)\b(?:\{([^}]*)\})?", re.sub(r"envoy_\w+", "", PAGE))


def test_every_metric_that_is_named_exists_with_the_labels_that_are_named() -> None:
    known = samples()
    assert len({name for name, _ in NAMED} & known.keys()) > 12
    ours = {(name, labels) for name, labels in NAMED if name not in ("semmem_outcome",)}
    assert {name for name, _ in ours} <= known.keys()
    for name, labels in ours:
        assert set(re.findall(r"(\w+)(?==|,|$)", re.sub(r'"[^"]*"', "", labels))) <= known[name], (name, labels)


def test_every_metric_of_a_condition_is_semmems_or_envoys() -> None:
    for row in ROWS:
        name = row.metric.strip("`").partition("{")[0]
        assert name == "none" or name.startswith("envoy_") or name in samples(), row


def test_an_alert_names_only_words_that_exist() -> None:
    known = {outcome.value for outcome in Outcome} | batch_endings() | {"error", "ready", "semmem"}
    values = [
        word
        for rule in yaml.safe_load((CODE.parent / "deploy" / "prometheus" / "rules.yaml").read_text())["groups"][0][
            "rules"
        ]
        for quoted in re.findall(r'"([^"]+)"', rule["expr"])
        for word in re.split(r"\\?\|", quoted)
    ]
    assert len(values) > 8
    assert set(values) <= known


# --- log lines -------------------------------------------------------------------------------------------------------


def log_calls() -> dict[str, str]:
    """The constant text of every log call in semmem, and its level; an Outage adds words to what it names."""
    kinds: list[Any] = [kind for kind in vars(writers).values() if isinstance(kind, type) and hasattr(kind, "what")]
    found: dict[str, str] = {f"{kind.what} failed": logging.getLevelName(kind.level).lower() for kind in kinds}
    assert len(found) == 4
    for file in CODE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Outage":
                levels = [word.value.attr for word in node.keywords if isinstance(word.value, ast.Attribute)]
                if isinstance(node.args[1], ast.Constant) and isinstance(node.args[1].value, str):
                    found[f"{node.args[1].value} failed"] = (levels or ["ERROR"])[0].lower()
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
                continue
            text = node.args[0]
            if node.func.attr in LEVELS and isinstance(text, ast.Constant) and isinstance(text.value, str):
                found[text.value] = node.func.attr
    return found


def test_every_quoted_log_line_exists_at_the_level_that_is_named() -> None:
    calls = log_calls()
    quoted = [(line, row) for row in ROWS for line in re.findall(r'"([^"]+)"', row.happens)]
    assert len(quoted) > 8
    for line, row in quoted:
        levels = {level for text, level in calls.items() if text.startswith(line)}
        assert levels == {row.log}, (line, row.log, levels)
