"""Settings -> what compresses long sessions."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from semmem.background.derived import StateMaker
from semmem.compression.compressor import CompressionRules, Compressor
from semmem.compression.known_states import KnownStates
from semmem.compression.making import Making, ModelWriter
from semmem.config.settings import Settings
from semmem.config.values import DAY_S
from semmem.extraction.work import IN_THREAD
from semmem.ports.events import Announce
from semmem.request.body_work import BodyWork
from semmem.retrieval.fence import Fence
from semmem.wiring.backends import Backends

ROLE = "compression"
KEY_BYTES = 32


class Compression:
    """What stays as long as the process: states that are known here, turns under way, sessions that wait.
    ``is_erased``: whether anything of the user's is hidden."""

    def __init__(
        self, settings: Settings, backends: Backends, announce: Announce, *, is_erased: Callable[[str], bool]
    ) -> None:
        keys, journal = settings.compression, backends.journal
        self.known = KnownStates(journal, sessions_max=keys.known_sessions_max, refresh_s=keys.refresh_s)
        self.maker = StateMaker(
            making(settings, backends),
            self.known,
            announce,
            queue_max=keys.queue_max,
            again_turns=keys.renew_turns,
            clock=time.time,
        )
        self.is_erased = is_erased

    def feature(self, settings: Settings, backends: Backends, work: BodyWork, announce: Announce) -> Compressor | None:
        """None where long requests stay as they are."""
        if not settings.compression.enabled:
            return None
        rules = settings.compression.fill(CompressionRules)
        fence = fence_of(backends)
        return Compressor(self.known, self.maker.offer, fence, rules, work, announce, self.is_erased)


def making(settings: Settings, backends: Backends) -> Making:
    keys, model = settings.compression, settings.external_model(ROLE)
    writer = None
    if model is not None:
        writer = ModelWriter(
            backends.models[ROLE], tokens_max=keys.state_tokens_max, timeout_s=model.llm_timeout_seconds
        )
    return Making(
        backends.journal,
        backends.worker or IN_THREAD,
        writer,
        tokens_max=keys.state_tokens_max,
        ttl_s=min(keys.ttl_days, settings.journal.retention_days) * DAY_S,
        budget_s=keys.budget_s,
        clock=time.time,
    )


def fence_of(backends: Backends) -> Fence:
    return backends.fence or Fence(secrets.token_bytes(KEY_BYTES))
