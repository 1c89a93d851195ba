"""Settings -> copies of a running semmem: backups, exports, imports, and the routes they are asked for by."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from semmem import __version__
from semmem.backends.sql import copies
from semmem.backup.everybody import Everybody
from semmem.backup.exporting import Exports
from semmem.backup.importing import Imports
from semmem.backup.snapshot import About, Journal, Snapshots
from semmem.config.settings import Settings
from semmem.ports.errors import JournalError
from semmem.ports.events import Announce
from semmem.reindex.with_vectors import WithVectors
from semmem.wiring.backends import FENCE_KEY_FILE, Opened
from semmem.wiring.erasure import holds
from semmem.wiring.maintenance import quota

SPOOL = "backup.tmp"
"""Below data_dir: copies while a backup is being taken."""


def snapshots(settings: Settings, opened: Opened) -> Snapshots:
    """Of what the store shows, without what is being erased; one, which takes one backup at a time. Removes what a
    backup left that was cut off by a kill."""
    about = About(
        version=__version__,
        signature=opened.backends.embedder.signature,
        dimension=settings.memory.embedding.dimension,
        fence=Path(settings.data_dir) / FENCE_KEY_FILE,
    )
    return Snapshots(
        WithVectors(opened.hidden, opened.store_backend),
        Everybody(opened.store_backend, opened.backends.journal),
        opened.gate,
        Journal(partial(_copy_journal, settings), copies.census),
        about,
        spool=Path(settings.data_dir) / SPOOL,
        clock=time.time,
    )


def _copy_journal(settings: Settings, target: Path) -> None:
    """Raises JournalError where the journal is no file."""
    if settings.journal.url:
        raise JournalError("the journal is on a server, which its own tools back up (docs/backup.md)")
    copies.copy(settings.journal_file, target)


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
