"""The states of long sessions, and the route for one: what its requests are sent in the place of older messages."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fastapi import APIRouter, Request
from typing_extensions import TypedDict

from semmem.compression.rendering import rendered
from semmem.management.access import Act, Denied
from semmem.management.asked import may
from semmem.management.fields import UserId
from semmem.management.problems import OF_USER, refuses
from semmem.management.shown import Time, time_shown
from semmem.ports.names import bounded
from semmem.ports.session_states import SessionState, SessionStates
from semmem.retrieval.context import estimate_tokens
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


class StateShown(TypedDict):
    """A state. It stands for the first ``replaced`` messages of the session's requests, instructions apart, once these
    have more than ``turns`` messages of the user's. ``tokens``: of its block, estimated."""

    session_id: str
    topic: str
    decisions: list[str]
    facts: list[str]
    answers: list[str]
    open: list[str]
    replaced: int
    turns: int
    tokens: int
    made_by: Literal["rules", "model"]
    made_at: Time | None
    expires_at: Time | None


def state_routes(states: States) -> APIRouter:
    """What is kept of sessions beside their turns."""
    routes = APIRouter()

    @routes.get("/v1/sessions/{session_id:path}/state", **refuses(*OF_USER))
    async def get_session_state(request: Request, session_id: str, user_id: UserId = None) -> StateShown:
        """The newest state of a session; none where it is short, or none was made yet."""
        found = await states.newest(may(request, user_id, Act.READ), session_id)
        if found is None:
            raise Denied(404, "NOT_FOUND", "no state of such a session")
        return _shown(found, estimate_tokens(states.block(found)))

    return routes


def _shown(found: SessionState, tokens: int) -> StateShown:
    said = found.state
    return {
        "session_id": found.session,
        "topic": said.topic,
        "decisions": list(said.decisions),
        "facts": list(said.facts),
        "answers": list(said.answers),
        "open": list(said.open),
        "replaced": found.replaced,
        "turns": found.turns,
        "tokens": tokens,
        "made_by": "model" if found.made_by == "model" else "rules",
        "made_at": time_shown(found.made_at),
        "expires_at": time_shown(found.expires_at),
    }
