"""``semmem add``, ``list``, ``show``, ``preview``: one user's memories in a running semmem."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from semmem.commands.asking import WHOSE, Api, Told, asking, given_only, opened, printing
from semmem.commands.command import Failure, argument
from semmem.commands.terminal import answer, one_line, write
from semmem.management import segment

TYPES = ("semantic", "procedural", "episodic", "reflective")
STATUSES = ("active", "superseded", "quarantined")
STRATEGIES = ("hybrid", "semantic", "keyword", "recent")
CONTENT_CHARS_MAX = 100
"""Of a memory in a table."""
PAGE = 500
"""Memories in a call where all are listed."""


# --- add -------------------------------------------------------------------------------------------------------------


def _add(given: argparse.Namespace) -> int:
    api = opened(given)
    told = api.whose | given_only(type=given.type, key=given.key, project_id=given.project)
    for number, content in enumerate(_contents(given.content), 1):
        made = _told(api, told | {"content": content}, number if given.content == "-" else 0)
        answer(given, made, [f"{made['id']} version {made['version']}, {made['status']}"])
    return 0


def _contents(content: str) -> Iterator[str]:
    if content != "-":
        yield content
        return
    yield from (line for text in sys.stdin if (line := text.strip()))


def _told(api: Api, body: Told, line: int) -> Any:
    """Raises Failure, which says of which line of standard input."""
    try:
        return api.call("POST", "/v1/memory", json=body)
    except Failure as failure:
        if not line:
            raise
        reason = f"line {line} of standard input: {failure.reason}"
        raise Failure(failure.code, failure.path, reason, failure.status, line=line) from None


ADD = asking(
    name="add",
    does="tell a running semmem a memory of a user",
    about=(
        "Stores one fact. It passes the same screen as what is learnt: a secret, or an instruction to the model, is"
        " refused. With a key that is known the memory gets a new version, and the old one stays in its history."
        "\n\nFrom standard input each line that is not empty is one memory; the first that is refused ends the"
        " command, and those before it are stored."
    ),
    run=_add,
    arguments=(
        argument("content", help="one fact, 3 to 500 characters; - reads one from each line of standard input"),
        WHOSE,
        argument("--type", choices=TYPES, default="semantic", help="what kind of memory (semantic)"),
        argument("--key", help="the same user and key is the same memory in a new version"),
        argument("--project", help="only requests of this project find it"),
    ),
    examples=(
        ('semmem add "User likes green tea" --user alice', "one memory"),
        ('semmem add "User lives in Lisbon" --user alice --key home', "replaces what the key held"),
        ("semmem add - --user alice < facts.txt", "a memory for each line"),
    ),
    prints="the memory as the API shows it, a line for each that was added",
)


# --- list ------------------------------------------------------------------------------------------------------------


def _list(given: argparse.Namespace) -> int:
    api = opened(given)
    asked = api.whose | given_only(
        project_id=given.project,
        session_id=given.session,
        type=given.type,
        status=given.status,
        q=given.text,
        cursor=given.cursor,
    )
    if given.all:
        for memory in every_memory(api, asked):
            write([json.dumps(memory) if given.json else _listed(memory)])
        return 0
    found = api.call("GET", "/v1/memory", params=asked | {"limit": given.limit})
    answer(given, found, lines(api.whose.get("user_id", ""), found))
    return 0


def every_memory(api: Api, asked: Told) -> Iterator[Told]:
    """Page by page, from where ``cursor`` says. Raises Failure."""
    cursor = asked.get("cursor")
    while True:
        found = api.call("GET", "/v1/memory", params={**asked, "limit": PAGE, **given_only(cursor=cursor)})
        yield from found["memories"]
        if (cursor := found["next_cursor"]) is None:
            return


def lines(user: str, found: Told) -> Iterator[str]:
    """The user's name, a line for each memory (id, day, type, status, content), and how many there are in all."""
    memories = found["memories"]
    yield f"user: {user or (memories[0]['user_id'] if memories else 'the one of the token')}"
    yield from map(_listed, memories)
    yield f"{len(memories)} of {found['total']} memories"


