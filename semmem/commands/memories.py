"""``semmem add``, ``list``, ``show``, ``preview``: one user's memories in a running semmem."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from semmem.commands.asking import (
    ASKING,
    Api,
    add_connection,
    add_whose,
    connected,
    named_user,
    settings_of,
)
from semmem.commands.command import Command, Parser
from semmem.commands.failure import Failure
from semmem.commands.terminal import document, one_line, write
from semmem.management.segment import segment

TYPES = ("semantic", "procedural", "episodic", "reflective")
STATUSES = ("active", "superseded", "quarantined")
STRATEGIES = ("hybrid", "semantic", "keyword", "recent")
CONTENT_CHARS_MAX = 100
"""Of a memory in a table."""
PAGE = 500
"""Memories in a call where all are listed."""


def opened(given: argparse.Namespace) -> tuple[Api, dict[str, str]]:
    """The API, and whose memories. Raises ConfigError and Failure."""
    settings = settings_of(given)
    whose = named_user(given, settings)
    return connected(given, settings), whose


def given_only(**asked: Any) -> dict[str, Any]:
    """Without what was not given."""
    return {name: value for name, value in asked.items() if value is not None}


# --- add -------------------------------------------------------------------------------------------------------------


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("content", help="one fact, 3 to 500 characters; - reads one from each line of standard input")
    add_whose(parser)
    parser.add_argument("--type", choices=TYPES, default="semantic", help="what kind of memory (semantic)")
    parser.add_argument("--key", help="the same user and key is the same memory in a new version")
    parser.add_argument("--project", help="only requests of this project find it")
    add_connection(parser)


def _add(given: argparse.Namespace) -> int:
    api, whose = opened(given)
    told = given_only(type=given.type, key=given.key, project_id=given.project)
    for number, content in enumerate(_contents(given.content), 1):
        made = _told(api, whose | told | {"content": content}, number if given.content == "-" else 0)
        document(made) if given.json else write([f"{made['id']} version {made['version']}, {made['status']}"])
    return 0


def _contents(content: str) -> Iterator[str]:
    if content != "-":
        yield content
        return
    yield from (line for text in sys.stdin if (line := text.strip()))


def _told(api: Api, body: Mapping[str, Any], line: int) -> Any:
    """Raises Failure, which says of which line of standard input."""
    try:
        return api.call("POST", "/v1/memory", json=body)
    except Failure as failure:
        if not line:
            raise
        reason = f"line {line} of standard input: {failure.reason}"
        raise Failure(failure.code, failure.path, reason, failure.status, line=line) from None


ADD = Command(
    name="add",
    does="tell a running semmem a memory of a user",
    about=(
        "Stores one fact. It passes the same screen as what is learnt: a secret, or an instruction to the model, is"
        " refused. With a key that is known the memory gets a new version, and the old one stays in its history."
        "\n\nFrom standard input each line that is not empty is one memory; the first that is refused ends the"
        " command, and those before it are stored."
    ),
    run=_add,
    arguments=_add_arguments,
    examples=(
        ('semmem add "User likes green tea" --user alice', "one memory"),
        ('semmem add "User lives in Lisbon" --user alice --key home', "replaces what the key held"),
        ("semmem add - --user alice < facts.txt", "a memory for each line"),
    ),
    prints="the memory as the API shows it, a line for each that was added",
    **ASKING,
)


# --- list ------------------------------------------------------------------------------------------------------------


def _list_arguments(parser: Parser) -> None:
    add_whose(parser)
    parser.add_argument("--project", help="only of this project")
    parser.add_argument("--session", help="only of this session")
    parser.add_argument("--type", choices=TYPES, action="append", help="only of this type; repeatable")
    parser.add_argument("--status", choices=STATUSES, help="only with this status")
    parser.add_argument("--text", help="only what contains this text")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="most memories, 1 to 1000 (20)")
    parser.add_argument("--cursor", help="go on where another list ended: its next_cursor")
    parser.add_argument("--all", action="store_true", help="every page; with --json a line for each memory")
    add_connection(parser)


def _list(given: argparse.Namespace) -> int:
    api, whose = opened(given)
    asked = whose | given_only(
        project_id=given.project,
        session_id=given.session,
        type=given.type,
        status=given.status,
        q=given.text,
        cursor=given.cursor,
    )
    if given.all:
        return _list_all(api, asked, as_json=given.json)
    found = api.call("GET", "/v1/memory", params=asked | {"limit": given.limit})
    document(found) if given.json else write(lines(whose.get("user_id", ""), found))
    return 0


def _list_all(api: Api, asked: Mapping[str, Any], *, as_json: bool) -> int:
    for memory in every_memory(api, asked):
        write([json.dumps(memory) if as_json else _listed(memory)])
    return 0


def every_memory(api: Api, asked: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Page by page, from where ``cursor`` says. Raises Failure."""
    cursor = asked.get("cursor")
    while True:
        found = api.call("GET", "/v1/memory", params={**asked, "limit": PAGE, **given_only(cursor=cursor)})
        yield from found["memories"]
        if (cursor := found["next_cursor"]) is None:
            return


