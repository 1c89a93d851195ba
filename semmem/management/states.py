"""The states of long sessions, for whoever looks at them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from semmem.compression.rendering import rendered
from semmem.ports.names import bounded
from semmem.ports.session_states import SessionState, SessionStates
from semmem.retrieval.fence import Fence


@dataclass(frozen=True, slots=True)
class States:
    """``fence`` marks blocks, as in requests. Raises JournalError."""

    records: SessionStates
    fence: Fence
    clock: Callable[[], float]

    async def newest(self, user: str, session: str) -> SessionState | None:
        found = await self.records.session_states(user, bounded(session) or "", now=self.clock())
        return found[0] if found else None

    def block(self, found: SessionState) -> str:
        """As a request is given it."""
        return rendered(found.state, lambda inside: self.fence.mark(found.user, inside))
