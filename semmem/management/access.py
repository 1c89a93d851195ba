"""Who may call the API, and on whose memories: one admin token, or a trusted identity header for one's own."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from semmem.request.head import RequestHead
from semmem.request.identity import user_in_header


class Denied(Exception):
    """A refusal as an HTTP status, a stable code and a sentence, with headers that belong to the status."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})


@dataclass(frozen=True, slots=True)
class AccessRules:
    """``admin_token`` empty: nobody is admin. ``trusted_headers``: those of this listener, not those of Envoy's, which
    strips them from clients; ``user_chars_max`` as in ``IdentityRules``."""

    admin_token: str = field(default="", repr=False)
    trusted_headers: tuple[str, ...] = ()
    user_chars_max: int = 256


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: an administrator, or the user that a trusted header names."""

    user: str | None = None

    @property
    def is_admin(self) -> bool:
        return self.user is None


def authenticate(rules: AccessRules, head: RequestHead) -> Caller:
    """Who calls, from the request's head alone. Raises Denied."""
    if _has_token(rules, head.header("authorization") or ""):
        return Caller()
    user, _ = user_in_header(rules.trusted_headers, head, rules.user_chars_max)
    if user is None:
        reason = "give the admin token as a bearer token, or a trusted identity header"
        raise Denied(401, "UNAUTHENTICATED", reason, {"www-authenticate": "Bearer"})
    return Caller(user)


def user_for(caller: Caller, asked_for: str | None) -> str:
    """The user whose memories this call may touch. Raises Denied."""
    if caller.user is None:
        if not asked_for:
            raise Denied(400, "MISSING_USER_ID", "an admin call needs user_id")
        return asked_for
    if asked_for and asked_for != caller.user:
        raise Denied(404, "NOT_FOUND", "no such memory")
    return caller.user


def _has_token(rules: AccessRules, authorization: str) -> bool:
    scheme, _, token = authorization.partition(" ")
    if not rules.admin_token or scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(token.strip().encode(), rules.admin_token.encode())
