"""``semmem backup``, ``restore``, ``export``, ``import``, ``erasures``, ``journal import``, ``journal recover``."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from pathlib import Path
from typing import Any

from semmem.commands.asking import LONG_TIMEOUT_S, Api, connected, settings_of
from semmem.commands.command import Exit, Failure, Run
from semmem.commands.terminal import answer, members, say

OUTPUT = Path("-")
"""Standard output, or standard input."""

Told = dict[str, Any]


def reported(copy: Callable[[argparse.Namespace], Told | None]) -> Run:
    """A command that prints what was done, and fails where not all of it was."""

    @wraps(copy)
    def run(given: argparse.Namespace) -> int:
        from semmem.backup import BackupError, ErasuresLost
        from semmem.ports.errors import SemmemError

        try:
            told = copy(given)
        except ErasuresLost as error:
            raise Failure("ERASURES_LOST", "", str(error), **error.told) from error
        except (BackupError, SemmemError) as error:
            raise Failure("NOT_COPIED", "", str(error)) from error
        if told is None:
            return 0
        answer(given, told, members(told))
        return Exit.NOT_DONE if told.get("conflicts") else 0

    return run


def _api(given: argparse.Namespace) -> Api:
    return connected(given, settings_of(given), timeout_s=LONG_TIMEOUT_S)


# --- between a running semmem and files ------------------------------------------------------------------------------


@reported
def backup(given: argparse.Namespace) -> Told:
    from semmem.commands import copying

    return copying.backup(_api(given), given.destination)


@reported
def export(given: argparse.Namespace) -> Told | None:
    from semmem.commands import copying

    if given.file == OUTPUT:
        copying.export_to_output(_api(given), given.user)
        return None
    return copying.export(_api(given), given.file, given.user)


@reported
def take(given: argparse.Namespace) -> Told:
    from semmem.commands import copying

    with copying.standard_input() if given.file == OUTPUT else nullcontext(given.file) as file:
        return copying.take(_api(given), file) | {"import": str(given.file)}


@reported
def known_erasures(given: argparse.Namespace) -> Told:
    from semmem.commands import copying

    return copying.known_erasures(_api(given), given.file)


# --- where nothing runs ----------------------------------------------------------------------------------------------


@reported
def restore(given: argparse.Namespace) -> Told:
    from semmem.wiring import backup  # imports every backend

    if not given.erasures:
        say("without --erasures, what was erased after the backup was taken comes back with it (docs/backup.md)")
    return asyncio.run(backup.restore(settings_of(given), given.source, given.erasures, say))


@reported
def adopt(given: argparse.Namespace) -> Told:
    from semmem.wiring import backup  # imports every backend

    return backup.adopt(settings_of(given), given.left, say)


@reported
def recover(given: argparse.Namespace) -> Told:
    from semmem.wiring import backup  # imports every backend

    accept = given.accept_lost_erasures
    told = backup.recover(settings_of(given), accept_lost_erasures=accept, progress=say)
    if not told.get("erasures_known", True):
        say("not all that was erased is known: delete again whoever asked for it lately (docs/backup.md)")
    return told
