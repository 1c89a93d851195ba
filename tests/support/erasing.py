"""The parts that forget, around a store and a journal, put together as a running semmem puts them together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from semmem.backends.sql.journal import SqlJournal
from semmem.background import Tasks
from semmem.background.writers import JournalWriter
from semmem.extraction.comparing import PairJudge
from semmem.extraction.unlearning import WaitingWords
from semmem.extraction.work import InThread
from semmem.lifecycle.elsewhere import Elsewhere
from semmem.lifecycle.erasure import Erasure
from semmem.lifecycle.hiding_store import HidingStore, Marks
from semmem.lifecycle.holds import Holds
from semmem.lifecycle.sparing import Sparing
from semmem.ports.embedder import Embedder
from semmem.ports.events import Event
from semmem.ports.store import Store
from semmem.retrieval.index.hot_memories import HotMemories
from semmem.retrieval.ledger.ledger import Ledger
from semmem.telemetry.access_statistics import AccessRecorder
from semmem.telemetry.metering import ObservedStore
from semmem.telemetry.metrics import Metrics
from semmem.turns.sessions import Sessions
from semmem.wiring.erasure import Here
from semmem.wiring.replicas import Replicas
from tests.support.fakes import HashEmbedder


class Erasing:
    """``store`` is what everybody reads and writes through; ``ended`` are the results that were told."""

    def __init__(
        self,
        store: Store,
        journal: SqlJournal,
        *,
        clock: Callable[[], float],
        judge: PairJudge | None = None,
        embedder: Embedder | None = None,
        obey_s: float = 5.0,
        lost_s: float = 10.0,
        **limits: Any,
    ) -> None:
        self.tasks = Tasks()
        self.shown = Ledger()
        self.hidden = HidingStore(ObservedStore(store, Metrics(), "test"), Marks())
        self.store = HotMemories(self.hidden, spawn=self.tasks.spawn)
        self.writer = JournalWriter(journal, interval_s=0.01, retry_s=0.05)
        self.sessions = Sessions(journal)
        self.notes = AccessRecorder(journal)
        self.announced: list[Event] = []
        here = Here(self.writer, self.store, self.hidden, self.shown, self.sessions, self.notes)
        elsewhere = Elsewhere(journal, self.hidden.marks, here, obey_s=obey_s, poll_s=0.02)
        sparing = Sparing(
            self.store,
            self.hidden.everything,
            journal,
            embedder or HashEmbedder(),
            hides=self.hidden.marks.cover,
            clock=clock,
            wait_s=limits.get("wait_s", 2.0),
        )
        self.erasure = Erasure(
            self.store,
            self.hidden.everything,
            journal,
            self.hidden.marks,
            here,
            WaitingWords(journal, HashEmbedder(), judge or PairJudge(HashEmbedder(), InThread()), InThread()),
            sparing,
            clock=clock,
            announce=self.announced.append,
            elsewhere=elsewhere,
            **limits,
        )
        self.lost = 0
        self.replicas = Replicas(
            journal, self.erasure, elsewhere, lambda: None, lambda: None, lost_s=lost_s, lost=self._lost
        )
        self.holds = Holds(journal, clock=clock, poll_s=0.01)
        self.after = self.hidden.marks.after

    def _lost(self) -> None:
        self.lost += 1
