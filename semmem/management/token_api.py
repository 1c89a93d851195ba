"""Tokens that an administrator makes: shown once, kept as a hash, revoked at any time; their routes, and who a caller
is.

``semmem_ID_SECRET`` or ``semmem_ID_SECRET.USER``: the user that a token is bound to is in the token itself, in base64,
so that no name is kept here after an erasure. 256 random bits need no slow hash (NIST SP 800-63B, 5.1.2.2).
"""

import base64
import binascii
import hmac
import secrets
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Literal

from fastapi import APIRouter, Request
from pydantic import Field
from typing_extensions import TypedDict

from semmem.management.access import TOKEN_PREFIX, Act, Caller, CallerRole, Denied, KnownTokens
from semmem.management.door import CALLER
from semmem.management.fields import Body, Moment, NewUser, UserId
from semmem.management.problems import OF_ROLE, refuses
from semmem.management.shown import Time, at, time_shown
from semmem.management.switch_api import SwitchesShown, words
from semmem.ports.accounts import TokenRecords, TokenRow
from semmem.request.switches import Switches
from semmem.text.digest import digest

ID_BYTES, SECRET_BYTES = 6, 32
TOKEN_CHARS_MAX = 2048


class Tokens(KnownTokens):
    """Raises JournalError."""

    def __init__(self, records: TokenRecords, *, clock: Callable[[], float]) -> None:
        self._records = records
        self._clock = clock

    async def make(
        self, role: CallerRole, *, label: str, user: str | None, expires_at: float | None = None
    ) -> tuple[str, TokenRow]:
        """The token, which nobody can be shown again, and what is kept of it."""
        token_id = secrets.token_hex(ID_BYTES)
        token = f"{TOKEN_PREFIX}{token_id}_{secrets.token_urlsafe(SECRET_BYTES)}"
        if user is not None:
            token += "." + base64.urlsafe_b64encode(user.encode()).decode().rstrip("=")
        row = TokenRow(
            id=token_id,
            role=role,
            label=label,
            user_digest=_user_digest(user),
            token_hash=_hash(token),
            created_at=self._clock(),
            expires_at=expires_at,
        )
        await self._records.add_token(row)
        return token, row

    async def caller(self, token: str) -> tuple[TokenRow, str | None] | None:
        """The row and the user of a good token."""
        if len(token) > TOKEN_CHARS_MAX:
            return None
        body, _, user = token.removeprefix(TOKEN_PREFIX).partition(".")
        row = await self._records.token(body.partition("_")[0])
        if row is None or not hmac.compare_digest(row.token_hash, _hash(token)) or not row.is_good_at(self._clock()):
            return None
        bound_to = _user_of(user)
        return (row, bound_to) if _user_digest(bound_to) == row.user_digest else None

    async def all(self) -> Sequence[TokenRow]:
        return await self._records.tokens()

    async def revoke(self, token_id: str) -> int:
        """Revoke one; 0 when there is none, or it was revoked already."""
        return await self._records.revoke_tokens(now=self._clock(), token_id=token_id)

    async def revoke_of(self, user: str) -> int:
        """Revoke all of a user's; how many were not revoked until now."""
        return await self._records.revoke_tokens(now=self._clock(), user_digest=_user_digest(user))


def _hash(token: str) -> str:
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def _user_digest(user: str | None) -> str:
    return digest("token of", user) if user else ""


def _user_of(text: str) -> str | None:
    if not text:
        return None
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError):
        return None


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