def lines(user: str, found: Mapping[str, Any]) -> Iterator[str]:
    """The user's name, a line for each memory (id, day, type, status, content), and how many there are in all."""
    memories = found["memories"]
    yield f"user: {user or (memories[0]['user_id'] if memories else 'the one of the token')}"
    yield from map(_listed, memories)
    yield f"{len(memories)} of {found['total']} memories"


def _listed(memory: Mapping[str, Any]) -> str:
    day, content = memory["updated_at"][:10], one_line(memory["content"])
    return f"{memory['id']}  {day}  {memory['type']:10}  {memory['status']:11}  {content}"


LIST = Command(
    name="list",
    also=("memories",),
    does="what a running semmem has stored for a user, newest first",
    about=(
        "A line for each memory: id, day, type, status and content; then how many there are in all. A list that is"
        " longer than the limit goes on at --cursor, or with --all by itself."
    ),
    run=_list,
    arguments=_list_arguments,
    examples=(
        ("semmem list --user alice", "the newest twenty"),
        ("semmem list --api-key-env OPENAI_API_KEY", "of whoever sends this key through Envoy"),
        ("semmem list --user alice --all --json | jq -r .content", "the words of all of them"),
    ),
    prints="the page as the API answers it; with --all JSON Lines, a memory each",
    **ASKING,
)


# --- show ------------------------------------------------------------------------------------------------------------


def _show_arguments(parser: Parser) -> None:
    parser.add_argument("id", help="as a list shows it")
    add_whose(parser)
    add_connection(parser)


def _show(given: argparse.Namespace) -> int:
    api, whose = opened(given)
    told = api.call("GET", f"/v1/memory/{segment(given.id)}/history", params=whose)
    document(told) if given.json else write(shown_memory(told))
    return 0


def shown_memory(told: Mapping[str, Any]) -> Iterator[str]:
    """A line for each version, oldest first, and how often it was used."""
    for version in (*told["versions"], told["current"]):
        why = f"  ({version['replaced_why']})" if version.get("replaced_why") else ""
        content = one_line(version["content"])
        yield f"{version['version']:3}  {version['updated_at'][:10]}  {version['status']:11}  {content}{why}"
    for row in told["dropped"]:
        yield f"{row['times']} new facts were not stored beside it: {row['reason']}"
    yield f"used {told['uses']['count']} times"


SHOW = Command(
    name="show",
    does="one memory of a user, with every version it had, and its uses",
    about="A line for each version, the oldest first, with a word for why it was replaced.",
    run=_show,
    arguments=_show_arguments,
    examples=(("semmem show mem_0123456789abcdef --user alice", "one memory with its history"),),
    prints="the history as the API answers it",
    **ASKING,
)


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
