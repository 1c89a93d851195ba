"""``semmem conversations``: what was recorded of one user's conversations in a running semmem."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from semmem.commands.asking import WHOSE, Api, Told, asking, given_only, opened, printing, refusal
from semmem.commands.command import Command, argument
from semmem.commands.terminal import one_line, write
from semmem.management import segment

PATH = "/v1/conversations"
PAGE = 500
"""Messages in a call."""

ONE = (argument("id", help="as a list shows it"), WHOSE)


# --- list ------------------------------------------------------------------------------------------------------------


def _list(api: Api, given: argparse.Namespace) -> Any:
    asked = given_only(
        project_id=given.project, session_id=given.session, tag=given.tag, q=given.text, cursor=given.cursor
    )
    return api.call("GET", PATH, params={**api.whose, **asked, "limit": given.limit})


def shown_list(found: Told) -> Iterator[str]:
    """A line for each: id, day, number of messages, title; and where to go on."""
    for kept in found["conversations"]:
        yield f"{kept['id']}  {kept['updated_at'][:10]}  {kept['messages']:5}  {one_line(kept['title'])}"
    if not found["recording"]:
        yield "nothing is recorded: conversations.enabled is false"
    if found["next_cursor"] is not None:
        yield f"more: --cursor {found['next_cursor']}"


LIST = asking(
    name="list",
    does="a user's conversations, those last added to first",
    about="A line for each: id, day, number of messages, title.",
    run=printing(_list, shown_list),
    arguments=(
        WHOSE,
        argument("--project", help="only of this project"),
        argument("--session", help="only of this session"),
        argument("--tag", help="only with this tag"),
        argument("--text", help="only with these words in the title, or in one message"),
        argument("--limit", type=int, default=20, metavar="N", help="most conversations, 1 to 200 (20)"),
        argument("--cursor", help="go on where another list ended: its next_cursor"),
    ),
    examples=(
        ("semmem conversations list --user alice", "the newest twenty"),
        ('semmem conversations list --user alice --text "the move"', "where both words were said"),
    ),
    prints="the page as the API answers it",
)


# --- show ------------------------------------------------------------------------------------------------------------


def _whole(api: Api, given: argparse.Namespace) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    cursor: str | None = None
    while not whole or cursor is not None:
        asked = {**api.whose, "limit": PAGE, **given_only(cursor=cursor)}
        page = api.call("GET", f"{PATH}/{segment(given.id)}", params=asked)
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


SHOW = asking(
    name="show",
    does="one conversation with its messages",
    about="Who said what and when; calls of tools with their arguments.",
    run=printing(_whole, shown_conversation),
    arguments=ONE,
    examples=(("semmem conversations show conv_0123456789abcdef --user alice", "all of it"),),
    prints="the conversation and all of its messages",
)


# --- export ----------------------------------------------------------------------------------------------------------


def _export(given: argparse.Namespace) -> int:
    api = opened(given)
    path = f"{PATH}/{segment(given.id)}/export"
    answer = api.answer("GET", path, params=api.whose | {"format": "json" if given.json else "markdown"})
    if not answer.is_success:
        raise refusal(answer, api.url + path)
    write([answer.text.removesuffix("\n")])
    return 0


EXPORT = asking(
    name="export",
    does="one conversation as Markdown, or as JSON",
    about="To standard output. The messages that it writes as JSON POST /v1/conversations takes again.",
    run=_export,
    arguments=ONE,
    examples=(("semmem conversations export conv_0123456789abcdef --user alice > move.md", "to be read"),),
    prints="the conversation with its messages, as the API exports it",
)


# --- delete ----------------------------------------------------------------------------------------------------------


def _delete(api: Api, given: argparse.Namespace) -> Any:
    return api.call("DELETE", f"{PATH}/{segment(given.id)}", params=api.whose)


DELETE = asking(
    name="delete",
    does="remove one conversation with its messages",
    about="What is still under way of it is turned away. Memories that were learnt from it stay: semmem forget.",
    run=printing(_delete, lambda gone: [f"{gone['messages']} messages deleted"]),
    arguments=ONE,
    examples=(("semmem conversations delete conv_0123456789abcdef --user alice", "it does not come back"),),
    prints="how many messages went",
)

CONVERSATIONS = Command(
    name="conversations",
    does="what was recorded of a user's conversations: list, show, export, delete",
    about="Conversations are recorded where conversations.enabled is true (docs/conversations.md).",
    inside=(LIST, SHOW, EXPORT, DELETE),
)
