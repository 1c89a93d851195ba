"""Settings -> copies of a running semmem: backups, exports and imports; while nothing runs, a backup put back, and a
damaged journal replaced by what can be read of it; a journal that was left behind, taken over by the configured one."""

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from semmem import __version__
from semmem.backends.sql.file import OnlyProcess, census, copy_file
from semmem.backends.sql.journal import SqlJournal
from semmem.backends.sql.recovering import Salvage, is_sound, salvage
from semmem.backup import BackupError, ErasuresLost, erasures, folder, restoring
from semmem.backup.adopting import Adoption
from semmem.backup.exporting import Everybody, Exports
from semmem.backup.importing import Imports
from semmem.backup.restoring import Progress, Restored, is_unfinished
from semmem.backup.snapshot import Snapshots
from semmem.config.settings import Settings
from semmem.memory import Forgetting
from semmem.ports.conversations import ConversationLimits
from semmem.ports.erasure import Mark
from semmem.ports.errors import JournalError
from semmem.ports.events import Announce
from semmem.reindex.movable_store import WithVectors
from semmem.wiring.backends import FENCE_KEY_FILE, Opened
from semmem.wiring.erasure import holds
from semmem.wiring.maintenance import quota
from semmem.wiring.stores import journal as configured_journal
from semmem.wiring.stores import milvus

SPOOL = "backup.tmp"
"""Below data_dir: copies while a backup is being taken."""


def snapshots(settings: Settings, opened: Opened) -> Snapshots:
    """Of what the store shows, without what is being erased; one, which takes one backup at a time. Removes what a
    backup left that was cut off by a kill."""
    return Snapshots(
        WithVectors(opened.hidden, opened.store_backend),
        Everybody(opened.store_backend, opened.backends.journal),
        opened.gate,
        partial(_copy_journal, settings),
        census,
        version=__version__,
        signature=opened.backends.embedder.signature,
        dimension=settings.memory.embedding.dimension,
        fence=Path(settings.data_dir) / FENCE_KEY_FILE,
        spool=Path(settings.data_dir) / SPOOL,
        clock=time.time,
    )


def _copy_journal(settings: Settings, target: Path) -> None:
    """Raises JournalError where the journal is no file."""
    if settings.journal.url:
        raise JournalError("the journal is on a server, which its own tools back up (docs/backup.md)")
    copy_file(settings.journal_file, target)


def exports(settings: Settings, opened: Opened) -> Exports:
    return Exports(
        opened.hidden,
        Everybody(opened.store_backend, opened.backends.journal),
        opened.backends.journal,
        signature=opened.backends.embedder.signature,
        dimension=settings.memory.embedding.dimension,
        clock=time.time,
    )


def imports(settings: Settings, opened: Opened, announce: Announce) -> Imports:
    backends = opened.backends
    return Imports(
        backends.store,
        backends.embedder,
        backends.journal,
        holds(settings, backends),
        quota(settings, backends, announce),
        dimension=settings.memory.embedding.dimension,
        wait_s=settings.memory.create_wait_s,
    )


PENDING_MAX = 100_000


async def restore(settings: Settings, source: Path, known: Sequence[Path], progress: Progress) -> dict[str, Any]:
    """Put a backup into the configured data_dir, which must be empty; what was done. ``known``: journals, folders with
    one, or files of erasures, from which is learnt what was erased after the backup. Raises BackupError, and
    SemmemError and OSError of what it is put into; nothing can be served from it then."""
    _check_settings(settings)
    manifest = folder.verify(source, progress)
    marks, pending = await _read_all(settings, known)
    data_dir, journal_name = Path(settings.data_dir), settings.journal.path
    milvus_name = settings.memory.milvus.data_dir
    places = (milvus_name, FENCE_KEY_FILE, journal_name)
    staging = restoring.prepare(data_dir, places)
    for name, place in ((folder.JOURNAL, journal_name), (folder.FENCE, FENCE_KEY_FILE)):
        if (source / name).exists():
            (staging / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, staging / place)
            (staging / place).chmod(0o600)
    restored = Restored(journal=dict(manifest["journal"]))
    await _put_together(settings, source, staging, manifest, (marks, pending), restored, progress)
    restoring.finish(data_dir, places)
    return asdict(restored) | {"taken_at": manifest["taken_at"], "marks": len(marks)}


