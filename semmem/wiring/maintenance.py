"""Settings -> parts, as assembly.py: what goes through memories when nobody asks, and what the API does with them."""

from __future__ import annotations

import time

from semmem.config.settings import Settings
from semmem.lifecycle.holds import Holds
from semmem.management.curation import Curation
from semmem.ports.events import Announce
from semmem.ports.store import Sweepable
from semmem.upkeep.consolidation import Consolidator
from semmem.upkeep.maintenance import Maintenance, MaintenanceRules
from semmem.upkeep.summaries import Summariser, SummaryRules
from semmem.wiring import parts as assembly
from semmem.wiring.parts import DAY_S, Backends

HOUR_S = 3_600.0


def consolidator(settings: Settings, backends: Backends) -> Consolidator:
    return Consolidator(
        backends.store,
        backends.journal,
        backends.journal,
        cosine_min=settings.memory.consolidation.similarity_threshold,
    )


def upkeep(settings: Settings, backends: Backends, sweepable: Sweepable, announce: Announce) -> Maintenance:
    memory = settings.memory
    rules = MaintenanceRules(
        interval_s=memory.consolidation.interval_hours * HOUR_S,
        retention_s=memory.retention_days * DAY_S or None,
        never_used_s=memory.decay.never_used_days * DAY_S if memory.decay.enabled else None,
        importance_max=memory.decay.importance_max,
        consolidate_from=memory.consolidation.threshold_memories if memory.consolidation.enabled else None,
    )
    return Maintenance(
        backends.store,
        sweepable,
        backends.journal,
        consolidator(settings, backends),
        rules,
        announce=announce,
    )


def life(settings: Settings, backends: Backends, holds: Holds, announce: Announce) -> Curation:
    model = settings.external_model("memory_extraction")
    summariser = Summariser(
        backends.store,
        backends.journal,
        backends.journal,
        backends.embedder,
        backends.models.get("memory_extraction"),
        SummaryRules(
            chars_max=settings.memory.write_screen.fact_chars_max,
            timeout_s=model.llm_timeout_seconds if model is not None else 30.0,
        ),
    )
    return Curation(
        backends.store,
        backends.journal,
        assembly.dedup(settings, backends),
        consolidator(settings, backends),
        summariser,
        clock=time.time,
        holds=holds,
        announce=announce,
    )
