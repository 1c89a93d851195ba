"""``semmem users``, ``status``, ``token``, ``switches``: for whoever operates a running semmem."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from semmem.commands.asking import Api, Told, asking, given_only, printing
from semmem.commands.command import Command, argument, misused, one_of
from semmem.commands.terminal import one_line
from semmem.management import segment

ROLES = ("admin", "operator", "user", "reader")
UNSAID = "unsaid"
WORDS = ("on", "off", UNSAID)
PARTS = ("reading", "storing")


# --- users -----------------------------------------------------------------------------------------------------------


def _users(api: Api, given: argparse.Namespace) -> Any:
    return api.call("GET", "/v1/users", params=given_only(limit=given.limit, after=given.after))


def shown_users(told: Told) -> Iterator[str]:
    """A line for each, and where to go on."""
    yield from map(one_line, told["users"])
    if told["next_after"] is not None:
        yield f"more: --after {one_line(told['next_after'])}"


USERS = asking(
    name="users",
    does="who has memories, by name",
    about="Whoever has memories, had some, or said what may become one, by name; for an administrator.",
    run=printing(_users, shown_users),
    arguments=(
        argument("--limit", type=int, default=100, metavar="N", help="most names, 1 to 1000 (100)"),
        argument("--after", metavar="USER", help="go on after this one"),
    ),
    examples=(("semmem users --limit 10 --after bob", "the ten that follow bob"),),
    prints="the page as the API answers it",
)


# --- status ----------------------------------------------------------------------------------------------------------


def shown_status(told: Told) -> Iterator[str]:
    """A line for each part, and what they come to."""
    for name, part in told["parts"].items():
        yield f"{name:10} {part['error'] or 'works'}, {part['latency_ms']} ms"
    yield "works" if told["working"] else "does not work"


STATUS = asking(
    name="status",
    does="what a running semmem runs on, and a round trip to each part",
    about="Asks the journal, the store and the embedder for something cheap, now. Exit status 1 where one fails.",
    run=printing(
        lambda api, _given: api.call("GET", "/v1/health"), shown_status, lambda told: told.get("working") is False
    ),
    examples=(("semmem status --config config.yaml", "does everything work?"),),
    prints="the round trips as the API answers them",
)


# --- token -----------------------------------------------------------------------------------------------------------


def _create(api: Api, given: argparse.Namespace) -> Any:
    told = {"role": given.role, "label": given.label, "user_id": given.user, "expires_at": given.expires}
    return api.call("POST", "/v1/tokens", json=told)


def listed_tokens(told: Told) -> Iterator[str]:
    """A line for each."""
    for row in told["tokens"]:
        state = "good" if row["good"] else "revoked" if row["revoked_at"] else "over"
        bound = "one user" if row["bound_to_user"] else "any user"
        yield f"{row['id']}  {row['role']:8}  {bound}  {row['created_at'][:10]}  {state:7}  {one_line(row['label'])}"


def _revoke(api: Api, given: argparse.Namespace) -> Any:
    if given.user is not None:
        return api.call("DELETE", "/v1/tokens", params={"user_id": given.user})
    return api.call("DELETE", f"/v1/tokens/{segment(given.id)}")


TOKEN = Command(
    name="token",
    does="tokens of the API: create, list, revoke",
    about=(
        "A token says who calls the API and what they may do: an administrator everything, an operator what shows no"
        " content, a user their own memories, a reader only to read. semmem keeps hashes of them."
    ),
    inside=(
        asking(
            name="create",
            does="make a token, which is shown this once",
            about="The token is the only line on standard output, so that it can be piped to where it is kept.",
            run=printing(_create, lambda made: [made["token"]]),
            arguments=(
                argument("--role", choices=ROLES, required=True, help="what it is good for"),
                argument("--user", help="the only user it is good for; for a user, and a reader if asked"),
                argument("--label", default="", help="for whom or what; holds no secret"),
                argument("--expires", metavar="TIME", help="when it ends, for example 2027-01-01T00:00:00Z"),
            ),
            examples=(
                (
                    "semmem token create --role user --user alice --label 'her phone'",
                    "make a token, which is shown this once",
                ),
            ),
            prints="the token with its role, id and times",
        ),
        asking(
            name="list",
            does="every token, without what it opens with",
            about=(
                "A line for each: id, role, whether it is bound to one user, the day it was made, its state and label."
            ),
            run=printing(lambda api, _given: api.call("GET", "/v1/tokens"), listed_tokens),
            examples=(("semmem token list", "every token, without what it opens with"),),
            prints="the tokens as the API answers them",
        ),
        asking(
            name="revoke",
            does="take a token back, or all of a user's",
            about="It opens nothing from the next call on, on every replica that shares the journal.",
            run=printing(_revoke, lambda done: [f"{done['revoked']} revoked"]),
            arguments=(
                one_of(
                    argument("id", nargs="?", help="as `semmem token list` shows it"),
                    argument("--user", help="all of this user's"),
                    required=True,
                ),
            ),
            examples=(("semmem token revoke --user alice", "take a token back, or all of a user's"),),
            prints="how many were revoked",
        ),
    ),
)


# --- switches --------------------------------------------------------------------------------------------------------


def _switches(api: Api, given: argparse.Namespace) -> Any:
    wanted = {name: word for name in PARTS if (word := getattr(given, name)) is not None}
    if given.user is None and given.group is None:
        return api.call("GET", "/v1/memory-switches")
    kind, name = ("users", given.user) if given.user is not None else ("groups", given.group)
    path = f"/v1/{kind}/{segment(name)}/memory-switches"
    present = api.call("GET", path)
    if not wanted:
        return present
    new = {part: wanted.get(part, present[part]) for part in PARTS}
    return api.call("PUT", path, json={part: None if word == UNSAID else word for part, word in new.items()})


def _run_switches(given: argparse.Namespace) -> int:
    if (given.reading or given.storing) and given.user is None and given.group is None:
        raise misused("--user", "say whose switches: --user or --group")
    return printing(_switches, shown_switches)(given)


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


SWITCHES = asking(
    name="switches",
    does="switch reading or storing off, for a user or a group",
    about=(
        "Reading is memories in prompts, storing is turns and what is learnt from them. A user's own word beats that of"
        " groups, and one group's off that of others. Every replica obeys within seconds. What is not named stays as it"
        " is; without --reading and --storing the switches are shown, without --user and --group those of all groups."
    ),
    run=_run_switches,
    arguments=(
        one_of(
            argument("--user", help="of this user"),
            argument("--group", help="of everybody in this group, where the user has none of their own"),
        ),
        argument("--reading", choices=WORDS, help="memories in prompts; unsaid: as the user's groups have it"),
        argument("--storing", choices=WORDS, help="turns, and what is learnt from them"),
    ),
    examples=(
        ("semmem switches --user alice --reading off --storing off", "alice has no memory from now on"),
        ("semmem switches --user alice --reading unsaid --storing unsaid", "as before"),
        ("semmem switches", "every group with a switch, and how many users have one"),
    ),
    prints="the switches as the API answers them",
)
