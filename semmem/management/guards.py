"""What stands between the door and the routes, each a part of its own."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from semmem.management.answers import Send
from semmem.management.audit import Audit
from semmem.management.idempotency import Call, Idempotency, Run
from semmem.management.rate_limits import RateLimits

TOUCHED = "semmem.touched"
"""Where in the ASGI scope a call notes whose memories it touches."""


@dataclass(frozen=True, slots=True)
class Guards:
    """``limits``: how often a caller may call. ``idempotency``: what knows calls by their keys; None: keys count for
    nothing. ``audit``: who did what, to be read later; None: nobody wants to know."""

    limits: RateLimits = field(default_factory=RateLimits)
    idempotency: Idempotency | None = None
    audit: Audit | None = None

    async def call(self, call: Call, scope: MutableMapping[str, Any], run: Run, send: Send) -> None:
        """Run a call of a caller who was let in; ``scope`` is that of ASGI. Raises Denied."""
        scope[TOUCHED] = call.users
        once = run if self.idempotency is None else partial(self.idempotency.call, call, run)
        if self.audit is None:
            await once(send)
        else:
            await self.audit.call(call, scope, once, send)
