"""Settings -> a backup put back, while nothing runs."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from semmem.backends.sql import copies
from semmem.backends.sql.journal import SqlJournal
from semmem.backup import BackupError, erasures, folder, restoring
from semmem.backup.restoring import Progress, Restored
from semmem.config.settings import Settings
from semmem.memory import Forgetting
from semmem.ports.erasure import Mark
from semmem.wiring import models
from semmem.wiring.backends import FENCE_KEY_FILE
from semmem.wiring.stores import milvus

PENDING_MAX = 100_000


async def restore(settings: Settings, source: Path, known: Sequence[Path], progress: Progress) -> dict[str, Any]:
    """Put a backup into the configured data_dir, which must be empty; what was done.

    ``known``: journals, folders with one, or files of erasures, from which is learnt what was erased after the backup.
    Raises BackupError, and SemmemError and OSError of what it is put into; nothing can be served from it then.
    """
    _check_settings(settings)
    manifest = folder.verify(source, progress)
    _check_model(settings, manifest)
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
    await _put_together(settings, source, staging, (marks, pending), restored, progress)
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


def _check_model(settings: Settings, manifest: folder.Manifest) -> None:
    signature = models.embedder(settings).signature
    if manifest["signature"] != signature:
        raise BackupError(
            f"the backup's vectors are of the model {manifest['signature']}, the configuration names {signature}:"
            " configure the backup's model, or `semmem import` an export, which computes other vectors"
        )


async def _put_together(
    settings: Settings,
    source: Path,
    staging: Path,
    erased: tuple[Sequence[Mark], Sequence[Forgetting]],
    restored: Restored,
    progress: Progress,
) -> None:
    journal = SqlJournal(staging / settings.journal.path)
    aside = settings.model_copy(update={"data_dir": str(staging)})
    store = milvus(aside, models.embedder(settings).signature)
    await journal.open()
    try:
        await restoring.apply_erasures(journal, *erased, now=time.time(), restored=restored)
        await journal.forget_calls()
        await restoring.revoke_tokens(journal, now=time.time(), restored=restored)
        await store.open()
        await restoring.fill(store, journal, source, restored, progress)
    finally:
        await store.close()
        await journal.close()


# --- what was erased since -------------------------------------------------------------------------------------------


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
        copies.copy(path, copy)
        journal = SqlJournal(copy)
        await journal.open()
        try:
            return await journal.marks(), await journal.pending_erasures(limit=PENDING_MAX)
        finally:
            await journal.close()
