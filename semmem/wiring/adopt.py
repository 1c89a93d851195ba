"""Settings -> a journal that was left behind, taken over by the configured one, beside a running semmem or without."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from semmem.backends.sql.journal import SqlJournal
from semmem.backup import BackupError
from semmem.backup.adopting import Adoption
from semmem.backup.restoring import Progress
from semmem.config.settings import Settings
from semmem.ports.conversations import ConversationLimits
from semmem.wiring.backends import journal
from semmem.wiring.conversations import limits


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
