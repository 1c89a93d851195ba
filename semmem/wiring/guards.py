"""Settings -> what guards users and the API: memory switches."""

from __future__ import annotations

import time

from semmem.background import SwitchWatch
from semmem.config.settings import Settings
from semmem.management.switches import SwitchDesk
from semmem.request.switches import Switches
from semmem.wiring.backends import Backends


def desk(settings: Settings, backends: Backends, known: Switches, watch: SwitchWatch) -> SwitchDesk:
    """Where an administrator sets switches."""
    entries_max = settings.memory.switches.entries_max
    return SwitchDesk(backends.journal, known, watch.refresh, entries_max=entries_max, clock=time.time)
