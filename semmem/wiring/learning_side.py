"""Settings -> all that a reload changes of learning and upkeep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from semmem.background import DriftLoop
from semmem.config.settings import Settings
from semmem.extraction.at_once import AtOnce
from semmem.extraction.drift import DriftWatch
from semmem.extraction.pipeline import Learning
from semmem.extraction.unlearning import Erase
from semmem.ports.events import Announce
from semmem.ports.learning import BatchRules
from semmem.retrieval.context import without_tags
from semmem.upkeep.maintenance import Maintenance
from semmem.wiring import learning, maintenance
from semmem.wiring.backends import Backends, Opened
from semmem.wiring.embedding import has_no_model

DRIFT_INTERVAL_S = 5.0


@dataclass(frozen=True, slots=True)
class LearningSide:
    """What learns from batches and from single turns, when, and what keeps memories in bounds. None of it has a state
    of its own that matters: what is under way may end with the former one."""

    batches: Learning
    rules: BatchRules
    reading: AtOnce
    upkeep: Maintenance
    drift: DriftWatch | None


def learning_side(
    settings: Settings, patient: Backends, opened: Opened, announce: Announce, erase: Erase
) -> LearningSide:
    """``patient``: the backends as learning uses them. ``erase``: what erases one memory."""
    batches = learning.learning(settings, patient, announce, erase=erase)
    return LearningSide(
        batches,
        learning.batch_rules(settings),
        learning.reading(settings, patient, batches),
        maintenance.upkeep(settings, opened.backends, opened.store_backend, announce),
        drift_watch(settings, patient),
    )


def drift_loop(watch: Callable[[], DriftWatch | None], nudge: Callable[[], None]) -> DriftLoop:
    """Calls ``nudge`` when a change of topic, seen by the watch of the moment, has made a batch due."""

    async def look(now: float) -> int:
        current = watch()
        return 0 if current is None else await current.look(now)

    return DriftLoop(look, nudge, interval_s=DRIFT_INTERVAL_S)


def drift_watch(settings: Settings, backends: Backends) -> DriftWatch | None:
    """None when changes of topic are not looked for: two messages on one topic hardly share words, so without a model
    nothing can be seen of it."""
    extraction = settings.memory.extraction
    if not extraction.drift_threshold or has_no_model(backends.embedder.signature):
        return None
    return DriftWatch(
        backends.journal,
        backends.embedder,
        threshold=extraction.drift_threshold,
        turns_min=extraction.drift_turns_min,
        look_back_s=extraction.session_idle_s,
        strip_block=without_tags,
        last_write=backends.journal.last_write,
    )
