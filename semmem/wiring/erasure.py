"""Settings -> what forgets, and all that this process has to forget with it."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from semmem.background import Outage
from semmem.background.writers import JournalWriter
from semmem.config.settings import Settings
from semmem.lifecycle.elsewhere import Elsewhere, WaitingWords
from semmem.lifecycle.erasure import Erasure
from semmem.lifecycle.hiding_store import HidingStore
from semmem.lifecycle.holds import Holds
from semmem.lifecycle.sparing import Sparing
from semmem.memory import Forgetting
from semmem.ports.embedder import Embedder
from semmem.ports.errors import JournalError
from semmem.ports.events import Announce
from semmem.retrieval.feedback import Votes
from semmem.retrieval.index.hot_memories import HotMemories
from semmem.retrieval.ledger.ledger import Ledger
from semmem.telemetry.access_statistics import AccessRecorder
from semmem.turns.recovery import UnreadHistories
from semmem.turns.sessions import Sessions
from semmem.wiring.backends import Backends

log = logging.getLogger(__name__)

CREATE_LEASE_S = 20.0
"""How long a hold outlives a process that died: shorter than others wait for it."""


@dataclass(frozen=True, slots=True)
class Here:
    """What this process keeps of users in memory, as an erasure wants it (lifecycle.elsewhere.InProcess)."""

    writer: JournalWriter
    memories: HotMemories
    store: HidingStore
    shown: Ledger
    sessions: Sessions
    notes: AccessRecorder
    votes: Votes = field(default_factory=Votes)
    unread: UnreadHistories = field(default_factory=UnreadHistories)
    forget_states: Callable[[str], None] = lambda _user: None
    """Of all the user's long sessions, whatever is forgotten."""

    def forget(self, what: Forgetting) -> tuple[int, list[str]]:
        user = what.scope.user
        self.memories.forget_user(user)
        self.shown.forget(user)
        self.forget_states(user)
        if what.takes_user:
            self.sessions.forget(user)
        if what.takes_turns:
            self.unread.forget(what)
        return self.writer.forget(what) if what.takes_turns else (0, [])

    async def written(self, *, timeout_s: float) -> None:
        await self.writer.drained(timeout_s)

    async def settled(self, user: str, *, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self.store.puts_ended(user)
                await self.notes.settled()
        except TimeoutError:  # what comes later is refused or taken back by whoever writes it
            pass

    def forget_memories(self, user: str, memory_ids: Sequence[str] | None) -> None:
        self.shown.forget(user)  # until now a conversation could be read that said the same
        self.notes.forget(user, memory_ids)
        self.votes.forget(user, memory_ids)


def erasure(
    settings: Settings,
    backends: Backends,
    hidden: HidingStore,
    here: Here,
    waiting: WaitingWords,
    embedder: Embedder,
    announce: Announce,
) -> Erasure:
    """``elsewhere`` is None where nobody can share the journal."""
    rules, marks, elsewhere = settings.erasure, hidden.marks, None
    if settings.journal.url:
        settle_s, obey_s = rules.wait_s, rules.replicas_wait_s
        elsewhere = rules.fill(Elsewhere, backends.journal, marks, here, settle_s=settle_s, obey_s=obey_s)
    known = backends.store, hidden.everything, backends.journal
    sparing = rules.fill(Sparing, *known, embedder, hides=marks.cover, clock=time.time)
    return rules.fill(
        Erasure, *known, marks, here, waiting, sparing, clock=time.time, announce=announce, elsewhere=elsewhere
    )


async def finish_pending(erasure: Erasure, retry_s: float) -> None:
    """Finish what is pending, that of other processes as well; again and again, until cancelled."""
    outage = Outage(log, "look at pending erasures", level=logging.WARNING)
    while True:
        await asyncio.sleep(retry_s)
        try:
            await erasure.load()
            outage.worked()
        except JournalError as error:
            outage.failed(error)
        await erasure.finish_pending()


def holds(settings: Settings, backends: Backends) -> Holds:
    """One line for all of the API's calls that change memories."""
    return Holds(
        backends.journal, clock=time.time, lease_s=CREATE_LEASE_S, callers_max=settings.memory.creates_waiting_max
    )
