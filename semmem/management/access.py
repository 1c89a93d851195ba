"""Who may call the API, what they may do, and on whose memories.

A bearer token (the configured administrator's, one of those that were made, or a JSON Web Token of the gateway's) or a
trusted identity header says who calls. A role is a set of acts; each route names the act it needs.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from enum import Flag, StrEnum, auto
from hashlib import sha256

from semmem.management.problems import Denied
from semmem.management.web_tokens import KeysUnavailable, NotValid, VerifiedWebTokens, looks_like_one
from semmem.ports.accounts import TokenRecords, TokenRow
from semmem.ports.errors import JournalError
from semmem.request.head import RequestHead
from semmem.request.identity import user_in_header
from semmem.text.digest import digest

CALLER, TOUCHED = "semmem.caller", "semmem.touched"
"""Where in the ASGI scope a route finds who calls, and where it notes whose memories the call touches."""


class Act(Flag):
    """What a call does. READ and WRITE are of memories and what they say; OPERATE is of the running semmem, and shows
    no content; ADMINISTER is of everybody: tokens, copies, what a screen refused."""

    READ = auto()
    WRITE = auto()
    OPERATE = auto()
    ADMINISTER = auto()


class CallerRole(StrEnum):
    """Who a caller is."""

    ADMIN = "admin"
    OPERATOR = "operator"
    USER = "user"
    READER = "reader"

    @property
    def acts(self) -> Act:
        return _ACTS[self]


_ACTS = {
    CallerRole.ADMIN: Act.READ | Act.WRITE | Act.OPERATE | Act.ADMINISTER,
    CallerRole.OPERATOR: Act.OPERATE,
    CallerRole.USER: Act.READ | Act.WRITE,
    CallerRole.READER: Act.READ,
}

_MAY_NOT = {
    Act.READ: "this token may not see what memories say",
    Act.WRITE: "this token may only read",
    Act.OPERATE: "only an operator or an administrator may",
    Act.ADMINISTER: "only an administrator may",
}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. ``user``: the only one whose memories this caller may touch; None for any. ``token_id`` names the
    token in the audit log, where it was one of those that were made. ``by_header``: a proxy says who it is,
    whatever the query says."""

    role: CallerRole = CallerRole.ADMIN
    user: str | None = None
    token_id: str = ""
    by_header: bool = False

    def must(self, act: Act) -> None:
        """Raises Denied where this caller may not."""
        if act not in self.role.acts:
            raise Denied("FORBIDDEN", _MAY_NOT[act])


TOKEN_PREFIX = "semmem_"
"""So that people and scanners of secrets know one when they see it."""
ID_BYTES, SECRET_BYTES = 6, 32
TOKEN_CHARS_MAX = 2048


@dataclass(eq=False)
class Tokens:
    """Those that an administrator makes: shown once, kept as a hash, revoked at any time. Raises JournalError.

    ``semmem_ID_SECRET`` or ``semmem_ID_SECRET.USER``: the user that a token is bound to is in the token itself, in
    base64, so that no name is kept here after an erasure. 256 random bits need no slow hash (NIST SP 800-63B, 5.1.2.2).
    """

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


@dataclass(frozen=True, slots=True)
class AccessRules:
    """``admin_token`` empty: nobody is admin by it. ``trusted_headers``: those of this listener, not those of Envoy's,
    which strips them from clients; ``user_chars_max`` as in ``IdentityRules``. ``tokens`` None: none can be made."""

    admin_token: str = field(default="", repr=False)
    trusted_headers: tuple[str, ...] = ()
    user_chars_max: int = 256
    tokens: Tokens | None = None
    web_tokens: VerifiedWebTokens | None = None


async def authenticate(rules: AccessRules, head: RequestHead) -> Caller:
    """Who calls, from the request's head alone. Raises Denied."""
    token = _bearer(head.header("authorization") or "")
    if rules.admin_token and hmac.compare_digest(token.encode("utf-8", "replace"), rules.admin_token.encode()):
        return Caller()
    if token.startswith(TOKEN_PREFIX):
        return await _known(rules.tokens, token)
    if rules.web_tokens is not None and looks_like_one(token):
        return await _of_web_token(rules.web_tokens, token, rules.user_chars_max)
    user, _ = user_in_header(rules.trusted_headers, head, rules.user_chars_max)
    if user is None:
        raise _nobody("give a bearer token, or a trusted identity header")
    return Caller(CallerRole.USER, user, by_header=True)


def user_for(caller: Caller, asked_for: str | None, act: Act) -> str:
    """The user whose memories this call may touch in this way. Raises Denied."""
    caller.must(act)
    if caller.user is None:
        if not asked_for:
            raise Denied("MISSING_USER_ID", "a call that is bound to no user needs user_id")
        return asked_for
    if asked_for and asked_for != caller.user:
        raise Denied("NOT_FOUND", "no such memory")
    return caller.user


async def _known(tokens: Tokens | None, token: str) -> Caller:
    try:
        found = None if tokens is None else await tokens.caller(token)
    except JournalError:
        raise _unknown("tokens cannot be looked up now") from None
    if found is None:
        raise _nobody("this token is not known, revoked, or its time is over")
    row, user = found
    return Caller(CallerRole(row.role), user, row.id)


async def _of_web_token(web_tokens: VerifiedWebTokens, token: str, user_chars_max: int) -> Caller:
    try:
        user = await web_tokens.user_of(token)
    except NotValid as reason:
        raise _nobody(str(reason)) from None
    except KeysUnavailable as reason:
        raise _unknown(str(reason)) from None
    if len(user) > user_chars_max:
        raise _nobody("its user's name is too long")
    return Caller(CallerRole.USER, user)


def _nobody(reason: str) -> Denied:
    return Denied("UNAUTHENTICATED", reason, {"www-authenticate": "Bearer"})


def _unknown(reason: str) -> Denied:
    return Denied("IDENTITY_NOT_AVAILABLE", f"{reason}; try again later")


def _bearer(authorization: str) -> str:
    """What follows the scheme, empty for another scheme."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
