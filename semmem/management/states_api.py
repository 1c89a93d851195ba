"""The states of long sessions, and the route for one: what its requests are sent in the place of older messages."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fastapi import APIRouter, Request
from typing_extensions import TypedDict

from semmem.compression.rendering import rendered
from semmem.management.access import Act
from semmem.management.fields import UserId
from semmem.management.problems import OF_USER, Denied
from semmem.management.routes import may, refuses
from semmem.management.shown import Time, as_shown
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
            raise Denied("NOT_FOUND", "no state of such a session")
        said = {name: getattr(found.state, name) for name in ("topic", "decisions", "facts", "answers", "open")}
        tokens = estimate_tokens(states.block(found))
        return as_shown(StateShown, found, session_id=found.session, tokens=tokens, **said)

    return routes
