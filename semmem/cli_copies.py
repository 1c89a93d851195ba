"""The ``semmem`` command's part about copies: backup, restore, export, import, erasures, journal import, reindex."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from semmem.config import ConfigError, Settings, load

EXIT_FAILED, EXIT_BAD_CONFIG, EXIT_INTERRUPTED = 1, 2, 130
"""As semmem.cli has them."""

COMMANDS = frozenset({"backup", "restore", "export", "import", "erasures", "journal", "reindex"})

Commands = Any
"""What argparse makes of subcommands; it has no public name."""


def add_commands(commands: Commands) -> None:
    """Describe them to the parser."""
    taking = _asking(commands, "backup", "copy a running semmem: journal, memories and key, as a new folder")
    taking.add_argument("destination", type=Path, help="a folder that is not there yet")
    writing = _asking(commands, "export", "write a running semmem's memories, with their history, as JSON Lines")
    writing.add_argument("file", type=Path, help="a file that is not there yet")
    writing.add_argument("--user", default=None, help="one user's; without it everybody's")
    reading = _asking(commands, "import", "read an export into a running semmem; again and again, nothing is doubled")
    reading.add_argument("file", type=Path)
    marking = _asking(commands, "erasures", "write what a running semmem knows of erasures, for a later restore")
    marking.add_argument("file", type=Path, help="a file that is not there yet")
    adopting = commands.add_parser("journal", help="the journal's own commands: import")
    importing = adopting.add_subparsers(metavar="ACTION", required=True).add_parser(
        "import", help="take over what waits in the journal of a replica that is stopped for good"
    )
    importing.add_argument("left", type=Path, metavar="JOURNAL", help="its file, or its data_dir")
    importing.add_argument("--config", type=Path, default=None, help="config.yaml of the semmem that goes on")
    reindexing = _asking(commands, "reindex", "make vectors of the configured embedding model for all memories")
    what = reindexing.add_mutually_exclusive_group()
    what.add_argument("--force", action="store_true", help="also where they are of this model already")
    what.add_argument("--rollback", action="store_true", help="only back to a former model's vectors that are kept")
    what.add_argument("--drop-old", action="store_true", help="drop the former collection, and the way back with it")
    reindexing.add_argument("--limit", type=int, default=None, help="embed at most so many memories, then pause")
    reindexing.add_argument("--json", action="store_true", help="progress as lines of JSON instead of a bar")
    restoring = commands.add_parser("restore", help="put a backup into an empty data_dir, while nothing runs on it")
    restoring.add_argument("source", type=Path, help="the folder of a backup")
    restoring.add_argument("--config", type=Path, default=None, help="config.yaml that names data_dir")
    restoring.add_argument(
        "--erasures",
        type=Path,
        action="append",
        default=[],
        metavar="PATH",
        help="what was erased since: a newer data_dir, journal or backup, or a file of `semmem erasures`; repeatable",
    )


def _asking(commands: Commands, name: str, does: str) -> argparse.ArgumentParser:
    """A command that asks a running semmem."""
    command: argparse.ArgumentParser = commands.add_parser(name, help=does)
    command.add_argument("--config", type=Path, default=None, help="config.yaml of the running semmem")
    command.add_argument("--api", default=None, help="its API's URL, when that is not where the configuration says")
    return command


def run(arguments: argparse.Namespace) -> int:
    """One of COMMANDS; its exit status: 0 done, 1 not or not all of it, 2 the configuration is wrong."""
    from semmem.backup import BackupError
    from semmem.ports.errors import SemmemError

    try:
        told = _ACTIONS[arguments.command](load(arguments.config, os.environ), arguments)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_CONFIG
    except (BackupError, SemmemError, OSError) as error:
        print(f"{arguments.command}: {error}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        print(f"{arguments.command}: interrupted; what was begun is not finished", file=sys.stderr)
        return EXIT_INTERRUPTED
    print(json.dumps(told))
    return EXIT_FAILED if told.get("conflicts") else 0


def _api(settings: Settings, arguments: argparse.Namespace) -> Any:
    from semmem.management.backup_commands import Api

    api = settings.listeners.api
    return Api(arguments.api or f"http://{api.address}", api.admin_token.get_secret_value())


def _backup(settings: Settings, arguments: argparse.Namespace) -> dict[str, Any]:
    from semmem.management.backup_commands import backup

    return backup(_api(settings, arguments), arguments.destination)


def _export(settings: Settings, arguments: argparse.Namespace) -> dict[str, Any]:
    from semmem.management.backup_commands import export

    return export(_api(settings, arguments), arguments.file, arguments.user)


def _import(settings: Settings, arguments: argparse.Namespace) -> dict[str, Any]:
    from semmem.management.backup_commands import take

    return take(_api(settings, arguments), arguments.file)


def _erasures(settings: Settings, arguments: argparse.Namespace) -> dict[str, Any]:
    from semmem.management.backup_commands import known_erasures

    return known_erasures(_api(settings, arguments), arguments.file)


def _restore(settings: Settings, arguments: argparse.Namespace) -> dict[str, Any]:
    from semmem.wiring.restore import restore  # imports every backend

    if not arguments.erasures:
        _say("without --erasures, what was erased after the backup was taken comes back with it (docs/backup.md)")
    return asyncio.run(restore(settings, arguments.source, arguments.erasures, _say))


def _adopt(settings: Settings, arguments: argparse.Namespace) -> dict[str, Any]:
    from semmem.wiring.adopt import adopt  # imports every backend

    return adopt(settings, arguments.left, _say)


def _reindex(settings: Settings, arguments: argparse.Namespace) -> dict[str, Any]:
    """By the semmem that runs, or here when none does."""
    from semmem.backup import BackupError
    from semmem.management.reindex_commands import NoAnswer, Refused, as_json, ask, bar
    from semmem.wiring.reindex_offline import run

    if arguments.limit is not None and arguments.limit < 1:
        raise BackupError("--limit is at least 1")
    api, say = settings.listeners.api, as_json if arguments.json else bar
    asked: dict[str, Any] = {"force": arguments.force, "limit": arguments.limit, "drop": arguments.drop_old}
    try:
        if not arguments.rollback:
            url = arguments.api or f"http://{api.address}"
            return ask(url, api.admin_token.get_secret_value(), **asked, say=say)
    except NoAnswer:
        _say("no semmem runs here: this command does it")
    except Refused as refused:
        raise BackupError(str(refused)) from None
    return asyncio.run(run(settings, **asked, back=arguments.rollback, say=say))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


_ACTIONS: dict[str, Callable[[Settings, argparse.Namespace], dict[str, Any]]] = {
    "backup": _backup,
    "export": _export,
    "import": _import,
    "erasures": _erasures,
    "restore": _restore,
    "journal": _adopt,
    "reindex": _reindex,
}
