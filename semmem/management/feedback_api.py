"""The route for feedback: which memories helped, and which did not."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import Field
from typing_extensions import TypedDict

from semmem.management.access import Act
from semmem.management.asked import may
from semmem.management.feedback import FeedbackDesk
from semmem.management.fields import NO_CONTROLS, Body, NewUser, ScopeName, Switch, missing
from semmem.management.problems import OF_USER, refuses
from semmem.memory import Scope

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


def feedback_routes(desk: FeedbackDesk) -> APIRouter:
    """What users say of what is remembered."""
    routes = APIRouter()

    @routes.post("/v1/feedback", **refuses(*OF_USER, "INVALID_ID"))
    async def give_feedback(request: Request, said: Feedback) -> FeedbackShown:
        """Whether memories helped. It moves what is shown, within bounds, and deletes nothing."""
        scope = Scope(may(request, said.user_id, Act.WRITE), project=said.project_id)
        heard = await desk.hear(scope, said.memory_ids, helpful=said.helpful)
        if not heard.recorded:
            raise missing(heard.unknown[0])
        return {"helpful": said.helpful, "recorded": list(heard.recorded), "unknown": list(heard.unknown)}

    return routes
