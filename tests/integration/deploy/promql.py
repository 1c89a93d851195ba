"""What PromQL expressions ask for.

For .venv-deploy, which has a parser of PromQL. A selector is a metric and its labels; labels that an expression groups
by are a selector without a metric.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

parser: Any = importlib.import_module("promql_parser")


def selectors(node: Any) -> Iterator[tuple[str, list[str]]]:
    """Every selector of an expression, and every list of labels that it groups by."""
    match type(node).__name__:
        case "VectorSelector":
            yield node.name, [each.name for each in node.matchers.matchers]
        case "MatrixSelector":
            yield from selectors(node.vector_selector)
        case "AggregateExpr":
            yield "", list(node.modifier.labels) if node.modifier else []
            yield from selectors(node.expr)
        case "BinaryExpr":
            yield from selectors(node.lhs)
            yield from selectors(node.rhs)
        case "Call":
            for each in node.args:
                yield from selectors(each)
        case "ParenExpr" | "UnaryExpr" | "SubqueryExpr":
            yield from selectors(node.expr)
        case "NumberLiteral" | "StringLiteral":
            return
        case other:
            raise ValueError(f"a {other} was not thought of")
