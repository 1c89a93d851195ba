"""``semmem reindex``: have a running semmem make vectors of another model, or do it here where none runs."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from semmem.commands.asking import (
    ASKING,
    NO_SERVER,
    NO_TOKEN,
    TIMEOUT_S,
    Api,
    add_connection,
    connected,
    settings_of,
)
from semmem.commands.command import Command, Parser
from semmem.commands.failure import Failure, misused
from semmem.commands.terminal import Progress, bar, document, members, say, write

POLL_S = 0.5
PATH = "/v1/memory/reindex"
DONE = frozenset({"none", "kept", "paused"})
"""States in which nothing more comes by itself."""

Told = Mapping[str, Any]


def _arguments(parser: Parser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--force", action="store_true", help="also where they are of this model already")
    what.add_argument("--rollback", action="store_true", help="only back to a former model's vectors that are kept")
    what.add_argument("--drop-old", action="store_true", help="drop the former collection, and the way back with it")
    parser.add_argument("--limit", type=int, metavar="N", help="embed at most so many memories, then pause")
    add_connection(parser)


def _reindex(given: argparse.Namespace) -> int:
    if given.limit is not None and given.limit < 1:
        raise misused("--limit", "is at least 1")
    progress = Progress("reindex")
    told = _done(given, document if given.json else lambda told: drawn(progress, told))
    progress.end()
    if given.json and given.drop_old:  # the others' last state was told with their progress
        document(told)
    elif not given.json:
        write(members(told) if given.drop_old else [summary(told)])
    return 0


def _done(given: argparse.Namespace, show: Callable[[Told], None]) -> dict[str, Any]:
    """By the semmem that runs, or here when none does."""
    from semmem.ports.errors import SemmemError
    from semmem.wiring.stores import run  # imports every backend

    settings = settings_of(given)
    asked: dict[str, Any] = {"force": given.force, "limit": given.limit, "drop": given.drop_old}
    try:
        if not given.rollback:
            return ask(connected(given, settings, timeout_s=2 * TIMEOUT_S), **asked, show=show)
    except Failure as failure:
        if failure.code not in (NO_SERVER, NO_TOKEN):
            raise
        say(f"no semmem runs here ({failure.reason}): this command does it")
    try:
        return asyncio.run(run(settings, **asked, back=given.rollback, say=show))
    except SemmemError as error:
        raise Failure("NOT_REINDEXED", "", str(error)) from error


def ask(api: Api, *, force: bool, limit: int | None, drop: bool, show: Callable[[Told], None]) -> dict[str, Any]:
    """Begin, or drop what is kept, and wait for the end; how it ended. Raises Failure."""
    if drop:
        dropped: dict[str, Any] = api.call("DELETE", PATH)
        return dropped
    told: dict[str, Any] = api.call("POST", PATH, json={"force": force, **({} if limit is None else {"limit": limit})})
    while told["state"] not in DONE:
        show(told)
        time.sleep(POLL_S)
        told = api.call("GET", PATH)
    show(told)
    return told


def drawn(progress: Progress, told: Told) -> None:
    """How far it is."""
    if users := int(told.get("users", 0)):
        progress.at(int(told.get("users_done", 0)), _counted(told), users)


def summary(told: Told) -> str:
    """How it ended, on one line."""
    if not (users := int(told.get("users", 0))):
        return f"{told['state']:8} {told['collection']} holds vectors of {told['signature']}"
    return bar(f"{told['state']:8}", int(told.get("users_done", 0)), users, _counted(told))


def _counted(told: Told) -> str:
    done, users = told.get("users_done", 0), told.get("users", 0)
    return f"{done} of {users} users, {told.get('memories_done', 0)} memories, {told.get('embedded', 0)} embedded"


REINDEX = Command(
    name="reindex",
    does="make vectors of the configured embedding model for all memories",
    about=(
        "A running semmem does it while it serves; where none runs, this command does it itself. Until a user's"
        " memories have new vectors they are found by their words. The former vectors are kept for a way back, until"
        " --drop-old. It may be interrupted, and goes on where it was."
    ),
    run=_reindex,
    arguments=_arguments,
    examples=(
        ("semmem reindex --config config.yaml", "after memory.embedding.model was changed"),
        ("semmem reindex --rollback --config config.yaml", "back to the former model, with its configuration"),
    ),
    prints="JSON Lines: how far it is, the last line how it ended",
    **ASKING,
)
