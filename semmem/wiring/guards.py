"""Settings -> what guards users and the API: memory switches, rate limits."""

from __future__ import annotations

import time

from semmem.background import SwitchWatch
from semmem.config.settings import Settings
from semmem.management.guards import Guards
from semmem.management.rate_limits import RateLimits, RateRules
from semmem.management.switches import SwitchDesk
from semmem.ports.events import Announce
from semmem.request.switches import Switches
from semmem.wiring.backends import Backends


def guards(settings: Settings, announce: Announce) -> Guards:
    """What stands between the API's door and its routes."""
    rates = settings.listeners.api.rate_limit
    rules = RateRules(rates.calls_per_s, rates.burst, rates.failures_per_minute, rates.callers_max)
    return Guards(limits=RateLimits(rules, announce=announce))


def desk(settings: Settings, backends: Backends, known: Switches, watch: SwitchWatch) -> SwitchDesk:
    """Where an administrator sets switches."""
    entries_max = settings.memory.switches.entries_max
    return SwitchDesk(backends.journal, known, watch.refresh, entries_max=entries_max, clock=time.time)