def _check_settings(settings: Settings) -> None:
    """Raises BackupError for what is not the embedded stores'."""
    if settings.journal.url or settings.memory.backend != "milvus" or settings.memory.milvus.address:
        raise BackupError(
            "journal.url, memory.backend: only a journal in a file and Milvus Lite are restored so; for servers and"
            " Qdrant see the page on backups, or `semmem import` what was exported"
        )
    places = {"journal.path": settings.journal.path, "memory.milvus.data_dir": settings.memory.milvus.data_dir}
    for name, value in places.items():
        if Path(value).is_absolute() or ".." in Path(value).parts:
            raise BackupError(f"{name}: {value} is not below data_dir; a restore fills data_dir alone")


async def _put_together(
    settings: Settings,
    source: Path,
    staging: Path,
    manifest: folder.Manifest,
    erased: tuple[Sequence[Mark], Sequence[Forgetting]],
    restored: Restored,
    progress: Progress,
) -> None:
    """The vectors stay those of the backup's model: semmem moves them to the configured one as after an upgrade."""
    journal = SqlJournal(staging / settings.journal.path)
    aside = settings.model_copy(update={"data_dir": str(staging)})
    await journal.open()
    try:
        await restoring.apply_erasures(journal, *erased, now=time.time(), restored=restored)
        await journal.forget_calls()
        await restoring.revoke_tokens(journal, now=time.time(), restored=restored)
        async with milvus(aside, manifest["signature"], manifest["dimension"]) as store:
            await restoring.fill(store, journal, source, restored, progress)
    finally:
        await journal.close()


async def _read_all(settings: Settings, known: Sequence[Path]) -> tuple[list[Mark], list[Forgetting]]:
    marks: list[Mark] = []
    pending: list[Forgetting] = []
    for path in known:
        if path.is_file() and path.read_bytes()[:1] == b"{":
            marks += erasures.read(path.read_bytes())
            continue
        found = await _of_journal(_journal_in(path, settings))
        marks += found[0]
        pending += found[1]
    return marks, pending


def _journal_in(path: Path, settings: Settings) -> Path:
    """Raises BackupError."""
    places = (path, path / settings.journal.path, path / folder.JOURNAL)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise BackupError(f"{path} is neither a journal, nor a folder with one, nor a file of erasures")
    return found


async def _of_journal(path: Path) -> tuple[list[Mark], list[Forgetting]]:
    """Of a copy: the journal itself may be of an older schema, and stays as it is. Raises JournalError."""
    with tempfile.TemporaryDirectory(prefix="semmem-erasures-") as aside:
        copy = Path(aside) / folder.JOURNAL
        copy_file(path, copy)
        journal = SqlJournal(copy)
        await journal.open()
        try:
            return await journal.marks(), await journal.pending_erasures(limit=PENDING_MAX)
        finally:
            await journal.close()


UNFINISHED, KEPT = ".recovering", ".damaged"
LOG, SHARED = "-wal", "-shm"


def recover(settings: Settings, *, accept_lost_erasures: bool, progress: Progress) -> dict[str, Any]:
    """Put what can be read of the configured journal in its place; what was saved and lost. A sound one is left alone.
    The damaged file keeps its bytes under another name beside it. Raises ErasuresLost when it was not accepted that
    what is erased is not fully known; nothing is changed then. Raises BackupError, JournalError and OSError."""
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
    with closing(only):
        return _recover(path, accept_lost_erasures=accept_lost_erasures, progress=progress)


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
    folder.sync(path.parent)
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


def adopt(settings: Settings, left: Path, progress: Progress) -> dict[str, Any]:
    """Take over what waits in the journal ``left``; what was done. Raises BackupError and JournalError."""
    path = left / settings.journal.path if left.is_dir() else left
    if not path.is_file():
        raise BackupError(f"there is no journal at {path}")
    own = settings.journal_file
    if not settings.journal.url and own.exists() and own.samefile(path):
        raise BackupError(f"{path} is the configured journal itself")
    return asyncio.run(_adopt(settings, SqlJournal(path), progress))


async def _adopt(settings: Settings, abandoned: SqlJournal, progress: Progress) -> dict[str, Any]:
    going_on, kept = configured_journal(settings), settings.conversations.fill(ConversationLimits)
    await abandoned.open()
    try:
        await going_on.open()
        done = await Adoption(abandoned, going_on, clock=time.time, progress=progress, limits=kept).run()
    finally:
        await going_on.close()
        await abandoned.close()
    return asdict(done) | {"turned_away_as_erased": going_on.turned_away}
