"""``semmem switches``: for whom a running semmem reads and stores; shown, and set by an administrator."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from semmem.commands.asking import ASKING, Api, add_connection, connected, settings_of
from semmem.commands.command import Command, Parser
from semmem.commands.failure import misused
from semmem.commands.terminal import document, one_line, write
from semmem.management.segment import segment

UNSAID = "unsaid"
WORDS = ("on", "off", UNSAID)
PARTS = ("reading", "storing")

Told = Mapping[str, Any]


def _arguments(parser: Parser) -> None:
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument("--user", help="of this user")
    whose.add_argument("--group", help="of everybody in this group, where the user has none of their own")
    parser.add_argument("--reading", choices=WORDS, help="memories in prompts; unsaid: as the user's groups have it")
    parser.add_argument("--storing", choices=WORDS, help="turns, and what is learnt from them")
    add_connection(parser)


def _run(given: argparse.Namespace) -> int:
    wanted = {name: word for name in PARTS if (word := getattr(given, name)) is not None}
    if wanted and given.user is None and given.group is None:
        raise misused("--user", "say whose switches: --user or --group")
    told = _ask(connected(given, settings_of(given)), given, wanted)
    document(told) if given.json else write(shown_switches(told))
    return 0


def _ask(api: Api, given: argparse.Namespace, wanted: Mapping[str, str]) -> Any:
    if given.user is None and given.group is None:
        return api.call("GET", "/v1/memory-switches")
    kind, name = ("users", given.user) if given.user is not None else ("groups", given.group)
    path = f"/v1/{kind}/{segment(name)}/memory-switches"
    present = api.call("GET", path)
    if not wanted:
        return present
    new = {part: wanted.get(part, present[part]) for part in PARTS}
    return api.call("PUT", path, json={part: None if word == UNSAID else word for part, word in new.items()})


def shown_switches(told: Told) -> Iterator[str]:
    """A line for whom was asked, or for each group, and how many users have some."""
    if "groups" not in told:
        yield _line(told)
        return
    yield from map(_line, told["groups"])
    yield f"{len(told['groups'])} groups, {told['users']} users"


def _line(told: Told) -> str:
    name = told.get("user_id") or told.get("group_id") or ""
    return f"{one_line(name)}: reading {told['reading'] or UNSAID}, storing {told['storing'] or UNSAID}"


SWITCHES = Command(
    name="switches",
    does="switch reading or storing off, for a user or a group",
    about=(
        "Reading is memories in prompts, storing is turns and what is learnt from them. A user's own word beats that of"
        " groups, and one group's off that of others. Every replica obeys within seconds. What is not named stays as it"
        " is; without --reading and --storing the switches are shown, without --user and --group those of all groups."
    ),
    run=_run,
    arguments=_arguments,
    examples=(
        ("semmem switches --user alice --reading off --storing off", "alice has no memory from now on"),
        ("semmem switches --user alice --reading unsaid --storing unsaid", "as before"),
        ("semmem switches", "every group with a switch, and how many users have one"),
    ),
    prints="the switches as the API answers them",
    **ASKING,
)
