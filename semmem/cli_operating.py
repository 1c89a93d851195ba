"""The ``semmem`` command's part that asks a running semmem for one thing: add, show, users, status, token."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from semmem.config import ConfigError, Settings, load
from semmem.management.segment import segment

EXIT_BAD_CONFIG = 2
"""As semmem.cli has it."""

COMMANDS = frozenset({"add", "mcp", "show", "users", "status", "token"})
ROLES = ("admin", "operator", "user", "reader")

Commands = Any
"""What argparse makes of subcommands; it has no public name."""
Call = tuple[str, str, Mapping[str, Any]]
"""Method, path, and what httpx is given."""


def add_commands(commands: Commands) -> None:
    """Describe them to the parser."""
    adding = _asking(commands, "add", "tell a running semmem a memory of a user")
    adding.add_argument("content", help="one fact, 3 to 500 characters")
    adding.add_argument("--user", required=True)
    adding.add_argument("--type", choices=("semantic", "procedural", "episodic"), default="semantic")
    adding.add_argument("--key", default=None, help="the same user and key is the same memory in a new version")
    showing = _asking(commands, "show", "one memory of a user, with every version it had, and its uses")
    showing.add_argument("id")
    showing.add_argument("--user", required=True)
    users = _asking(commands, "users", "who has memories, by name")
    users.add_argument("--limit", type=int, default=100, help="most names, 1 to 1000")
    users.add_argument("--after", default=None, metavar="USER", help="go on after this one")
    _asking(commands, "status", "what a running semmem runs on, and a round trip to each; exit status 1 if one fails")
    tools = commands.add_parser("mcp", help="tools for a model on standard input and output, over a running semmem")
    tools.add_argument("--config", type=Path, default=None, help="config.yaml of the running semmem")
    tools.add_argument("--api", default=None, help="its API's URL, when that is not where the configuration says")
    tools.add_argument("--user", default=None, help="whose memories; with a token that is bound to a user not needed")
    tools.add_argument(
        "--token-env", default=None, metavar="VARIABLE", help="that holds a token; without it the administrator's"
    )
    tokens = commands.add_parser("token", help="tokens of the API: create, list, revoke")
    acts = tokens.add_subparsers(dest="act", metavar="ACTION", required=True)
    creating = _asking(acts, "create", "make a token, which is shown this once")
    creating.add_argument("--role", choices=ROLES, required=True)
    creating.add_argument("--user", default=None, help="the only user it is good for; for user, and reader if asked")
    creating.add_argument("--label", default="", help="for whom or what; holds no secret")
    creating.add_argument("--expires", default=None, metavar="TIME", help="for example 2027-01-01T00:00:00Z")
    _asking(acts, "list", "every token, without what it opens with")
    revoking = _asking(acts, "revoke", "take a token back, or all of a user's")
    which = revoking.add_mutually_exclusive_group(required=True)
    which.add_argument("id", nargs="?", help="as `semmem token list` shows it")
    which.add_argument("--user", default=None, help="all of this user's")


def _asking(commands: Commands, name: str, does: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=does)
    command.add_argument("--config", type=Path, default=None, help="config.yaml of the running semmem")
    command.add_argument("--api", default=None, help="its API's URL, when that is not where the configuration says")
    command.add_argument("--json", action="store_true", help="print what the API answers, as it is")
    return command


def run(arguments: argparse.Namespace) -> int:
    """One of COMMANDS; its exit status: 0 done, 1 no answer or a refusal, 2 the configuration is wrong."""
    from semmem.management.commands import ask, listed_tokens, shown_memory, shown_status

    try:
        settings = load(arguments.config, os.environ)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_CONFIG
    if arguments.command == "mcp":
        return _mcp(settings, arguments)
    name = f"token {arguments.act}" if arguments.command == "token" else arguments.command
    lines: dict[str, Callable[[Any], Any]] = {
        "add": lambda made: [f"{made['id']} version {made['version']}, {made['status']}"],
        "show": shown_memory,
        "users": lambda found: [*found["users"], f"{len(found['users'])} of {found['total']} users"],
        "status": shown_status,
        "token create": lambda made: [made["token"]],
        "token list": listed_tokens,
        "token revoke": lambda done: [f"{done['revoked']} revoked"],
    }
    api = settings.listeners.api
    method, path, asked = _CALLS[name](arguments)
    url, token = (arguments.api or f"http://{api.address}") + path, api.admin_token.get_secret_value()
    as_it_is = (lambda told: [json.dumps(told)]) if arguments.json else lines[name]
    return ask(method, url, token, as_it_is, fails=lambda told: told.get("working") is False, **asked)


def _mcp(settings: Settings, given: argparse.Namespace) -> int:
    import asyncio

    from semmem.management.mcp_doors import serve_stdio  # imports an SDK

    api = settings.listeners.api
    token = os.environ.get(given.token_env, "") if given.token_env else api.admin_token.get_secret_value()
    asyncio.run(serve_stdio(given.api or f"http://{api.address}", token, given.user))
    return 0


def _add(given: argparse.Namespace) -> Call:
    told = {"user_id": given.user, "content": given.content, "type": given.type, "key": given.key}
    return "POST", "/v1/memory", {"json": told}


def _show(given: argparse.Namespace) -> Call:
    return "GET", f"/v1/memory/{segment(given.id)}/history", {"params": {"user_id": given.user}}


def _users(given: argparse.Namespace) -> Call:
    return "GET", "/v1/users", {"params": {"limit": given.limit, **({"after": given.after} if given.after else {})}}


def _create(given: argparse.Namespace) -> Call:
    told = {"role": given.role, "label": given.label, "user_id": given.user, "expires_at": given.expires}
    return "POST", "/v1/tokens", {"json": told}


def _revoke(given: argparse.Namespace) -> Call:
    if given.user is not None:
        return "DELETE", "/v1/tokens", {"params": {"user_id": given.user}}
    return "DELETE", f"/v1/tokens/{segment(given.id)}", {}


_CALLS: dict[str, Callable[[argparse.Namespace], Call]] = {
    "add": _add,
    "show": _show,
    "users": _users,
    "status": lambda _: ("GET", "/v1/health", {}),
    "token create": _create,
    "token list": lambda _: ("GET", "/v1/tokens", {}),
    "token revoke": _revoke,
}
