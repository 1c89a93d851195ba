"""What routes are declared with: the act a call needs, what it may be refused with, and whose memories it names."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request

from semmem.management.access import CALLER, TOUCHED, Act, user_for
from semmem.management.fields import Body, ProjectId, UserId
from semmem.management.problems import PROBLEMS, TABLE
from semmem.memory import Scope


def refuses(*codes: str) -> dict[str, Any]:
    """What a route's decorator is given: the codes it may answer with, beside those of EVERY_CALL and those of its
    parameters. Raises KeyError for a code that the table has not."""
    return {"openapi_extra": {TABLE: sorted({code for code in codes if PROBLEMS[code]})}}


def needs(act: Act, *codes: str) -> dict[str, Any]:
    """As ``refuses``, for a route that is only for callers whose role has the act, whatever they ask for."""

    async def allowed(request: Request) -> None:
        request.scope[CALLER].must(act)

    return {**refuses("FORBIDDEN", *codes), "dependencies": [Depends(allowed)]}


def may(request: Request, asked_for: str | None, act: Act) -> str:
    """The user whose memories a call may touch in this way, given the one that it names. Raises Denied."""
    user = user_for(request.scope[CALLER], asked_for, act)
    request.scope[TOUCHED].add(user)
    return user


def scope_in(body: Body, request: Request, act: Act) -> Scope:
    """The scope that a body names, of a user whom the caller may touch in this way. Raises Denied."""
    told = dict(body)
    user = may(request, told["user_id"], act)
    return Scope(user, told.get("project_id"), told.get("agent_id"), told.get("session_id"))


def one_or_everybody(request: Request, asked_for: str | None) -> str | None:
    """The user of whom figures are asked; None, everybody, for an operator who names nobody. Raises Denied."""
    caller = request.scope[CALLER]
    asked_for = None if caller.by_header else asked_for
    if caller.user is None and asked_for is None and Act.OPERATE in caller.role.acts:
        return None
    return may(request, asked_for, Act.READ)


async def _reader(request: Request, user_id: UserId = None, project_id: ProjectId = None) -> Scope:
    """A header that a proxy set beats the query; who only reads finds what is theirs."""
    asked_for = None if request.scope[CALLER].by_header else user_id
    return Scope(may(request, asked_for, Act.READ), project=project_id)


async def _owner(request: Request, user_id: UserId = None, project_id: ProjectId = None) -> Scope:
    return Scope(may(request, user_id, Act.WRITE), project=project_id)


Reader = Annotated[Scope, Depends(_reader)]
Owner = Annotated[Scope, Depends(_owner)]
"""The scope that the query of a call names, to be read or changed."""
