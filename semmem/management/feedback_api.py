"""The route for feedback: which memories helped, and which did not.

Annotations are evaluated here (no __future__ import), because FastAPI reads those of nested functions.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from semmem.management.access import Act
from semmem.management.api import May
from semmem.management.feedback import FeedbackDesk
from semmem.management.fields import NewUser, ScopeName, missing
from semmem.memory import Scope

MEMORIES_MAX = 50
"""Memories in one call: as many as a request shows at most."""

Id = Annotated[str, Field(min_length=1, max_length=256)]


class Feedback(BaseModel):
    """Of memories of one user; without a project all of the user's may be named."""

    model_config = ConfigDict(extra="forbid")

    memory_ids: list[Id] = Field(min_length=1, max_length=MEMORIES_MAX)
    helpful: bool
    user_id: NewUser = None
    project_id: ScopeName = None


def feedback_routes(desk: FeedbackDesk, may: May) -> APIRouter:
    """What users say of what is remembered."""
    routes = APIRouter()

    @routes.post("/v1/feedback")
    async def give_feedback(request: Request, said: Feedback) -> dict[str, Any]:
        """One vote for each memory. It moves what is shown, within bounds, and deletes nothing."""
        scope = Scope(may(request, said.user_id, Act.WRITE), project=said.project_id)
        heard = await desk.hear(scope, said.memory_ids, helpful=said.helpful)
        if not heard.recorded:
            raise missing(heard.unknown[0])
        return {"helpful": said.helpful, "recorded": heard.recorded, "unknown": heard.unknown}

    return routes
