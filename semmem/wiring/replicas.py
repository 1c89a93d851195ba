"""What keeps this process in touch with the others that share its journal."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field

from semmem.backends.sql.database import DEAF, DUE, ERASED, MISSED, OBEYED, SWITCHED
from semmem.backends.sql.journal import SqlJournal
from semmem.background import Outage, Tasks
from semmem.config.settings import Settings
from semmem.lifecycle.change_news import ChangeNews
from semmem.lifecycle.elsewhere import Elsewhere
from semmem.lifecycle.erasure import Erasure
from semmem.ports.errors import JournalError
from semmem.wiring.backends import Opened

log = logging.getLogger(__name__)

SIGNS_OF_LIFE = 5
"""So many within the time after which a replica counts as lost."""


def replicas(
    settings: Settings,
    opened: Opened,
    erasure: Erasure,
    elsewhere: Elsewhere | None,
    due: Callable[[], None],
    switched: Callable[[], None],
) -> Replicas | None:
    """None where nobody can share the journal."""
    if elsewhere is None:
        return None
    by_journal = opened.news is not None and opened.news.listening is None
    told = opened.news.changes if opened.news is not None else None
    lost_s = settings.journal.postgres.replica_lost_s
    return Replicas(
        opened.backends.journal,
        erasure,
        elsewhere,
        due,
        switched,
        told if by_journal else None,
        lost_s=lost_s,
        lost=told.everything if told is not None else _nobody_is_told,
    )


def _nobody_is_told() -> None:
    """Where there are no news."""


@dataclass(eq=False)
class Replicas:
    """Signs of life, news, and erasures of others. ``due`` is called when a batch may be due, ``switched`` when memory
    may be switched on or off for somebody. ``changes`` hears what the journal's server tells of changed memories.
    ``lost_s``: after so long without a sign of life nobody waits for a replica, and ``lost`` is called: what it wrote
    last it may not have told."""

    journal: SqlJournal
    erasure: Erasure
    elsewhere: Elsewhere
    due: Callable[[], None]
    switched: Callable[[], None]
    changes: ChangeNews | None = None
    _: KW_ONLY
    lost_s: float
    lost: Callable[[], None] = _nobody_is_told
    _counts_until: float = field(init=False, default=-math.inf)
    _look: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    _outage: Outage = field(
        init=False, default_factory=lambda: Outage(log, "look at other replicas' erasures", level=logging.WARNING)
    )

    @property
    def is_counted(self) -> bool:
        """Whether the others still wait for this one, with time to spare: half of ``lost_s``."""
        return time.monotonic() < self._counts_until

    async def join(self) -> None:
        """From here on the others wait for this one. Before it shows anything. Raises JournalError."""
        await self._show_life()

    def begin(self, tasks: Tasks) -> None:
        tasks.keep("signs of life", self._live)
        tasks.keep("news of replicas", lambda: self.journal.listen(self._heard))
        tasks.keep("erasures of replicas", self._obey)

    async def leave(self) -> None:
        with suppress(JournalError):  # they will notice
            await self.journal.leave()

    def _heard(self, word: str) -> None:
        if word in (DUE, MISSED):
            self.due()
        if word in (SWITCHED, MISSED):
            self.switched()
        if word in (ERASED, MISSED):
            self._look.set()
        if word == OBEYED:
            self.elsewhere.obeyed()
        if self.changes is not None:
            self._tell(self.changes, word)

    def _tell(self, changes: ChangeNews, word: str) -> None:
        if word == MISSED:
            changes.connected()
        elif word == DEAF:
            changes.lost("PostgreSQL is not heard")
        else:
            changes.heard(word)

    async def _live(self) -> None:
        while True:
            await asyncio.sleep(self.lost_s / SIGNS_OF_LIFE)
            with suppress(JournalError):  # whoever writes says that the server is away
                await self._show_life()

    async def _show_life(self) -> None:
        now, began = time.time(), time.monotonic()
        if await self.journal.show_life(now=now, dead_before=now - self.lost_s):
            self.lost()
        self._counts_until = began + self.lost_s / 2

    async def _obey(self) -> None:
        """As soon as there is news, and where there should have been some."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.lost_s / SIGNS_OF_LIFE):
                    await self._look.wait()
            self._look.clear()
            try:
                await self.elsewhere.obey(self.erasure.is_own)
                self._outage.worked()
            except JournalError as error:
                self._outage.failed(error)
