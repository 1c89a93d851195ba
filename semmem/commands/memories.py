"""``semmem add``, ``list``, ``show``, ``preview``, ``conversations``: one user's memories in a running semmem, and what
was recorded of their conversations."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from semmem.commands.asking import Api, Told, given_only, opened, refusal
from semmem.commands.command import Failure
from semmem.commands.terminal import answer, one_line, write
from semmem.management import segment

CONTENT_CHARS_MAX = 100
"""Of a memory in a table."""
PAGE = 500
"""Memories in a call where all are listed."""


# --- add -------------------------------------------------------------------------------------------------------------


def add(given: argparse.Namespace) -> int:
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


# --- list ------------------------------------------------------------------------------------------------------------


def listed(given: argparse.Namespace) -> int:
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


# --- show ------------------------------------------------------------------------------------------------------------


def history(api: Api, given: argparse.Namespace) -> Any:
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


# --- preview ---------------------------------------------------------------------------------------------------------


def preview(api: Api, given: argparse.Namespace) -> Any:
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


# --- conversations ---------------------------------------------------------------------------------------------------


CONVERSATIONS = "/v1/conversations"
MESSAGES = 500
"""In a call."""


def conversations(api: Api, given: argparse.Namespace) -> Any:
    asked = given_only(
        project_id=given.project, session_id=given.session, tag=given.tag, q=given.text, cursor=given.cursor
    )
    return api.call("GET", CONVERSATIONS, params={**api.whose, **asked, "limit": given.limit})


def shown_conversations(found: Told) -> Iterator[str]:
    """A line for each: id, day, number of messages, title; and where to go on."""
    for kept in found["conversations"]:
        yield f"{kept['id']}  {kept['updated_at'][:10]}  {kept['messages']:5}  {one_line(kept['title'])}"
    if not found["recording"]:
        yield "nothing is recorded: conversations.enabled is false"
    if found["next_cursor"] is not None:
        yield f"more: --cursor {found['next_cursor']}"


def conversation(api: Api, given: argparse.Namespace) -> Told:
    whole: dict[str, Any] = {}
    cursor: str | None = None
    while not whole or cursor is not None:
        asked = {**api.whose, "limit": MESSAGES, **given_only(cursor=cursor)}
        page = api.call("GET", f"{CONVERSATIONS}/{segment(given.id)}", params=asked)
        whole = {"conversation": page["conversation"], "messages": [*whole.get("messages", ()), *page["messages"]]}
        cursor = page["next_cursor"]
    return whole


def shown_conversation(whole: Told) -> Iterator[str]:
    """The title, then each message under who said it and when."""
    yield one_line(whole["conversation"]["title"])
    for message in whole["messages"]:
        yield ""
        yield f"{message['role']}  {message['at'][:19].replace('T', ' ')}  {one_line(message['model'] or '')}".rstrip()
        yield from (f"  {one_line(line)}" for line in message["content"].splitlines())
        yield from (
            f"  calls {one_line(call['name'])}: {one_line(call['arguments'])}" for call in message["tool_calls"]
        )


def export_conversation(given: argparse.Namespace) -> int:
    api = opened(given)
    path = f"{CONVERSATIONS}/{segment(given.id)}/export"
    answer = api.answer("GET", path, params=api.whose | {"format": "json" if given.json else "markdown"})
    if not answer.is_success:
        raise refusal(answer, api.url + path)
    write([answer.text.removesuffix("\n")])
    return 0


def delete_conversation(api: Api, given: argparse.Namespace) -> Any:
    return api.call("DELETE", f"{CONVERSATIONS}/{segment(given.id)}", params=api.whose)
