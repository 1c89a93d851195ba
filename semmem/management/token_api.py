"""Tokens that an administrator makes: shown once, kept as a hash, revoked at any time; their routes, and who a caller
is.

``semmem_ID_SECRET`` or ``semmem_ID_SECRET.USER``: the user that a token is bound to is in the token itself, in base64,
so that no name is kept here after an erasure. 256 random bits need no slow hash (NIST SP 800-63B, 5.1.2.2).
"""

import base64
import binascii
import hmac
import secrets
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from hashlib import sha256
from typing import Literal

from fastapi import APIRouter, Request
from pydantic import Field
from typing_extensions import TypedDict

from semmem.management.access import CALLER, TOKEN_PREFIX, Act, Caller, CallerRole, KnownTokens
from semmem.management.problems import Denied
from semmem.management.routes import Body, Moment, NewUser, UserId, needs, refuses
from semmem.management.shown import Time, as_shown
from semmem.management.switch_api import SwitchesShown, words
from semmem.ports.accounts import TokenRecords, TokenRow
from semmem.request.switches import Switches
from semmem.text.digest import digest

ID_BYTES, SECRET_BYTES = 6, 32
TOKEN_CHARS_MAX = 2048


@dataclass(eq=False)
class Tokens(KnownTokens):
    """Raises JournalError."""

    records: TokenRecords
    _: KW_ONLY
    clock: Callable[[], float]

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
            created_at=self.clock(),
            expires_at=expires_at,
        )
        await self.records.add_token(row)
        return token, row

    async def caller(self, token: str) -> tuple[TokenRow, str | None] | None:
        """The row and the user of a good token."""
        if len(token) > TOKEN_CHARS_MAX:
            return None
        body, _, user = token.removeprefix(TOKEN_PREFIX).partition(".")
        row = await self.records.token(body.partition("_")[0])
        if row is None or not hmac.compare_digest(row.token_hash, _hash(token)) or not row.is_good_at(self.clock()):
            return None
        bound_to = _user_of(user)
        return (row, bound_to) if _user_digest(bound_to) == row.user_digest else None

    async def revoke(self, *, token_id: str | None = None, user: str | None = None) -> int:
        """Revoke one, or all of a user's; how many were not revoked until now."""
        user_digest = None if user is None else _user_digest(user)
        return await self.records.revoke_tokens(now=self.clock(), token_id=token_id, user_digest=user_digest)


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

    @routes.post("/v1/tokens", status_code=201, **needs(Act.ADMINISTER, "MEMORY_NOT_AVAILABLE"))
    async def make_token(new: NewToken) -> TokenMade:
        """The answer is the only place where the token is ever shown."""
        role, user = CallerRole(new.role), new.user_id or None
        if role is not CallerRole.READER and (user is None) is (role is CallerRole.USER):
            reason = "a token of the role user has one, one of a reader may have one, others have none"
            raise Denied("INVALID_REQUEST", f"body.user_id: {reason}")
        expires_at = new.expires_at.timestamp() if new.expires_at else None
        if expires_at is not None and expires_at <= clock():
            raise Denied("INVALID_REQUEST", "body.expires_at: is in the past")
        token, row = await tokens.make(role, label=new.label, user=user, expires_at=expires_at)
        return {**_shown(row, clock()), "token": token}

    @routes.get("/v1/tokens", **needs(Act.ADMINISTER, "MEMORY_NOT_AVAILABLE"))
    async def list_tokens() -> TokensShown:
        """All of them, revoked ones too."""
        return {"tokens": [_shown(row, clock()) for row in await tokens.records.tokens()]}

    @routes.delete("/v1/tokens/{token_id}", **needs(Act.ADMINISTER, "MEMORY_NOT_AVAILABLE", "NOT_FOUND"))
    async def revoke_token(token_id: str) -> Revoked:
        """One; it opens nothing from now on."""
        if not (revoked := await tokens.revoke(token_id=token_id)):
            raise Denied("NOT_FOUND", "no such token, or it is revoked already")
        return {"success": True, "revoked": revoked}

    @routes.delete("/v1/tokens", **needs(Act.ADMINISTER, "MEMORY_NOT_AVAILABLE", "MISSING_USER_ID"))
    async def revoke_tokens(user_id: UserId = None) -> Revoked:
        """All of a user's."""
        if not user_id:
            raise Denied("MISSING_USER_ID", "name the user whose tokens shall be revoked")
        return {"success": True, "revoked": await tokens.revoke(user=user_id)}

    return routes


def _shown(row: TokenRow, now: float) -> TokenShown:
    return as_shown(TokenShown, row, bound_to_user=bool(row.user_digest), good=row.is_good_at(now))
