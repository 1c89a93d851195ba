"""Settings -> a journal that is damaged, replaced by what can be read of it while nothing runs; and one that was left
behind, taken over by the configured one, beside a running semmem or without."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

from semmem.backends.sql.file import OnlyProcess
from semmem.backends.sql.journal import SqlJournal
from semmem.backends.sql.recovering import Salvage, is_sound, salvage
from semmem.backup import BackupError, ErasuresLost
from semmem.backup.adopting import Adoption
from semmem.backup.restoring import Progress, is_unfinished
from semmem.config.settings import Settings
from semmem.ports.conversations import ConversationLimits
from semmem.ports.errors import JournalError
from semmem.wiring.conversations import limits
from semmem.wiring.stores import journal

UNFINISHED, KEPT = ".recovering", ".damaged"
LOG, SHARED = "-wal", "-shm"


def recover(settings: Settings, *, accept_lost_erasures: bool, progress: Progress) -> dict[str, Any]:
    """Put what can be read of the configured journal in its place; what was saved and lost. A sound one is left alone.

    The damaged file keeps its bytes under another name beside it. Raises ErasuresLost when it was not accepted that
    what is erased is not fully known; nothing is changed then. Raises BackupError, JournalError and OSError.
    """
    path = settings.journal_file
    if settings.journal.url:
        raise BackupError("journal.url: the journal is on a server, whose own tools recover it")
    if is_unfinished(Path(settings.data_dir)):
        raise BackupError(f"a restore into {settings.data_dir} was not finished: run `semmem restore` again")
    if not path.is_file():
        raise BackupError(f"there is no journal at {path}")
    only = OnlyProcess(path)
    try:
        only.open()
    except JournalError as error:
        raise BackupError(f"{error}; stop it first") from None
    try:
        return _recover(path, accept_lost_erasures=accept_lost_erasures, progress=progress)
    finally:
        only.close()


def _recover(path: Path, *, accept_lost_erasures: bool, progress: Progress) -> dict[str, Any]:
    _undo(path)
    if is_sound(path):
        return {"journal": str(path), "damaged": False}
    progress(f"reading {path}")
    new = _beside(path, UNFINISHED)
    try:
        found = salvage(path, new, now=time.time())
        told = {"journal": str(path), "damaged": True} | _told(found)
        if (found.erasures_lost or found.log_is_damaged) and not accept_lost_erasures:
            raise ErasuresLost(_refusal(path, found), told)
        kept = _swap(path, new)
    finally:
        new.unlink(missing_ok=True)
    return told | {"damaged_file": str(kept)}


def _told(found: Salvage) -> dict[str, Any]:
    lost = {table: "all or some" if number is None else number for table, number in found.lost.items()}
    saved = {table: number for table, number in found.saved.items() if number}
    return {"saved": saved, "lost": lost, "erasures_known": not (found.erasures_lost or found.log_is_damaged)}


def _refusal(path: Path, found: Salvage) -> str:
    where = [*found.erasures_lost, *(["the newest commits, in its log"] if found.log_is_damaged else [])]
    return (
        f"{path} says what was erased, and not all of that can be read ({', '.join(where)}). Nothing was changed, and"
        " semmem does not serve memories meanwhile. Restore a backup (`semmem restore --erasures`), or run this again"
        " with --accept-lost-erasures, then delete again whoever asked for it lately"
    )


# --- names -----------------------------------------------------------------------------------------------------------


def _swap(path: Path, new: Path) -> Path:
    """The new file takes the damaged one's name in one step; there is never none of that name. Where the damaged one
    is kept."""
    kept = next(each for number in count(1) if not (each := _beside(path, f"{KEPT}-{number}")).exists())
    path.chmod(0o600)
    os.link(path, kept)
    log = _beside(path, LOG)
    if log.exists():  # the new file must not be read with the old one's log
        log.chmod(0o600)
        log.rename(_beside(kept, LOG))
    _beside(path, SHARED).unlink(missing_ok=True)
    new.replace(path)
    _to_disk(path.parent)
    return kept


def _undo(path: Path) -> None:
    """What a run left behind that was cut off."""
    new = _beside(path, UNFINISHED)
    for each in (new, _beside(new, "-journal")):
        each.unlink(missing_ok=True)
    for kept in sorted(path.parent.glob(f"{path.name}{KEPT}-*")):
        if not kept.name.endswith(LOG) and kept.samefile(path):  # it was about to be replaced
            if _beside(kept, LOG).exists():
                _beside(kept, LOG).rename(_beside(path, LOG))
            kept.unlink()


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _to_disk(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def adopt(settings: Settings, left: Path, progress: Progress) -> dict[str, Any]:
    """Take over what waits in the journal ``left``; what was done. Raises BackupError and JournalError."""
    path = left / settings.journal.path if left.is_dir() else left
    if not path.is_file():
        raise BackupError(f"there is no journal at {path}")
    own = settings.journal_file
    if not settings.journal.url and own.exists() and own.samefile(path):
        raise BackupError(f"{path} is the configured journal itself")
    return asyncio.run(_adopt(SqlJournal(path), journal(settings), progress, limits(settings)))


async def _adopt(
    abandoned: SqlJournal, going_on: SqlJournal, progress: Progress, kept: ConversationLimits
) -> dict[str, Any]:
    await abandoned.open()
    try:
        await going_on.open()
        done = await Adoption(abandoned, going_on, clock=time.time, progress=progress, limits=kept).run()
    finally:
        await going_on.close()
        await abandoned.close()
    return asdict(done) | {"turned_away_as_erased": going_on.turned_away}
