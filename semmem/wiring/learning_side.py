"""Settings -> all that a reload changes of learning and upkeep."""

from __future__ import annotations

from dataclasses import dataclass

from semmem.config.settings import Settings
from semmem.extraction.at_once import AtOnce
from semmem.extraction.drift import DriftWatch
from semmem.extraction.pipeline import Learning
from semmem.ports.events import Announce
from semmem.ports.learning import BatchRules
from semmem.upkeep.maintenance import Maintenance
from semmem.wiring import learning, maintenance
from semmem.wiring.backends import Backends, Opened


@dataclass(frozen=True, slots=True)
class LearningSide:
    """What learns from batches and from single turns, when, and what keeps memories in bounds. None of it has a state
    of its own that matters: what is under way may end with the former one."""

    batches: Learning
    rules: BatchRules
    reading: AtOnce
    upkeep: Maintenance
    drift: DriftWatch | None


def learning_side(settings: Settings, patient: Backends, opened: Opened, announce: Announce) -> LearningSide:
    """``patient``: the backends as learning uses them."""
    batches = learning.learning(settings, patient, announce)
    return LearningSide(
        batches,
        learning.batch_rules(settings),
        learning.reading(settings, patient, batches),
        maintenance.upkeep(settings, opened.backends, opened.store_backend, announce),
        learning.drift_watch(settings, patient),
    )
