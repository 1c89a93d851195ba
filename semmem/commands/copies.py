"""``semmem backup``, ``restore``, ``export``, ``import``, ``erasures``, ``journal import``, ``journal recover``."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from semmem.commands.asking import LONG_TIMEOUT_S, Api, asking, connected, settings_of
from semmem.commands.command import Command, Exit, Failure, Run, argument
from semmem.commands.terminal import answer, members, say

DATA_FILES = (("config.yaml", "named by --config: which data_dir, and which embedding model"),)
OUTPUT = Path("-")
"""Standard output, or standard input."""

Told = dict[str, Any]


def _copying(copy: Callable[[argparse.Namespace], Told | None]) -> Run:
    """A command that prints what was done, and fails where not all of it was."""

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


def _backup(given: argparse.Namespace) -> Told:
    from semmem.commands.copying import backup

    return backup(_api(given), given.destination)


def _export(given: argparse.Namespace) -> Told | None:
    from semmem.commands.copying import export, export_to_output

    if given.file == OUTPUT:
        export_to_output(_api(given), given.user)
        return None
    return export(_api(given), given.file, given.user)


def _import(given: argparse.Namespace) -> Told:
    from semmem.commands.copying import standard_input, take

    with standard_input() if given.file == OUTPUT else nullcontext(given.file) as file:
        return take(_api(given), file) | {"import": str(given.file)}


def _erasures(given: argparse.Namespace) -> Told:
    from semmem.commands.copying import known_erasures

    return known_erasures(_api(given), given.file)


# --- where nothing runs ----------------------------------------------------------------------------------------------


def _restore(given: argparse.Namespace) -> Told:
    from semmem.wiring.backup import restore  # imports every backend

    if not given.erasures:
        say("without --erasures, what was erased after the backup was taken comes back with it (docs/backup.md)")
    return asyncio.run(restore(settings_of(given), given.source, given.erasures, say))


def _adopt(given: argparse.Namespace) -> Told:
    from semmem.wiring.backup import adopt  # imports every backend

    return adopt(settings_of(given), given.left, say)


def _recover(given: argparse.Namespace) -> Told:
    from semmem.wiring.backup import recover  # imports the journal

    told = recover(settings_of(given), accept_lost_erasures=given.accept_lost_erasures, progress=say)
    if not told.get("erasures_known", True):
        say("not all that was erased is known: delete again whoever asked for it lately (docs/backup.md)")
    return told


# --- the table's rows ------------------------------------------------------------------------------------------------


BACKUP = asking(
    name="backup",
    does="copy a running semmem: journal, memories and key, as a new folder",
    about=(
        "semmem goes on serving and learning meanwhile; what is in the folder is of one moment. It holds what people"
        " said: keep it as you keep the data. For the embedded stores; servers have tools of their own."
    ),
    run=_copying(_backup),
    arguments=(argument("destination", type=Path, help="a folder that is not there yet"),),
    examples=(("semmem backup /backups/monday --config config.yaml", "a folder to start again from"),),
    prints="what was copied, with counts",
)
RESTORE = Command(
    name="restore",
    does="put a backup into an empty data_dir, while nothing runs on it",
    about=(
        "Every block of the backup is compared with its digest first, and all memories are read again afterwards."
        " Nothing can be served from what is not finished; run it again then. With --erasures what was erased since"
        " the backup does not come back. All tokens of the API are revoked."
    ),
    run=_copying(_restore),
    arguments=(
        argument("source", type=Path, help="the folder of a backup"),
        argument("--config", type=Path, metavar="FILE", help="config.yaml that names data_dir"),
        argument(
            "--erasures",
            type=Path,
            action="append",
            default=[],
            metavar="PATH",
            help=(
                "what was erased since: a newer data_dir, journal or backup, or a file of `semmem erasures`; repeatable"
            ),
        ),
    ),
    examples=(("semmem restore /backups/monday --config config.yaml --erasures /old/data", "without what was erased"),),
    prints="what was restored, with counts",
    files=DATA_FILES,
)
EXPORT = asking(
    name="export",
    does="write a running semmem's memories, with their history, as JSON Lines",
    about=(
        "A line for each version of each memory, between a first line that says what the file is and a last one that"
        " says how many there are. Each user is of one moment, all of them are not. To standard output nothing else"
        " is printed; whether the last line is there says whether it is whole."
    ),
    run=_copying(_export),
    arguments=(
        argument("file", type=Path, help="a file that is not there yet; - is standard output"),
        argument("--user", help="one user's; without it everybody's"),
    ),
    examples=(
        ("semmem export people.jsonl --config config.yaml", "everybody's"),
        ("semmem export - --user alice | gzip > alice.jsonl.gz", "what is known of alice"),
    ),
    prints="what was written, with counts (to standard output the lines alone)",
)
IMPORT = asking(
    name="import",
    does="read an export into a running semmem; again and again, nothing is doubled",
    about=(
        "The whole file is read before anything is changed: a line that is wrong is named, and nothing imported. What"
        " was erased here stays erased. Where the same version of a memory says something else here, what is here"
        " stays, the line is listed as a conflict, and the exit status is 1."
    ),
    run=_copying(_import),
    arguments=(argument("file", type=Path, help="as `semmem export` wrote it; - is standard input"),),
    examples=(
        ("semmem import people.jsonl --config config.yaml", "an export of another semmem"),
        ("semmem export - --config old.yaml | semmem import - --config new.yaml", "from one into another"),
    ),
    prints="what was imported, with counts and the lines that conflict",
)
ERASURES = asking(
    name="erasures",
    does="write what a running semmem knows of erasures, for a later restore",
    about="Digests and times, no names: small, made to be kept apart from backups, and written often.",
    run=_copying(_erasures),
    arguments=(argument("file", type=Path, help="a file that is not there yet"),),
    examples=(("semmem erasures /backups/erasures.json --config config.yaml", "for semmem restore --erasures"),),
    prints="how many were written",
)
JOURNAL = Command(
    name="journal",
    does="the journal's own commands: recover, import",
    about="For a journal whose file is damaged, and for one that a replica left behind which is gone.",
    inside=(
        Command(
            name="recover",
            does="save what can be read of a damaged journal, while nothing runs on it",
            about=(
                "Reads the file page by page, writes what it finds into a new one, and puts that in its place; the"
                " damaged file stays beside it (.damaged-1), with what people said: delete it when nobody needs it. A"
                " sound journal is left alone, so a second run changes nothing; nor does one that is cut off."
                "\n\nThe journal says what was erased. Where some of that is gone, the command fails and changes"
                " nothing, until --accept-lost-erasures says that the rest is known by other means."
            ),
            run=_copying(_recover),
            arguments=(
                argument(
                    "--accept-lost-erasures",
                    action="store_true",
                    help=(
                        "go on though some of what says what is erased cannot be read: what was erased may be shown"
                        " again"
                    ),
                ),
                argument("--config", type=Path, metavar="FILE", help="config.yaml that names data_dir"),
            ),
            examples=(("semmem journal recover --config config.yaml", "when semmem says that the journal is damaged"),),
            prints="by table, how many rows were saved and lost",
            files=DATA_FILES,
        ),
        Command(
            name="import",
            does="take over what waits in the journal of a replica that is stopped for good",
            about=(
                "Turns that were not learnt from, with their answers, earlier versions, and what was erased there. A"
                " second run changes nothing."
            ),
            run=_copying(_adopt),
            arguments=(
                argument("left", type=Path, metavar="JOURNAL", help="its file, or its data_dir"),
                argument("--config", type=Path, metavar="FILE", help="config.yaml of the semmem that goes on"),
            ),
            examples=(("semmem journal import /volumes/old/journal.db --config config.yaml", "once it is stopped"),),
            prints="what was taken over, with counts",
            files=DATA_FILES,
        ),
    ),
)
