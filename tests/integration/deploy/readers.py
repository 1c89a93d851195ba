"""Those who read what is shipped, in one process: ``python -m tests.integration.deploy.readers``.

Run by the tests in .venv-deploy, which has the readers; to import them, their schemas and their models takes seconds,
and happens once. A line on standard input is ``[reader, what it is given...]`` as JSON, the line on standard output the
answer: ``{"found": ...}``, or ``{"refused": reason}``. The process ends with its input, or by what nobody foresaw.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.integration.deploy import compose, promql, strict


class Refused(Exception):
    """What was read is wrong."""


def objects_of_kubernetes(version: str, objects: list[dict[str, Any]]) -> None:
    """Raises Refused with every problem; also for a kind that this version of Kubernetes does not have."""
    found = [problem for thing in objects for problem in _problems(thing, version)]
    if found:
        raise Refused("\n".join(found))


def _problems(thing: dict[str, Any], version: str) -> list[str]:
    reader, name = _of_kubernetes(), f"{thing['kind']} {thing['metadata']['name']}"
    try:
        reader.validate(thing, version, strict=True)
    except reader.ValidationError as wrong:
        return [f"{name}: {'.'.join(map(str, wrong.path))}: {wrong.message}"]
    except reader.SchemaNotFoundError as unknown:
        return [f"{name}: {unknown.message}"]
    return []


@cache
def _of_kubernetes() -> Any:
    """The reader, which would read two megabytes of schemas anew for each object."""
    reader: Any = importlib.import_module("kubernetes_validate.utils")
    reader.schema_contents = cache(reader.schema_contents)
    return reader


def objects_of_others(objects: list[dict[str, Any]]) -> None:
    """Raises Refused with every problem."""
    found = [
        f"{thing['kind']} {thing['metadata'].get('name')}: {problem}"
        for thing in objects
        for problem in strict.problems(thing)
    ]
    if found:
        raise Refused("\n".join(found))


def compose_file(text: str, settings: dict[str, str]) -> Any:
    """The file with its variables replaced. Raises Refused."""
    try:
        return compose.read(compose.replaced(text, settings))
    except (KeyError, ValueError) as refused:
        raise Refused(str(refused)) from refused


def promql_selectors(texts: list[str]) -> list[list[tuple[str, list[str]]]]:
    """The selectors of each expression. Raises Refused."""
    return [_selectors(text) for text in texts]


def _selectors(text: str) -> list[tuple[str, list[str]]]:
    try:
        return list(promql.selectors(promql.parser.parse(text)))
    except ValueError as error:
        raise Refused(f"{text}: {error}") from error


READERS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (objects_of_kubernetes, objects_of_others, compose_file, promql_selectors)
}


def answer(line: str) -> dict[str, Any]:
    reader, *given = json.loads(line)
    try:
        return {"found": READERS[reader](*given)}
    except Refused as refused:
        return {"refused": str(refused)}


def main() -> int:
    answers, sys.stdout = sys.stdout, sys.stderr  # what a reader prints is no answer
    for line in sys.stdin:
        print(json.dumps(answer(line)), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
