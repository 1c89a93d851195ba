"""Routes for tokens: made, listed, revoked, by an administrator; and who a caller is."""

from collections.abc import Callable
from typing import Literal

from fastapi import APIRouter, Request
from pydantic import Field
from typing_extensions import TypedDict

from semmem.management.access import Act, Caller, CallerRole, Denied
from semmem.management.door import CALLER
from semmem.management.fields import Body, Moment, NewUser, UserId
from semmem.management.problems import OF_ROLE, refuses
from semmem.management.shown import Time, at, time_shown
from semmem.management.switches import SwitchesShown, words
from semmem.management.tokens import Tokens
from semmem.ports.tokens import TokenRow
from semmem.request.switches import Switches

LABEL_CHARS_MAX = 100
STANDS_FOR = Literal["admin", "operator", "user", "reader"]


class NewToken(Body):
    """``user_id``: the only user it is good for; a token of the role user has one, one of an admin or operator none."""

    role: STANDS_FOR
    label: str = Field(default="", max_length=LABEL_CHARS_MAX, description="for whom or what; holds no secret")
    user_id: NewUser = None
    expires_at: Moment | None = None


class WhoAmI(TypedDict):
    """The caller. ``user_id``: the only one whose memories they may touch, null for any."""

    role: CallerRole
    may: list[str]
    user_id: str | None
    token_id: str | None
    memory_switches: SwitchesShown | None


class TokenShown(TypedDict):
    """A token without what makes it one. ``good``: neither revoked nor at its end."""

    id: str
    role: str
    label: str
    bound_to_user: bool
    created_at: Time
    expires_at: Time | None
    revoked_at: Time | None
    good: bool


class TokenMade(TokenShown):
    """``token``: shown here and never again."""

    token: str


class TokensShown(TypedDict):
    """Those that were made."""

    tokens: list[TokenShown]


class Revoked(TypedDict):
    """``revoked``: how many were good, or expired, until now."""

    success: Literal[True]
    revoked: int


def token_routes(tokens: Tokens, clock: Callable[[], float], *, switches: Switches | None = None) -> APIRouter:
    """Everything under /v1/tokens. ``switches``: those that requests obey."""
    known = switches or Switches()
    routes = APIRouter()

    @routes.get("/v1/whoami", **refuses())
    async def whoami(request: Request) -> WhoAmI:
        """The caller's role, what it allows, and the user it is bound to, with that user's own memory switches."""
        caller: Caller = request.scope[CALLER]
        return {
            "role": caller.role,
            "may": [str(act.name).lower() for act in caller.role.acts],
            "user_id": caller.user,
            "token_id": caller.token_id or None,
            "memory_switches": words(known.of_user(caller.user)) if caller.user else None,
        }

    @routes.post("/v1/tokens", status_code=201, **refuses(*OF_ROLE))
    async def make_token(request: Request, new: NewToken) -> TokenMade:
        """The answer is the only place where the token is ever shown."""
        request.scope[CALLER].must(Act.ADMINISTER)
        role, user = CallerRole(new.role), new.user_id or None
        if role is not CallerRole.READER and (user is None) is (role is CallerRole.USER):
            reason = "a token of the role user has one, one of a reader may have one, others have none"
            raise Denied(400, "INVALID_REQUEST", f"body.user_id: {reason}")
        expires_at = new.expires_at.timestamp() if new.expires_at else None
        if expires_at is not None and expires_at <= clock():
            raise Denied(400, "INVALID_REQUEST", "body.expires_at: is in the past")
        token, row = await tokens.make(role, label=new.label, user=user, expires_at=expires_at)
        return {**_shown(row, clock()), "token": token}

    @routes.get("/v1/tokens", **refuses(*OF_ROLE))
    async def list_tokens(request: Request) -> TokensShown:
        """All of them, revoked ones too."""
        request.scope[CALLER].must(Act.ADMINISTER)
        return {"tokens": [_shown(row, clock()) for row in await tokens.all()]}

    @routes.delete("/v1/tokens/{token_id}", **refuses(*OF_ROLE, "NOT_FOUND"))
    async def revoke_token(request: Request, token_id: str) -> Revoked:
        """One; it opens nothing from now on."""
        request.scope[CALLER].must(Act.ADMINISTER)
        if not (revoked := await tokens.revoke(token_id)):
            raise Denied(404, "NOT_FOUND", "no such token, or it is revoked already")
        return {"success": True, "revoked": revoked}

    @routes.delete("/v1/tokens", **refuses(*OF_ROLE, "MISSING_USER_ID"))
    async def revoke_tokens(request: Request, user_id: UserId = None) -> Revoked:
        """All of a user's."""
        request.scope[CALLER].must(Act.ADMINISTER)
        if not user_id:
            raise Denied(401, "MISSING_USER_ID", "name the user whose tokens shall be revoked")
        return {"success": True, "revoked": await tokens.revoke_of(user_id)}

    return routes


def _shown(row: TokenRow, now: float) -> TokenShown:
    return {
        "id": row.id,
        "role": row.role,
        "label": row.label,
        "bound_to_user": bool(row.user_digest),
        "created_at": at(row.created_at),
        "expires_at": time_shown(row.expires_at),
        "revoked_at": time_shown(row.revoked_at),
        "good": row.is_good_at(now),
    }
