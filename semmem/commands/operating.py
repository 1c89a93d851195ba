"""``semmem users``, ``status``, ``token``: what is of no single user, asked of a running semmem."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from semmem.commands.asking import ASKING, Api, add_connection, connected, settings_of
from semmem.commands.command import Command, Parser, Run
from semmem.commands.failure import NOT_DONE
from semmem.commands.memories import given_only
from semmem.commands.terminal import document, one_line, write
from semmem.management.segment import segment

ROLES = ("admin", "operator", "user", "reader")

Told = Mapping[str, Any]
Ask = Callable[[Api, argparse.Namespace], Any]


def _asking(ask: Ask, shown: Callable[[Any], Iterable[str]], fails: Callable[[Told], bool] = lambda _: False) -> Run:
    """A command that prints what one call answers."""

    def run(given: argparse.Namespace) -> int:
        told = ask(connected(given, settings_of(given)), given)
        document(told) if given.json else write(shown(told))
        return NOT_DONE if fails(told) else 0

    return run


# --- users -----------------------------------------------------------------------------------------------------------


def _users_arguments(parser: Parser) -> None:
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="most names, 1 to 1000 (100)")
    parser.add_argument("--after", metavar="USER", help="go on after this one")
    add_connection(parser)


def _users(api: Api, given: argparse.Namespace) -> Any:
    return api.call("GET", "/v1/users", params=given_only(limit=given.limit, after=given.after))


def shown_users(told: Told) -> Iterator[str]:
    """A line for each, and where to go on."""
    yield from map(one_line, told["users"])
    if told["next_after"] is not None:
        yield f"more: --after {one_line(told['next_after'])}"


USERS = Command(
    name="users",
    does="who has memories, by name",
    about="Whoever has memories, had some, or said what may become one, by name; for an administrator.",
    run=_asking(_users, shown_users),
    arguments=_users_arguments,
    examples=(("semmem users --limit 10 --after bob", "the ten that follow bob"),),
    prints="the page as the API answers it",
    **ASKING,
)


# --- status ----------------------------------------------------------------------------------------------------------


def shown_status(told: Told) -> Iterator[str]:
    """A line for each part, and what they come to."""
    for name, part in told["parts"].items():
        yield f"{name:10} {part['error'] or 'works'}, {part['latency_ms']} ms"
    yield "works" if told["working"] else "does not work"


STATUS = Command(
    name="status",
    does="what a running semmem runs on, and a round trip to each part",
    about="Asks the journal, the store and the embedder for something cheap, now. Exit status 1 where one fails.",
    run=_asking(
        lambda api, _given: api.call("GET", "/v1/health"), shown_status, lambda told: told.get("working") is False
    ),
    arguments=add_connection,
    examples=(("semmem status --config config.yaml", "does everything work?"),),
    prints="the round trips as the API answers them",
    **ASKING,
)


# --- token -----------------------------------------------------------------------------------------------------------


def _create_arguments(parser: Parser) -> None:
    parser.add_argument("--role", choices=ROLES, required=True, help="what it is good for")
    parser.add_argument("--user", help="the only user it is good for; for a user, and a reader if asked")
    parser.add_argument("--label", default="", help="for whom or what; holds no secret")
    parser.add_argument("--expires", metavar="TIME", help="when it ends, for example 2027-01-01T00:00:00Z")
    add_connection(parser)


def _create(api: Api, given: argparse.Namespace) -> Any:
    told = {"role": given.role, "label": given.label, "user_id": given.user, "expires_at": given.expires}
    return api.call("POST", "/v1/tokens", json=told)


def listed_tokens(told: Told) -> Iterator[str]:
    """A line for each."""
    for row in told["tokens"]:
        state = "good" if row["good"] else "revoked" if row["revoked_at"] else "over"
        bound = "one user" if row["bound_to_user"] else "any user"
        yield f"{row['id']}  {row['role']:8}  {bound}  {row['created_at'][:10]}  {state:7}  {one_line(row['label'])}"


def _revoke_arguments(parser: Parser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("id", nargs="?", help="as `semmem token list` shows it")
    which.add_argument("--user", help="all of this user's")
    add_connection(parser)


def _revoke(api: Api, given: argparse.Namespace) -> Any:
    if given.user is not None:
        return api.call("DELETE", "/v1/tokens", params={"user_id": given.user})
    return api.call("DELETE", f"/v1/tokens/{segment(given.id)}")


def _token_command(
    name: str, does: str, about: str, run: Run, arguments: Callable[[Parser], None], example: str, prints: str
) -> Command:
    return Command(
        name=name,
        does=does,
        about=about,
        run=run,
        arguments=arguments,
        examples=((example, does),),
        prints=prints,
        **ASKING,
    )


TOKEN = Command(
    name="token",
    does="tokens of the API: create, list, revoke",
    about=(
        "A token says who calls the API and what they may do: an administrator everything, an operator what shows no"
        " content, a user their own memories, a reader only to read. semmem keeps hashes of them."
    ),
    inside=(
        _token_command(
            "create",
            "make a token, which is shown this once",
            "The token is the only line on standard output, so that it can be piped to where it is kept.",
            _asking(_create, lambda made: [made["token"]]),
            _create_arguments,
            "semmem token create --role user --user alice --label 'her phone'",
            "the token with its role, id and times",
        ),
        _token_command(
            "list",
            "every token, without what it opens with",
            "A line for each: id, role, whether it is bound to one user, the day it was made, its state and label.",
            _asking(lambda api, _given: api.call("GET", "/v1/tokens"), listed_tokens),
            add_connection,
            "semmem token list",
            "the tokens as the API answers them",
        ),
        _token_command(
            "revoke",
            "take a token back, or all of a user's",
            "It opens nothing from the next call on, on every replica that shares the journal.",
            _asking(_revoke, lambda done: [f"{done['revoked']} revoked"]),
            _revoke_arguments,
            "semmem token revoke --user alice",
            "how many were revoked",
        ),
    ),
)
