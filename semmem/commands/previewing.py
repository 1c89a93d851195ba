"""``semmem preview``: what a running semmem would recall for a question, and why."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from semmem.commands.asking import ASKING, add_connection, add_whose
from semmem.commands.command import Command, Parser
from semmem.commands.memories import CONTENT_CHARS_MAX, STRATEGIES, given_only, opened
from semmem.commands.terminal import document, one_line, write


def _arguments(parser: Parser) -> None:
    parser.add_argument("question", help="as the user would ask it")
    add_whose(parser)
    parser.add_argument("--strategy", choices=STRATEGIES, help="another search than the configured one")
    parser.add_argument("--limit", type=int, metavar="N", help="most memories, 1 to 50")
    parser.add_argument("--project", help="as a request of this project")
    add_connection(parser)


def _preview(given: argparse.Namespace) -> int:
    api, whose = opened(given)
    asked = given_only(strategy=given.strategy, limit=given.limit, project_id=given.project)
    found = api.call("POST", "/v1/memory/preview", json=whose | asked | {"query": given.question})
    document(found) if given.json else write(table(found))
    return 0


def table(found: Mapping[str, Any]) -> Iterator[str]:
    """What was asked, a line for each candidate, and what would be injected."""
    yield f"query: {one_line(found['query'])}"
    unembedded = f" ({found['unembedded']})" if found.get("unembedded") else ""
    yield f"gate: {found['gate']}, strategy: {found['strategy']}{unembedded}, path: {found['path']}"
    yield f"request: {_decided(found['request'])}"
    yield f"{'verdict':16} {'score':>7} {'cosine':>7} {'bm25':>7} {'log-odds':>8} {'tokens':>6}  memory"
    for memory in found["memories"]:
        scores = f"{memory['score']:7.3f} {memory['cosine']:7.3f} {memory['keyword']:7.3f}"
        scores += f" {_log_odds(memory.get('log_odds')):>8} {memory['tokens']:6}"
        yield f"{memory['reason']:16} {scores}  {one_line(memory['content'][:CONTENT_CHARS_MAX])}"
    yield f"injected: {found['tokens']} tokens"


def _decided(request: Mapping[str, Any] | None) -> str:
    """What was decided of the question as a whole."""
    if request is None:
        return "not decided, nearness alone counts"
    wants = "wants memories" if request["wants_memories"] else "wants none"
    profile = ", lists the profile" if request["lists_profile"] else ""
    return f"{request['class']}, log-odds {_log_odds(request['log_odds'])}, {wants}{profile}"


def _log_odds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


PREVIEW = Command(
    name="preview",
    does="what a running semmem would recall for a question, and why",
    about=(
        "Takes the same path as a request through Envoy, and tells what was decided of the question, and for each"
        " candidate its scores and a verdict: kept, or the reason why not. Nothing is learnt from the question."
    ),
    run=_preview,
    arguments=_arguments,
    examples=(
        ('semmem preview "What is my budget?" --user alice', "why a memory is in the prompt, or not"),
        ('semmem preview "tea" --user alice --strategy keyword --limit 5', "by words alone"),
    ),
    prints="the preview as the API answers it",
    **ASKING,
)
