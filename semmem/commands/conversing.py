"""``semmem conversations``: what was recorded of one user's conversations in a running semmem."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from semmem.commands.asking import ASKING, add_connection, add_whose, refusal
from semmem.commands.command import Command, Parser
from semmem.commands.memories import given_only, opened
from semmem.commands.terminal import document, one_line, write
from semmem.management.segment import segment

PATH = "/v1/conversations"
PAGE = 500
"""Messages in a call."""

Told = Mapping[str, Any]


def _one_arguments(parser: Parser) -> None:
    parser.add_argument("id", help="as a list shows it")
    add_whose(parser)
    add_connection(parser)


# --- list ------------------------------------------------------------------------------------------------------------


def _list_arguments(parser: Parser) -> None:
    add_whose(parser)
    parser.add_argument("--project", help="only of this project")
    parser.add_argument("--session", help="only of this session")
    parser.add_argument("--tag", help="only with this tag")
    parser.add_argument("--text", help="only with these words in the title, or in one message")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="most conversations, 1 to 200 (20)")
    parser.add_argument("--cursor", help="go on where another list ended: its next_cursor")
    add_connection(parser)


def _list(given: argparse.Namespace) -> int:
    api, whose = opened(given)
    asked = given_only(
        project_id=given.project, session_id=given.session, tag=given.tag, q=given.text, cursor=given.cursor
    )
    found = api.call("GET", PATH, params={**whose, **asked, "limit": given.limit})
    document(found) if given.json else write(shown_list(found))
    return 0


def shown_list(found: Told) -> Iterator[str]:
    """A line for each: id, day, number of messages, title; and where to go on."""
    for kept in found["conversations"]:
        yield f"{kept['id']}  {kept['updated_at'][:10]}  {kept['messages']:5}  {one_line(kept['title'])}"
    if not found["recording"]:
        yield "nothing is recorded: conversations.enabled is false"
    if found["next_cursor"] is not None:
        yield f"more: --cursor {found['next_cursor']}"


LIST = Command(
    name="list",
    does="a user's conversations, those last added to first",
    about="A line for each: id, day, number of messages, title.",
    run=_list,
    arguments=_list_arguments,
    examples=(
        ("semmem conversations list --user alice", "the newest twenty"),
        ('semmem conversations list --user alice --text "the move"', "where both words were said"),
    ),
    prints="the page as the API answers it",
    **ASKING,
)


# --- show ------------------------------------------------------------------------------------------------------------


def _show(given: argparse.Namespace) -> int:
    api, whose = opened(given)
    whole: dict[str, Any] = {}
    cursor: str | None = None
    while not whole or cursor is not None:
        asked = {**whose, "limit": PAGE, **given_only(cursor=cursor)}
        page = api.call("GET", f"{PATH}/{segment(given.id)}", params=asked)
        whole = {"conversation": page["conversation"], "messages": [*whole.get("messages", ()), *page["messages"]]}
        cursor = page["next_cursor"]
    document(whole) if given.json else write(shown_conversation(whole))
    return 0


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


SHOW = Command(
    name="show",
    does="one conversation with its messages",
    about="Who said what and when; calls of tools with their arguments.",
    run=_show,
    arguments=_one_arguments,
    examples=(("semmem conversations show conv_0123456789abcdef --user alice", "all of it"),),
    prints="the conversation and all of its messages",
    **ASKING,
)


# --- export ----------------------------------------------------------------------------------------------------------


def _export(given: argparse.Namespace) -> int:
    api, whose = opened(given)
    path = f"{PATH}/{segment(given.id)}/export"
    answer = api.answer("GET", path, params=whose | {"format": "json" if given.json else "markdown"})
    if not answer.is_success:
        raise refusal(answer, api.url + path)
    write([answer.text.removesuffix("\n")])
    return 0


EXPORT = Command(
    name="export",
    does="one conversation as Markdown, or as JSON",
    about="To standard output. The messages that it writes as JSON POST /v1/conversations takes again.",
    run=_export,
    arguments=_one_arguments,
    examples=(("semmem conversations export conv_0123456789abcdef --user alice > move.md", "to be read"),),
    prints="the conversation with its messages, as the API exports it",
    **ASKING,
)


# --- delete ----------------------------------------------------------------------------------------------------------


def _delete(given: argparse.Namespace) -> int:
    api, whose = opened(given)
    gone = api.call("DELETE", f"{PATH}/{segment(given.id)}", params=whose)
    document(gone) if given.json else write([f"{gone['messages']} messages deleted"])
    return 0


DELETE = Command(
    name="delete",
    does="remove one conversation with its messages",
    about="What is still under way of it is turned away. Memories that were learnt from it stay: semmem forget.",
    run=_delete,
    arguments=_one_arguments,
    examples=(("semmem conversations delete conv_0123456789abcdef --user alice", "it does not come back"),),
    prints="how many messages went",
    **ASKING,
)

CONVERSATIONS = Command(
    name="conversations",
    does="what was recorded of a user's conversations: list, show, export, delete",
    about="Conversations are recorded where conversations.enabled is true (docs/conversations.md).",
    inside=(LIST, SHOW, EXPORT, DELETE),
)
