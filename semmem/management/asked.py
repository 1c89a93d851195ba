"""Whose memories a call asks for, and whether its caller may touch them."""

from typing import Annotated

from fastapi import Depends, Request

from semmem.management.access import Act, user_for
from semmem.management.door import CALLER
from semmem.management.fields import ProjectId, UserId
from semmem.management.guards import TOUCHED
from semmem.memory import Scope


def may(request: Request, asked_for: str | None, act: Act) -> str:
    """The user whose memories a call may touch in this way, given the one that it names. Raises Denied."""
    user = user_for(request.scope[CALLER], asked_for, act)
    request.scope[TOUCHED].add(user)
    return user


def _reader(request: Request, user_id: UserId = None, project_id: ProjectId = None) -> Scope:
    """A header that a proxy set beats the query; who only reads finds what is theirs."""
    asked_for = None if request.scope[CALLER].by_header else user_id
    return Scope(may(request, asked_for, Act.READ), project=project_id)


def _owner(request: Request, user_id: UserId = None, project_id: ProjectId = None) -> Scope:
    return Scope(may(request, user_id, Act.WRITE), project=project_id)


Reader = Annotated[Scope, Depends(_reader)]
Owner = Annotated[Scope, Depends(_owner)]
"""The scope that the query of a call names, to be read or changed."""