def _listed(memory: Told) -> str:
    day, content = memory["updated_at"][:10], one_line(memory["content"])
    return f"{memory['id']}  {day}  {memory['type']:10}  {memory['status']:11}  {content}"


LIST = asking(
    name="list",
    also=("memories",),
    does="what a running semmem has stored for a user, newest first",
    about=(
        "A line for each memory: id, day, type, status and content; then how many there are in all. A list that is"
        " longer than the limit goes on at --cursor, or with --all by itself."
    ),
    run=_list,
    arguments=(
        WHOSE,
        argument("--project", help="only of this project"),
        argument("--session", help="only of this session"),
        argument("--type", choices=TYPES, action="append", help="only of this type; repeatable"),
        argument("--status", choices=STATUSES, help="only with this status"),
        argument("--text", help="only what contains this text"),
        argument("--limit", type=int, default=20, metavar="N", help="most memories, 1 to 1000 (20)"),
        argument("--cursor", help="go on where another list ended: its next_cursor"),
        argument("--all", action="store_true", help="every page; with --json a line for each memory"),
    ),
    examples=(
        ("semmem list --user alice", "the newest twenty"),
        ("semmem list --api-key-env OPENAI_API_KEY", "of whoever sends this key through Envoy"),
        ("semmem list --user alice --all --json | jq -r .content", "the words of all of them"),
    ),
    prints="the page as the API answers it; with --all JSON Lines, a memory each",
)


# --- show ------------------------------------------------------------------------------------------------------------


def _history(api: Api, given: argparse.Namespace) -> Any:
    return api.call("GET", f"/v1/memory/{segment(given.id)}/history", params=api.whose)


def shown_memory(told: Told) -> Iterator[str]:
    """A line for each version, oldest first, and how often it was used."""
    for version in (*told["versions"], told["current"]):
        why = f"  ({version['replaced_why']})" if version.get("replaced_why") else ""
        content = one_line(version["content"])
        yield f"{version['version']:3}  {version['updated_at'][:10]}  {version['status']:11}  {content}{why}"
    for row in told["dropped"]:
        yield f"{row['times']} new facts were not stored beside it: {row['reason']}"
    yield f"used {told['uses']['count']} times"


SHOW = asking(
    name="show",
    does="one memory of a user, with every version it had, and its uses",
    about="A line for each version, the oldest first, with a word for why it was replaced.",
    run=printing(_history, shown_memory),
    arguments=(argument("id", help="as a list shows it"), WHOSE),
    examples=(("semmem show mem_0123456789abcdef --user alice", "one memory with its history"),),
    prints="the history as the API answers it",
)


# --- preview ---------------------------------------------------------------------------------------------------------


def _preview(api: Api, given: argparse.Namespace) -> Any:
    asked = given_only(strategy=given.strategy, limit=given.limit, project_id=given.project)
    return api.call("POST", "/v1/memory/preview", json=api.whose | asked | {"query": given.question})


def table(found: Told) -> Iterator[str]:
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


def _decided(request: Told | None) -> str:
    """What was decided of the question as a whole."""
    if request is None:
        return "not decided, nearness alone counts"
    wants = "wants memories" if request["wants_memories"] else "wants none"
    profile = ", lists the profile" if request["lists_profile"] else ""
    return f"{request['class']}, log-odds {_log_odds(request['log_odds'])}, {wants}{profile}"


def _log_odds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


PREVIEW = asking(
    name="preview",
    does="what a running semmem would recall for a question, and why",
    about=(
        "Takes the same path as a request through Envoy, and tells what was decided of the question, and for each"
        " candidate its scores and a verdict: kept, or the reason why not. Nothing is learnt from the question."
    ),
    run=printing(_preview, table),
    arguments=(
        argument("question", help="as the user would ask it"),
        WHOSE,
        argument("--strategy", choices=STRATEGIES, help="another search than the configured one"),
        argument("--limit", type=int, metavar="N", help="most memories, 1 to 50"),
        argument("--project", help="as a request of this project"),
    ),
    examples=(
        ('semmem preview "What is my budget?" --user alice', "why a memory is in the prompt, or not"),
        ('semmem preview "tea" --user alice --strategy keyword --limit 5', "by words alone"),
    ),
    prints="the preview as the API answers it",
)
