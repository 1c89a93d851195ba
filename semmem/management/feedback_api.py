"""A user's word on memories that were shown, helpful or not, and the route for it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Protocol

from fastapi import APIRouter, Request
from pydantic import Field
from typing_extensions import TypedDict

from semmem.management.access import Act
from semmem.management.problems import OF_USER
from semmem.management.routes import NO_CONTROLS, Body, NewUser, ScopeName, Switch, missing, refuses, scope_in
from semmem.ports.events import Announce, FeedbackGiven, nobody_listens
from semmem.ports.store import Store


class FeedbackRecords(Protocol):
    """Which memories were called helpful, and which were not. Numbers alone, no content."""

    async def add_votes(
        self, user: str, memories: Mapping[str, float], *, helpful: bool, now: float, entries_max: int
    ) -> None:
        """One vote for each of these memories, by id; the value is when it was last said: what was voted before then
        does not count any more. Of all users' memories at most ``entries_max`` have votes, those voted on last."""


MEMORIES_MAX = 50
"""Memories in one call: as many as a request shows at most."""

Id = Annotated[str, Field(min_length=1, max_length=256, pattern=NO_CONTROLS)]


class Feedback(Body):
    """Of memories of one user; without a project all of the user's may be named."""

    memory_ids: list[Id] = Field(min_length=1, max_length=MEMORIES_MAX)
    helpful: Switch
    user_id: NewUser = None
    project_id: ScopeName = None


class FeedbackShown(TypedDict):
    """``recorded``: ids of the memories that have the vote; ``unknown``: those that the scope does not have."""

    helpful: bool
    recorded: list[str]
    unknown: list[str]


@dataclass(eq=False)
class FeedbackDesk:
    """``refresh``: what was kept is obeyed here at once. ``entries_max``: memories with votes, of all users together.
    Raises StoreError and JournalError. FeedbackGiven is announced."""

    store: Store
    records: FeedbackRecords
    refresh: Callable[[], Awaitable[None]]
    _: KW_ONLY
    entries_max: int
    clock: Callable[[], float]
    announce: Announce = nobody_listens

    async def give_feedback(self, request: Request, said: Feedback) -> FeedbackShown:
        """Whether memories helped. It moves what is shown, within bounds, and deletes nothing."""
        scope, helpful = scope_in(said, request, Act.WRITE), said.helpful
        asked = list(dict.fromkeys(said.memory_ids))  # one that is named twice has one vote
        found = [memory for each in asked if (memory := await self.store.get(scope, each)) is not None]
        said_at = {memory.id: memory.updated_at for memory in found}
        if said_at:
            limit = self.entries_max
            await self.records.add_votes(scope.user, said_at, helpful=helpful, now=self.clock(), entries_max=limit)
            await self.refresh()
            self.announce(FeedbackGiven("helpful" if helpful else "unhelpful", len(said_at)))
        unknown = [each for each in asked if each not in said_at]
        if not said_at:
            raise missing(unknown[0])
        return {"helpful": helpful, "recorded": list(said_at), "unknown": unknown}


def feedback_routes(desk: FeedbackDesk) -> APIRouter:
    routes = APIRouter()
    routes.post("/v1/feedback", **refuses(*OF_USER, "INVALID_ID"))(desk.give_feedback)
    return routes
