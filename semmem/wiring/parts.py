"""What a running semmem consists of and keeps as long as it lives, whatever its settings become."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from semmem.background import AtOnceLearner, JournalWriter, Learner, RecordWatch, Warming
from semmem.backup.snapshot import Snapshots
from semmem.config.settings import Settings
from semmem.lifecycle.erasure import Erasure
from semmem.management.erasing_api import Purging
from semmem.ports.events import Announce
from semmem.ports.feedback import VoteRow
from semmem.ports.spans import Tracer
from semmem.ports.switches import SwitchRow
from semmem.reindex.movable_store import MovableStore
from semmem.reindex.reindexing import Reindexing
from semmem.request.switches import Switches
from semmem.retrieval.ledger.ledger import Ledger
from semmem.telemetry.access_statistics import AccessRecorder
from semmem.turns.seen import SeenMessages
from semmem.turns.sessions import Sessions
from semmem.turns.unread import UnreadHistories
from semmem.wiring import backup, guards, learning, maintenance, reindex, replicas, request
from semmem.wiring import erasure as erasing
from semmem.wiring.backends import Backends, Opened, disk_of
from semmem.wiring.compression import Compression, compression
from semmem.wiring.conversations import ConversationRecord
from semmem.wiring.learning_side import LearningSide, learning_side
from semmem.wiring.replicas import Replicas
from semmem.wiring.store_watch import StoreWatch
from semmem.wiring.usage import Recording

WARM_SHARE = 0.5
"""Of the time that a request gives the store, a read and a search of nothing take no more in a store that is warm."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What works beside the requests, or is shared by the doors. ``patient``: the backends as learning uses them;
    ``first``: what is learnt by until a reload; ``began``: when the process did."""

    opened: Opened
    store: StoreWatch
    embedder_tried: asyncio.Event
    patient: Backends
    first: LearningSide
    writer: JournalWriter
    learner: Learner
    at_once: AtOnceLearner | None
    uses: AccessRecorder
    sessions: Sessions
    seen: SeenMessages
    unread: UnreadHistories
    shown: Ledger
    erasure: Erasure
    purging: Purging
    snapshots: Snapshots
    housekeeping: maintenance.HousekeepingLoop
    warming: Warming
    replicas: Replicas | None
    reindexing: Reindexing
    switches: Switches
    switch_watch: RecordWatch[SwitchRow]
    usage: Recording
    conversations: ConversationRecord
    vote_watch: RecordWatch[VoteRow]
    compression: Compression
    began: float

    def can_learn(self) -> bool:
        return can_learn(self.embedder_tried, self.store)


def can_learn(embedder_tried: asyncio.Event, store: StoreWatch) -> bool:
    """Not while the embedder is being opened: after a restart the store is often there seconds before it."""
    return embedder_tried.is_set() and store.answers and store.has_room


def parts(
    settings: Settings,
    opened: Opened,
    announce: Announce,
    *,
    movable: MovableStore,
    shown: Ledger,
    embedder_tried: asyncio.Event,
    tracer: Tracer,
) -> Parts:
    """``movable``: the store as what moves it sees it; ``shown``: what sessions were."""
    backends = opened.backends
    store = StoreWatch(
        backends.store,
        disk_of(opened.store_backend),
        dimension=backends.embedder.dimension,
        quick_s=WARM_SHARE * settings.deadlines.store_ms / 1000,
    )
    patient = learning.patient(settings, backends)
    erasing_one = erasing.Later()
    first = learning_side(settings, patient, opened, announce, erasing_one)
    at_once = learning.at_once(
        settings, patient, announce, first.batches, lambda: can_learn(embedder_tried, store), tracer
    )
    writer = request.journal_writer(settings, backends, announce, at_once, tracer)
    uses, sessions = AccessRecorder(backends.journal), request.sessions(settings, backends)
    waiting = learning.waiting_words(settings, patient)
    compressing = compression(settings, patient, announce, is_erased=opened.hidden.marks.any_of)
    here = erasing.Here(
        writer,
        backends.store,
        opened.hidden.shown,
        shown,
        sessions,
        uses,
        backends.votes,
        forget_states=compressing.maker.forget,
    )
    elsewhere = erasing.elsewhere(settings, backends, opened.hidden, here)
    erasure = erasing.erasure(settings, backends, opened.hidden, here, waiting, patient.embedder, announce, elsewhere)
    erasing_one.erasure = erasure
    learner = learning.learner(settings, backends, announce, first.batches, tracer)
    switches = Switches()
    watch = guards.switch_watch(settings, backends, switches)
    return Parts(
        opened=opened,
        store=store,
        embedder_tried=embedder_tried,
        patient=patient,
        first=first,
        writer=writer,
        learner=learner,
        at_once=at_once,
        uses=uses,
        sessions=sessions,
        seen=request.seen_messages(settings, backends),
        unread=here.unread,
        shown=shown,
        erasure=erasure,
        purging=Purging([backends.journal, opened.store_backend]),
        snapshots=backup.snapshots(settings, opened),
        housekeeping=maintenance.housekeeping(settings, backends, store, announce),
        warming=Warming(backends.store, backends.journal, users_max=settings.memory.hot_cache.warm_users),
        replicas=replicas.replicas(settings, opened, erasure, elsewhere, learner.nudge, watch.look),
        reindexing=reindex.reindexing(
            settings, movable, backends.embedder, backends.journal, moved=backends.store.forget_user
        ),
        switches=switches,
        switch_watch=watch,
        usage=Recording(settings, backends.journal),
        conversations=ConversationRecord(settings, backends.journal),
        vote_watch=guards.vote_watch(settings, backends),
        compression=compressing,
        began=time.time(),
    )
