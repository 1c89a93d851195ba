"""What stands between the door and the routes, each a part of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from semmem.management.rate_limits import RateLimits


@dataclass(frozen=True, slots=True)
class Guards:
    """``limits``: how often a caller may call."""

    limits: RateLimits = field(default_factory=RateLimits)
